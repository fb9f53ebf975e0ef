//! Variables, of scalar and of graph expressions alike.

use relaxide_ffi::{DataType, Object, Ref};

use crate::{Span, Type};

/// A variable. Identity is the node's address: two variables of one name are two variables.
#[derive(Object, Debug)]
#[object(key = "ir.Var", var)]
pub struct Var {
    /// The name it prints by; a hint, not an identity.
    #[field(ignore)]
    pub name: String,
    /// What it holds.
    pub ty: Type,
    /// Where it was written.
    #[field(ignore)]
    pub span: Option<Ref<Span>>,
}

impl Var {
    /// A fresh variable of any type.
    pub fn new(name: impl Into<String>, ty: impl Into<Type>) -> Ref<Var> {
        Ref::new(Var { name: name.into(), ty: ty.into(), span: None })
    }

    /// A fresh scalar variable.
    pub fn prim(name: impl Into<String>, dtype: DataType) -> Ref<Var> {
        Var::new(name, Type::prim(dtype))
    }

    /// A fresh 64-bit variable, as symbolic dimensions are.
    pub fn dim(name: impl Into<String>) -> Ref<Var> {
        Var::prim(name, DataType::int(64))
    }

    /// The scalar type it holds; pointers count as handles.
    pub fn dtype(&self) -> DataType {
        match &self.ty {
            Type::Prim(ty) => ty.dtype,
            Type::Pointer(_) => DataType::handle(),
            _ => DataType::void(),
        }
    }
}
