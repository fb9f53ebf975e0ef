//! The types of Relay.
//!
//! A type is closed: tensors have a rank that is known, and a dimension is a number or [`ANY`]. What inference has not
//! found yet is an [`IncompleteType`], whose identity is its address; solving replaces it.

use relaxide_ffi::{DataType, Object, ObjectEnum, Ref};

/// A dimension that is known when the program runs, written `?`.
pub const ANY: i64 = -1;

/// What an expression evaluates to.
#[derive(ObjectEnum, Debug)]
pub enum Type {
    /// A tensor; a scalar is one without dimensions.
    Tensor(Ref<TensorType>),
    /// A tuple.
    Tuple(Ref<TupleType>),
    /// A function.
    Func(Ref<FuncType>),
    /// A parameter of a function or of a data type.
    Var(Ref<TypeVar>),
    /// A data type with its arguments.
    Call(Ref<TypeCall>),
    /// A reference to a value that may change.
    Ref(Ref<RefType>),
    /// Not known yet.
    Incomplete(Ref<IncompleteType>),
}

/// The type of a tensor.
#[derive(Object, Debug)]
#[object(key = "relay.TensorType")]
pub struct TensorType {
    /// The dimensions, [`ANY`] where unknown.
    pub shape: Vec<i64>,
    /// The element type; void where an operator left it open.
    pub dtype: DataType,
}

/// The type of a tuple.
#[derive(Object, Debug)]
#[object(key = "relay.TupleType")]
pub struct TupleType {
    /// The types of its fields.
    pub fields: Vec<Type>,
}

/// The type of a function.
#[derive(Object, Debug)]
#[object(key = "relay.FuncType")]
pub struct FuncType {
    /// Type parameters, bound in what follows.
    #[field(def)]
    pub type_params: Vec<Ref<TypeVar>>,
    /// Types of the parameters.
    pub args: Vec<Type>,
    /// Type of the result.
    pub ret: Type,
}

/// A type parameter. Identity is the address.
#[derive(Object, Debug)]
#[object(key = "relay.TypeVar", var)]
pub struct TypeVar {
    /// The name it prints by.
    #[field(ignore)]
    pub name: String,
}

/// A data type with its arguments.
#[derive(Object, Debug)]
#[object(key = "relay.TypeCall")]
pub struct TypeCall {
    /// The data type's name in the module.
    pub name: String,
    /// Its arguments.
    pub args: Vec<Type>,
}

/// The type of a reference.
#[derive(Object, Debug)]
#[object(key = "relay.RefType")]
pub struct RefType {
    /// What it refers to.
    pub value: Type,
}

/// A type that inference has to find. To inference each is one of its own, by its address; programs that are compared may each have one
/// in the same place.
#[derive(Object, Debug)]
#[object(key = "relay.IncompleteType")]
pub struct IncompleteType {}

impl Type {
    /// A tensor.
    pub fn tensor(shape: impl Into<Vec<i64>>, dtype: DataType) -> Type {
        Ref::new(TensorType { shape: shape.into(), dtype }).into()
    }

    /// A tensor without dimensions.
    pub fn scalar(dtype: DataType) -> Type {
        Type::tensor([], dtype)
    }

    /// A tuple.
    pub fn tuple(fields: impl Into<Vec<Type>>) -> Type {
        Ref::new(TupleType { fields: fields.into() }).into()
    }

    /// A function without type parameters.
    pub fn func(args: impl Into<Vec<Type>>, ret: Type) -> Type {
        Ref::new(FuncType { type_params: Vec::new(), args: args.into(), ret }).into()
    }

    /// A data type with its arguments.
    pub fn data(name: impl Into<String>, args: impl Into<Vec<Type>>) -> Type {
        Ref::new(TypeCall { name: name.into(), args: args.into() }).into()
    }

    /// A reference.
    pub fn reference(value: Type) -> Type {
        Ref::new(RefType { value }).into()
    }

    /// A type to be found.
    pub fn fresh() -> Type {
        Ref::new(IncompleteType {}).into()
    }

    /// The tensor type, if this is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self {
            Type::Tensor(ty) => Some(ty),
            _ => None,
        }
    }

    /// The fields, if it is a tuple.
    pub fn as_tuple(&self) -> Option<&[Type]> {
        match self {
            Type::Tuple(ty) => Some(&ty.fields),
            _ => None,
        }
    }

    /// Whether anything in it is to be found yet.
    pub fn is_open(&self) -> bool {
        match self {
            Type::Incomplete(_) => true,
            Type::Tensor(_) | Type::Var(_) => false,
            Type::Tuple(t) => t.fields.iter().any(Type::is_open),
            Type::Func(f) => f.ret.is_open() || f.args.iter().any(Type::is_open),
            Type::Call(c) => c.args.iter().any(Type::is_open),
            Type::Ref(r) => r.value.is_open(),
        }
    }

    /// The type with what stands for some of its parts; parts without change are shared.
    pub fn map(&self, part: &mut dyn FnMut(&Type) -> Option<Type>) -> Type {
        if let Some(other) = part(self) {
            return other;
        }
        let mut all = |list: &[Type]| list.iter().map(|ty| ty.map(part)).collect::<Vec<_>>();
        match self {
            Type::Tensor(_) | Type::Var(_) | Type::Incomplete(_) => self.clone(),
            Type::Tuple(t) => Type::tuple(all(&t.fields)),
            Type::Call(c) => Type::data(c.name.clone(), all(&c.args)),
            Type::Ref(r) => Type::reference(r.value.map(part)),
            Type::Func(f) => {
                let args = all(&f.args);
                Ref::new(FuncType { type_params: f.type_params.clone(), args, ret: f.ret.map(part) }).into()
            }
        }
    }

    /// The type with types in the place of type parameters.
    pub fn substitute(&self, params: &[Ref<TypeVar>], args: &[Type]) -> Type {
        if params.is_empty() {
            return self.clone();
        }
        self.map(&mut |ty| match ty {
            Type::Var(v) => params.iter().position(|p| Ref::ptr_eq(p, v)).and_then(|i| args.get(i).cloned()),
            _ => None,
        })
    }

    /// The tensors of a value of this type, tuples flattened; `None` if it has parts of other kinds.
    pub fn flat_tensors(&self) -> Option<Vec<Ref<TensorType>>> {
        match self {
            Type::Tensor(t) => Some(vec![t.clone()]),
            Type::Tuple(t) => t.fields.iter().map(Type::flat_tensors).collect::<Option<Vec<_>>>().map(|l| l.concat()),
            _ => None,
        }
    }
}

impl TensorType {
    /// Whether all dimensions are numbers.
    pub fn is_static(&self) -> bool {
        self.shape.iter().all(|dim| *dim != ANY)
    }
}
