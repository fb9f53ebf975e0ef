//! What runs inside of a node, written out beside it.
//!
//! ```text
//! y = If(c, then={ t = Mul(x, x); Add(t, x) }, else=…)     ==>     y/t = Mul(x, x)
//!                                                                  y/1 = Add(y/t, x)
//!                                                                  y = If(c, …)
//! ```
//!
//! A copy of the graph that runs stands in front of the node, under names of its own, so that its values can be outputs of the model
//! like any others: the branch that is taken, the first iteration of a `Loop`, the first element of a `Scan`. What later iterations
//! compute is not shown.

use std::collections::HashMap;

use relaxide::onnx::proto::{AttributeProto, ElementType, GraphProto, NodeProto, TensorProto};

/// Names by what they become.
type Renames = HashMap<String, String>;

/// The nodes and constants that a node's graph is written out as, and what they are of the whole.
pub struct Unfolded {
    /// In the order of the graph.
    pub nodes: Vec<NodeProto>,
    /// With those that its inputs become.
    pub initializers: Vec<TensorProto>,
    /// Which part of the node's run it is.
    pub part: &'static str,
}

/// Whether a node has graphs inside.
pub fn has_graphs(node: &NodeProto) -> bool {
    node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty())
}

/// How many nodes there are inside of a node, at any depth.
pub fn count_inside(node: &NodeProto) -> usize {
    let graphs = node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs));
    graphs.flat_map(|graph| &graph.node).map(|node| 1 + count_inside(node)).sum()
}

/// Writes out what runs inside of a node; `taken` says which branch of an `If` it is. `None` for nodes of other kinds, and for
/// such that are not well-formed.
pub fn unfold(node: &NodeProto, taken: Option<bool>) -> Option<Unfolded> {
    if !matches!(node.domain.as_str(), "" | "ai.onnx") {
        return None;
    }
    let mut copy = Copy::of(node)?;
    match node.op_type.as_str() {
        "If" => {
            let branch = if taken? { "then_branch" } else { "else_branch" };
            copy.graph(graph(node, branch)?, "the branch that is taken")
        }
        "Loop" => {
            let body = graph(node, "body")?;
            let [iteration, condition, state @ ..] = &body.input[..] else { return None };
            copy.constant(&iteration.name, ElementType::Int64, &0i64.to_le_bytes());
            copy.constant(&condition.name, ElementType::Bool, &[1]);
            for (inner, outer) in state.iter().zip(node.input.get(2..)?) {
                copy.renames.insert(inner.name.clone(), outer.clone());
            }
            copy.graph(body, "the first iteration")
        }
        "Scan" => {
            let body = graph(node, "body")?;
            let scanned = usize::try_from(attribute(node, "num_scan_inputs")?.i).ok()?;
            let states = node.input.len().checked_sub(scanned)?;
            if body.input.len() != node.input.len() {
                return None;
            }
            for (i, (inner, outer)) in body.input.iter().zip(&node.input).enumerate() {
                match i.checked_sub(states) {
                    None => _ = copy.renames.insert(inner.name.clone(), outer.clone()),
                    Some(at) => copy.first_element(node, &inner.name, outer, at),
                }
            }
            copy.graph(body, "the first element")
        }
        _ => None,
    }
}

fn attribute<'n>(node: &'n NodeProto, name: &str) -> Option<&'n AttributeProto> {
    node.attribute.iter().find(|attribute| attribute.name == name)
}

fn graph<'n>(node: &'n NodeProto, name: &str) -> Option<&'n GraphProto> {
    attribute(node, name)?.g.as_ref()
}

/// A graph that is being written out.
struct Copy {
    /// In front of its names: the first output of its node.
    prefix: String,
    renames: Renames,
    nodes: Vec<NodeProto>,
    initializers: Vec<TensorProto>,
}

impl Copy {
    fn of(node: &NodeProto) -> Option<Copy> {
        let prefix = node.output.iter().find(|name| !name.is_empty())?.clone();
        Some(Copy { prefix, renames: Renames::new(), nodes: Vec::new(), initializers: Vec::new() })
    }

    fn own(&mut self, name: &str) -> String {
        let own = format!("{}/{name}", self.prefix);
        self.renames.insert(name.to_string(), own.clone());
        own
    }

    /// A scalar in the place of an input.
    fn constant(&mut self, name: &str, element: ElementType, bytes: &[u8]) {
        let (name, raw_data) = (self.own(name), bytes.to_vec().into());
        self.initializers.push(TensorProto { name, data_type: element as i32, raw_data, ..TensorProto::default() });
    }

    /// The first element that a `Scan` reads of its input number `at` in the place of an input of its body.
    fn first_element(&mut self, node: &NodeProto, inner: &str, outer: &str, at: usize) {
        let number = |name: &str| attribute(node, name).and_then(|a| a.ints.get(at)).copied().unwrap_or(0);
        let (axis, backwards) = (number("scan_input_axes"), number("scan_input_directions") == 1);
        let index = format!("{inner}/index");
        self.constant(&index, ElementType::Int64, &(if backwards { -1i64 } else { 0 }).to_le_bytes());
        let axis = AttributeProto {
            name: "axis".into(),
            i: axis,
            r#type: relaxide::onnx::proto::AttributeKind::Int as i32,
            ..AttributeProto::default()
        };
        let output = self.own(inner);
        self.nodes.push(NodeProto {
            op_type: "Gather".into(),
            name: output.clone(),
            input: vec![outer.to_string(), self.renamed(&index)],
            output: vec![output],
            attribute: vec![axis],
            ..NodeProto::default()
        });
    }

    fn renamed(&self, name: &str) -> String {
        self.renames.get(name).cloned().unwrap_or_else(|| name.to_string())
    }

    fn graph(mut self, graph: &GraphProto, part: &'static str) -> Option<Unfolded> {
        for initializer in &graph.initializer {
            let name = self.own(&initializer.name);
            self.initializers.push(TensorProto { name, ..initializer.clone() });
        }
        let made: Vec<&String> = graph.node.iter().flat_map(|node| &node.output).filter(|n| !n.is_empty()).collect();
        made.into_iter().for_each(|name| _ = self.own(name));
        let nodes = graph.node.iter().map(|node| rename(node, &self.renames));
        self.nodes.extend(nodes);
        Some(Unfolded { nodes: self.nodes, initializers: self.initializers, part })
    }
}

/// A node under other names, with the graphs inside of it, which see the names around them.
fn rename(node: &NodeProto, renames: &Renames) -> NodeProto {
    let name = |name: &String| renames.get(name).cloned().unwrap_or_else(|| name.clone());
    let mut node = node.clone();
    node.input = node.input.iter().map(name).collect();
    node.output = node.output.iter().map(name).collect();
    for attribute in &mut node.attribute {
        for graph in attribute.g.iter_mut().chain(&mut attribute.graphs) {
            rename_inside(graph, renames);
        }
    }
    node
}

/// Names of the graph's own stay as they are; outputs may be names from outside.
fn rename_inside(graph: &mut GraphProto, renames: &Renames) {
    let mut seen = renames.clone();
    let inputs = graph.input.iter().map(|input| &input.name).chain(graph.initializer.iter().map(|tensor| &tensor.name));
    for name in inputs.chain(graph.node.iter().flat_map(|node| &node.output)) {
        seen.remove(name);
    }
    graph.node = graph.node.iter().map(|node| rename(node, &seen)).collect();
    for output in &mut graph.output {
        if let Some(name) = seen.get(&output.name) {
            output.name.clone_from(name);
        }
    }
}
