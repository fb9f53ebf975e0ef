//! Dimensions as a user writes them: numbers, names, and what lengths a name may have.

use std::fmt;
use std::str::FromStr;

use indexmap::IndexMap;
use relaxide_ffi::Ref;
use relaxide_ir::diagnostic::closest;
use relaxide_ir::{AttrValue, IRModule, PrimExpr, Var};
use relaxide_relax::transform::Symbol;
use relaxide_relax::{Function, shape, transform};

use crate::Error;

/// A number, or the name of a symbolic dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimSpec {
    /// A number.
    Int(i64),
    /// A dimension that stays symbolic under a name; equal names are equal dimensions.
    Name(String),
}

impl DimSpec {
    /// The number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            DimSpec::Int(value) => Some(*value),
            DimSpec::Name(_) => None,
        }
    }
}

/// Why a text is no dimension, or no range of lengths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimError {
    /// A number below zero.
    #[error("dimension {0} is negative")]
    Negative(i64),
    /// Neither digits nor letters.
    #[error("{0:?} is neither a number nor a name")]
    Unreadable(String),
    /// What a range is written as has a `=`.
    #[error("{0:?} has no '='")]
    NoRange(String),
    /// In front of the `=` stands no name.
    #[error("{0:?} is no name of a dimension")]
    NoName(String),
    /// A bound below zero.
    #[error("{0} is no length of a dimension")]
    NegativeLength(i64),
    /// A bound that is no number, or below zero.
    #[error("{0:?} is no length of a dimension")]
    NoLength(String),
    /// The least length is larger than the greatest.
    #[error("no length is {min} or more and {max} or less")]
    Empty {
        /// The least.
        min: i64,
        /// The greatest.
        max: i64,
    },
}

impl FromStr for DimSpec {
    type Err = DimError;

    fn from_str(text: &str) -> Result<Self, DimError> {
        if let Ok(value) = text.parse::<i64>() {
            return if value >= 0 { Ok(DimSpec::Int(value)) } else { Err(DimError::Negative(value)) };
        }
        let mut chars = text.chars();
        let starts = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
        if starts && chars.all(|c| c.is_alphanumeric() || c == '_') {
            Ok(DimSpec::Name(text.to_string()))
        } else {
            Err(DimError::Unreadable(text.into()))
        }
    }
}

impl fmt::Display for DimSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DimSpec::Int(value) => write!(f, "{value}"),
            DimSpec::Name(name) => f.write_str(name),
        }
    }
}

/// The one of a program's names that is meant by a name as its ONNX file writes it, such as `onnx::x` for `onnx__x`.
pub fn known_name<'a>(given: &str, names: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let written = relaxide_onnx::options::identifier(given);
    names.clone().find(|name| *name == given).or_else(|| names.clone().find(|name| *name == written))
}

/// What lengths a symbolic dimension may have, as `batch=8`, `batch=1..64` or `batch=..64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimRange {
    /// The dimension.
    pub name: String,
    /// The least length.
    pub min: i64,
    /// The greatest length, where there is one.
    pub max: Option<i64>,
}

impl DimRange {
    /// A range, with the reason why where there is no such.
    pub fn new(name: impl Into<String>, min: i64, max: Option<i64>) -> Result<DimRange, DimError> {
        if min < 0 {
            return Err(DimError::NegativeLength(min));
        }
        match max {
            Some(max) if max < min => Err(DimError::Empty { min, max }),
            _ => Ok(DimRange { name: name.into(), min, max }),
        }
    }

    /// Whether a length is allowed.
    pub fn holds(&self, length: i64) -> bool {
        self.min <= length && self.max.is_none_or(|max| length <= max)
    }
}

impl FromStr for DimRange {
    type Err = DimError;

    fn from_str(text: &str) -> Result<Self, DimError> {
        let (name, range) = text.split_once('=').ok_or_else(|| DimError::NoRange(text.into()))?;
        let name = name.trim();
        if name.is_empty() || name.parse::<i64>().is_ok() {
            return Err(DimError::NoName(name.into()));
        }
        let number = |text: &str| match text.trim().parse::<i64>() {
            Ok(value) if value >= 0 => Ok(value),
            _ => Err(DimError::NoLength(text.into())),
        };
        let (min, max) = match range.split_once("..") {
            None => (number(range)?, Some(number(range)?)),
            Some((min, max)) => {
                let max = max.strip_prefix('=').unwrap_or(max);
                let min = if min.trim().is_empty() { 0 } else { number(min)? };
                (min, if max.trim().is_empty() { None } else { Some(number(max)?) })
            }
        };
        DimRange::new(name, min, max)
    }
}

impl fmt::Display for DimRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(f, "{} = {max}", self.name),
            Some(max) => write!(f, "{} from {} to {max}", self.name, self.min),
            None => write!(f, "{} from {}", self.name, self.min),
        }
    }
}

/// Attributes of functions that say what lengths their symbolic dimensions may have.
const UPPER_BOUND: &str = "tir_var_upper_bound";
const LOWER_BOUND: &str = "tir_var_lower_bound";

/// Gives the symbolic dimensions of a function their ranges. One length alone makes the dimension that number; a greatest
/// length lets memory be planned before it is known, and the program refuses greater ones.
pub fn bound_dims(module: &IRModule, function: &str, ranges: &[DimRange]) -> Result<IRModule, Error> {
    let Some(f) = module.get_as::<Function>(function) else { return Ok(module.clone()) };
    let known = symbolic_dims(&f);
    let ranges = ranges.iter().map(|range| named(range, &known)).collect::<Result<Vec<_>, Error>>()?;
    let vars = shape::vars_of(f.params.iter().map(|p| &p.ty));
    // Dimensions of one name are one dimension, whatever variables they are.
    let number = |var: &Ref<Var>| {
        let range = ranges.iter().find(|r| r.name == var.name && r.max == Some(r.min))?;
        Some((Symbol::Var(var.clone()), PrimExpr::from(range.min)))
    };
    let fixed: Vec<(Symbol, PrimExpr)> = vars.iter().filter_map(number).collect();
    let open = || ranges.iter().filter(|r| r.max != Some(r.min));
    let bounds = |of: &dyn Fn(&DimRange) -> Option<i64>| -> IndexMap<String, AttrValue> {
        open().filter_map(|r| Some((r.name.clone(), AttrValue::Int(of(r)?)))).collect()
    };
    let (upper, lower) = (bounds(&|r| r.max), bounds(&|r| Some(r.min).filter(|min| *min > 0)));
    let mut module = if fixed.is_empty() {
        module.clone()
    } else {
        transform::bind_symbolic_vars(module, function, &fixed)
            .map_err(|e| relaxide_ir::pass::PassError::new("BindSymbolicVars", e.to_string()))?
    };
    if let Some(f) = module.get_as::<Function>(function).filter(|_| open().next().is_some()) {
        let mut f = Function::clone(&f);
        for (key, bounds) in [(UPPER_BOUND, upper), (LOWER_BOUND, lower)] {
            if !bounds.is_empty() {
                f.attrs = f.attrs.with(key, AttrValue::Map(bounds));
            }
        }
        module.insert(function, Ref::new(f));
    }
    Ok(module)
}

/// A range under the name that its dimension has in the program.
fn named(range: &DimRange, known: &[String]) -> Result<DimRange, Error> {
    let names = known.iter().map(String::as_str);
    match known_name(&range.name, names.clone()) {
        Some(name) => Ok(DimRange { name: name.to_string(), ..range.clone() }),
        None => Err(Error::Unknown {
            what: "symbolic dimension",
            name: range.name.clone(),
            known: closest(&range.name, names).map_or(known.to_vec(), |near| vec![near.to_string()]),
        }),
    }
}

/// The names of the symbolic dimensions of a function's parameters, each once.
fn symbolic_dims(f: &Function) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let dims = f.params.iter().filter_map(|p| p.ty.as_tensor().and_then(|t| t.shape.clone())).flatten();
    for dim in dims {
        if let Some(var) = dim.as_var().filter(|var| !names.contains(&var.name)) {
            names.push(var.name.clone());
        }
    }
    names
}

/// The ranges that a function's attributes say.
pub(crate) fn ranges_of(f: &Function) -> Vec<DimRange> {
    let bound = |key: &str, name: &str| match f.attrs.get(key) {
        Some(AttrValue::Map(map)) => match map.get(name) {
            Some(AttrValue::Int(value)) => Some(*value),
            Some(AttrValue::Prim(e)) => e.as_int(),
            _ => None,
        },
        _ => None,
    };
    let range = |name: String| {
        let (min, max) = (bound(LOWER_BOUND, &name), bound(UPPER_BOUND, &name));
        (min.is_some() || max.is_some()).then(|| DimRange { name, min: min.unwrap_or(0), max })
    };
    symbolic_dims(f).into_iter().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_people_write_them() {
        let range = |text: &str| text.parse::<DimRange>().map(|r| (r.min, r.max));
        assert_eq!(range("n=8"), Ok((8, Some(8))));
        assert_eq!(range("n=1..64"), Ok((1, Some(64))));
        assert_eq!(range("n=1..=64"), Ok((1, Some(64))));
        assert_eq!(range("n=..64"), Ok((0, Some(64))));
        assert_eq!(range("n=2.."), Ok((2, None)));
        for wrong in ["n", "n=", "n=x", "n=-1", "n=4..2", "8=4", "=4"] {
            assert!(range(wrong).is_err(), "{wrong}");
        }
    }
}
