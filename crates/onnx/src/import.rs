//! From a model to a module with one function, `main`.
//!
//! ```text
//! input x: float[n, 3, ?, w]          @R.function
//! y = Conv(x, W)             =====>   def main(x: R.Tensor(("n", 3, "x_dim2", "w"), "float32")):
//! z = Relu(y)                             with R.dataflow(): …
//! ```
//!
//! Dimensions named in the file are symbolic variables of that name, shared by all inputs; unnamed ones get variables of
//! their own. Nodes are imported in order ([`crate::graph`]), each by the rule that [`crate::ops`] has for its operator and
//! version. Where all of them are plain operators, `main` is one dataflow block; otherwise it is divided into such blocks
//! around what is control flow.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, Var};
use relaxide_relax::display::dim_text;
use relaxide_relax::{BlockBuilder, Expr, transform};

use crate::constant;
use crate::dim_name;
use crate::error::{ImportError, InputError, Location, NodeError, Problem};
use crate::flow::optional::{Held, Optional};
use crate::flow::sequence::{self, Sequence};
use crate::graph::Graphs;
use crate::model::{Model, canonical_domain};
use crate::names::{Known, Visibility};
use crate::ops;
use crate::options::{ImportOptions, InputDim, InputNames, Weights};
use crate::proto::{DimensionValue, NodeProto, TypeKind, ValueInfoProto};
use crate::scope::Scope;
use crate::text::{STRING, Texts};
use crate::value::{Maps, Value};

/// The oldest version of the file format that is read.
const MIN_IR_VERSION: i64 = 3;

/// The attribute of `main` that has the names of the model's outputs, in order.
pub const OUTPUT_NAMES: &str = "output_names";

/// The attribute of `main` that has its parameters that are tensors of texts: each a list of its name and its dimensions.
pub const TEXT_INPUTS: &str = "text_inputs";

/// Imports a model.
pub fn import(model: &Model, options: &ImportOptions) -> Result<IRModule, ImportError> {
    let mut importer = Importer::new(model, options);
    importer.graphs.names.open(Visibility::Open);
    importer.check_model();
    importer.graphs.initializers(&model.graph.initializer, Some(&model.given));
    importer.inputs();
    if importer.graphs.noted() == 0 {
        importer.run()
    } else {
        Err(ImportError { problems: importer.graphs.problems() })
    }
}

struct Importer<'m> {
    model: &'m Model,
    options: &'m ImportOptions,
    graphs: Graphs<'m>,
    /// Symbolic dimensions by their name in the file.
    dims: HashMap<String, Ref<Var>>,
    /// Names that variables have.
    taken: HashSet<String>,
    params: Vec<Ref<Var>>,
    /// Parameters that are tensors of texts, by the inputs' names, with their dimensions.
    texts: Vec<(String, Ref<Var>, Vec<PrimExpr>)>,
    /// Inputs among `params`; the rest are weights.
    inputs: usize,
    weights: Vec<Tensor>,
}

impl<'m> Importer<'m> {
    fn new(model: &'m Model, options: &'m ImportOptions) -> Self {
        Importer {
            model,
            options,
            graphs: Graphs::new(model, options),
            dims: HashMap::new(),
            taken: HashSet::new(),
            params: Vec::new(),
            texts: Vec::new(),
            inputs: 0,
            weights: Vec::new(),
        }
    }

    fn problem(&mut self, place: Location, reason: impl Into<String>, help: Option<&str>) {
        self.graphs.problem(place, reason, help);
    }

    fn check_model(&mut self) {
        let version = self.model.frame.ir_version;
        if version < MIN_IR_VERSION {
            let reason = format!("the file format is version {version}; the oldest that is read is {MIN_IR_VERSION}");
            self.problem(Location::Model, reason, Some("convert the file with a current `onnx` package"));
        }
        if let Some(sparse) = self.model.graph.sparse_initializer.first() {
            let name = sparse.values.as_ref().map(|v| v.name.clone()).unwrap_or_default();
            self.problem(Location::Initializer(name), "sparse tensors are not supported", None);
        }
        for (name, reason) in self.model.given.problems(&self.model.graph.initializer) {
            self.problem(Location::Initializer(name), reason, None);
        }
    }

    fn inputs(&mut self) {
        let inputs: HashSet<&str> = self.model.graph.input.iter().map(|i| i.name.as_str()).collect();
        for unknown in self.options.shapes.keys().chain(self.options.dtypes.keys()) {
            if !inputs.iter().any(|name| *name == unknown || identifier(name) == *unknown) {
                let mut names: Vec<_> = inputs.iter().copied().collect();
                names.sort_unstable();
                let reason = format!("a shape or type is given for it, but the model has: {}", names.join(", "));
                self.problem(Location::Input(unknown.clone()), reason, None);
            }
        }
        let mut objects = Vec::new();
        for info in &self.model.graph.input {
            if self.graphs.names.get(&info.name).is_some() {
                continue;
            }
            if let Some(kind) = object_kind(info) {
                let var = Var::new(self.param_name(&info.name), Type::any());
                self.params.push(var.clone());
                objects.push((info, kind, Expr::Var(var)));
                continue;
            }
            if is_texts(info) {
                let dims = match self.input_type(info) {
                    Ok(ty) => ty.as_tensor().and_then(|ty| ty.shape.clone()).unwrap_or_default(),
                    Err(error) => {
                        self.problem(Location::Input(info.name.clone()), error.to_string(), error.help());
                        continue;
                    }
                };
                let var = Var::new(self.param_name(&info.name), Type::any());
                self.params.push(var.clone());
                self.texts.push((info.name.clone(), var, dims));
                continue;
            }
            match self.input_type(info) {
                Ok(ty) => {
                    let var = Var::new(self.param_name(&info.name), ty);
                    self.params.push(var.clone());
                    self.graphs.names.set(&info.name, Known::Value(Value::Computed(Expr::Var(var))));
                }
                Err(error) => self.problem(Location::Input(info.name.clone()), error.to_string(), error.help()),
            }
        }
        // Names of dimensions have variables where a tensor binds them, which the others may come before.
        for (info, kind, object) in objects {
            match self.object_input(info, kind, object) {
                Ok(value) => self.graphs.names.set(&info.name, Known::Value(value)),
                Err(error) => self.problem(Location::Input(info.name.clone()), error.to_string(), None),
            }
        }
        self.inputs = self.params.len();
        if self.options.weights == Weights::Parameters {
            self.weights_as_params();
        }
    }

    /// An input that is a sequence, or a value that may be absent.
    fn object_input(&mut self, info: &ValueInfoProto, kind: &TypeKind, object: Expr) -> Result<Value, NodeError> {
        let of = match kind {
            TypeKind::Optional(of) => of,
            TypeKind::Map(map) => {
                let dtype = match map.value_type.as_ref().and_then(|ty| ty.value.as_ref()) {
                    Some(TypeKind::Tensor(tensor)) => constant::dtype_of(tensor.elem_type.into()).ok(),
                    _ => None,
                };
                let dtype = dtype.ok_or_else(|| NodeError::unsupported("only maps to numbers are supported"))?;
                return Ok(Value::Maps(Maps { object, dtype }));
            }
            TypeKind::Sequence(of) => {
                return Ok(Value::Sequence(Sequence::listed(object, sequence::declared_element(of))));
            }
            _ => return Err(NodeError::unsupported("only tensors and sequences are supported")),
        };
        let named = |name: &str| self.dims.get(name).map(|var| PrimExpr::Var(var.clone()));
        let mut held = Held::of_type(of.elem_type.as_deref(), &named)?;
        if let Held::Tensor(dims, dtype) = &mut held {
            *dtype = self.given(&self.options.dtypes, &info.name).copied().unwrap_or(*dtype);
            if let Some(given) = self.given(&self.options.shapes, &info.name) {
                let dim = |dim: &InputDim| match dim {
                    InputDim::Fixed(n) => Some(prim::int(*n)),
                    InputDim::Named(name) => named(name),
                };
                *dims = Some(given.iter().map(dim).collect());
            }
        }
        Ok(Value::Optional(Optional { object: Some(object), held }))
    }

    /// Floating-point initializers become parameters; integers stay constants, since shapes depend on them.
    fn weights_as_params(&mut self) {
        for proto in &self.model.graph.initializer {
            let Some(Known::Value(Value::Constant(tensor))) = self.graphs.names.get(&proto.name) else { continue };
            if !tensor.dtype().is_float() {
                continue;
            }
            let tensor = tensor.clone();
            let ty = Type::tensor(tensor.shape().iter().copied(), tensor.dtype());
            let var = Var::new(self.param_name(&proto.name), ty);
            self.params.push(var.clone());
            self.weights.push(tensor);
            self.graphs.names.set(&proto.name, Known::Value(Value::Computed(Expr::Var(var))));
        }
    }

    fn input_type(&mut self, info: &ValueInfoProto) -> Result<Type, InputError> {
        let tensor = match info.r#type.as_ref().and_then(|t| t.value.as_ref()) {
            Some(TypeKind::Tensor(tensor)) => tensor,
            Some(_) => return Err(InputError::NoTensor),
            None => return Err(InputError::NoType),
        };
        let dtype = match self.given(&self.options.dtypes, &info.name) {
            Some(&dtype) => dtype,
            // The type of the places of texts.
            None if is_texts(info) => DataType::int(64),
            None => constant::dtype_of(tensor.elem_type.into())?,
        };
        if let Some(given) = self.given(&self.options.shapes, &info.name) {
            return self.given_shape(given).map(|dims| Type::tensor(dims, dtype));
        }
        let shape = tensor.shape.as_ref().ok_or(InputError::NoRank)?;
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

    /// What the caller says about an input, by its name in the file or in the program.
    fn given<'o, T>(&self, options: &'o IndexMap<String, T>, name: &str) -> Option<&'o T> {
        let written = identifier(name);
        let taken = || self.model.graph.input.iter().any(|input| input.name == written);
        options.get(name).or_else(|| options.get(&written).filter(|_| !taken()))
    }

    fn given_shape(&mut self, given: &[InputDim]) -> Result<Vec<PrimExpr>, InputError> {
        given
            .iter()
            .map(|dim| match dim {
                InputDim::Fixed(n) if *n >= 0 => Ok(prim::int(*n)),
                InputDim::Fixed(n) => Err(InputError::GivenDimension(*n)),
                InputDim::Named(name) => Ok(self.named_dim(name)),
            })
            .collect()
    }

    /// The symbolic dimension of a name.
    fn named_dim(&mut self, name: &str) -> PrimExpr {
        if let Some(var) = self.dims.get(name) {
            return PrimExpr::Var(var.clone());
        }
        let alone = self.names_alone();
        let of = &mut |word: &str| alone.contains(word).then(|| self.named_dim(word));
        if let Some(dim) = dim_name::expression(name, of) {
            return crate::dims::simplify(&dim);
        }
        let var = Var::dim(self.fresh(&identifier(name)));
        self.dims.insert(name.to_string(), var.clone());
        PrimExpr::Var(var)
    }

    /// Names that stand alone as a dimension of an input, which therefore the program has values for.
    fn names_alone(&self) -> HashSet<String> {
        let plain = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
        let of_file =
            self.model.graph.input.iter().filter(|info| self.given(&self.options.shapes, &info.name).is_none());
        let of_file = of_file.filter_map(|info| match info.r#type.as_ref()?.value.as_ref()? {
            TypeKind::Tensor(tensor) => tensor.shape.as_ref(),
            _ => None,
        });
        let params = of_file.flat_map(|shape| &shape.dim).filter_map(|dim| match &dim.value {
            Some(DimensionValue::Param(name)) => Some(name.clone()),
            _ => None,
        });
        let given = self.options.shapes.values().flatten().filter_map(|dim| match dim {
            InputDim::Named(name) => Some(name.clone()),
            InputDim::Fixed(_) => None,
        });
        params.chain(given).filter(|name| plain(name)).collect()
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
        let plain = is_plain(self.model);
        let function = builder.function(params, attrs, |builder| {
            if plain {
                builder.begin_dataflow()?;
            }
            let mut outputs = self.outputs(builder).unwrap_or_default();
            if self.graphs.noted() > 0 {
                return Err(ImportError { problems: self.graphs.problems() });
            }
            let result = if outputs.len() == 1 { outputs.remove(0) } else { Expr::tuple(outputs) };
            // One output takes the place of the variable that it was.
            let origin = result.as_var().and_then(|var| var.span().cloned());
            let outer = builder.set_origin(origin);
            let result = builder.emit_output(result);
            builder.set_origin(outer);
            let result = result?;
            builder.end_dataflow()?;
            Ok(result)
        })?;
        builder.module_mut().insert("main", function);
        let module = builder.finish();
        if plain {
            return Ok(module);
        }
        transform::into_dataflow_blocks(module).map_err(|error| ImportError {
            problems: vec![Problem { place: Location::Model, reason: error.to_string(), help: None }],
        })
    }

    /// Types that the program's parameters do not say: of each tensor of texts its name and dimensions.
    fn text_inputs(&self) -> Vec<AttrValue> {
        let one = |(_, var, dims): &(String, Ref<Var>, Vec<PrimExpr>)| {
            let dims = dims.iter().map(|dim| AttrValue::from(dim_text(dim).as_str()));
            AttrValue::List(std::iter::once(AttrValue::from(var.name.as_str())).chain(dims).collect())
        };
        self.texts.iter().map(one).collect()
    }

    /// Attributes of `main`.
    fn attrs(&mut self) -> Attrs {
        let outputs = self.model.graph.output.iter().map(|output| AttrValue::from(output.name.as_str())).collect();
        // A module's functions are private without a symbol of their own.
        let mut attrs = Attrs::new()
            .with("global_symbol", "main")
            .with("num_input", self.inputs as i64)
            .with(OUTPUT_NAMES, AttrValue::List(outputs));
        if !self.texts.is_empty() {
            attrs = attrs.with(TEXT_INPUTS, AttrValue::List(self.text_inputs()));
        }
        if self.options.weights == Weights::Constants {
            return attrs;
        }
        let weights = std::mem::take(&mut self.weights).into_iter().map(|t| AttrValue::Object(t.into())).collect();
        attrs.with("params", AttrValue::List(weights))
    }

    /// Imports the nodes; the values of the graph's outputs, or `None` where problems are noted.
    fn outputs(&mut self, builder: &mut BlockBuilder) -> Option<Vec<Expr>> {
        let graph = &self.model.graph;
        if graph.output.is_empty() {
            self.problem(Location::Model, "the graph has no outputs", None);
        }
        for (name, var, dims) in std::mem::take(&mut self.texts) {
            let dims = dims.into_iter().map(Some).collect();
            match Texts::unpack(&mut Scope::new(builder), Expr::Var(var), dims) {
                Ok(texts) => self.graphs.names.set(&name, Known::Value(Value::Texts(texts))),
                Err(error) => self.problem(Location::Input(name), error.to_string(), None),
            }
        }
        let names: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
        let values = self.graphs.values(builder, &graph.node, &names)?;
        let mut outputs = Vec::new();
        for (name, value) in names.into_iter().zip(&values) {
            match Scope::new(builder).object(value) {
                Ok(expr) => outputs.push(expr),
                Err(error) => self.problem(Location::Output(name.to_string()), error.to_string(), None),
            }
        }
        Some(outputs)
    }
}

/// Whether an input is a tensor of texts.
fn is_texts(info: &ValueInfoProto) -> bool {
    let kind = info.r#type.as_ref().and_then(|t| t.value.as_ref());
    matches!(kind, Some(TypeKind::Tensor(tensor)) if i64::from(tensor.elem_type) == STRING)
}

/// What an input is that the program takes as an object: a sequence, a map, or a value that may be absent.
fn object_kind(info: &ValueInfoProto) -> Option<&TypeKind> {
    let kind = info.r#type.as_ref().and_then(|t| t.value.as_ref());
    kind.filter(|kind| matches!(kind, TypeKind::Sequence(_) | TypeKind::Optional(_) | TypeKind::Map(_)))
}

/// Whether every node becomes operations that a dataflow block may hold.
fn is_plain(model: &Model) -> bool {
    let plain = |node: &NodeProto| !ops::needs_statements(canonical_domain(&node.domain), &node.op_type);
    let tensors = model.graph.input.iter().all(|info| object_kind(info).is_none());
    tensors && model.frame.functions.is_empty() && model.graph.node.iter().all(plain)
}

/// Whether a dimension's name is one; some tools write `?` or a number where nothing is known.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('?') && name.parse::<i64>().is_err()
}

/// What becomes of a name of the file in the program: letters, digits and underscores, not beginning with a digit.
pub fn identifier(name: &str) -> String {
    let mut out: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert_str(0, "input_");
    }
    out
}
