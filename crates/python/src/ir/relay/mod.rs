//! Relay to Python: what makes its nodes, and what is done with its programs.
//!
//! A module of Relay is a node that never changes; `relaxide.relay.IRModule` holds the current one. Nodes are read by
//! reflection, as those of Relax are; what is here makes them ([`nodes`]), describes the operators ([`operators`]), and
//! parses, prints, types, transforms, compiles and interprets programs ([`program`]).

mod nodes;
mod operators;
mod program;

use pyo3::prelude::*;

use super::Row;

pub(super) const TABLES: [&[Row]; 3] = [nodes::TABLE, operators::TABLE, program::TABLE];

pub(super) use nodes::enter;

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    program::register(m)
}
