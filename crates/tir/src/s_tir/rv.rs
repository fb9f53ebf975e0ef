//! Random variables: what a schedule's steps are about, under names that stay while the program changes.

use relaxide_ffi::{Object, ObjectRef, Ref};
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{DataType, Var};

use crate::SBlock;

/// Stands for a block. Identity is the node's address.
#[derive(Object, Debug, Default)]
#[object(key = "s_tir.SBlockRV")]
pub struct SBlockRV {}

/// Stands for a loop. Identity is the node's address.
#[derive(Object, Debug, Default)]
#[object(key = "s_tir.LoopRV")]
pub struct LoopRV {}

/// A random variable of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Rv {
    /// Stands for a block.
    Block(Ref<SBlockRV>),
    /// Stands for a loop.
    Loop(Ref<LoopRV>),
    /// Stands for a number.
    Number(Ref<Var>),
    /// Stands for nothing: a factor that is left open.
    Open,
}

/// What a step made: a random variable will stand for it.
#[derive(Clone, Debug)]
pub enum Value {
    /// A block of a function.
    Block(String, Ref<SBlock>),
    /// The loop of this counter, in a function.
    Loop(String, Ref<Var>),
    /// A number.
    Number(i64),
    /// A place for a block that is no loop.
    Mark(Mark),
    /// A factor that is left open.
    Open,
}

/// Where a block was sampled to be computed, if that is under no loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Where it stands.
    Root,
    /// In those that need what it computes.
    Inline,
}

impl Rv {
    /// A fresh random variable of the kind that a value needs.
    pub fn fresh(value: &Value) -> Rv {
        match value {
            Value::Block(..) => Rv::Block(Ref::new(SBlockRV::default())),
            Value::Loop(..) | Value::Mark(_) => Rv::Loop(Ref::new(LoopRV::default())),
            Value::Number(_) => Rv::Number(Var::prim("v", DataType::int(32))),
            Value::Open => Rv::Open,
        }
    }

    /// The random variable that an operand is, if it is one.
    pub fn of(operand: &AttrValue) -> Option<Rv> {
        match operand {
            AttrValue::Prim(e) => e.as_var().cloned().map(Rv::Number),
            AttrValue::Object(object) => {
                let block = object.downcast_ref::<SBlockRV>().cloned().map(Rv::Block);
                block.or_else(|| object.downcast_ref::<LoopRV>().cloned().map(Rv::Loop))
            }
            _ => None,
        }
    }

    /// The letter that its name in a trace begins with.
    pub fn letter(&self) -> char {
        match self {
            Rv::Block(_) => 'b',
            Rv::Loop(_) => 'l',
            Rv::Number(_) => 'v',
            Rv::Open => '_',
        }
    }
}

impl From<&Rv> for AttrValue {
    fn from(rv: &Rv) -> AttrValue {
        match rv {
            Rv::Block(block) => AttrValue::Object(ObjectRef::from(block)),
            Rv::Loop(loop_) => AttrValue::Object(ObjectRef::from(loop_)),
            Rv::Number(var) => AttrValue::Prim(PrimExpr::from(var)),
            Rv::Open => AttrValue::None,
        }
    }
}
