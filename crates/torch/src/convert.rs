//! Rules that the caller adds, for operators that PyTorch does not have by itself or that shall become something else.

use relaxide_relax::{BlockBuilder, Expr};

use crate::error::NodeError;
use crate::graph::first_name;
use crate::program::Node;
use crate::value::Value;

/// A node that the caller may have a rule for.
pub struct CustomCall<'a> {
    /// The node.
    pub node: &'a Node,
    /// The names of the graphs that it stands in, from the outermost that a node calls; none in the program's own graph.
    pub path: &'a [String],
    /// What the names in its arguments stand for.
    pub(crate) given: Vec<(&'a str, &'a Value)>,
}

impl CustomCall<'_> {
    /// The names of the graphs and of the node, with `/` between them. A node that the file has no name of is called by its first
    /// result.
    pub fn place(&self) -> String {
        let own = self.node.name.clone().or_else(|| self.node.outputs.iter().find_map(first_name)).unwrap_or_default();
        self.path.iter().map(String::as_str).chain([own.as_str()]).collect::<Vec<_>>().join("/")
    }

    /// The values that it is given, by name: tensors, and integers over dimensions.
    pub fn given(&self) -> impl Iterator<Item = (&str, Expr)> {
        self.given.iter().filter_map(|(name, value)| match value {
            Value::Tensor(tensor) => Some((*name, tensor.clone())),
            Value::Int(dim) => Some((*name, Expr::prim(dim.clone()))),
            Value::Nothing => None,
        })
    }
}

/// Rules of the caller's.
pub trait Converters {
    /// Adds to the program what a node computes, and gives its results: each by itself, or one tuple. `None` where there is no rule
    /// for the node. The rule of a node within a loop may be asked several times.
    fn convert(&mut self, builder: &mut BlockBuilder, call: &CustomCall<'_>) -> Option<Result<Vec<Expr>, NodeError>>;
}
