//! The operators that are imported: one table, each row an operator with a rule for every version that changed its meaning.
//!
//! A rule for version `v` serves every later version up to the next rule. Versions before the first rule are refused with
//! the version to convert to; so are versions newer than [`MAX_OPSET`], whose changes nobody here has read.

pub(crate) mod activation;
mod attention;
mod bits;
mod cast;
mod computed;
pub(crate) mod conv;
mod conv_transpose;
mod deform_conv;
pub(crate) mod elementwise;
mod experimental;
mod fft;
mod flex;
mod fourier;
pub(crate) mod gather_scatter;
mod index;
mod interpolate;
mod language;
pub(crate) mod layout;
mod legacy;
mod loss;
pub(crate) mod matmul;
mod ngrams;
mod norm;
pub(crate) mod order;
pub(crate) mod pad;
pub(crate) mod pool;
mod random;
pub(crate) mod reduce;
mod resize;
pub(crate) mod shape;
mod signal;
mod slice;
mod table;
mod vision;
mod wide;

use relaxide_relax::{BlockBuilder, Expr};

use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::node::Node;
use crate::scope::Scope;
use crate::value::Value;
use crate::{com_microsoft, ml};

pub use table::TABLE;

/// The newest version of the standard operator set that the rules were written for.
pub const MAX_OPSET: i64 = 28;

/// What a rule returns: the outputs in order, perhaps fewer than the operator has.
pub type Outputs = Result<Vec<Value>, NodeError>;

/// How a node becomes a part of the program.
#[derive(Clone, Copy)]
pub enum Rule {
    /// A Relax operator of one tensor.
    Unary(&'static str),
    /// A Relax operator of two tensors that are broadcast.
    Binary(&'static str),
    /// The same before opset 7, when the second tensor was broadcast from an axis on, if at all.
    Aligned(&'static str),
    /// A function.
    Node(fn(&mut Scope, &Node) -> Outputs),
    /// A function that imports graphs inside the node.
    Flow(FlowRule),
}

/// What imports a node with graphs inside.
pub type FlowRule = fn(&mut Graphs, &mut BlockBuilder, &Node) -> Result<Step, NodeError>;

/// An operator and its versions.
pub struct OpRow {
    /// The operator's name.
    pub name: &'static str,
    /// From which version of the standard set which rule holds, oldest first.
    pub versions: &'static [(i64, Rule)],
}

impl Rule {
    /// Imports a node.
    pub fn apply(self, scope: &mut Scope, node: &Node) -> Outputs {
        match self {
            Rule::Unary(name) => elementwise::unary(scope, node, name),
            Rule::Binary(name) => elementwise::binary(scope, node, name),
            Rule::Aligned(name) => legacy::binary(scope, node, name),
            Rule::Node(rule) => rule(scope, node),
            Rule::Flow(_) => Err(NodeError::unsupported("graphs inside it are not supported here")),
        }
    }
}

/// The rules for the operators of a set, sorted by their names.
pub fn rules_of(domain: &str) -> Option<&'static [OpRow]> {
    Some(match domain {
        "" => TABLE,
        "ai.onnx.ml" => ml::TABLE,
        "ai.onnx.preview" => flex::TABLE,
        "com.microsoft" => com_microsoft::TABLE,
        _ => return None,
    })
}

/// The rule for an operator of a set in a version.
pub fn rule(domain: &str, op: &str, opset: i64) -> Result<Rule, NodeError> {
    let Some(table) = rules_of(domain) else {
        return Err(NodeError::unsupported(format!("operators of the set `{domain}` are not supported"))
            .help("export the model with standard operators only"));
    };
    let Some(row) = table.iter().find(|row| row.name == op) else {
        return Err(NodeError::unsupported("the operator is not supported")
            .help("simplify the model (`onnxsim`), or export it without this operator"));
    };
    if domain.is_empty() && opset > MAX_OPSET {
        return Err(NodeError::unsupported(format!("operator sets newer than {MAX_OPSET} are not supported"))
            .help(format!("export the model with opset {MAX_OPSET}, or pass `opset={MAX_OPSET}` to read it as that")));
    }
    let newest = row.versions.iter().rev().find(|(since, _)| *since <= opset);
    newest.map(|(_, rule)| *rule).ok_or_else(|| {
        let first = row.versions.first().map_or(1, |(since, _)| *since);
        NodeError::unsupported(format!("it is supported from opset {first} on"))
            .help(format!("convert the model: `onnx.version_converter.convert_version(model, {})`", first.max(13)))
    })
}

/// Whether an operator becomes more than operations on tensors: branches, calls of functions, effects.
pub fn needs_statements(domain: &str, op: &str) -> bool {
    let row = TABLE.iter().find(|row| domain.is_empty() && row.name == op);
    row.is_some_and(|row| row.versions.iter().any(|(_, rule)| matches!(rule, Rule::Flow(_))))
}

/// The outputs of an operator with one.
pub(crate) fn one(expr: Expr) -> Outputs {
    Ok(vec![Value::Computed(expr)])
}
