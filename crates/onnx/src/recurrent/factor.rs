//! The matrices that inputs and states are multiplied with: as they are, or in 8 bits.
//!
//! ```text
//! x · W                      (q(x) - z) · (Wq - zw) * (s * sw)       q, s, z: x in 8 bits, its scale and its zero
//! ```
//!
//! In 8 bits whatever is multiplied is quantized as it comes: the input of all steps at once, the state of each step alone.

use relaxide_ffi::DataType;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::Expr;

use super::{Which, part};
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::elementwise::broadcast_call;
use crate::quantized::words::{Matrix, Packed};
use crate::quantized::{integer, linear};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// A matrix, `[inputs, outputs]`.
#[derive(Clone)]
pub enum Factor {
    /// As it is.
    Plain(Expr),
    /// In 8 bits.
    Quantized {
        /// Less its zero, in 32 bits.
        centred: Expr,
        /// One number, or one for each column.
        scale: Expr,
    },
    /// In 8 bits that the program knows, as words.
    Words {
        /// The words.
        packed: Packed,
        /// One number, or one for each column.
        scale: Expr,
    },
}

/// The inputs that a matrix in 8 bits is made of; its zero is the one behind its scale.
pub struct Inputs {
    /// The elements.
    pub matrix: usize,
    /// The scale.
    pub scale: usize,
}

impl Factor {
    /// The matrix of a direction, which a node has with one row for each output.
    pub fn plain(scope: &mut Scope, node: &Node, at: usize, of: Which, dims: [PrimExpr; 2]) -> Result<Factor> {
        let matrix = part(scope, node.input(at)?, of, 0)?;
        let [inputs, outputs] = dims;
        let matrix = scope.agree(matrix, &[outputs, inputs])?;
        Ok(Factor::Plain(scope.transpose(matrix, &[1, 0])?))
    }

    /// The matrix of a direction in 8 bits, with one row for each input; its scale and its zero are inputs `scale_at` and
    /// the one behind it.
    pub fn quantized(scope: &mut Scope, node: &Node, at: Inputs, of: Which, dims: [PrimExpr; 2]) -> Result<Factor> {
        let Inputs { matrix: at, scale: scale_at } = at;
        let matrix = part(scope, node.input(at)?, of, 0)?;
        let dtype = scope.dtype(&matrix);
        if dtype != DataType::int(8) && dtype != DataType::uint(8) {
            return Err(NodeError::invalid(format!("input {at} is {dtype}, where 8 bits are expected")));
        }
        let columns = dims[1].clone();
        let matrix = scope.agree(matrix, &dims)?;
        let scale = parameter(scope, node, scale_at, of, &columns)?;
        // How many terms a sum has must be known, too.
        let known = Matrix::one_of(node, [at, scale_at + 1], of.index).filter(|known| dims[0].is_int(known.depth()));
        if let Some(known) = known
            && let Some(packed) = known.packed(scope)?
        {
            return Ok(Factor::Words { packed, scale });
        }
        let zero = match node.optional(scale_at + 1) {
            Some(_) => Some(parameter(scope, node, scale_at + 1, of, &columns)?),
            None => None,
        };
        Ok(Factor::Quantized { centred: integer::centred(scope, matrix, zero)?, scale })
    }
}

impl relaxide_frontend::recurrent::Factor for Factor {
    fn product(&self, scope: &mut relaxide_frontend::Scope<'_>, x: Expr) -> Result<Expr> {
        let scope = &mut Scope::new(scope.builder());
        let dtype = scope.dtype(&x);
        let (sum, own, scale) = match self {
            Factor::Plain(matrix) => return scope.call("matmul", [x, matrix.clone()]),
            Factor::Quantized { centred, scale } => {
                let (x, own, zero) = linear::dynamic_of(scope, x)?;
                let x = integer::centred(scope, x, Some(zero))?;
                (scope.call("matmul", [x, centred.clone()])?, own, scale)
            }
            Factor::Words { packed, scale } => {
                let (x, own, zero) = linear::dynamic_of(scope, x)?;
                let sum = packed.product(scope, &integer::Integers { values: x, zero: Some(zero) })?;
                (
                    sum.ok_or_else(|| NodeError::invalid("an input has other columns than its weight has rows"))?,
                    own,
                    scale,
                )
            }
        };
        let sum = scope.cast(sum, dtype)?;
        let scale = broadcast_call(scope, "multiply", [own, scale.clone()])?;
        broadcast_call(scope, "multiply", [sum, scale])
    }

    fn map(&self, mut f: &mut dyn FnMut(&Expr) -> Expr) -> Factor {
        match self {
            Factor::Plain(matrix) => Factor::Plain(f(matrix)),
            Factor::Quantized { centred, scale } => Factor::Quantized { centred: f(centred), scale: f(scale) },
            Factor::Words { packed, scale } => Factor::Words { packed: packed.map(&mut f), scale: f(scale) },
        }
    }
}

/// A direction's scale or zero: one number, or one for each column.
fn parameter(scope: &mut Scope, node: &Node, at: usize, of: Which, columns: &PrimExpr) -> Result<Expr> {
    let parameter = part(scope, node.input(at)?, of, 0)?;
    match scope.dims(&parameter)?.len() {
        0 => Ok(parameter),
        _ => scope.agree(parameter, std::slice::from_ref(columns)),
    }
}
