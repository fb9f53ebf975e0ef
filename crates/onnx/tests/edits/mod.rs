//! Edits of models: graphs, nodes and names are moved, copied, renamed and dropped as a script of bytes says.
//!
//! Bytes that are changed in a file rarely give a model that decodes; these edits always do, and what comes out is wrong in
//! ways that only an importer notices. The tests of this crate and the fuzz target `onnx_edits` both use them.

use relaxide_onnx::proto::*;

/// The models that edits begin with, with control flow, functions and sequences (`fuzz/seeds/make.py` writes them).
pub const SEEDS: &[&[u8]] = &[
    include_bytes!("../../../../fuzz/seeds/onnx_model/branches.onnx"),
    include_bytes!("../../../../fuzz/seeds/onnx_model/loop.onnx"),
    include_bytes!("../../../../fuzz/seeds/onnx_model/scan.onnx"),
    include_bytes!("../../../../fuzz/seeds/onnx_model/functions.onnx"),
    include_bytes!("../../../../fuzz/seeds/onnx_model/sequences.onnx"),
];

/// The most edits of one script.
const MAX_EDITS: usize = 24;
/// The most nodes that a model grows to.
const MAX_NODES: usize = 400;

const OPS: &[&str] = &[
    "If",
    "Loop",
    "Scan",
    "Identity",
    "Add",
    "Less",
    "Concat",
    "Reshape",
    "Gather",
    "Shape",
    "SequenceAt",
    "SequenceInsert",
    "SequenceConstruct",
    "ConcatFromSequence",
    "SplitToSequence",
    "SequenceMap",
    "SequenceEmpty",
    "Bend",
    "Twice",
    "Constant",
];

/// A script, read byte by byte; zeros follow its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn below(&mut self, count: usize) -> usize {
        if count == 0 { 0 } else { usize::from(self.next()) % count }
    }
}

/// The model that a script makes of the seed that its first byte chooses.
pub fn edited(seed: &ModelProto, script: &[u8]) -> ModelProto {
    let (mut model, mut script) = (seed.clone(), Script(script));
    for _ in 0..MAX_EDITS {
        if script.0.is_empty() {
            break;
        }
        let names = names_of(&model);
        let donor = pick_node(&model, &mut script);
        let at = script.next();
        let Some(graph) = model.graph.as_mut() else { break };
        let mut graphs = count_graphs(&graph.node) + 1;
        graphs += model.functions.iter().map(|f| 1 + count_graphs(&f.node)).sum::<usize>();
        let mut left = usize::from(at) % graphs;
        if edit_graph(graph, &mut left, &names, donor.as_ref(), &mut script) {
            continue;
        }
        for function in &mut model.functions {
            if left == 0 {
                edit_nodes(&mut function.node, &names, donor.as_ref(), &mut script);
                break;
            }
            left -= 1;
            if edit_inside(&mut function.node, &mut left, &names, donor.as_ref(), &mut script) {
                break;
            }
        }
    }
    model
}

fn graphs_of(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

fn count_graphs(nodes: &[NodeProto]) -> usize {
    nodes.iter().flat_map(graphs_of).map(|graph| 1 + count_graphs(&graph.node)).sum()
}

fn count_nodes(nodes: &[NodeProto]) -> usize {
    nodes.len() + nodes.iter().flat_map(graphs_of).map(|graph| count_nodes(&graph.node)).sum::<usize>()
}

fn collect_names(nodes: &[NodeProto], names: &mut Vec<String>) {
    for node in nodes {
        names.extend(node.input.iter().chain(&node.output).cloned());
        for graph in graphs_of(node) {
            names.extend(graph.input.iter().chain(&graph.output).map(|info| info.name.clone()));
            collect_names(&graph.node, names);
        }
    }
}

/// Every name of a model, and some that it does not have.
fn names_of(model: &ModelProto) -> Vec<String> {
    let mut names = vec![String::new(), "nowhere".into()];
    if let Some(graph) = &model.graph {
        names.extend(graph.input.iter().map(|info| info.name.clone()));
        names.extend(graph.initializer.iter().map(|tensor| tensor.name.clone()));
        collect_names(&graph.node, &mut names);
    }
    model.functions.iter().for_each(|f| collect_names(&f.node, &mut names));
    names.truncate(250);
    names
}

/// A node of whatever graph, unless the model is large already.
fn pick_node(model: &ModelProto, script: &mut Script<'_>) -> Option<NodeProto> {
    let graph = model.graph.as_ref()?;
    let of_functions: usize = model.functions.iter().map(|f| count_nodes(&f.node)).sum();
    if count_nodes(&graph.node) + of_functions > MAX_NODES {
        return None;
    }
    let lists: Vec<&[NodeProto]> =
        std::iter::once(&graph.node[..]).chain(model.functions.iter().map(|f| &f.node[..])).collect();
    let mut list = lists[script.below(lists.len())];
    loop {
        let node = list.get(script.below(list.len()))?;
        match graphs_of(node).next() {
            Some(inner) if script.next() & 1 == 1 => list = &inner.node,
            _ => return Some(node.clone()),
        }
    }
}

/// Edits the graph that `left` graphs come before; whether it was found.
fn edit_graph(
    graph: &mut GraphProto,
    left: &mut usize,
    names: &[String],
    donor: Option<&NodeProto>,
    script: &mut Script<'_>,
) -> bool {
    if *left > 0 {
        *left -= 1;
        return edit_inside(&mut graph.node, left, names, donor, script);
    }
    let name = names[script.below(names.len())].clone();
    match script.below(12) {
        0 => drop_one(&mut graph.output, script),
        1 => drop_one(&mut graph.input, script),
        2 => rename(&mut graph.output, name, script),
        3 => rename(&mut graph.input, name, script),
        4 => _ = graph.output.first().cloned().map(|info| graph.output.push(info)),
        5 => {
            let at = script.below(graph.initializer.len());
            let byte = script.next();
            if let Some(tensor) = graph.initializer.get_mut(at) {
                if byte & 1 == 0 {
                    tensor.data_type = i32::from(byte / 2)
                } else {
                    tensor.dims.push(i64::from(byte) - 100)
                }
            }
        }
        _ => edit_nodes(&mut graph.node, names, donor, script),
    }
    true
}

fn edit_inside(
    nodes: &mut [NodeProto],
    left: &mut usize,
    names: &[String],
    donor: Option<&NodeProto>,
    script: &mut Script<'_>,
) -> bool {
    let attributes = nodes.iter_mut().flat_map(|node| &mut node.attribute);
    let mut graphs = attributes.flat_map(|attribute| attribute.g.iter_mut().chain(&mut attribute.graphs));
    graphs.any(|graph| edit_graph(graph, left, names, donor, script))
}

fn drop_one<T>(list: &mut Vec<T>, script: &mut Script<'_>) {
    if !list.is_empty() {
        list.remove(script.below(list.len()));
    }
}

fn rename(list: &mut [ValueInfoProto], name: String, script: &mut Script<'_>) {
    let at = script.below(list.len());
    if let Some(info) = list.get_mut(at) {
        info.name = name;
    }
}

fn edit_nodes(nodes: &mut Vec<NodeProto>, names: &[String], donor: Option<&NodeProto>, script: &mut Script<'_>) {
    let (at, other) = (script.below(nodes.len()), script.below(nodes.len() + 1));
    let name = names[script.below(names.len())].clone();
    match (script.below(10), donor) {
        (0, _) => drop_one(nodes, script),
        (1 | 2, Some(donor)) => nodes.insert(other, donor.clone()),
        (3, _) if other < nodes.len() => nodes.swap(at, other),
        _ => {
            let Some(node) = nodes.get_mut(at) else { return };
            edit_node(node, name, script);
        }
    }
}

fn edit_node(node: &mut NodeProto, name: String, script: &mut Script<'_>) {
    let set = |list: &mut Vec<String>, at: usize, name: String| match list.get_mut(at) {
        Some(place) => *place = name,
        None => list.push(name),
    };
    match script.below(8) {
        0 => set(&mut node.input, script.below(4), name),
        1 => set(&mut node.output, script.below(3), name),
        2 => node.op_type = OPS[script.below(OPS.len())].into(),
        3 => drop_one(&mut node.input, script),
        4 => drop_one(&mut node.output, script),
        5 => drop_one(&mut node.attribute, script),
        6 => node.domain = ["", "own", "com.microsoft"][script.below(3)].into(),
        _ => {
            let at = script.below(node.attribute.len());
            let byte = script.next();
            if let Some(attribute) = node.attribute.get_mut(at) {
                attribute.i = i64::from(byte) - 128;
                attribute.ints = vec![attribute.i; usize::from(byte % 4)];
                if byte & 3 == 3 {
                    attribute.name =
                        ["body", "then_branch", "else_branch", "axis", "num_scan_inputs"][usize::from(byte) % 5].into();
                }
            }
        }
    }
}
