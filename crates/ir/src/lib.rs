//! What every program shares: modules, types, scalar expressions, arithmetic, passes.
//!
//! Relax and TIR are two languages over one set of nodes. A dimension of a Relax tensor and an index of a TIR buffer are
//! both a [`PrimExpr`]; a variable of either is a [`Var`] with a [`Type`]; functions of both live in one [`IRModule`].
//! Nodes are immutable objects behind [`Ref`](relaxide_ffi::Ref); a pass builds new ones and shares what it did not touch.
//!
//! What is not here: operators and passes. Those of the graph level live in `relax`, those of the tensor level in `tir`.

#![forbid(unsafe_code)]

pub mod arith;
pub mod attrs;
pub mod buffer;
pub mod diagnostic;
pub mod disjoint_sets;
pub mod layout;
pub mod limits;
pub mod module;
pub mod pass;
pub mod prim;
pub mod span;
pub mod target;
pub mod types;
pub mod var;
pub mod workers;

pub use attrs::{AttrValue, Attrs};
pub use buffer::Buffer;
pub use diagnostic::{Code, Diagnostic};
pub use disjoint_sets::DisjointSets;
pub use module::{BaseFunc, DummyGlobalInfo, GlobalVar, IRModule, VDevice, same_place};
pub use prim::{BinaryOp, PrimExpr};
pub use relaxide_ffi::{DataType, Ref};
pub use span::Span;
pub use target::{Target, TargetError};
pub use types::{FuncType, PointerType, ShapeType, TensorType, TupleType, Type};
pub use var::Var;
