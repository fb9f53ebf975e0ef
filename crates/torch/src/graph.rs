//! The nodes of a graph, one after the other, each by the rule of its operator.
//!
//! Every result gets the type that the program declares for it, proved or checked, so that no rule has to be trusted with
//! dimensions. Integers over dimensions are read from the declarations as well; nothing computes them when the program runs.
//!
//! Operators that write in place (`add_`) occur in programs that were not decomposed. Their result takes the name of what
//! they write, where nobody else sees a part of that memory; where somebody does, the node is refused.

use std::collections::HashMap;

use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;
use relaxide_relax::{BlockBuilder, Expr};

use crate::convert::{Converters, CustomCall};
use crate::dtype;
use crate::error::{NodeError, Problem};
use crate::flow;
use crate::ops;
use crate::program::{Argument, Graph, NamedGraph, Node, Symbolic, TensorMeta};
use crate::rule::{Cx, Declared, Outputs};
use crate::symbol::{SymbolError, Symbols};
use crate::value::Value;

/// The greatest dimension: more elements than any memory holds.
const MAX_DIM: i64 = 1 << 44;

/// What is known while graphs are imported.
pub struct Graphs<'c> {
    /// Dimensions by name.
    pub symbols: Symbols,
    /// What is wrong so far.
    pub problems: Vec<Problem>,
    /// Rules of the caller's.
    converters: Option<&'c mut dyn Converters>,
    /// The names of the graphs that are being imported, without the program's own.
    path: Vec<String>,
}

/// What the names of one graph stand for.
#[derive(Default)]
pub struct Names {
    /// Values by name.
    pub values: HashMap<String, Value>,
    memory: Memory,
}

/// Which names share memory.
#[derive(Default)]
struct Memory {
    groups: HashMap<String, usize>,
    /// Names that are the whole of the memory, and whether another is a part of it.
    members: Vec<(Vec<String>, bool)>,
}

impl Memory {
    fn group(&mut self, name: &str) -> usize {
        if let Some(&group) = self.groups.get(name) {
            return group;
        }
        let group = self.members.len();
        self.members.push((vec![name.to_string()], false));
        self.groups.insert(name.to_string(), group);
        group
    }

    /// `result` is the memory of `of`, or a part of it.
    fn share(&mut self, result: &str, of: &str, whole: bool) {
        let group = self.group(of);
        self.groups.insert(result.to_string(), group);
        let (names, parts) = &mut self.members[group];
        if whole {
            names.push(result.to_string());
        } else {
            *parts = true;
        }
    }
}

/// Checks that the exporter writes for its own sake, and hints about memory: what they say is part of the declared types.
const CHECKS: &[&str] = &[
    "aten._assert_async",
    "aten._assert_scalar",
    "aten._assert_tensor_metadata",
    "aten.sym_constrain_range",
    "aten.sym_constrain_range_for_size",
    "aten._functional_assert_async",
    "aten._functional_sym_constrain_range",
    "aten._functional_sym_constrain_range_for_size",
    "aten._make_dep_token",
];

/// Operators whose result is their first argument's memory.
const WHOLES: &[&str] = &["aten.detach", "aten.alias", "aten.lift_fresh", "aten.contiguous", "aten.to", "aten.dropout"];

/// Operators whose result is a part of their first argument's memory, or may be.
const PARTS: &[&str] = &[
    "aten.view",
    "aten.reshape",
    "aten.permute",
    "aten.transpose",
    "aten.t",
    "aten.select",
    "aten.slice",
    "aten.unsqueeze",
    "aten.squeeze",
    "aten.expand",
    "aten.unbind",
    "aten.split",
    "aten.split_with_sizes",
    "aten.chunk",
    "aten.narrow",
    "aten.diagonal",
    "aten.as_strided",
    "aten.flatten",
    "aten.unflatten",
    "aten.unfold",
    "aten.numpy_T",
    "aten.movedim",
    "aten.expand_as",
    "aten.view_as",
    "aten.tensor_split",
    "aten.swapaxes",
    "aten.reshape_as",
];

/// An operator's name without what PyTorch puts in front of it, and without its overload.
fn names_of(target: &str) -> (&str, &str) {
    let full = target.strip_prefix("torch.ops.").unwrap_or(target);
    let base = match full.splitn(3, '.').collect::<Vec<_>>().as_slice() {
        [space, name, _] => &full[..space.len() + 1 + name.len()],
        _ => full,
    };
    (full, base)
}

/// The operator that computes what one writes in place, if it does that.
fn out_of_place(base: &str) -> Option<&str> {
    base.strip_suffix('_').filter(|name| !name.ends_with('_') && name.starts_with("aten."))
}

/// Why the declared type of a tensor has no counterpart.
#[derive(Debug, thiserror::Error)]
pub enum TypeError {
    /// Nothing is declared.
    #[error("the program does not say what `{0}` is")]
    Undeclared(String),
    /// A layout that is not strided.
    #[error("sparse tensors are not supported")]
    Sparse,
    /// An element type that there is not.
    #[error("element type {0} is not supported")]
    ElementType(String),
    /// A dimension that cannot be read.
    #[error(transparent)]
    Symbol(#[from] SymbolError),
    /// A dimension that no tensor has.
    #[error("a dimension is {0}; it must be from 0 to {MAX_DIM}")]
    Dimension(i64),
}

impl<'c> Graphs<'c> {
    /// Nothing is known yet.
    pub fn new(converters: Option<&'c mut dyn Converters>) -> Self {
        Graphs { converters, symbols: Symbols::default(), problems: Vec::new(), path: Vec::new() }
    }
}

impl Graphs<'_> {
    /// Imports the nodes of a graph that a node calls.
    pub fn inner(&mut self, builder: &mut BlockBuilder, graph: &NamedGraph, names: &mut Names) {
        self.path.push(graph.name.clone());
        self.nodes(builder, &graph.graph, names);
        self.path.pop();
    }

    /// Notes a problem of a node.
    fn problem(&mut self, node: &Node, reason: String) {
        let (full, _) = names_of(&node.target);
        let name = node.outputs.iter().find_map(first_name).unwrap_or_default();
        let place = if name.is_empty() { full.to_string() } else { format!("{full} (`{name}`)") };
        self.problems.push(Problem { place, line: line_of(node), reason });
    }

    /// The declared type of a tensor.
    pub fn declared(&mut self, graph: &Graph, name: &str) -> Result<Declared, TypeError> {
        let meta = graph.tensor_values.get(name).ok_or_else(|| TypeError::Undeclared(name.to_string()))?;
        self.type_of(meta)
    }

    fn type_of(&mut self, meta: &TensorMeta) -> Result<Declared, TypeError> {
        // 7 is the strided layout; 0 stands where the file says nothing.
        if !matches!(meta.layout, 0 | 7) {
            return Err(TypeError::Sparse);
        }
        let dtype = dtype::of_number(meta.dtype)
            .ok_or_else(|| TypeError::ElementType(dtype::name_of(meta.dtype).to_string()))?;
        let dims = self.symbols.dims(&meta.sizes)?;
        if let Some(dim) = dims.iter().filter_map(PrimExpr::as_int).find(|dim| !(0..=MAX_DIM).contains(dim)) {
            return Err(TypeError::Dimension(dim));
        }
        Ok(Declared { dims, dtype })
    }

    /// Imports the nodes of a graph. Those that use what could not be imported are left out.
    pub fn nodes(&mut self, builder: &mut BlockBuilder, graph: &Graph, names: &mut Names) {
        let mut missing: Vec<String> = Vec::new();
        for node in &graph.nodes {
            let uses_missing = node.inputs.iter().any(|input| uses(&input.arg, &missing));
            let told = self.problems.len();
            let done = if uses_missing { Ok(false) } else { self.node(builder, graph, node, names).map(|()| true) };
            match done {
                Ok(true) => continue,
                Ok(false) => {}
                // What is wrong within a graph that the node calls is told there.
                Err(_) if self.problems.len() > told => {}
                Err(error) => self.problem(node, error.to_string()),
            }
            missing.extend(node.outputs.iter().flat_map(all_names));
        }
    }

    fn node(
        &mut self,
        builder: &mut BlockBuilder,
        graph: &Graph,
        node: &Node,
        names: &mut Names,
    ) -> Result<(), NodeError> {
        let (full, base) = names_of(&node.target);
        if CHECKS.contains(&base) {
            let nothing = node.outputs.iter().flat_map(all_names).map(|name| (name, Value::Nothing));
            names.values.extend(nothing.collect::<Vec<_>>());
            return Ok(());
        }
        if self.numbers(builder, graph, node, base, names)? {
            return Ok(());
        }
        let given: Vec<String> = node.outputs.iter().flat_map(tensor_names).collect();
        let results = given.iter().map(|name| self.declared(graph, name)).collect::<Result<Vec<_>, _>>();
        let results = results.map_err(|why| NodeError::unsupported(why.to_string()))?;
        let values = if let Some(values) = self.converted(builder, node, names, &results)? {
            values
        } else if let Some(rule) = flow::rule(base) {
            rule(self, builder, node, names, &results)?
        } else {
            let mut cx = Cx { builder, node, values: &names.values, results: results.clone() };
            run_rule(&mut cx, full, base)?
        };
        let mut cx = Cx { builder, node, values: &names.values, results: results.clone() };
        let mut fitted = Vec::new();
        for (value, declared) in values.into_iter().zip(&results) {
            fitted.push(match value {
                Value::Tensor(tensor) => Value::Tensor(cx.declared(tensor, declared)?),
                other => other,
            });
        }
        self.remember(node, base, given, fitted, names)
    }

    /// The results of a node by a rule of the caller's, if it has one.
    fn converted(
        &mut self,
        builder: &mut BlockBuilder,
        node: &Node,
        names: &Names,
        results: &[Declared],
    ) -> Result<Option<Vec<Value>>, NodeError> {
        let Some(converters) = &mut self.converters else { return Ok(None) };
        let given = node.inputs.iter().flat_map(|input| all_names(&input.arg));
        let given =
            given.filter_map(|name| names.values.get_key_value(&name)).map(|(name, value)| (name.as_str(), value));
        let call = CustomCall { node, path: &self.path, given: given.collect() };
        let Some(exprs) = converters.convert(builder, &call) else { return Ok(None) };
        let mut exprs = exprs?;
        if let ([tuple], true) = (exprs.as_slice(), results.len() != 1)
            && let Type::Tuple(fields) = tuple.ty()
        {
            let fields = (0..fields.fields.len()).map(|i| builder.emit(Expr::field(tuple.clone(), i)));
            exprs = fields.collect::<Result<_, _>>()?;
        }
        if exprs.len() != results.len() {
            let (got, wanted) = (exprs.len(), results.len());
            return Err(NodeError::invalid(format!(
                "its converter gives {got} values, and the operator gives {wanted}"
            )));
        }
        if exprs.iter().any(|expr| expr.ty().as_tensor().is_none()) {
            return Err(NodeError::invalid("its converter gives a value that is no tensor"));
        }
        Ok(Some(exprs.into_iter().map(Value::Tensor).collect()))
    }

    /// Gives names to results, and keeps track of who shares memory.
    fn remember(
        &mut self,
        node: &Node,
        base: &str,
        given: Vec<String>,
        values: Vec<Value>,
        names: &mut Names,
    ) -> Result<(), NodeError> {
        let first = node.inputs.first().and_then(|input| first_name(&input.arg));
        if let (Some(_), Some(written)) = (out_of_place(base), &first) {
            let group = names.memory.group(written);
            let (wholes, parts) = names.memory.members[group].clone();
            if parts {
                return Err(NodeError::unsupported(
                    "it writes into memory of which another value is a part; export the program with \
                     `ep.run_decompositions()`, which makes such writes new values",
                ));
            }
            if let Some(value) = values.first() {
                for name in wholes {
                    names.values.insert(name, value.clone());
                }
            }
            for name in &given {
                names.memory.share(name, written, true);
            }
        } else if let Some(of) = first.filter(|_| PARTS.contains(&base) || WHOLES.contains(&base)) {
            for name in &given {
                names.memory.share(name, &of, WHOLES.contains(&base));
            }
        }
        names.values.extend(given.into_iter().zip(values));
        Ok(())
    }

    /// Results that are integers or bools over dimensions; whether the node gives nothing else.
    fn numbers(
        &mut self,
        builder: &mut BlockBuilder,
        graph: &Graph,
        node: &Node,
        base: &str,
        names: &mut Names,
    ) -> Result<bool, NodeError> {
        let mut all = !node.outputs.is_empty();
        let reads = matches!(base, "aten.item" | "aten._local_scalar_dense");
        for output in &node.outputs {
            match output {
                Argument::AsSymInt(Symbolic::Named(name)) => {
                    let declared = graph.sym_int_values.get(name);
                    let declared = declared.ok_or_else(|| NodeError::invalid(format!("`{name}` has no type")))?;
                    let value = self.symbols.dim(declared).map_err(|e| NodeError::unsupported(e.to_string()))?;
                    if let (true, Some(var)) = (reads, value.as_var()) {
                        let mut cx = Cx { builder, node, values: &names.values, results: Vec::new() };
                        let tensor = cx.tensor("self")?;
                        cx.bind_number(tensor, var.clone())?;
                    }
                    names.values.insert(name.clone(), Value::Int(value));
                }
                Argument::AsSymFloat(Symbolic::Named(name)) if reads => {
                    let cx = Cx { builder, node, values: &names.values, results: Vec::new() };
                    let tensor = cx.tensor("self")?;
                    names.values.insert(name.clone(), Value::Tensor(tensor));
                }
                Argument::AsSymFloat(Symbolic::Named(_)) => {
                    return Err(NodeError::unsupported("arithmetic on numbers that the program computes"));
                }
                Argument::AsSymBool(Symbolic::Named(name)) => {
                    names.values.insert(name.clone(), Value::Nothing);
                }
                Argument::AsInt(_) | Argument::AsNone(_) => {}
                _ => all = false,
            }
        }
        Ok(all)
    }
}

fn run_rule(cx: &mut Cx<'_>, full: &str, base: &str) -> Outputs {
    let rule = ops::find(full).or_else(|| ops::find(base)).or_else(|| ops::find(out_of_place(base)?));
    match rule {
        Some(rule) => rule(cx),
        None => Err(NodeError::unsupported(without_rule(full, base))),
    }
}

/// What to do about an operator that has no rule.
fn without_rule(full: &str, base: &str) -> String {
    let (space, key) = full.split_once('.').unwrap_or(("", full));
    let converter =
        format!("give it one in Python: `from_exported_program(program, custom_convert_map={{\"{key}\": function}})`");
    match space {
        "aten" | "prims" => format!(
            "the operator `{base}` has no rule; where `program.run_decompositions()` does not write it in terms of others, {converter}"
        ),
        "higher_order" => format!("the operator `{base}` has no rule"),
        _ => format!("the operator `{base}`, which a library adds to PyTorch, has no rule; {converter}"),
    }
}

/// The line of the user's module that a node comes from: the innermost that is not PyTorch's own.
fn line_of(node: &Node) -> Option<String> {
    let trace = node.metadata.get("stack_trace")?;
    let lines: Vec<&str> = trace.lines().map(str::trim).filter(|line| line.starts_with("File ")).collect();
    let own = lines.iter().rev().find(|line| !line.contains("site-packages/torch/") && !line.contains("/torch/nn/"));
    own.or(lines.last()).map(|line| (*line).to_string())
}

/// The name of the first value in an argument.
pub fn first_name(arg: &Argument) -> Option<String> {
    all_names(arg).into_iter().next()
}

/// The names of all values in an argument.
fn all_names(arg: &Argument) -> Vec<String> {
    match arg {
        Argument::AsSymInt(Symbolic::Named(name))
        | Argument::AsSymFloat(Symbolic::Named(name))
        | Argument::AsSymBool(Symbolic::Named(name)) => vec![name.clone()],
        Argument::AsSymInts(list) => list
            .iter()
            .filter_map(|dim| match dim {
                Symbolic::Named(name) => Some(name.clone()),
                Symbolic::Known(_) => None,
            })
            .collect(),
        tensors => tensor_names(tensors),
    }
}

/// The names of the tensors in an argument.
fn tensor_names(arg: &Argument) -> Vec<String> {
    use crate::program::OptionalTensor;
    match arg {
        Argument::AsTensor(tensor) | Argument::AsOptionalTensor(OptionalTensor::AsTensor(tensor)) => {
            vec![tensor.name.clone()]
        }
        Argument::AsTensors(list) => list.iter().map(|t| t.name.clone()).collect(),
        Argument::AsOptionalTensors(list) => list
            .iter()
            .filter_map(|t| match t {
                OptionalTensor::AsTensor(tensor) => Some(tensor.name.clone()),
                OptionalTensor::AsNone(_) => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn uses(arg: &Argument, names: &[String]) -> bool {
    !names.is_empty() && all_names(arg).iter().any(|name| names.contains(name))
}
