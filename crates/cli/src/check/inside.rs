//! Finding the node that differs first.
//!
//! Every value of the graph becomes an output on both sides, and the first node in its order whose result differs is named: what
//! it was given was still the same. If that node has graphs inside, what ran of them is [written out](super::unfold) beside it, and
//! the search goes on there. What cannot be looked into is said: later iterations of a loop, functions of the model.

use prost::Message;
use relaxide::ffi::{DataType, Tensor};
use relaxide::onnx::error::{Location, Problem};
use relaxide::onnx::given::{self, Beside};
use relaxide::onnx::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use relaxide::onnx::{ImportError, ImportOptions, Model};

use super::unfold::{Unfolded, count_inside, has_graphs, unfold};
use super::{CheckArgs, CheckOutcome, Compared, Difference, FoundNode, Theirs, compare_all, compile, tensors};
use crate::answer::Form;
use crate::error::CliError;
use crate::inputs::{Call, Missing, element};
use crate::onnxruntime::{Graph, OnnxRuntime};
use crate::program::Program;

/// How deep the search goes into nodes inside nodes.
const MAX_DEPTH: usize = 16;

/// Finds the first node that differs.
pub(super) fn first_different(
    bytes: Vec<u8>,
    runtime: &mut OnnxRuntime,
    args: &CheckArgs,
    form: Form,
) -> Result<CheckOutcome, CliError> {
    let mut bytes = bytes;
    let mut kept = ValuesOfBoth::of(&bytes, runtime, args, form)?;
    let Some((mut node, mut difference)) = kept.first() else { return Ok(CheckOutcome::Nothing) };
    let (mut within, mut seen) = (Vec::new(), Vec::new());
    let not_compared = loop {
        if !has_graphs(&node) {
            break kept
                .function(&node)
                .map(|count| format!("it is a function of the model, whose {count} nodes were not compared"));
        }
        let count = count_inside(&node);
        let left = |why: &str| Some(format!("{count} nodes inside of it were not compared: {why}"));
        if seen.len() == MAX_DEPTH {
            break left("they are too deep inside of others");
        }
        let Some(unfolded) = unfold(&node, kept.taken(&node)) else { break left("it cannot be written out") };
        let (part, title) = (unfolded.part, title(&node));
        bytes = insert(&bytes, &node, unfolded)?;
        // What does not run by itself, as the first iteration of a loop that has none, is left at that.
        let Ok(next) = ValuesOfBoth::of(&bytes, runtime, args, form) else {
            break left("they do not run outside of it");
        };
        let Some((inner, of_inner)) = next.first() else { break left("they agree where they are written out") };
        if inner.output == node.output {
            break Some(format!("{part} agrees; what else runs of the {count} nodes inside of it was not compared"));
        }
        seen.push(node.output.clone());
        within.push(format!("{title}, {part}"));
        (kept, node, difference) = (next, inner, of_inner);
    };
    let name = node_name(&node);
    Ok(CheckOutcome::Node(FoundNode { op: node.op_type, name, difference, within, not_compared }))
}

/// A model's values on both sides.
struct ValuesOfBoth {
    model: Model,
    compared: Vec<Compared>,
    theirs: Theirs,
}

impl ValuesOfBoth {
    /// Runs a model with all values as outputs.
    fn of(bytes: &[u8], runtime: &mut OnnxRuntime, args: &CheckArgs, form: Form) -> Result<ValuesOfBoth, CliError> {
        let opened = |bytes: Vec<u8>| -> Result<Model, relaxide::Error> {
            let mut model = Model::from_bytes(bytes)?;
            model.beside = Some(Beside::model(&args.model));
            Ok(model)
        };
        let model = opened(bytes.to_vec())?;
        let known: Vec<String> = model.graph.output.iter().map(|output| output.name.clone()).collect();
        let inside = model.graph.node.iter().flat_map(|node| &node.output);
        let mut names: Vec<String> = inside.filter(|name| !name.is_empty() && !known.contains(name)).cloned().collect();
        let (bytes, module) = loop {
            let all = with_outputs(bytes, &names);
            match relaxide::onnx::import(&opened(all.clone())?, &ImportOptions::default()) {
                Ok(module) => break (all, module),
                // What we do not compute, as the mask of a dropout, cannot be compared.
                Err(error) => {
                    match not_ours(&error).filter(|missing| names.iter().any(|name| missing.contains(name))) {
                        Some(missing) => names.retain(|name| !missing.contains(name)),
                        None => return Err(relaxide::Error::from(error).into()),
                    }
                }
            }
        };
        let failed = |source| CliError::File { path: "a temporary file".into(), source };
        let file = tempfile::Builder::new().prefix("relaxide-").suffix(".onnx").tempfile().map_err(failed)?;
        std::fs::write(file.path(), &bytes).map_err(failed)?;
        let call =
            Call::prepare(&compile(Program::Relax(Box::new(module)), args, form)?, &args.inputs, Missing::Random)?;
        let theirs = Theirs::run(runtime, file.path(), &args.model, Graph::AsWritten, &call)?;
        let compared = compare_all(&tensors(&call.invoke()?, theirs.names.len()), &theirs, args)?;
        Ok(ValuesOfBoth { model, compared, theirs })
    }

    /// The first node that differs.
    fn first(&self) -> Option<(NodeProto, Difference)> {
        self.model.graph.node.iter().find_map(|node| Some((node.clone(), self.differs(node)?)))
    }

    fn differs(&self, node: &NodeProto) -> Option<Difference> {
        let results = node.output.iter().filter_map(|name| self.compared.iter().find(|one| one.name == *name));
        results.filter_map(|one| one.difference).find(|difference| difference.wrong > 0)
    }

    /// Which branch an `If` took, where its condition is a value of the graph.
    fn taken(&self, node: &NodeProto) -> Option<bool> {
        let condition = node.input.first()?;
        let at = self.theirs.names.iter().position(|name| name == condition);
        let computed = at.and_then(|at| self.theirs.values.get(at)?.clone());
        let constant = || self.model.graph.initializer.iter().find(|tensor| tensor.name == *condition);
        let constant = || given::from_proto(constant()?, self.model.beside.as_ref()).ok();
        let tensor: Tensor = computed.or_else(constant)?;
        let known = tensor.dtype() == DataType::bool();
        known.then(|| element::numbers(&tensor).ok())?.and_then(|numbers| Some(*numbers.first()? != 0.0))
    }

    /// How many nodes the function has that a node calls, if it calls one of the model's.
    fn function(&self, node: &NodeProto) -> Option<usize> {
        self.model.function(&node.domain, &node.op_type, &node.overload).map(|function| function.node.len())
    }
}

/// The model with further nodes in front of one.
fn insert(bytes: &[u8], node: &NodeProto, unfolded: Unfolded) -> Result<Vec<u8>, CliError> {
    let model = Model::from_bytes(bytes.to_vec()).map_err(relaxide::Error::from)?;
    let mut graph = model.graph;
    let at = graph.node.iter().position(|other| other.output == node.output).unwrap_or(0);
    graph.node.splice(at..at, unfolded.nodes);
    graph.initializer.extend(unfolded.initializers);
    Ok(ModelProto { graph: Some(graph), ..model.frame }.encode_to_vec())
}

fn node_name(node: &NodeProto) -> String {
    if node.name.is_empty() { node.output.first().cloned().unwrap_or_default() } else { node.name.clone() }
}

fn title(node: &NodeProto) -> String {
    format!("{} `{}`", node.op_type, node_name(node))
}

/// The model's file with further outputs. In the format of ONNX files, a message behind another adds to its lists.
fn with_outputs(bytes: &[u8], names: &[String]) -> Vec<u8> {
    let output = names.iter().map(|name| ValueInfoProto { name: name.clone(), r#type: None }).collect();
    let graph = GraphProto { output, ..GraphProto::default() };
    let more = ModelProto { graph: Some(graph), ..ModelProto::default() };
    [bytes, &more.encode_to_vec()].concat()
}

/// The outputs that the importer does not make, if that is all that is wrong.
fn not_ours(error: &ImportError) -> Option<Vec<String>> {
    let name = |problem: &Problem| match &problem.place {
        Location::Output(name) => Some(name.clone()),
        _ => None,
    };
    error.problems.iter().map(name).collect()
}
