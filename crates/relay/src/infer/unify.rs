//! Unification.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use crate::*;

/// What types to be found turned out to be.
#[derive(Default)]
pub(super) struct Solver {
    found: HashMap<usize, Type>,
    /// Keeps the nodes whose addresses are the keys.
    nodes: Vec<Ref<IncompleteType>>,
}

fn address(ty: &Ref<IncompleteType>) -> usize {
    Ref::as_ptr(ty).addr()
}

impl Solver {
    /// A type as far as it is known, at its head.
    fn head(&self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        while let Type::Incomplete(open) = &ty {
            match self.found.get(&address(open)) {
                Some(next) => ty = next.clone(),
                None => return ty,
            }
        }
        ty
    }

    /// A type as far as it is known.
    pub fn resolve(&self, ty: &Type) -> Type {
        if !ty.is_open() {
            return ty.clone();
        }
        ty.map(&mut |part| match part {
            Type::Incomplete(_) => match self.head(part) {
                Type::Incomplete(open) => Some(open.into()),
                other => Some(self.resolve(&other)),
            },
            _ => None,
        })
    }

    fn occurs(&self, open: &Ref<IncompleteType>, ty: &Type) -> bool {
        match self.head(ty) {
            Type::Incomplete(other) => Ref::ptr_eq(open, &other),
            Type::Tensor(_) | Type::Var(_) => false,
            Type::Tuple(t) => t.fields.iter().any(|ty| self.occurs(open, ty)),
            Type::Call(c) => c.args.iter().any(|ty| self.occurs(open, ty)),
            Type::Ref(r) => self.occurs(open, &r.value),
            Type::Func(f) => self.occurs(open, &f.ret) || f.args.iter().any(|ty| self.occurs(open, ty)),
        }
    }

    /// Makes two types one: the result knows what either knows. The error holds the parts that do not fit.
    pub fn unify(&mut self, a: &Type, b: &Type) -> Result<Type, (Type, Type)> {
        let (a, b) = (self.head(a), self.head(b));
        if a.ptr_eq(&b) {
            return Ok(a);
        }
        let mismatch = |solver: &Solver, a: &Type, b: &Type| Err((solver.resolve(a), solver.resolve(b)));
        match (&a, &b) {
            (Type::Incomplete(open), other) | (other, Type::Incomplete(open)) => {
                if self.occurs(open, other) {
                    return mismatch(self, &a, &b);
                }
                self.found.insert(address(open), other.clone());
                self.nodes.push(open.clone());
                Ok(other.clone())
            }
            (Type::Tensor(x), Type::Tensor(y)) => match unified_tensor(x, y) {
                Some(ty) => Ok(ty),
                None => mismatch(self, &a, &b),
            },
            (Type::Tuple(x), Type::Tuple(y)) if x.fields.len() == y.fields.len() => {
                Ok(Type::tuple(self.unify_all(&x.fields, &y.fields)?))
            }
            (Type::Call(x), Type::Call(y)) if x.name == y.name && x.args.len() == y.args.len() => {
                Ok(Type::data(x.name.clone(), self.unify_all(&x.args, &y.args)?))
            }
            (Type::Ref(x), Type::Ref(y)) => Ok(Type::reference(self.unify(&x.value, &y.value)?)),
            (Type::Func(x), Type::Func(y))
                if x.args.len() == y.args.len() && x.type_params.len() == y.type_params.len() =>
            {
                let own: Vec<Type> = x.type_params.iter().map(Type::from).collect();
                let args: Vec<Type> = y.args.iter().map(|ty| ty.substitute(&y.type_params, &own)).collect();
                let ret = y.ret.substitute(&y.type_params, &own);
                let (args, ret) = (self.unify_all(&x.args, &args)?, self.unify(&x.ret, &ret)?);
                Ok(Ref::new(FuncType { type_params: x.type_params.clone(), args, ret }).into())
            }
            // A polymorphic function stands where one of its instances is wanted.
            (Type::Func(x), Type::Func(y)) if x.args.len() == y.args.len() && y.type_params.is_empty() => {
                let fresh: Vec<Type> = x.type_params.iter().map(|_| Type::fresh()).collect();
                let args: Vec<Type> = x.args.iter().map(|ty| ty.substitute(&x.type_params, &fresh)).collect();
                let instance = Type::func(args, x.ret.substitute(&x.type_params, &fresh));
                self.unify(&instance, &b)
            }
            (Type::Func(x), Type::Func(y)) if x.args.len() == y.args.len() && x.type_params.is_empty() => {
                self.unify(&b, &a)
            }
            _ => mismatch(self, &a, &b),
        }
    }

    fn unify_all(&mut self, a: &[Type], b: &[Type]) -> Result<Vec<Type>, (Type, Type)> {
        a.iter().zip(b).map(|(a, b)| self.unify(a, b)).collect()
    }

    /// What two closed types have in common: dimensions in which they differ are unknown. `None` where they are not alike
    /// otherwise, or something is to be found yet.
    pub fn join(&self, a: &Type, b: &Type) -> Option<Type> {
        match (a, b) {
            _ if a.ptr_eq(b) && !a.is_open() => Some(a.clone()),
            (Type::Tensor(x), Type::Tensor(y)) if x.dtype == y.dtype && x.shape.len() == y.shape.len() => {
                let dims = x.shape.iter().zip(&y.shape).map(|(p, q)| if p == q { *p } else { ANY });
                Some(Type::tensor(dims.collect::<Vec<_>>(), x.dtype))
            }
            (Type::Tuple(x), Type::Tuple(y)) if x.fields.len() == y.fields.len() => {
                let fields =
                    x.fields.iter().zip(&y.fields).map(|(a, b)| self.join(a, b)).collect::<Option<Vec<_>>>()?;
                Some(Type::tuple(fields))
            }
            _ => None,
        }
    }
}

/// Two tensor types as one: a dimension that is not known is the other's.
fn unified_tensor(x: &TensorType, y: &TensorType) -> Option<Type> {
    if x.dtype != y.dtype || x.shape.len() != y.shape.len() {
        return None;
    }
    let dim = |(a, b): (&i64, &i64)| match (*a, *b) {
        (ANY, b) => Some(b),
        (a, ANY) => Some(a),
        (a, b) => (a == b).then_some(a),
    };
    let shape = x.shape.iter().zip(&y.shape).map(dim).collect::<Option<Vec<_>>>()?;
    Some(Type::tensor(shape, x.dtype))
}

/// A type as messages of the reference show it: `TensorType([3], float32)`.
pub(crate) fn raw_text(ty: &Type) -> String {
    match ty {
        Type::Tensor(t) => {
            let dims: Vec<String> =
                t.shape.iter().map(|d| if *d == ANY { "?".into() } else { d.to_string() }).collect();
            format!("TensorType([{}], {})", dims.join(", "), t.dtype)
        }
        Type::Tuple(t) => {
            format!("TupleTypeNode([{}])", t.fields.iter().map(raw_text).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
