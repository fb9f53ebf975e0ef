//! Values that are known at import: small tensors of expressions over the model's dimensions.
//!
//! Exporters write shape arithmetic as tensor operations: `Shape → Slice → Concat → Reshape`. Run as written, every shape
//! behind it would be unknown to the compiler. Here such tensors are carried beside the graph as [`Symbolic`] values, and the
//! operators that shape arithmetic is made of are evaluated on them ([`evaluate`]):
//!
//! ```text
//! s = Shape(x)             [n, 3, h, w]
//! b = Slice(s, 0, 1)       [n]
//! t = Concat(b, [-1])      [n, -1]
//! y = Reshape(x, t)        R.reshape(x, R.shape([n, 3 * h * w]))
//! ```
//!
//! A symbolic value costs nothing in the program unless something other than a shape needs it; then it is built from a
//! shape at run time. What cannot be expressed (a sum over data, a float with a long fraction) is not symbolic, and the node
//! is imported as an ordinary operation.

mod evaluate;
mod ratio;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, free_vars};

pub use evaluate::evaluate;
pub use ratio::{Largest, Ratio};

use crate::constant;
use relaxide_ffi::Tensor;

/// The most elements that are carried; shapes have far fewer.
pub const MAX_ELEMENTS: usize = 64;

/// A tensor whose elements are known.
#[derive(Clone, Debug)]
pub struct Symbolic {
    /// Element type; the elements of an integer type are whole.
    pub dtype: DataType,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// Elements in row-major order.
    pub elements: Vec<Ratio>,
}

impl Symbolic {
    /// A vector of int64 expressions, as `Shape` gives.
    pub fn shape_of(dims: &[PrimExpr]) -> Symbolic {
        Symbolic {
            dtype: DataType::int(64),
            shape: vec![dims.len()],
            elements: dims.iter().map(|d| Ratio::int(d.clone())).collect(),
        }
    }

    /// An int64 scalar.
    pub fn scalar(value: PrimExpr) -> Symbolic {
        Symbolic { dtype: DataType::int(64), shape: Vec::new(), elements: vec![Ratio::int(value)] }
    }

    /// A constant, if it is small and its elements can be expressed.
    pub fn from_tensor(tensor: &Tensor) -> Option<Symbolic> {
        let shape: Vec<usize> = tensor.shape().iter().map(|&d| usize::try_from(d).ok()).collect::<Option<_>>()?;
        let count = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))?;
        if count > MAX_ELEMENTS {
            return None;
        }
        let dtype = tensor.dtype();
        let elements = if dtype.is_float() {
            let is_negative_zero = |v: &f64| *v == 0.0 && v.is_sign_negative();
            let floats = constant::floats(tensor).ok()?;
            if floats.iter().any(is_negative_zero) {
                return None;
            }
            floats.into_iter().map(Ratio::float).collect::<Option<_>>()?
        } else {
            // What is beyond the largest int64 is no expression.
            let beyond = |v: i64| dtype.is_uint() && dtype.bits == 64 && v < 0;
            let ints = constant::ints(tensor).ok()?.into_iter();
            ints.map(|v| (!beyond(v)).then(|| Ratio::int(v))).collect::<Option<_>>()?
        };
        Some(Symbolic { dtype, shape, elements })
    }

    /// The elements as integer expressions, where all are whole.
    pub fn ints(&self) -> Option<Vec<PrimExpr>> {
        self.elements.iter().map(|e| e.as_whole().cloned()).collect()
    }

    /// The elements as integers, where all are literals.
    pub fn literals(&self) -> Option<Vec<i64>> {
        self.elements.iter().map(Ratio::as_int).collect()
    }

    /// The tensor, where all elements are literals.
    pub fn tensor(&self) -> Option<Tensor> {
        let dims: Vec<i64> = self.shape.iter().map(|&d| d as i64).collect();
        let numbers = || self.elements.iter().map(Ratio::as_float).collect::<Option<Vec<_>>>();
        match self.literals() {
            Some(whole) => relaxide_frontend::constant::whole(&whole, &dims, self.dtype).ok(),
            None => relaxide_frontend::constant::filled(&numbers()?, &dims, self.dtype).ok(),
        }
    }

    /// The symbolic variables in the elements.
    pub fn dim_vars(&self) -> Vec<Ref<Var>> {
        let parts = self.elements.iter().flat_map(|e| <[&PrimExpr; 2]>::from(e.parts()));
        parts.flat_map(free_vars).collect()
    }

    /// The same elements in other dimensions of the same count.
    pub fn reshaped(&self, shape: Vec<usize>) -> Option<Symbolic> {
        (shape.iter().product::<usize>() == self.elements.len()).then(|| Symbolic { shape, ..self.clone() })
    }
}
