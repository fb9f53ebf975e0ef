//! What the names of an exported program stand for.

use relaxide_ir::prim::PrimExpr;
use relaxide_relax::Expr;

/// What a name stands for.
#[derive(Debug, Clone)]
pub enum Value {
    /// A tensor. A number that the program computes is one without dimensions.
    Tensor(Expr),
    /// An integer over dimensions.
    Int(PrimExpr),
    /// Nothing that a rule can use, such as a check that the exporter has written.
    Nothing,
}

/// A number that is an argument: known, over dimensions, or computed.
#[derive(Debug, Clone)]
pub enum Scalar {
    /// An integer over dimensions.
    Int(PrimExpr),
    /// A number.
    Float(f64),
    /// A bool.
    Bool(bool),
    /// A tensor, or a number that the program computes.
    Tensor(Expr),
}
