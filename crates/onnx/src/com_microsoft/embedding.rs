//! Sums of embeddings (words, positions, segments) and their normalization, from tables of numbers or of small integers.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::normalization::{Mean, normalized};
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::Outputs;
use crate::ops::elementwise::broadcast_call;
use crate::quantized::linear::{Scaling, Sharing, dequantize_to, zero_point};
use crate::scope::Scope;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// What the inputs 2 to 6 hold: the tables, then the scale and the shift of the normalization.
#[derive(Clone, Copy)]
enum Tables {
    /// Numbers.
    Real,
    /// Integers; five scales follow from input 8 on, five zero points from input 13 on.
    Quantized,
}

impl Tables {
    /// What was read from table `i`, as numbers. Only what was read is scaled, not the table.
    fn real(self, scope: &mut Scope, node: &Node, i: usize, read: Expr) -> Result<Expr> {
        match self {
            Tables::Real => Ok(read),
            Tables::Quantized => {
                let scale = scope.tensor(node.input(i + 6)?)?;
                let zero = zero_point(scope, node, i + 11)?;
                dequantize_to(scope, read, Scaling { scale, zero }, DataType::float(32), Sharing::default())
            }
        }
    }

    /// Rows of table `i` by their numbers.
    fn rows(self, scope: &mut Scope, node: &Node, i: usize, numbers: Expr) -> Result<Expr> {
        let table = scope.tensor(node.input(i)?)?;
        let rows = scope.op("take", [table, numbers], Attrs::new().with("axis", 0i64))?;
        self.real(scope, node, i, rows)
    }

    /// The first rows of table `i`.
    fn first_rows(self, scope: &mut Scope, node: &Node, i: usize, count: PrimExpr) -> Result<Expr> {
        let table = scope.tensor(node.input(i)?)?;
        let width = scope.dims(&table)?.get(1).cloned().ok_or_else(|| NodeError::invalid("a table is not a matrix"))?;
        let rows = scope.te("first_rows", vec![table], |inputs| {
            let table = inputs[0].clone();
            vec![te::compute("first_rows", vec![count, width], |at: &[PrimExpr]| table.at(at))]
        })?;
        self.real(scope, node, i, rows)
    }

    /// All of input `i`.
    fn whole(self, scope: &mut Scope, node: &Node, i: usize) -> Result<Expr> {
        let whole = scope.tensor(node.input(i)?)?;
        self.real(scope, node, i, whole)
    }
}

/// `EmbedLayerNormalization`.
pub fn embed(scope: &mut Scope, node: &Node) -> Outputs {
    let positions = node.optional(8).map(|numbers| scope.tensor(numbers)).transpose()?;
    let Embedded { y, counts, sum } = embedded(scope, node, Tables::Real, positions)?;
    Ok([y, counts, sum].into_iter().map(Value::Computed).collect())
}

/// `QEmbedLayerNormalization`.
pub fn quantized(scope: &mut Scope, node: &Node) -> Outputs {
    let Embedded { y, counts, .. } = embedded(scope, node, Tables::Quantized, None)?;
    Ok([y, counts].into_iter().map(Value::Computed).collect())
}

struct Embedded {
    /// The normalized sum.
    y: Expr,
    /// How many words of each row the mask keeps.
    counts: Expr,
    sum: Expr,
}

/// The sum of embeddings, normalized. Where there are no numbers of positions, a word's is its place.
fn embedded(scope: &mut Scope, node: &Node, tables: Tables, positions: Option<Expr>) -> Result<Embedded> {
    let words = scope.tensor(node.input(0)?)?;
    let dims = scope.dims(&words)?;
    let [batch, length] = &dims[..] else { return Err(NodeError::invalid("the words are not a matrix")) };
    let (batch, length) = (batch.clone(), length.clone());
    let mut sum = tables.rows(scope, node, 2, words)?;
    let positions = match positions {
        Some(numbers) => tables.rows(scope, node, 3, numbers)?,
        None => tables.first_rows(scope, node, 3, length)?,
    };
    sum = broadcast_call(scope, "add", [sum, positions])?;
    if node.optional(4).is_some() {
        let segments = scope.tensor(node.input(1)?)?;
        let segments = tables.rows(scope, node, 4, segments)?;
        sum = broadcast_call(scope, "add", [sum, segments])?;
    }
    let y = normalized(scope, sum.clone(), 2, Mean::Zero, node.float_or("epsilon", 1e-12)?)?;
    let (scale, shift) = (tables.whole(scope, node, 5)?, tables.whole(scope, node, 6)?);
    let y = broadcast_call(scope, "multiply", [y, scale])?;
    let y = broadcast_call(scope, "add", [y, shift])?;
    let counts = counts(scope, node, batch)?;
    Ok(Embedded { y, counts, sum })
}

/// How many words of each row the mask keeps; without a mask, none are counted.
fn counts(scope: &mut Scope, node: &Node, batch: PrimExpr) -> Result<Expr> {
    let int = DataType::int(32);
    match node.optional(7) {
        Some(mask) => {
            let mask = scope.tensor(mask)?;
            let mask = scope.cast(mask, int)?;
            scope.op("sum", [mask], Attrs::new().with("axis", vec![1i64]).with("keepdims", false))
        }
        None => scope.te("no_words", Vec::new(), |_| {
            vec![te::compute("no_words", vec![batch], |_: &[PrimExpr]| prim::constant(int, 0.0))]
        }),
    }
}
