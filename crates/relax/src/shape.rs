//! Symbolic shapes: broadcasting, equality, and matching of one against another.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{FuncType, TensorType, Type, Var, same_place};

use crate::Expr;

pub use relaxide_ir::arith::dims::{all_equal as same_dims, equal as prove_equal};

/// What broadcasting two shapes gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Broadcast {
    /// The dimensions.
    Known(Vec<PrimExpr>),
    /// They may or may not fit: dimensions at which that is open, counted from the front of the result.
    Open(Vec<usize>),
    /// They do not fit, at this dimension counted from the front of the result.
    Mismatch(usize),
}

/// Broadcasts two shapes: aligned at the end, dimensions must be equal or one of them 1.
pub fn broadcast(a: &[PrimExpr], b: &[PrimExpr]) -> Broadcast {
    let ndim = a.len().max(b.len());
    let at = |dims: &[PrimExpr], i: usize| (i + dims.len()).checked_sub(ndim).and_then(|j| dims.get(j).cloned());
    let mut out = Vec::with_capacity(ndim);
    let mut open = Vec::new();
    for i in 0..ndim {
        match (at(a, i), at(b, i)) {
            (Some(x), None) | (None, Some(x)) => out.push(x),
            (Some(x), Some(y)) if x.is_int(1) || prove_equal(&x, &y) => out.push(y),
            (Some(x), Some(y)) if y.is_int(1) => out.push(x),
            (Some(x), Some(y)) if x.as_int().is_some() && y.as_int().is_some() => return Broadcast::Mismatch(i),
            _ => open.push(i),
        }
    }
    if open.is_empty() { Broadcast::Known(out) } else { Broadcast::Open(open) }
}

/// The dimensions of a tensor's type, where they are known.
pub fn dims_of(ty: &Type) -> Option<Vec<PrimExpr>> {
    ty.as_tensor()?.shape.clone()
}

/// The dimensions of a value, where it is a tensor and they are known.
pub fn dims(e: &Expr) -> Option<Vec<PrimExpr>> {
    dims_of(&e.ty())
}

/// How many elements a tensor of these dimensions has.
pub fn num_elements(dims: &[PrimExpr]) -> PrimExpr {
    dims.iter().fold(PrimExpr::from(1), |n, d| n * d)
}

/// The dimensions as numbers, where all are.
pub fn const_dims(dims: &[PrimExpr]) -> Option<Vec<i64>> {
    dims.iter().map(PrimExpr::as_int).collect()
}

/// Whether two types are equal whatever their symbolic variables are.
pub fn same_type(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Prim(a), Type::Prim(b)) => a.dtype == b.dtype,
        (Type::Tensor(a), Type::Tensor(b)) => {
            a.dtype == b.dtype
                && a.ndim == b.ndim
                && same_place(a.vdevice.as_deref(), b.vdevice.as_deref())
                && same_known(&a.shape, &b.shape)
        }
        (Type::Shape(a), Type::Shape(b)) => a.ndim == b.ndim && same_known(&a.values, &b.values),
        (Type::Tuple(a), Type::Tuple(b)) => same_types(&a.fields, &b.fields),
        (Type::Func(a), Type::Func(b)) => same_func(a, b),
        (Type::Pointer(a), Type::Pointer(b)) => a.scope == b.scope && same_type(&a.element, &b.element),
        (Type::String(_), Type::String(_)) | (Type::Any(_), Type::Any(_)) | (Type::Missing(_), Type::Missing(_)) => {
            true
        }
        _ => false,
    }
}

fn same_types(a: &[Type], b: &[Type]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| same_type(x, y))
}

fn same_known(a: &Option<Vec<PrimExpr>>, b: &Option<Vec<PrimExpr>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same_dims(a, b),
        (None, None) => true,
        _ => false,
    }
}

fn same_func(a: &FuncType, b: &FuncType) -> bool {
    let params = match (&a.params, &b.params) {
        (Some(a), Some(b)) => same_types(a, b),
        (None, None) => true,
        _ => false,
    };
    params && a.pure == b.pure && a.derive == b.derive && same_type(&a.ret, &b.ret)
}

/// Whether no value is of both types, as far as the compiler can tell.
pub fn contradict(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Any(_) | Type::Missing(_), _) | (_, Type::Any(_) | Type::Missing(_)) => false,
        (Type::Tensor(a), Type::Tensor(b)) => {
            let dtypes = !a.dtype.is_void() && !b.dtype.is_void() && a.dtype != b.dtype;
            dtypes || dims_contradict((&a.shape, a.ndim), (&b.shape, b.ndim))
        }
        (Type::Shape(a), Type::Shape(b)) => dims_contradict((&a.values, a.ndim), (&b.values, b.ndim)),
        (Type::Tuple(a), Type::Tuple(b)) => {
            a.fields.len() != b.fields.len() || a.fields.iter().zip(&b.fields).any(|(x, y)| contradict(x, y))
        }
        _ => std::mem::discriminant(a) != std::mem::discriminant(b),
    }
}

/// Whether every value of the type `b` is surely of the type `a`, which may say less.
pub fn includes(a: &Type, b: &Type) -> bool {
    let dims = |a: &Option<Vec<PrimExpr>>, b: &Option<Vec<PrimExpr>>, ranks: (i64, i64)| match (a, b) {
        (Some(a), Some(b)) => same_dims(a, b),
        (Some(_), None) => false,
        (None, _) => ranks.0 < 0 || ranks.0 == ranks.1,
    };
    match (a, b) {
        (Type::Any(_), _) => true,
        (Type::Tensor(a), Type::Tensor(b)) => {
            let places = a.vdevice.is_none() || same_place(a.vdevice.as_deref(), b.vdevice.as_deref());
            (a.dtype.is_void() || a.dtype == b.dtype) && places && dims(&a.shape, &b.shape, (a.ndim, b.ndim))
        }
        (Type::Shape(a), Type::Shape(b)) => dims(&a.values, &b.values, (a.ndim, b.ndim)),
        (Type::Tuple(a), Type::Tuple(b)) => {
            a.fields.len() == b.fields.len() && a.fields.iter().zip(&b.fields).all(|(a, b)| includes(a, b))
        }
        _ => same_type(a, b),
    }
}

/// The same of dimensions, where they are known, and ranks.
fn dims_contradict(a: (&Option<Vec<PrimExpr>>, i64), b: (&Option<Vec<PrimExpr>>, i64)) -> bool {
    let ((Some(x), _), (Some(y), _)) = (a, b) else { return a.1 >= 0 && b.1 >= 0 && a.1 != b.1 };
    let differ = |x: &PrimExpr, y: &PrimExpr| matches!((x.as_int(), y.as_int()), (Some(x), Some(y)) if x != y);
    x.len() != y.len() || x.iter().zip(y).any(|(x, y)| differ(x, y))
}

/// Calls `f` with every dimension in a type.
pub fn for_each_dim(ty: &Type, f: &mut dyn FnMut(&PrimExpr)) {
    match ty {
        Type::Tensor(t) => t.shape.iter().flatten().for_each(f),
        Type::Shape(t) => t.values.iter().flatten().for_each(f),
        Type::Tuple(t) => t.fields.iter().for_each(|t| for_each_dim(t, f)),
        _ => {}
    }
}

/// The symbolic variables of types that stand alone as a dimension somewhere, which therefore a value of the type binds.
pub fn defined_vars<'a>(types: impl IntoIterator<Item = &'a Type>) -> Vec<Ref<Var>> {
    let mut vars = Vec::new();
    for ty in types {
        for_each_dim(ty, &mut |dim| {
            if let Some(var) = dim.as_var().filter(|v| !vars.contains(*v)) {
                vars.push(var.clone());
            }
        });
    }
    vars
}

/// All symbolic variables of types, in order of first occurrence.
pub fn vars_of<'a>(types: impl IntoIterator<Item = &'a Type>) -> Vec<Ref<Var>> {
    let mut vars: Vec<Ref<Var>> = Vec::new();
    for ty in types {
        for_each_dim(ty, &mut |dim| {
            for var in free_vars(dim) {
                if !vars.contains(&var) {
                    vars.push(var);
                }
            }
        });
    }
    vars
}

/// Puts expressions in the place of symbolic variables in a type.
pub fn substitute_type(ty: &Type, map: &VarMap) -> Type {
    if map.is_empty() { ty.clone() } else { map_dims(ty, &|dim| substitute(dim, map)) }
}

/// A type whose dimensions are made anew.
pub fn map_dims(ty: &Type, dim: &dyn Fn(&PrimExpr) -> PrimExpr) -> Type {
    let dims = |list: &Option<Vec<PrimExpr>>| list.as_ref().map(|list| list.iter().map(dim).collect::<Vec<_>>());
    match ty {
        Type::Tensor(t) => {
            Ref::new(TensorType { shape: dims(&t.shape), dtype: t.dtype, ndim: t.ndim, vdevice: t.vdevice.clone() })
                .into()
        }
        Type::Shape(t) => Ref::new(relaxide_ir::ShapeType { values: dims(&t.values), ndim: t.ndim }).into(),
        Type::Tuple(t) => Type::tuple(t.fields.iter().map(|t| map_dims(t, dim)).collect::<Vec<_>>()),
        _ => ty.clone(),
    }
}

/// A type without the dimensions that mention variables outside `known`, for a value that leaves their scope.
pub fn erase_type(ty: &Type, known: &dyn Fn(&Ref<Var>) -> bool) -> Type {
    let keep = |list: &[PrimExpr]| list.iter().flat_map(free_vars).all(|v| known(&v));
    match ty {
        Type::Tensor(t) => match &t.shape {
            Some(dims) if !keep(dims) => {
                Ref::new(TensorType { shape: None, dtype: t.dtype, ndim: t.ndim, vdevice: t.vdevice.clone() }).into()
            }
            _ => ty.clone(),
        },
        Type::Shape(t) => match &t.values {
            Some(dims) if !keep(dims) => Type::shape_ndim(t.ndim),
            _ => ty.clone(),
        },
        Type::Tuple(t) => Type::tuple(t.fields.iter().map(|t| erase_type(t, known)).collect::<Vec<_>>()),
        _ => ty.clone(),
    }
}

/// Binds the symbolic variables of a parameter's type to what an argument's type has in their place. Dimensions that the
/// argument does not know stay unbound.
pub fn bind_dims(param: &Type, arg: &Type, map: &mut VarMap) {
    let mut bind = |params: &Option<Vec<PrimExpr>>, args: &Option<Vec<PrimExpr>>| {
        let (Some(params), Some(args)) = (params, args) else { return };
        for (param, arg) in params.iter().zip(args) {
            if let PrimExpr::Var(var) = param {
                map.entry(var.clone()).or_insert_with(|| arg.clone());
            }
        }
    };
    match (param, arg) {
        (Type::Tensor(p), Type::Tensor(a)) => bind(&p.shape, &a.shape),
        (Type::Shape(p), Type::Shape(a)) => bind(&p.values, &a.values),
        (Type::Tuple(p), Type::Tuple(a)) => p.fields.iter().zip(&a.fields).for_each(|(p, a)| bind_dims(p, a, map)),
        _ => {}
    }
}

/// The type of a call of a function of known signature.
pub fn call_type(func: &FuncType, args: &[Type]) -> Type {
    let Some(params) = &func.params else { return func.ret.clone() };
    let mut map = VarMap::new();
    params.iter().zip(args).for_each(|(p, a)| bind_dims(p, a, &mut map));
    let bound: HashMap<Ref<Var>, ()> = map.keys().map(|v| (v.clone(), ())).collect();
    let own = vars_of(params);
    let known = |v: &Ref<Var>| bound.contains_key(v) || !own.contains(v);
    substitute_type(&erase_type(&func.ret, &known), &map)
}

/// What is common to two types: what a value has that may be of either.
pub fn unify(a: &Type, b: &Type) -> Type {
    if same_type(a, b) {
        return a.clone();
    }
    match (a, b) {
        (Type::Tensor(a), Type::Tensor(b)) => {
            let shape = a.shape.clone().filter(|_| same_known(&a.shape, &b.shape));
            let ndim = if a.ndim == b.ndim { a.ndim } else { -1 };
            let dtype = if a.dtype == b.dtype { a.dtype } else { DataType::void() };
            Ref::new(TensorType {
                shape,
                dtype,
                ndim,
                vdevice: a.vdevice.clone().filter(|_| same_place(a.vdevice.as_deref(), b.vdevice.as_deref())),
            })
            .into()
        }
        (Type::Shape(a), Type::Shape(b)) => Type::shape_ndim(if a.ndim == b.ndim { a.ndim } else { -1 }),
        (Type::Tuple(a), Type::Tuple(b)) if a.fields.len() == b.fields.len() => {
            Type::tuple(a.fields.iter().zip(&b.fields).map(|(a, b)| unify(a, b)).collect::<Vec<_>>())
        }
        (Type::Func(a), Type::Func(b)) => unify_funcs(a, b),
        _ => Type::any(),
    }
}

/// What is common to two functions. Dimensions of the result that no parameter binds any more are forgotten.
fn unify_funcs(a: &FuncType, b: &FuncType) -> Type {
    let (ret, pure) = (unify(&a.ret, &b.ret), a.pure && b.pure);
    match (&a.params, &b.params) {
        (Some(x), Some(y)) if x.len() == y.len() => {
            let params: Vec<Type> = x.iter().zip(y).map(|(x, y)| unify(x, y)).collect();
            let bound = vars_of(&params);
            let own = vars_of(x.iter().chain(y));
            Type::func(params, erase_type(&ret, &|v| bound.contains(v) || !own.contains(v)), pure)
        }
        _ => Type::packed_func(ret, pure),
    }
}

/// The index into an operand of shape `from` that belongs to an index into the shape `to` that it is broadcast to.
pub fn broadcast_index(from: &[PrimExpr], axes: &[PrimExpr], to: &[PrimExpr]) -> Vec<PrimExpr> {
    let skip = to.len().saturating_sub(from.len());
    let at = |(i, dim): (usize, &PrimExpr)| {
        let repeated = dim.is_int(1) && !to.get(i + skip).is_some_and(|d| d.is_int(1));
        if repeated { PrimExpr::from(0) } else { axes.get(i + skip).cloned().unwrap_or_else(|| PrimExpr::from(0)) }
    };
    from.iter().enumerate().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dims(list: &[&str]) -> Vec<PrimExpr> {
        thread_local!(static VARS: std::cell::RefCell<HashMap<String, Ref<Var>>> = Default::default());
        let var = |name: &str| {
            VARS.with(|vars| vars.borrow_mut().entry(name.to_string()).or_insert_with(|| Var::dim(name)).clone())
        };
        list.iter().map(|d| d.parse::<i64>().map_or_else(|_| PrimExpr::Var(var(d)), PrimExpr::from)).collect()
    }

    #[test]
    fn broadcasting_keeps_what_is_known_and_says_what_is_open() {
        let known = |a: &[&str], b: &[&str], out: &[&str]| match broadcast(&dims(a), &dims(b)) {
            Broadcast::Known(got) => assert!(same_dims(&got, &dims(out)), "{a:?} and {b:?} gave {got:?}"),
            other => panic!("{a:?} and {b:?} gave {other:?}"),
        };
        known(&["n", "1"], &["n", "m"], &["n", "m"]);
        known(&["m"], &["n", "1"], &["n", "m"]);
        known(&[], &["3"], &["3"]);
        assert_eq!(broadcast(&dims(&["n"]), &dims(&["m"])), Broadcast::Open(vec![0]));
        assert_eq!(broadcast(&dims(&["n", "3"]), &dims(&["n", "4"])), Broadcast::Mismatch(1));
    }

    #[test]
    fn a_call_binds_the_callee_s_variables() {
        let (n, m) = (Var::dim("n"), Var::dim("m"));
        let f32 = DataType::float(32);
        let func = FuncType {
            params: Some(vec![Type::tensor([PrimExpr::from(&n)], f32)]),
            ret: Type::tensor([PrimExpr::from(&n) * 2], f32),
            pure: true,
            derive: None,
        };
        let ty = call_type(&func, &[Type::tensor([PrimExpr::from(&m)], f32)]);
        assert!(same_type(&ty, &Type::tensor([PrimExpr::from(&m) * 2], f32)));
        let unknown = call_type(&func, &[Type::tensor_ndim(1, f32)]);
        assert!(same_type(&unknown, &Type::tensor_ndim(1, f32)));
    }
}
