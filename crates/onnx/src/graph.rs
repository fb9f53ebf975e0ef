//! [`Graphs`]: the nodes of a model and of the graphs inside it, one after the other, into the program under construction.
//!
//! A node that fails is noted, its outputs become unknown, nodes that depend on them are skipped without a complaint of
//! their own, and the import goes on: the error at the end names every problem there is. Operators with graphs inside come
//! back here for those ([`crate::flow`]), and so do calls of the model's functions ([`crate::functions`]).

use indexmap::IndexMap;
use relaxide_ffi::Ref;
use relaxide_ir::span::Span;
use relaxide_relax::BlockBuilder;

use crate::constant;
use crate::error::{Location, NodeError, Problem};
use crate::external::Source;
use crate::flow::branch::{self, Facts, Split};
use crate::functions::Calls;
use crate::given::GivenWeights;
use crate::long_dims;
use crate::model::{Model, canonical_domain};
use crate::names::{Known, Names, Visibility};
use crate::node::Node;
use crate::ops::{self, Rule};
use crate::options::ImportOptions;
use crate::order;
use crate::proto::{GraphProto, NodeProto, TensorProto};
use crate::quantized::dequantized::{self, Dequantized};
use crate::quantized::requantized::OfIntegers;
use crate::scope::Scope;
use crate::symbolic::{self, Symbolic};
use crate::value::Value;
use crate::{text, text_ops};

/// How many graphs may be open inside each other, functions among them.
const MAX_DEPTH: usize = 64;

/// What became of a node.
pub enum Step {
    /// Its outputs.
    Values(Vec<Value>),
    /// It has problems inside, which are noted.
    Noted,
    /// What follows it has to be imported once for each branch.
    Split(Box<Split>),
}

/// A problem, and whether the model is at fault where it is reached.
struct Note {
    problem: Problem,
    invalid: bool,
}

/// How many bytes of weights are read from the model's file before their memory there is given back.
const GIVE_BACK_AFTER: usize = 16 << 20;

/// The graphs of a model under import.
pub struct Graphs<'m> {
    /// The model.
    pub model: &'m Model,
    /// What the caller says.
    pub options: &'m ImportOptions,
    /// What names stand for.
    pub names: Names,
    /// Functions of the model that are being expanded.
    pub calls: Calls,
    /// What is known where the program has taken branches.
    pub facts: Facts,
    notes: Vec<Note>,
}

impl<'m> Graphs<'m> {
    /// No graph is open yet.
    pub fn new(model: &'m Model, options: &'m ImportOptions) -> Self {
        let (names, calls, facts) = (Names::default(), Calls::default(), Facts::default());
        Graphs { model, options, names, calls, facts, notes: Vec::new() }
    }

    /// Notes a problem that is none of a node's.
    pub fn problem(&mut self, place: Location, reason: impl Into<String>, help: Option<&str>) {
        let problem = Problem { place, reason: reason.into(), help: help.map(str::to_string) };
        self.notes.push(Note { problem, invalid: false });
    }

    /// How many problems are noted.
    pub fn noted(&self) -> usize {
        self.notes.len()
    }

    /// Takes back the problems from one on. Their text, if the model is at fault for all of them: what it computes there
    /// makes no sense, so it is an error of the program that gets there. Others stay.
    pub fn take_back(&mut self, from: usize) -> Option<String> {
        let notes = self.notes.split_off(from.min(self.notes.len()));
        if notes.iter().all(|note| note.invalid) {
            let first = notes.first()?;
            return Some(format!("{}: {}", first.problem.place, first.problem.reason));
        }
        self.notes.extend(notes);
        None
    }

    /// Every problem, in order.
    pub fn problems(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.notes).into_iter().map(|note| note.problem).collect()
    }

    /// Gives names to constants of a graph; some are given apart from the model.
    pub fn initializers(&mut self, protos: &[TensorProto], given: Option<&GivenWeights>) {
        let source = Source { beside: self.model.beside.as_ref(), files: &self.model.given.files };
        let mut read = 0;
        // What is wrong, and with which of them: a file that is missing is missing for all.
        let mut failed: IndexMap<String, Vec<&str>> = IndexMap::new();
        for proto in protos {
            let own = given.and_then(|given| given.tensors.get(&proto.name));
            let made = match (own, text::is_text(proto)) {
                (Some(own), _) => Ok(Value::Constant(own.tensor.clone())),
                (None, true) => text::constant(proto).map_err(|error| error.to_string()),
                (None, false) => {
                    constant::from_file(proto, source).map(Value::Constant).map_err(|error| error.to_string())
                }
            };
            let known = match made {
                Ok(value) => Known::Value(value),
                Err(error) => {
                    failed.entry(error).or_default().push(&proto.name);
                    Known::Failed
                }
            };
            self.names.set(&proto.name, known);
            read += proto.raw_data.len();
            if read > GIVE_BACK_AFTER {
                self.model.give_back();
                read = 0;
            }
        }
        for (reason, names) in failed {
            let Some((first, others)) = names.split_first() else { continue };
            let more = match others {
                [] => String::new(),
                [other] => format!(" (so for `{other}`)"),
                [other, ..] => format!(" (so for {} others: `{other}` …)", others.len()),
            };
            self.problem(Location::Initializer((*first).to_string()), reason + &more, None);
        }
    }

    /// Imports a graph inside a node: its inputs' values in, its outputs' values out; `None` where problems are noted.
    pub fn inner(
        &mut self,
        builder: &mut BlockBuilder,
        graph: &GraphProto,
        inputs: Vec<Value>,
        visibility: Visibility,
    ) -> Option<Vec<Value>> {
        self.names.open(visibility);
        self.initializers(&graph.initializer, None);
        for (info, value) in graph.input.iter().zip(inputs) {
            self.names.set(&info.name, Known::Value(value));
        }
        let outputs: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
        // A level that captures is closed by whoever opened it, who needs what was captured.
        let captures = self.names.captures().is_some();
        let values = self.values(builder, &graph.node, &outputs);
        if !captures {
            self.names.close();
        }
        values
    }

    /// Imports nodes of the innermost graph; the values of its outputs, or `None` where problems are noted.
    pub fn values(&mut self, builder: &mut BlockBuilder, nodes: &[NodeProto], outputs: &[&str]) -> Option<Vec<Value>> {
        if self.names.depth() > MAX_DEPTH {
            self.problem(
                Location::Model,
                format!("graphs and functions are more than {MAX_DEPTH} deep inside each other"),
                None,
            );
            return None;
        }
        let sorted = order::sorted(nodes);
        let nodes = sorted.as_deref().unwrap_or(nodes);
        for (i, proto) in nodes.iter().enumerate() {
            if let Some(split) = self.node(builder, proto) {
                let rest = nodes.get(i + 1..).unwrap_or_default();
                return branch::split(self, builder, proto, &split, rest, outputs).unwrap_or_else(|error| {
                    let domain = canonical_domain(&proto.domain);
                    self.note(proto, domain, self.opset(domain), &error);
                    None
                });
            }
        }
        let mut values = Vec::with_capacity(outputs.len());
        for &name in outputs {
            match self.names.get(name) {
                Some(Known::Value(value)) => values.push(value),
                Some(Known::Failed) => {}
                None => self.problem(Location::Output(name.to_string()), "nothing in the graph makes it", None),
            }
        }
        (values.len() == outputs.len()).then_some(values)
    }

    /// Imports one node; failures are noted. A split is what the caller has to do.
    fn node(&mut self, builder: &mut BlockBuilder, proto: &NodeProto) -> Option<Split> {
        let domain = canonical_domain(&proto.domain);
        let opset = self.opset(domain);
        let outer = builder.set_origin(Some(origin(proto)));
        let step = match self.step(builder, proto, domain, opset) {
            Ok(Some(Step::Values(values))) => {
                let named = values.into_iter().map(|value| long_dims::named(&mut self.names, builder, value));
                named.collect::<Result<_, _>>().map(|values| Some(Step::Values(values)))
            }
            other => other,
        };
        builder.set_origin(outer);
        let result = match step {
            Ok(Some(Step::Values(values))) => Ok(values),
            Ok(Some(Step::Split(split))) => return Some(*split),
            Ok(Some(Step::Noted) | None) => {
                self.fail_outputs(proto);
                return None;
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(values) => {
                self.bind(proto, values);
                self.remember_integers(proto, domain, opset);
            }
            Err(error) => {
                self.note(proto, domain, opset, &error);
                self.fail_outputs(proto);
            }
        }
        None
    }

    /// Notes what the output of a `DequantizeLinear`, or of a product or sum of such, is made of.
    fn remember_integers(&mut self, proto: &NodeProto, domain: &str, opset: i64) {
        // A function of the model may have the name, too.
        let is_function = self.model.function(domain, &proto.op_type, &proto.overload).is_some();
        let is_known = domain.is_empty() || (domain == "com.microsoft" && proto.op_type == "DequantizeLinear");
        let is_noted = ["DequantizeLinear", "Conv", "MatMul", "Add", "Mul", "Relu"].contains(&proto.op_type.as_str());
        if !is_known || !is_noted || is_function {
            return;
        }
        let (Ok(Some(inputs)), Some(output)) = (self.node_inputs(proto), proto.output.first()) else { return };
        let node = Node { proto, inputs, opset };
        let dequantized = |i: usize| self.names.dequantized(proto.input.get(i)?);
        match node.op() {
            "DequantizeLinear" => {
                let Some(from) = Dequantized::of(&node) else { return };
                self.names.set_dequantized(output, from);
            }
            "Relu" => {
                let Some(value) = proto.input.first().and_then(|name| self.names.of_integers(name)) else { return };
                let value = value.clipped();
                self.names.set_of_integers(output, value);
            }
            _ => {
                let Some((a, w)) = dequantized(0).zip(dequantized(1)) else { return };
                let Some(value) = OfIntegers::of(&node, a, w, dequantized(2)) else { return };
                self.names.set_of_integers(output, value);
            }
        }
    }

    /// The version of an operator set that nodes mean here.
    fn opset(&self, domain: &str) -> i64 {
        match (self.calls.opset(domain), self.options.opset) {
            (Some(version), _) => version,
            (None, Some(version)) if domain.is_empty() => version,
            _ => self.model.opset(domain).unwrap_or(0),
        }
    }

    /// Gives the outputs of a node their values.
    pub fn bind(&mut self, proto: &NodeProto, values: Vec<Value>) {
        for (name, value) in proto.output.iter().zip(values) {
            self.names.set(name, Known::Value(value));
        }
    }

    /// What becomes of a node; `None` where an input could not be imported.
    fn step(
        &mut self,
        builder: &mut BlockBuilder,
        proto: &NodeProto,
        domain: &str,
        opset: i64,
    ) -> Result<Option<Step>, NodeError> {
        if let Some(function) = self.model.function(domain, &proto.op_type, &proto.overload) {
            let Some(inputs) = self.node_inputs(proto)? else { return Ok(None) };
            return self.call(builder, function, proto, inputs).map(Some);
        }
        // An operator without a rule is a problem of its own, also where an input has one already.
        let rule = ops::rule(domain, &proto.op_type, opset)?;
        let Some(inputs) = self.node_inputs(proto)? else { return Ok(None) };
        let node = Node { proto, inputs, opset };
        if let Rule::Flow(rule) = rule {
            return rule(self, builder, &node).map(Some);
        }
        if let Some(value) = self.facts.about(&node) {
            return Ok(Some(Step::Values(vec![value])));
        }
        if let Some(value) = self.integer_product(builder, &node, domain)? {
            return Ok(Some(Step::Values(vec![value])));
        }
        if let Some(value) = self.requantized(builder, &node, domain)? {
            return Ok(Some(Step::Values(vec![value])));
        }
        let values = import_node(&mut Scope::new(builder), rule, &node)?;
        self.facts.remember(&node, &values);
        Ok(Some(Step::Values(values)))
    }

    /// A product of values that were dequantized, as one of integers.
    fn integer_product(
        &mut self,
        builder: &mut BlockBuilder,
        node: &Node,
        domain: &str,
    ) -> Result<Option<Value>, NodeError> {
        let is_product = domain.is_empty() && ["MatMul", "Gemm", "Conv"].contains(&node.op());
        let ([a, w, ..], true) = (node.proto.input.as_slice(), is_product) else { return Ok(None) };
        let (Some(a), Some(w)) = (self.names.dequantized(a), self.names.dequantized(w)) else { return Ok(None) };
        let product = dequantized::product(&mut Scope::new(builder), node, a, w)?;
        Ok(product.map(Value::Computed))
    }

    /// A product or a sum of values that were dequantized, as it is quantized again.
    fn requantized(
        &mut self,
        builder: &mut BlockBuilder,
        node: &Node,
        domain: &str,
    ) -> Result<Option<Value>, NodeError> {
        let of = node.proto.input.first().filter(|_| domain.is_empty() && node.op() == "QuantizeLinear");
        let Some(value) = of.and_then(|name| self.names.of_integers(name)) else { return Ok(None) };
        let quantized = value.quantized(&mut Scope::new(builder), node)?;
        Ok(quantized.map(Value::Computed))
    }

    fn note(&mut self, proto: &NodeProto, domain: &str, opset: i64, error: &NodeError) {
        let (help, invalid) = match error {
            NodeError::Unsupported { help, .. } => (help.clone(), false),
            NodeError::Invalid(_) | NodeError::Relax(_) => (None, true),
        };
        let op = if domain.is_empty() { proto.op_type.clone() } else { format!("{domain}.{}", proto.op_type) };
        let first = || proto.output.first().cloned().unwrap_or_default();
        let name = if proto.name.is_empty() { first() } else { proto.name.clone() };
        let place = Location::Node { op, name, opset };
        self.notes.push(Note { problem: Problem { place, reason: error.to_string(), help }, invalid });
    }

    /// What the inputs stand for; `None` where one could not be imported.
    fn node_inputs(&mut self, proto: &NodeProto) -> Result<Option<Vec<Option<Value>>>, NodeError> {
        let mut inputs = Vec::new();
        for name in &proto.input {
            if name.is_empty() {
                inputs.push(None);
                continue;
            }
            inputs.push(match self.names.get(name) {
                Some(Known::Value(value)) => Some(value),
                Some(Known::Failed) => return Ok(None),
                None => return Err(NodeError::invalid(format!("nothing before it makes its input `{name}`"))),
            });
        }
        Ok(Some(inputs))
    }

    fn fail_outputs(&mut self, proto: &NodeProto) {
        for name in &proto.output {
            self.names.set(name, Known::Failed);
        }
    }
}

/// What is made of a node says that it is, by the operator and the node's name or that of its first output.
fn origin(proto: &NodeProto) -> Ref<Span> {
    let first = || proto.output.iter().find(|name| !name.is_empty()).cloned().unwrap_or_default();
    let name = if proto.name.is_empty() { first() } else { proto.name.clone() };
    Span::of_node(format!("{} `{name}`", proto.op_type))
}

/// Imports a node whose inputs are known.
fn import_node(scope: &mut Scope, rule: Rule, node: &Node) -> Result<Vec<Value>, NodeError> {
    if let Some(value) = symbolic::evaluate(node) {
        let is_constant = node.inputs.iter().flatten().all(|v| matches!(v, Value::Constant(_)));
        let tensor = value.tensor().filter(|tensor| is_constant && Symbolic::from_tensor(tensor).is_some());
        return Ok(vec![tensor.map_or(Value::Symbolic(value), Value::Constant)]);
    }
    let values = match text_ops::moved(scope, rule, node)? {
        Some(values) => values,
        None => rule.apply(scope, node)?,
    };
    let wanted = node.outputs();
    if values.len() < wanted {
        let given = values.len();
        return Err(NodeError::unsupported(format!(
            "{wanted} outputs are used, but only the first {given} are supported"
        )));
    }
    Ok(values)
}

/// Adds a statement that fails with a message when the program gets there.
pub fn fail_when_reached(builder: &mut BlockBuilder, message: &str) -> Result<(), NodeError> {
    let mut scope = Scope::new(builder);
    let never = scope.scalar(0.0, relaxide_ffi::DataType::bool())?;
    scope.assert(never, message)
}
