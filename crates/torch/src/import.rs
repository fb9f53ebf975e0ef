//! From an exported program to a module with one function, `main`.
//!
//! ```text
//! def forward(self, p_weight, x: f32[s0, 4])          @R.function
//!     permute = aten.permute(p_weight, [1, 0])  ══▶   def main(x: R.Tensor(("s0", 4), "float32")):
//!     return aten.mm(x, permute)                          with R.dataflow(): …
//! ```
//!
//! What the user gives at a call are the parameters, in order; weights are constants, or parameters behind those where
//! [`ImportOptions::keep_params_as_input`] says so. Ranges that the program has for its symbols stand in the attributes of
//! `main`. What a module writes into its buffers and inputs is not returned, as TVM has it; their names are in the attribute
//! [`DROPPED_WRITES`], so that a front end can say so.

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, Attrs, IRModule, Type, Var};
use relaxide_relax::{BlockBuilder, Expr, transform};

use crate::archive::Weights;
use crate::convert::Converters;
use crate::error::{ImportError, Problem};
use crate::flow;
use crate::graph::{Graphs, Names};
use crate::program::{Argument, ExportedProgram, InputSpec, OutputSpec, Symbolic};
use crate::value::Value;

/// The attribute of `main` that has the names of buffers and inputs that the module writes into, which the program leaves as they are.
pub const DROPPED_WRITES: &str = "dropped_writes";

/// How a program is imported.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Weights become parameters of `main`, with their values in its attribute `params`; buffers and constants stay inside.
    pub keep_params_as_input: bool,
    /// A tuple of one result becomes that result.
    pub unwrap_unit_return_tuple: bool,
    /// The tuple of results is returned as it is, without a variable.
    pub no_bind_return_tuple: bool,
}

/// Imports a program; weights are taken by their names in the user's module.
pub fn import(program: &ExportedProgram, weights: &Weights, options: &ImportOptions) -> Result<IRModule, ImportError> {
    import_with(program, weights, options, None)
}

/// The same with rules of the caller's, which go before those that there are.
pub fn import_with(
    program: &ExportedProgram,
    weights: &Weights,
    options: &ImportOptions,
    converters: Option<&mut dyn Converters>,
) -> Result<IRModule, ImportError> {
    let graphs = Graphs::new(converters);
    let mut importer = Importer { program, weights, options, graphs, names: Names::default() };
    let signature = importer.signature()?;
    importer.run(signature)
}

struct Importer<'p, 'c> {
    program: &'p ExportedProgram,
    weights: &'p Weights,
    options: &'p ImportOptions,
    graphs: Graphs<'c>,
    names: Names,
}

/// What `main` takes.
struct Parameters {
    vars: Vec<Ref<Var>>,
    /// How many of them the user gives.
    inputs: usize,
    /// Values of the others.
    weights: Vec<AttrValue>,
}

impl Importer<'_, '_> {
    fn problem(&mut self, place: String, reason: impl Into<String>) {
        self.graphs.problems.push(Problem { place, line: None, reason: reason.into() });
    }

    /// Gives values to the graph's inputs.
    fn signature(&mut self) -> Result<Parameters, ImportError> {
        let mut inputs = Vec::new();
        let mut kept = Vec::new();
        let mut values = Vec::new();
        for spec in &self.program.graph_module.signature.input_specs {
            match spec {
                InputSpec::UserInput { arg } => inputs.extend(self.user_input(arg)),
                InputSpec::Parameter { arg, parameter_name } => {
                    let Some(tensor) = self.weight(parameter_name) else { continue };
                    let expr = if self.options.keep_params_as_input {
                        let ty = Type::tensor(tensor.shape().iter().copied(), tensor.dtype());
                        let var = Var::new(arg.name.as_str(), ty);
                        kept.push(var.clone());
                        values.push(AttrValue::Object(tensor.into()));
                        Expr::Var(var)
                    } else {
                        Expr::constant(tensor)
                    };
                    self.names.values.insert(arg.name.clone(), Value::Tensor(expr));
                }
                InputSpec::Buffer { arg, buffer_name: name }
                | InputSpec::TensorConstant { arg, tensor_constant_name: name } => {
                    let Some(tensor) = self.weight(name) else { continue };
                    self.names.values.insert(arg.name.clone(), Value::Tensor(Expr::constant(tensor)));
                }
                InputSpec::ConstantInput { .. } => {}
                InputSpec::Other(other) => {
                    let kind = other.as_object().and_then(|o| o.keys().next().cloned()).unwrap_or_default();
                    self.problem("input".into(), format!("an input of kind `{kind}` is not supported"));
                }
            }
        }
        if !self.graphs.problems.is_empty() {
            return Err(ImportError { problems: std::mem::take(&mut self.graphs.problems) });
        }
        let count = inputs.len();
        inputs.extend(kept);
        Ok(Parameters { vars: inputs, inputs: count, weights: values })
    }

    fn weight(&mut self, name: &str) -> Option<relaxide_ffi::Tensor> {
        let found = self.weights.get(name).cloned();
        if found.is_none() {
            self.problem(format!("weight `{name}`"), "the archive does not hold its elements");
        }
        found
    }

    fn user_input(&mut self, arg: &Argument) -> Option<Ref<Var>> {
        match arg {
            Argument::AsTensor(tensor) => match self.graphs.declared(&self.program.graph_module.graph, &tensor.name) {
                Ok(declared) => {
                    let var = Var::new(tensor.name.as_str(), declared.ty());
                    self.names.values.insert(tensor.name.clone(), Value::Tensor(Expr::Var(var.clone())));
                    return Some(var);
                }
                Err(reason) => self.problem(format!("input `{}`", tensor.name), reason.to_string()),
            },
            Argument::AsSymInt(Symbolic::Named(name)) => {
                let found = self.program.graph_module.graph.sym_int_values.get(name);
                let dim = found.map(|dim| self.graphs.symbols.dim(dim));
                match dim.as_ref().map(|d| d.as_ref().ok().and_then(|d| d.as_var())) {
                    Some(Some(var)) => {
                        let value = relaxide_ir::prim::PrimExpr::Var(var.clone());
                        self.names.values.insert(name.clone(), Value::Int(value));
                        return Some(var.clone());
                    }
                    _ => self.problem(format!("input `{name}`"), "an integer that is no symbol of its own"),
                }
            }
            // Numbers and texts were fixed when the program was exported.
            Argument::AsInt(_) | Argument::AsFloat(_) | Argument::AsBool(_) | Argument::AsString(_) => {}
            Argument::AsNone(_) => {}
            _ => self.problem("input".into(), "it is neither a tensor nor a number"),
        }
        None
    }

    fn run(mut self, parameters: Parameters) -> Result<IRModule, ImportError> {
        let graph = &self.program.graph_module.graph;
        let plain = !graph.nodes.iter().any(|node| flow::is_flow(&node.target));
        let attrs = self.attrs(&parameters);
        let mut builder = BlockBuilder::new();
        let function = builder.function(parameters.vars, attrs, |builder| {
            if plain {
                builder.begin_dataflow()?;
            }
            self.graphs.nodes(builder, graph, &mut self.names);
            let outputs = self.outputs();
            if !self.graphs.problems.is_empty() {
                return Err(ImportError { problems: std::mem::take(&mut self.graphs.problems) });
            }
            let single = self.options.unwrap_unit_return_tuple && outputs.len() == 1;
            let result = match <[Expr; 1]>::try_from(outputs) {
                Ok([one]) if single => builder.emit_output(one)?,
                Ok([one]) => self.returned(builder, vec![one])?,
                Err(outputs) => self.returned(builder, outputs)?,
            };
            builder.end_dataflow()?;
            Ok(result)
        })?;
        builder.module_mut().insert("main", function);
        let module = builder.finish();
        if plain {
            return Ok(module);
        }
        transform::into_dataflow_blocks(module).map_err(|error| ImportError::one("program", error.to_string()))
    }

    /// The tuple of the results.
    fn returned(&self, builder: &mut BlockBuilder, outputs: Vec<Expr>) -> Result<Expr, ImportError> {
        if !self.options.no_bind_return_tuple {
            return Ok(builder.emit_output(Expr::tuple(outputs))?);
        }
        let bound = outputs.into_iter().map(|output| builder.emit_output(output));
        Ok(Expr::tuple(bound.collect::<Result<Vec<_>, _>>()?))
    }

    fn attrs(&self, parameters: &Parameters) -> Attrs {
        let mut attrs = Attrs::new().with("global_symbol", "main");
        if self.options.keep_params_as_input {
            attrs = attrs.with("num_input", parameters.inputs as i64);
            attrs = attrs.with("params", AttrValue::List(parameters.weights.clone()));
        }
        let mut ranges: Vec<_> = self.program.range_constraints.iter().collect();
        ranges.sort_by_key(|(name, _)| name.as_str());
        let bounds = |of: &dyn Fn(&crate::program::Range) -> Option<i64>| {
            let known = ranges.iter().filter_map(|(name, range)| Some(((*name).clone(), AttrValue::from(of(range)?))));
            known.collect::<Vec<_>>()
        };
        let lower = bounds(&|range| range.min_val);
        let upper = bounds(&|range| range.max_val);
        if !lower.is_empty() {
            attrs = attrs.with("tir_var_lower_bound", AttrValue::Map(lower.into_iter().collect()));
        }
        if !upper.is_empty() {
            attrs = attrs.with("tir_var_upper_bound", AttrValue::Map(upper.into_iter().collect()));
        }
        let lost: Vec<AttrValue> = self
            .program
            .graph_module
            .signature
            .output_specs
            .iter()
            .filter_map(|spec| match spec {
                OutputSpec::BufferMutation { buffer_name: name, .. }
                | OutputSpec::UserInputMutation { user_input_name: name, .. } => Some(AttrValue::from(name.as_str())),
                _ => None,
            })
            .collect();
        if lost.is_empty() { attrs } else { attrs.with(DROPPED_WRITES, AttrValue::List(lost)) }
    }

    /// What the user gets.
    fn outputs(&mut self) -> Vec<Expr> {
        let mut outputs = Vec::new();
        for spec in &self.program.graph_module.signature.output_specs {
            match spec {
                OutputSpec::UserOutput { arg } => match self.output(arg) {
                    Ok(expr) => outputs.push(expr),
                    // What could not be imported is told at its node.
                    Err(Some(reason)) => self.problem("output".into(), reason),
                    Err(None) => {}
                },
                OutputSpec::UserInputMutation { user_input_name, .. } => {
                    let reason =
                        "the module writes into it, which a compiled program does not do; return the new value";
                    self.problem(format!("input `{user_input_name}`"), reason);
                }
                OutputSpec::BufferMutation { .. } | OutputSpec::Other(_) => {}
            }
        }
        outputs
    }

    fn output(&self, arg: &Argument) -> Result<Expr, Option<String>> {
        let value = |name: &str| self.names.values.get(name).ok_or(None);
        match arg {
            Argument::AsTensor(tensor) => match value(&tensor.name)? {
                Value::Tensor(expr) => Ok(expr.clone()),
                _ => Err(Some(format!("`{}` is no tensor", tensor.name))),
            },
            Argument::AsSymInt(Symbolic::Named(name)) => match value(name)? {
                Value::Int(dim) => Ok(Expr::prim(dim.clone())),
                _ => Err(Some(format!("`{name}` is no integer"))),
            },
            Argument::AsInt(number) | Argument::AsSymInt(Symbolic::Known(number)) => {
                Ok(Expr::prim(relaxide_ir::prim::int(*number)))
            }
            Argument::AsNone(_) => Ok(null()),
            _ => Err(Some("it is neither a tensor nor an integer".into())),
        }
    }
}

/// A value that stands for `None`.
fn null() -> Expr {
    relaxide_relax::op::call("null_value", [], Attrs::new()).unwrap_or_else(|_| Expr::tuple([]))
}
