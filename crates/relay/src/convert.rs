//! Types of Relay as types of Relax, and back.
//!
//! A dimension that Relay does not know is a symbolic variable of its own in Relax; what Relax computes with such variables
//! is unknown to Relay again, unless it is a number.

use relaxide_ir::{Type as RxType, Var as RxVar};
use relaxide_relax::shape::const_dims;

use crate::{ANY, Type};

/// Names for dimensions that Relay does not know: `n`, then `n1`, `n2` …
#[derive(Default)]
pub struct DimNames(usize);

impl DimNames {
    fn next(&mut self) -> String {
        let number = self.0;
        self.0 += 1;
        if number == 0 { "n".into() } else { format!("n{number}") }
    }
}

/// A type that is not one of tensors and tuples, where Relax is to have it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("operators take tensors and tuples of them, not {0}")]
pub struct NotOfTensors(pub Type);

/// A type of tensors and tuples as Relax's. Each unknown dimension becomes a variable of its own.
pub fn to_relax(ty: &Type) -> Result<RxType, NotOfTensors> {
    to_relax_named(ty, &mut DimNames::default())
}

/// The same. Variables that are to be told apart by their names, such as those of a function's parameters, share the names.
pub fn to_relax_named(ty: &Type, names: &mut DimNames) -> Result<RxType, NotOfTensors> {
    match ty {
        Type::Tensor(t) => {
            let dim = |dim: &i64| match *dim {
                ANY => RxVar::dim(names.next()).into(),
                dim => relaxide_ir::prim::int(dim),
            };
            Ok(RxType::tensor(t.shape.iter().map(dim).collect::<Vec<_>>(), t.dtype))
        }
        Type::Tuple(t) => {
            let fields = t.fields.iter().map(|field| to_relax_named(field, names));
            Ok(RxType::tuple(fields.collect::<Result<Vec<_>, _>>()?))
        }
        other => Err(NotOfTensors(other.clone())),
    }
}

/// A type of Relax as Relay's; `None` where it has none.
pub fn from_relax(ty: &RxType) -> Option<Type> {
    match ty {
        RxType::Tensor(t) => {
            let dims: Vec<i64> = match &t.shape {
                Some(dims) => match const_dims(dims) {
                    Some(dims) => dims,
                    None => dims.iter().map(|dim| dim.as_int().unwrap_or(ANY)).collect(),
                },
                None => vec![ANY; usize::try_from(t.ndim).ok()?],
            };
            Some(Type::tensor(dims, t.dtype))
        }
        RxType::Tuple(t) => Some(Type::tuple(t.fields.iter().map(from_relax).collect::<Option<Vec<_>>>()?)),
        _ => None,
    }
}
