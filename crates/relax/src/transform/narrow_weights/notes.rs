//! What became of the matrices of a program, for `--explain`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use relaxide_ffi::DataType;

/// Why a matrix stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stays {
    /// It is not a matrix of numbers of 32 bits.
    Kind,
    /// It is small.
    Size,
    /// It holds what is no number, or none of the type.
    Range,
    /// Blocks or panels would be filled up.
    Padding,
    /// Products with it are not of matrices of 32 bits.
    Product,
    /// A lookup in it answers what is outside with NaN.
    Lookup,
    /// An operator has it that is no product and no lookup.
    Operator(String),
}

impl fmt::Display for Stays {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stays::Kind => f.write_str("it is no matrix of float32"),
            Stays::Size => write!(f, "it has fewer than {} elements", super::MIN_ELEMENTS),
            Stays::Range => f.write_str("it holds NaN, infinities or numbers that the type does not have"),
            Stays::Padding => f.write_str("its few rows or columns would be filled up with more than is gained"),
            Stays::Product => f.write_str("what it is multiplied with is a vector or of another type"),
            Stays::Lookup => f.write_str("rows that are looked up outside of it are NaN"),
            Stays::Operator(name) => write!(f, "{name} reads it, which is no product and no lookup of rows"),
        }
    }
}

/// What became of a matrix in one of its uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightNote {
    /// The function, and the value that is made of it there.
    pub function: String,
    /// The value.
    pub value: String,
    /// The matrix's shape.
    pub shape: Vec<i64>,
    /// The type that it had, and the one that it has.
    pub dtypes: [DataType; 2],
    /// Why it stays, if it does.
    pub stays: Option<Stays>,
}

impl fmt::Display for WeightNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        let [had, has] = self.dtypes;
        write!(f, "{}: {}: weights {} ", self.function, self.value, shape.join("x"))?;
        match &self.stays {
            None => write!(f, "in {has}"),
            Some(reason) => write!(f, "stay {had}: {reason}"),
        }
    }
}

/// Where the pass leaves what it noted.
#[derive(Clone, Debug, Default)]
pub struct WeightNotes(Arc<Mutex<Vec<WeightNote>>>);

impl WeightNotes {
    pub(super) fn push(&self, note: WeightNote) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A matrix is an argument of an operator as often as it likes.
        if !all.contains(&note) {
            all.push(note);
        }
    }

    /// What was noted since it was taken last.
    pub fn take(&self) -> Vec<WeightNote> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
