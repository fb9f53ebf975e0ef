//! [`Scope`]: the program under construction, as operators see it, with the values of the model.
//!
//! What is not about such values is [the front ends' scope](relaxide_frontend::Scope), which it gives access to.

use std::ops::{Deref, DerefMut};

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::{BlockBuilder, Expr};

use crate::error::NodeError;
use crate::flow::optional::Optional;
use crate::symbolic::Symbolic;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The program under construction.
pub struct Scope<'b>(relaxide_frontend::Scope<'b>);

impl<'b> Deref for Scope<'b> {
    type Target = relaxide_frontend::Scope<'b>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Scope<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Scope<'_> {
    /// A scope that adds to the builder's open block.
    pub fn new(builder: &mut BlockBuilder) -> Scope<'_> {
        Scope(relaxide_frontend::Scope::new(builder))
    }

    /// The tensor that a value stands for; a symbolic value is built where it is first needed as one.
    pub fn tensor(&mut self, value: &Value) -> Result<Expr> {
        match value {
            Value::Computed(expr) => Ok(expr.clone()),
            Value::Constant(tensor) => Ok(Expr::constant(tensor.clone())),
            Value::Symbolic(symbolic) => self.build(symbolic),
            Value::Texts(_) => Err(no_number()),
            Value::Maps(_) => Err(NodeError::invalid("an input is a map where a tensor is needed")),
            Value::Sequence(_) => Err(NodeError::invalid("an input is a sequence where a tensor is needed")),
            Value::Optional(optional) => {
                let value = optional.taken(self.builder())?;
                self.tensor(&value)
            }
        }
    }

    /// What an optional value holds, which the program checks to be there.
    pub fn taken(&mut self, optional: &Optional) -> Result<Value> {
        optional.taken(self.builder())
    }

    /// The value of the program that a value stands for: a tensor, an array, or null.
    pub fn object(&mut self, value: &Value) -> Result<Expr> {
        match value {
            Value::Texts(texts) => texts.object(self),
            Value::Maps(maps) => Ok(maps.object.clone()),
            Value::Sequence(sequence) => sequence.object(self),
            Value::Optional(optional) => optional.object(self),
            other => self.tensor(other),
        }
    }

    /// Dimensions of a value, without adding anything.
    pub fn value_dims(&self, value: &Value) -> Result<Vec<PrimExpr>> {
        match value {
            Value::Computed(expr) => self.dims(expr),
            Value::Constant(tensor) => Ok(tensor.shape().iter().map(|&d| prim::int(d)).collect()),
            Value::Symbolic(s) => Ok(s.shape.iter().map(|&d| prim::int(d as i64)).collect()),
            Value::Texts(texts) => texts.dims(self),
            Value::Maps(_) => Err(NodeError::invalid("an input is a map where a tensor is needed")),
            Value::Sequence(_) => Err(NodeError::invalid("an input is a sequence where a tensor is needed")),
            Value::Optional(_) => Err(NodeError::invalid("an input is an optional value where a tensor is needed")),
        }
    }

    /// A symbolic value as a tensor.
    fn build(&mut self, value: &Symbolic) -> Result<Expr> {
        if let Some(tensor) = value.tensor() {
            return Ok(Expr::constant(tensor));
        }
        let dims: Vec<i64> = value.shape.iter().map(|&d| d as i64).collect();
        // Numerators and denominators are shapes; their quotient is the value.
        let (nums, dens): (Vec<_>, Vec<_>) = value.elements.iter().map(|e| e.parts()).unzip();
        let mut tensor = self.shape_tensor(nums, value.dtype)?;
        if dens.iter().any(|d| !d.is_int(1)) {
            let divisor = self.shape_tensor(dens, value.dtype)?;
            tensor = self.call("divide", [tensor, divisor])?;
        }
        self.reshape(tensor, dims.into_iter().map(prim::int).collect())
    }
}

/// A tensor of texts stands where numbers are computed with.
fn no_number() -> NodeError {
    NodeError::unsupported("an input is a tensor of texts, and this operator does nothing with texts here")
}
