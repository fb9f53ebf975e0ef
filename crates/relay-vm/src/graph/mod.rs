//! The graph executor: programs without control flow, as TVM's releases since 0.1 saved them.
//!
//! A graph is JSON: nodes in the order in which they run, each an input or a kernel's call, with the shape, element type and
//! storage of every result beside ([`format`]). It names kernels and says nothing else of operators, so it runs with a
//! library of them ([`executor`]). [`factory`] is a graph with its weights as a module, which a library's file holds;
//! [`from_executable`] makes one of a program of the Relay VM that has no control flow.

mod executor;
mod factory;
mod format;
mod from_executable;
mod plan;

pub use executor::GraphExecutor;
pub use factory::GraphFactory;
pub use format::{EntryType, Graph, Node, NodeEntry, NodeKind};
pub use from_executable::graph_of;

pub(crate) use factory::register;
