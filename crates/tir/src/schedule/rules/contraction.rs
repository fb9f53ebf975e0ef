//! What contractions have in common: a sum of products, and which axis belongs to which operand.
//!
//! ```text
//! C[b, m, x] = sum over k of  A(b, m, k) * B(b, k, x)
//! ```
//!
//! A product may be one of words of four bytes, `dot_bytes(A(b, m, k), B(b, k, x), 0)`, or of two numbers, `dot_pairs`: its elements are words,
//! several terms of a sum at once.
//!
//! The operand that moves with the output's contiguous axis `x` is the *column* operand, read in vectors; the other is the
//! *row* operand, read as scalars that are broadcast. Axes of the row operand only are rows, axes of the column operand only
//! are columns, the rest are batch axes.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{BinaryOp, PrimExpr, add, substitute};

use super::super::affine::{coefficient, flat_index, loads, uses};
use super::super::{Axis, Reduce, Refusal};

/// The products of words: of four bytes, and of two numbers.
const DOTS: [&str; 2] = ["tirx.dot_bytes", "tirx.dot_pairs"];

/// A sum of products with the roles of its operands and axes.
#[derive(Clone, Debug)]
pub struct Contraction {
    /// The reduction; its epilogue adds what the sum starts from, if that is not zero.
    pub reduce: Reduce,
    /// The operand that is broadcast.
    pub row: PrimExpr,
    /// The operand that is read in vectors.
    pub column: PrimExpr,
    /// The contiguous axis of the output.
    pub x: Axis,
    /// Other spatial axes that only the column operand has.
    pub columns: Vec<Axis>,
    /// Spatial axes that only the row operand has.
    pub rows: Vec<Axis>,
    /// Spatial axes of both operands, or of none.
    pub batch: Vec<Axis>,
    /// Reduction axes.
    pub inner: Vec<Axis>,
}

impl Contraction {
    /// Reads a reduction as a contraction of numbers.
    pub fn of(reduce: &Reduce) -> Result<Contraction, Refusal> {
        match words(&reduce.stage.value) {
            Some(_) => Err(Refusal::new("the terms are products of words")),
            None => Contraction::of_numbers_or_words(reduce),
        }
    }

    /// Reads a reduction as a contraction of numbers, or of words.
    pub fn of_numbers_or_words(reduce: &Reduce) -> Result<Contraction, Refusal> {
        let (reduce, factors) = product_of(reduce)?;
        let x = contiguous_axis(&reduce)?;
        let (f, g) = factors;
        let (row, column) = match (uses(&f, &x.var), uses(&g, &x.var)) {
            (false, true) => (f, g),
            (true, false) => (g, f),
            (true, true) => return Err(Refusal::new("both factors move along the output's row")),
            (false, false) => return Err(Refusal::new("neither factor moves along the output's row")),
        };
        let (mut columns, mut rows, mut batch) = (Vec::new(), Vec::new(), Vec::new());
        for axis in reduce.stage.spatial.iter().filter(|a| a.var != x.var) {
            match (uses(&row, &axis.var), uses(&column, &axis.var)) {
                (true, false) => rows.push(axis.clone()),
                (false, true) => columns.push(axis.clone()),
                _ => batch.push(axis.clone()),
            }
        }
        let inner = reduce.stage.reduce.clone();
        Ok(Contraction { reduce, row, column, x, columns, rows, batch, inner })
    }

    /// Whether the column operand is one load that moves along the row by one element a step.
    pub fn column_is_contiguous(&self) -> bool {
        step(&self.column, &self.x.var) == Some(1)
    }

    /// Whether the column operand lies as register tiles read it: its rows follow each other without gaps, and are no longer than `most`.
    pub fn column_is_panel(&self, most: i64) -> bool {
        let [k] = self.inner.as_slice() else { return false };
        let width = self.x.extent.as_int();
        self.column_is_contiguous() && width.is_some_and(|n| n <= most) && step(&self.column, &k.var) == width
    }

    /// Whether the row operand has one row, so that each element of the column operand is used once.
    pub fn has_one_row(&self) -> bool {
        self.rows.iter().all(|a| a.extent.is_int(1))
    }

    /// Whether the column operand is one load that moves by one element with the last axis that is summed, and there is a vector of them.
    pub fn has_rows_of_terms(&self, lanes: i64) -> bool {
        let is_long = |k: &Axis| k.extent.as_int().is_none_or(|n| n >= lanes);
        self.inner.last().is_some_and(|k| is_long(k) && step(&self.column, &k.var) == Some(1))
    }
}

/// A reduction that sums products: itself, its start value moved into the epilogue, and the two factors.
pub fn product_of(reduce: &Reduce) -> Result<(Reduce, (PrimExpr, PrimExpr)), Refusal> {
    let mut reduce = reduce.clone();
    let Some(reduction) = reduce.stage.reduction.clone() else { return Err(Refusal::new("it does not reduce")) };
    if reduction.op != BinaryOp::Add {
        return Err(Refusal::new("it does not sum"));
    }
    let (a, b) = match &reduce.stage.value {
        PrimExpr::Binary(product) if product.op == BinaryOp::Mul => (&product.a, &product.b),
        other => words(other).map(|(_, a, b)| (a, b)).ok_or_else(|| Refusal::new("the terms are no products"))?,
    };
    if loads(a).is_empty() || loads(b).is_empty() {
        return Err(Refusal::new("a factor reads nothing"));
    }
    let factors = (a.clone(), b.clone());
    if !is_zero(&reduction.init) {
        let start = add(PrimExpr::from(&reduce.acc), reduction.init);
        reduce.epilogue = substitute(&reduce.epilogue, &[(reduce.acc.clone(), start)].into());
    }
    Ok((reduce, factors))
}

/// The function of a term that is a product of words, and the factors.
pub fn words(term: &PrimExpr) -> Option<(&str, &PrimExpr, &PrimExpr)> {
    match term {
        PrimExpr::Call(n) if DOTS.contains(&n.op.as_str()) => match n.args.as_slice() {
            [a, b, c] if is_zero(c) => Some((n.op.as_str(), a, b)),
            _ => None,
        },
        _ => None,
    }
}

/// The spatial axis along which the output is contiguous.
pub fn contiguous_axis(reduce: &Reduce) -> Result<Axis, Refusal> {
    let flat = flat_index(&reduce.output, &reduce.indices);
    let mut axes = reduce.stage.spatial.iter().rev();
    let found = axes.find(|a| coefficient(&flat, &a.var) == Some(1));
    found.cloned().ok_or_else(|| Refusal::new("no axis of the output is contiguous"))
}

/// By how many elements the only load of an expression moves with a variable, where that is known.
pub fn step(e: &PrimExpr, var: &Ref<Var>) -> Option<i64> {
    match loads(e).as_slice() {
        [one] => coefficient(&flat_index(&one.buffer, &one.indices), var),
        _ => None,
    }
}

/// Whether a number is zero.
pub fn is_zero(e: &PrimExpr) -> bool {
    match e {
        PrimExpr::Int(imm) => imm.value == 0,
        PrimExpr::Float(imm) => imm.value == 0.0,
        _ => false,
    }
}
