//! Functions of the model: nodes that a file defines as graphs of other nodes.
//!
//! A call is imported as the body with the inputs in the place of its own: names of the body are its own, so two calls do
//! not meet, and an attribute that refers to one of the function's (`ref_attr_name`) gets the call's value, the function's
//! default, or none. The body has operator set versions of its own.
//!
//! Functions that call themselves are refused, and so are models whose calls expand to more than [`MAX_EXPANDED`] nodes:
//! a file of a few lines can ask for 2^64.

use relaxide_relax::BlockBuilder;

use crate::error::NodeError;
use crate::graph::{Graphs, Step};
use crate::model::canonical_domain;
use crate::names::{Known, Visibility};
use crate::proto::{AttributeProto, FunctionProto, NodeProto};
use crate::value::Value;

/// The most nodes that calls may expand to.
const MAX_EXPANDED: usize = 1 << 20;

/// The calls that are being expanded.
#[derive(Debug, Default)]
pub struct Calls {
    open: Vec<Open>,
    expanded: usize,
}

#[derive(Debug)]
struct Open {
    name: String,
    opsets: Vec<(String, i64)>,
}

impl Calls {
    /// The version of an operator set inside the innermost call; `None` outside of calls.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        let open = self.open.last()?;
        Some(open.opsets.iter().find(|(name, _)| name == domain).map_or(0, |(_, version)| *version))
    }

    fn enter(&mut self, function: &FunctionProto) -> Result<(), NodeError> {
        let name = format!("{}.{}.{}", function.domain, function.name, function.overload);
        if self.open.iter().any(|open| open.name == name) {
            return Err(NodeError::invalid(format!("the function `{}` calls itself", function.name)));
        }
        self.expanded = self.expanded.saturating_add(function.node.len());
        if self.expanded > MAX_EXPANDED {
            return Err(NodeError::unsupported(format!("calls of functions expand to more than {MAX_EXPANDED} nodes")));
        }
        let opsets =
            function.opset_import.iter().map(|o| (canonical_domain(&o.domain).to_string(), o.version)).collect();
        self.open.push(Open { name, opsets });
        Ok(())
    }
}

impl Graphs<'_> {
    /// Imports a call of one of the model's functions.
    pub fn call(
        &mut self,
        builder: &mut BlockBuilder,
        function: &FunctionProto,
        proto: &NodeProto,
        inputs: Vec<Option<Value>>,
    ) -> Result<Step, NodeError> {
        if inputs.len() > function.input.len() {
            let (given, most) = (inputs.len(), function.input.len());
            return Err(NodeError::invalid(format!("{given} inputs are given to a function of {most}")));
        }
        let nodes = with_attributes(function, proto);
        self.calls.enter(function)?;
        self.names.open(Visibility::Closed);
        let mut inputs = inputs.into_iter();
        for name in &function.input {
            // An input that is left out has no name inside: what reads it sees an empty one.
            if let Some(value) = inputs.next().flatten() {
                self.names.set(name, Known::Value(value));
            }
        }
        let left_out: Vec<&str> = function
            .input
            .iter()
            .enumerate()
            .filter(|(i, _)| proto.input.get(*i).is_none_or(String::is_empty))
            .map(|(_, name)| name.as_str())
            .collect();
        let nodes: Vec<NodeProto> = nodes.into_iter().map(|node| without_inputs(node, &left_out)).collect();
        let wanted = proto.output.len().min(function.output.len());
        let outputs: Vec<&str> = function.output.iter().take(wanted).map(String::as_str).collect();
        let values = self.values(builder, &nodes, &outputs);
        self.names.close();
        self.calls.open.pop();
        Ok(values.map_or(Step::Noted, Step::Values))
    }
}

/// A node that does not name inputs which the call left out.
fn without_inputs(mut node: NodeProto, left_out: &[&str]) -> NodeProto {
    for name in &mut node.input {
        if left_out.contains(&name.as_str()) {
            name.clear();
        }
    }
    node
}

/// The nodes of a function's body with the attributes of a call in the place of references to them.
fn with_attributes(function: &FunctionProto, call: &NodeProto) -> Vec<NodeProto> {
    let given = |name: &str| {
        let of_call = call.attribute.iter().find(|a| a.name == name);
        of_call.or_else(|| function.attribute_proto.iter().find(|a| a.name == name))
    };
    function.node.iter().map(|node| resolve(node, &given)).collect()
}

fn resolve<'a>(node: &NodeProto, given: &dyn Fn(&str) -> Option<&'a AttributeProto>) -> NodeProto {
    let attribute = |a: &AttributeProto| -> Option<AttributeProto> {
        if !a.ref_attr_name.is_empty() {
            return given(&a.ref_attr_name).map(|value| AttributeProto { name: a.name.clone(), ..value.clone() });
        }
        let mut a = a.clone();
        for graph in a.g.iter_mut().chain(&mut a.graphs) {
            graph.node = graph.node.iter().map(|node| resolve(node, given)).collect();
        }
        Some(a)
    };
    NodeProto { attribute: node.attribute.iter().filter_map(attribute).collect(), ..node.clone() }
}
