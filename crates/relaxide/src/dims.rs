//! A dimension as a user writes it.

use std::fmt;
use std::str::FromStr;

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

impl FromStr for DimSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(value) = text.parse::<i64>() {
            return if value >= 0 { Ok(DimSpec::Int(value)) } else { Err(format!("dimension {value} is negative")) };
        }
        let mut chars = text.chars();
        let starts = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
        if starts && chars.all(|c| c.is_alphanumeric() || c == '_') {
            Ok(DimSpec::Name(text.to_string()))
        } else {
            Err(format!("{text:?} is neither a number nor a name"))
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
