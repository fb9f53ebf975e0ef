//! From a model to a module with one function, `main`.
//!
//! ```text
//! input x: float[n, 3, ?, w]          @R.function
//! y = Conv(x, W)             =====>   def main(x: R.Tensor(("n", 3, "x_dim2", "w"), "float32")):
//! z = Relu(y)                             with R.dataflow(): …
//! ```
//!
//! Dimensions named in the file are symbolic variables of that name, shared by all inputs; unnamed ones get variables of
//! their own. Nodes are imported in order, each by the rule that [`crate::ops`] has for its operator and version. A node that
//! fails is noted, its outputs become unknown, nodes that depend on them are skipped without a complaint of their own, and
//! the import goes on: the error names every problem there is.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, Var};
use relaxide_relax::{BlockBuilder, Expr};

use crate::constant;
use crate::error::{ImportError, NodeError, Place, Problem};
use crate::model::{Model, canonical_domain};
use crate::node::Node;
use crate::ops;
use crate::options::{ImportOptions, InputDim, InputNames, Weights};
use crate::proto::{DimensionValue, NodeProto, TypeKind, ValueInfoProto};
use crate::scope::Scope;
use crate::symbolic;
use crate::value::Value;

/// The oldest version of the file format that is read.
const MIN_IR_VERSION: i64 = 3;

/// Imports a model.
pub fn import(model: &Model, options: &ImportOptions) -> Result<IRModule, ImportError> {
    let mut importer = Importer::new(model, options);
    importer.check_model();
    importer.initializers();
    importer.inputs();
    if importer.problems.is_empty() { importer.run() } else { Err(ImportError { problems: importer.problems }) }
}

/// A name of the graph during import.
enum Known {
    /// It stands for a value.
    Value(Value),
    /// Its node has a problem, which is noted.
    Failed,
}

struct Importer<'m> {
    model: &'m Model,
    options: &'m ImportOptions,
    names: HashMap<String, Known>,
    /// Symbolic dimensions by their name in the file.
    dims: HashMap<String, Ref<Var>>,
    /// Names that variables have.
    taken: HashSet<String>,
    params: Vec<Ref<Var>>,
    /// Inputs among `params`; the rest are weights.
    inputs: usize,
    weights: Vec<Tensor>,
    problems: Vec<Problem>,
}

impl<'m> Importer<'m> {
    fn new(model: &'m Model, options: &'m ImportOptions) -> Self {
        Importer {
            model,
            options,
            names: HashMap::new(),
            dims: HashMap::new(),
            taken: HashSet::new(),
            params: Vec::new(),
            inputs: 0,
            weights: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn problem(&mut self, place: Place, reason: impl Into<String>, help: Option<&str>) {
        self.problems.push(Problem { place, reason: reason.into(), help: help.map(str::to_string) });
    }

    fn check_model(&mut self) {
        let version = self.model.frame.ir_version;
        if version < MIN_IR_VERSION {
            let reason = format!("the file format is version {version}; the oldest that is read is {MIN_IR_VERSION}");
            self.problem(Place::Model, reason, Some("convert the file with a current `onnx` package"));
        }
        if let Some(function) = self.model.frame.functions.first() {
            let reason = format!("it defines functions (`{}`), which are not supported", function.name);
            self.problem(Place::Model, reason, Some("inline them with `onnx.inliner.inline_local_functions`"));
        }
        if let Some(sparse) = self.model.graph.sparse_initializer.first() {
            let name = sparse.values.as_ref().map(|v| v.name.clone()).unwrap_or_default();
            self.problem(Place::Initializer(name), "sparse tensors are not supported", None);
        }
    }

    fn initializers(&mut self) {
        let directory =
            self.model.directory.as_deref().map(|d| if d.as_os_str().is_empty() { Path::new(".") } else { d });
        for proto in &self.model.graph.initializer {
            match constant::from_proto(proto, directory) {
                Ok(tensor) => self.names.insert(proto.name.clone(), Known::Value(Value::Constant(tensor))),
                Err(error) => {
                    self.problem(Place::Initializer(proto.name.clone()), error.to_string(), None);
                    self.names.insert(proto.name.clone(), Known::Failed)
                }
            };
        }
    }

    fn inputs(&mut self) {
        let inputs: HashSet<&str> = self.model.graph.input.iter().map(|i| i.name.as_str()).collect();
        for unknown in self.options.shapes.keys().chain(self.options.dtypes.keys()) {
            if !inputs.contains(unknown.as_str()) {
                let mut names: Vec<_> = inputs.iter().copied().collect();
                names.sort_unstable();
                let reason = format!("a shape or type is given for it, but the model has: {}", names.join(", "));
                self.problem(Place::Input(unknown.clone()), reason, None);
            }
        }
        for info in &self.model.graph.input {
            if self.names.contains_key(&info.name) {
                continue;
            }
            match self.input_type(info) {
                Ok(ty) => {
                    let var = Var::new(self.param_name(&info.name), ty);
                    self.params.push(var.clone());
                    self.names.insert(info.name.clone(), Known::Value(Value::Computed(Expr::Var(var))));
                }
                Err((reason, help)) => self.problem(Place::Input(info.name.clone()), reason, help),
            }
        }
        self.inputs = self.params.len();
        if self.options.weights == Weights::Parameters {
            self.weights_as_params();
        }
    }

    /// Floating-point initializers become parameters; integers stay constants, since shapes depend on them.
    fn weights_as_params(&mut self) {
        for proto in &self.model.graph.initializer {
            let Some(Known::Value(Value::Constant(tensor))) = self.names.get(&proto.name) else { continue };
            if !tensor.dtype().is_float() {
                continue;
            }
            let tensor = tensor.clone();
            let ty = Type::tensor(tensor.shape().iter().copied(), tensor.dtype());
            let var = Var::new(self.param_name(&proto.name), ty);
            self.params.push(var.clone());
            self.weights.push(tensor);
            self.names.insert(proto.name.clone(), Known::Value(Value::Computed(Expr::Var(var))));
        }
    }

    fn input_type(&mut self, info: &ValueInfoProto) -> Result<Type, (String, Option<&'static str>)> {
        let tensor = match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
            Some(TypeKind::Tensor(tensor)) => tensor,
            Some(_) => return Err(("it is not a tensor, and only tensors are supported".into(), None)),
            None => return Err(("the file does not say its type".into(), None)),
        };
        let dtype = match self.options.dtypes.get(&info.name) {
            Some(&dtype) => dtype,
            None => constant::dtype_of(tensor.elem_type.into()).map_err(|e| (e.to_string(), None))?,
        };
        if let Some(given) = self.options.shapes.get(&info.name) {
            return self.given_shape(given).map(|dims| Type::tensor(dims, dtype)).map_err(|reason| (reason, None));
        }
        let help = "give it a shape (`shape_dict` in Python, `--shape` on the command line)";
        let shape =
            tensor.shape.as_ref().ok_or(("the file does not say how many dimensions it has".into(), Some(help)))?;
        let mut dims = Vec::new();
        for (i, dim) in shape.dim.iter().enumerate() {
            dims.push(match &dim.value {
                Some(DimensionValue::Value(n)) if *n > 0 => prim::int(*n),
                Some(DimensionValue::Param(name)) if is_name(name) => self.named_dim(name),
                _ => PrimExpr::Var(Var::dim(self.fresh(&format!("{}_dim{i}", identifier(&info.name))))),
            });
        }
        Ok(Type::tensor(dims, dtype))
    }

    fn given_shape(&mut self, given: &[InputDim]) -> Result<Vec<PrimExpr>, String> {
        given
            .iter()
            .map(|dim| match dim {
                InputDim::Fixed(n) if *n >= 0 => Ok(prim::int(*n)),
                InputDim::Fixed(n) => Err(format!("the given shape has the dimension {n}")),
                InputDim::Named(name) => Ok(self.named_dim(name)),
            })
            .collect()
    }

    /// The symbolic dimension of a name.
    fn named_dim(&mut self, name: &str) -> PrimExpr {
        if let Some(var) = self.dims.get(name) {
            return PrimExpr::Var(var.clone());
        }
        let var = Var::dim(self.fresh(&identifier(name)));
        self.dims.insert(name.to_string(), var.clone());
        PrimExpr::Var(var)
    }

    fn param_name(&mut self, name: &str) -> String {
        match self.options.names {
            InputNames::AsWritten => name.to_string(),
            InputNames::Sanitized => self.fresh(&identifier(name)),
        }
    }

    /// A name that no variable has yet.
    fn fresh(&mut self, hint: &str) -> String {
        let mut name = hint.to_string();
        let mut n = 1;
        while !self.taken.insert(name.clone()) {
            name = format!("{hint}_{n}");
            n += 1;
        }
        name
    }

    /// Imports the nodes into a function.
    fn run(mut self) -> Result<IRModule, ImportError> {
        let mut builder = BlockBuilder::new();
        let (params, attrs) = (self.params.clone(), self.attrs());
        let function = builder.function(params, attrs, |builder| {
            builder.begin_dataflow()?;
            for proto in &self.model.graph.node {
                self.node(&mut Scope::new(builder), proto);
            }
            let mut outputs = self.outputs(&mut Scope::new(builder));
            if !self.problems.is_empty() {
                return Err(ImportError { problems: std::mem::take(&mut self.problems) });
            }
            let result = if outputs.len() == 1 { outputs.remove(0) } else { Expr::tuple(outputs) };
            let result = builder.emit_output(result)?;
            builder.end_dataflow()?;
            Ok(result)
        })?;
        builder.module_mut().insert("main", function);
        Ok(builder.finish())
    }

    /// Attributes of `main`.
    fn attrs(&mut self) -> Attrs {
        let attrs = Attrs::new().with("num_input", self.inputs as i64);
        if self.options.weights == Weights::Constants {
            return attrs;
        }
        let weights = std::mem::take(&mut self.weights).into_iter().map(|t| AttrValue::Object(t.into())).collect();
        attrs.with("params", AttrValue::List(weights))
    }

    /// Imports one node; failures are noted.
    fn node(&mut self, scope: &mut Scope, proto: &NodeProto) {
        let domain = canonical_domain(&proto.domain);
        let opset = match self.options.opset {
            Some(version) if domain.is_empty() => version,
            _ => self.model.opset(domain).unwrap_or(0),
        };
        // An operator without a rule is a problem of its own, also where an input has one already.
        let inputs = ops::rule(domain, &proto.op_type, opset).and_then(|rule| Ok((rule, self.node_inputs(proto)?)));
        let result = match inputs {
            Ok((rule, Some(inputs))) => import_node(scope, rule, &Node { proto, inputs, opset }),
            Ok((_, None)) => return self.fail_outputs(proto),
            Err(error) => Err(error),
        };
        match result {
            Ok(values) => {
                for (name, value) in proto.output.iter().zip(values) {
                    self.names.insert(name.clone(), Known::Value(value));
                }
            }
            Err(error) => {
                let help = match &error {
                    NodeError::Unsupported { help, .. } => help.clone(),
                    _ => None,
                };
                let op = if domain.is_empty() { proto.op_type.clone() } else { format!("{domain}.{}", proto.op_type) };
                let first = || proto.output.first().cloned().unwrap_or_default();
                let name = if proto.name.is_empty() { first() } else { proto.name.clone() };
                let place = Place::Node { op, name, opset };
                self.problems.push(Problem { place, reason: error.to_string(), help });
                self.fail_outputs(proto);
            }
        }
    }

    /// What the inputs stand for; `None` where one could not be imported.
    fn node_inputs(&self, proto: &NodeProto) -> Result<Option<Vec<Option<Value>>>, NodeError> {
        let mut inputs = Vec::new();
        for name in &proto.input {
            inputs.push(match self.names.get(name) {
                _ if name.is_empty() => None,
                Some(Known::Value(value)) => Some(value.clone()),
                Some(Known::Failed) => return Ok(None),
                None => return Err(NodeError::invalid(format!("nothing before it makes its input `{name}`"))),
            });
        }
        Ok(Some(inputs))
    }

    fn fail_outputs(&mut self, proto: &NodeProto) {
        for name in &proto.output {
            self.names.insert(name.clone(), Known::Failed);
        }
    }

    fn outputs(&mut self, scope: &mut Scope) -> Vec<Expr> {
        let mut outputs = Vec::new();
        for info in &self.model.graph.output {
            let value = match self.names.get(&info.name) {
                Some(Known::Value(value)) => scope.tensor(value).map_err(|e| e.to_string()),
                Some(Known::Failed) => continue,
                None => Err("nothing in the graph makes it".to_string()),
            };
            match value {
                Ok(expr) => outputs.push(expr),
                Err(reason) => self.problem(Place::Output(info.name.clone()), reason, None),
            }
        }
        if self.model.graph.output.is_empty() {
            self.problem(Place::Model, "the graph has no outputs", None);
        }
        outputs
    }
}

/// Imports a node whose inputs are known.
fn import_node(scope: &mut Scope, rule: ops::Rule, node: &Node) -> Result<Vec<Value>, NodeError> {
    if let Some(value) = symbolic::evaluate(node) {
        return Ok(vec![Value::Symbolic(value)]);
    }
    let values = rule.apply(scope, node)?;
    let wanted = node.outputs();
    if values.len() < wanted {
        let given = values.len();
        return Err(NodeError::unsupported(format!(
            "{wanted} outputs are used, but only the first {given} are supported"
        )));
    }
    Ok(values)
}

/// Whether a dimension's name is one; some tools write `?` or a number where nothing is known.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('?') && name.parse::<i64>().is_err()
}

/// A name made of letters, digits and underscores that does not begin with a digit.
fn identifier(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert_str(0, "input_");
    }
    out
}
