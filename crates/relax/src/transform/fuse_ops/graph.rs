//! The graph of values of a dataflow block, as fusion sees it.

use std::collections::{HashMap, HashSet};

use relaxide_ir::prim::{PrimExpr, VarMap, substitute};
use relaxide_ir::{IRModule, TensorType, Type, VDevice};
use relaxide_tir::PrimFunc;
use relaxide_tir::schedule::affine::cost;
use relaxide_tir::schedule::{Item, Program, copies_image};

use super::super::annotate_op_pattern::{PATTERN_ATTR, rows};
use super::super::reshape_proof::{is_reshape, is_unit_reshape};
use crate::functor::used_vars;
use crate::op::OpPattern;
use crate::op::core::CallTir;
use crate::shape::{num_elements, prove_equal, same_dims};
use crate::*;

/// What an element of a table costs at least, as the schedule rules count: a division, or a function.
const OF_TABLE: i64 = 4;

/// What fusion knows of a kernel.
struct Kernel {
    pattern: OpPattern,
    /// What an element costs, as the schedule rules count.
    cost: i64,
    rows: Option<(Vec<PrimExpr>, Vec<PrimExpr>)>,
    /// Whether its image may be computed from narrower elements as it is read ([`copies_image`]).
    copies_image: bool,
    /// Shapes of the parameters, to bind symbolic dimensions at a call.
    shapes: Vec<Option<Vec<PrimExpr>>>,
}

/// The kernels of a module by name.
pub(super) struct Kernels(HashMap<String, Kernel>);

impl Kernels {
    pub(super) fn of(module: &IRModule) -> Kernels {
        Kernels(module.functions_of::<PrimFunc>().map(|(name, f)| (name.to_string(), Kernel::of(&f))).collect())
    }
}

impl Kernel {
    fn of(func: &PrimFunc) -> Kernel {
        let pattern = func.attrs.int(PATTERN_ATTR).and_then(OpPattern::from_int).unwrap_or(OpPattern::Opaque);
        // A view costs nothing; inside a group it would cost divisions, unless it is about dimensions of size one only.
        let view = pattern <= OpPattern::Injective && is_reshape(func) && !is_unit_reshape(func);
        let pattern = if view { OpPattern::Opaque } else { pattern };
        let rows = if pattern == OpPattern::Reduce { rows(func) } else { None };
        let shapes = func.buffers.iter().map(|b| b.as_ref().map(|b| b.shape.clone())).collect();
        let items = Program::read(func).items;
        let cost =
            items.iter().map(|item| if let Item::Stage(stage) = item { cost(&stage.value) } else { OF_TABLE }).sum();
        let copies_image = pattern == OpPattern::OutFusable && copies_image(func);
        Kernel { pattern, cost, rows, copies_image, shapes }
    }

    /// Number of rows and their length over the caller's variables.
    fn rows_at(&self, call: &CallTir) -> Option<Rows> {
        let (across, along) = self.rows.as_ref()?;
        let mut map = VarMap::new();
        for (shape, arg) in self.shapes.iter().zip(&call.args) {
            let (Some(shape), Type::Tensor(ty)) = (shape, arg.ty()) else { continue };
            for (dim, value) in shape.iter().zip(ty.shape.iter().flatten()) {
                if let Some(var) = dim.as_var() {
                    map.insert(var.clone(), value.clone());
                }
            }
        }
        let size = |dims: &[PrimExpr]| substitute(&num_elements(dims), &map);
        Some(Rows { count: size(across), length: size(along) })
    }
}

/// The rows that reductions run along.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    count: PrimExpr,
    length: PrimExpr,
}

impl Rows {
    pub(super) fn same(&self, other: &Rows) -> bool {
        prove_equal(&self.count, &other.count) && prove_equal(&self.length, &other.length)
    }
}

/// A use of a value by a later node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// The node that uses it.
    pub(super) node: usize,
    /// How its elements are used.
    pub(super) pattern: OpPattern,
}

/// A value of the block: one binding.
#[derive(Debug)]
pub(super) struct BindingNode {
    pub(super) pattern: OpPattern,
    pub(super) uses: Vec<Use>,
    /// How many tensors it takes.
    pub(super) tensors: usize,
    /// How many of them have lengths with names that are not those of what it gives: parts that it joins, what it takes a slice of.
    pub(super) open: usize,
    /// Whether it is needed outside of the block.
    pub(super) escapes: bool,
    pub(super) rows: Option<Rows>,
    /// The nodes that give its arguments, where they are of the block.
    pub(super) args: Vec<Option<usize>>,
    /// The lengths of its value, where it is one tensor and all are known.
    pub(super) lengths: Option<Vec<i64>>,
    /// Where it is made of lengths and numbers alone: what an element costs from there on.
    pub(super) made: Option<i64>,
    /// Whether it is a tensor in a wider type, element by element: twice the memory of what it is made of, or more.
    pub(super) widens: bool,
    /// The node whose value is an image that it copies before it is used ([`copies_image`]).
    pub(super) image: Option<usize>,
}

/// The values of a block in order, by the place of their bindings.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<BindingNode>,
}

impl Graph {
    pub(super) fn of(block: &BindingBlock, kernels: &Kernels) -> Graph {
        let mut nodes: Vec<BindingNode> = Vec::with_capacity(block.bindings.len());
        let mut index: HashMap<AnyVar, usize> = HashMap::new();
        let mut tuples: HashSet<AnyVar> = HashSet::new();
        for (i, binding) in block.bindings.iter().enumerate() {
            let call = fusible(binding, kernels);
            let is_field = is_field(binding, &tuples);
            let pattern = match &call {
                Some((_, kernel)) => kernel.pattern,
                // A field of what a kernel gives is that output, under another name.
                None if is_field => OpPattern::Elemwise,
                None => OpPattern::Opaque,
            };
            let rows = call.as_ref().and_then(|(call, kernel)| kernel.rows_at(call));
            if call.is_some() && matches!(binding.var().ty(), Type::Tuple(_)) {
                tuples.insert(binding.var().clone());
            }
            for used in used_vars(binding.value()) {
                let Some(producer) = index.get(&used) else { continue };
                let pattern = match is_field {
                    true => OpPattern::Elemwise,
                    false => use_pattern(pattern, used.ty(), binding.var().ty()),
                };
                // Who repeats the elements of such a table reads them.
                let is_table = nodes[*producer].made.is_some_and(|cost| cost >= OF_TABLE);
                let repeats = pattern == OpPattern::Broadcast && is_table;
                let pattern = if repeats { OpPattern::Opaque } else { pattern };
                nodes[*producer].uses.push(Use { node: i, pattern });
            }
            index.insert(binding.var().clone(), i);
            let escapes = matches!(binding.var(), AnyVar::Var(_));
            let tensors =
                call.as_ref().map_or(0, |(call, _)| call.args.iter().filter(|a| a.ty().as_tensor().is_some()).count());
            let open = match (&call, pattern) {
                (Some((call, _)), OpPattern::Injective) => open_tensors(call, binding.var().ty()),
                _ => 0,
            };
            let given = |arg: &Expr| arg.as_var().and_then(|var| index.get(&var).copied());
            let args = call.as_ref().map_or_else(Vec::new, |(call, _)| call.args.iter().map(given).collect());
            let dims = binding.var().ty().as_tensor().and_then(|ty| ty.shape.clone());
            let lengths = dims.and_then(|dims| dims.iter().map(PrimExpr::as_int).collect());
            let widens = pattern <= OpPattern::Broadcast
                && call.as_ref().is_some_and(|(call, _)| is_widened(call, binding.var().ty()));
            let is_copied = call.as_ref().is_some_and(|(_, kernel)| kernel.copies_image);
            let image = args.first().copied().flatten().filter(|_| is_copied);
            let made = call.as_ref().and_then(|(call, kernel)| made_of_lengths(call, kernel, &args, &nodes));
            nodes.push(BindingNode {
                pattern,
                uses: Vec::new(),
                tensors,
                open,
                escapes,
                rows,
                args,
                lengths,
                made,
                widens,
                image,
            });
        }
        Graph { nodes }
    }
}

/// What an element of a kernel's result costs, where all that it is made of is made of lengths and numbers, too.
fn made_of_lengths(call: &CallTir, kernel: &Kernel, args: &[Option<usize>], nodes: &[BindingNode]) -> Option<i64> {
    let of = |(arg, node): (&Expr, &Option<usize>)| match (arg, node) {
        (Expr::Prim(_) | Expr::Constant(_), _) => Some(0),
        (_, Some(node)) => nodes[*node].made,
        _ => None,
    };
    let before: Option<i64> = call.args.iter().zip(args).map(of).sum();
    before.map(|before| before + kernel.cost)
}

/// Whether a binding is a field of one of some tuples.
fn is_field(binding: &Binding, tuples: &HashSet<AnyVar>) -> bool {
    match binding {
        Binding::Var(bound) => match &bound.value {
            Expr::TupleGetItem(item) => item.tuple.as_var().is_some_and(|var| tuples.contains(&var)),
            _ => false,
        },
        Binding::MatchCast(_) => false,
    }
}

/// Whether two values are on one device, in whatever of its memory.
fn same_device(a: Option<&VDevice>, b: Option<&VDevice>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.is_same(&VDevice { target: b.target.clone(), id: b.id, scope: a.scope.clone() }),
        (None, None) => true,
        _ => false,
    }
}

/// The call of a kernel of tensors, scalars and constants on one device, that a binding makes.
fn fusible<'a>(binding: &Binding, kernels: &'a Kernels) -> Option<(CallTir, &'a Kernel)> {
    let Binding::Var(bound) = binding else { return None };
    let call = CallTir::of(&bound.value)?;
    let kernel = kernels.0.get(&call.func.name)?;
    let outs = tensors(bound.var.ty())?;
    let device = outs.first()?.vdevice.clone();
    if outs.iter().any(|out| out.shape.is_none() || !same_device(out.vdevice.as_deref(), device.as_deref())) {
        return None;
    }
    let takes = |arg: &Expr| match arg {
        Expr::Prim(_) => true,
        Expr::Var(_) | Expr::DataflowVar(_) | Expr::Constant(_) => match arg.ty() {
            Type::Tensor(ty) => ty.shape.is_some() && same_device(ty.vdevice.as_deref(), device.as_deref()),
            Type::Prim(_) => true,
            _ => false,
        },
        _ => false,
    };
    call.args.iter().all(takes).then_some((call, kernel))
}

/// Whether a call gives its only tensor of the result's shape in a type of twice the width or more.
fn is_widened(call: &CallTir, out: &Type) -> bool {
    let Some(out) = out.as_tensor() else { return false };
    let whole = |arg: &Expr| {
        let ty = arg.ty();
        let ty =
            ty.as_tensor().filter(|ty| ty.shape.as_ref().zip(out.shape.as_ref()).is_some_and(|(a, b)| same_dims(a, b)));
        ty.map(|ty| i64::from(ty.dtype.bits))
    };
    let widths: Vec<i64> = call.args.iter().filter_map(whole).collect();
    matches!(widths.as_slice(), [own] if own * 2 <= i64::from(out.dtype.bits))
}

/// How many tensors of a call have lengths with names that are not those of its result.
fn open_tensors(call: &CallTir, out: &Type) -> usize {
    let Some(given) = out.as_tensor().and_then(|t| t.shape.as_ref()) else { return 0 };
    let is_open = |arg: &&Expr| {
        let ty = arg.ty();
        let Some(taken) = ty.as_tensor().and_then(|t| t.shape.as_ref()) else { return false };
        let named = |dims: &[PrimExpr]| dims.iter().any(|dim| dim.as_int().is_none());
        named(taken) && taken.len() == given.len() && !same_dims(taken, given)
    };
    call.args.iter().filter(is_open).count()
}

/// How a kernel of a pattern uses an argument.
fn use_pattern(kernel: OpPattern, arg: &Type, out: &Type) -> OpPattern {
    if kernel > OpPattern::Broadcast {
        return kernel;
    }
    let Some(given) = arg.as_tensor().and_then(|t| t.shape.as_ref()) else { return OpPattern::Broadcast };
    let outs = tensors(out).unwrap_or_default();
    let same = |out: &&TensorType| out.shape.as_ref().is_some_and(|dims| same_dims(given, dims));
    if !outs.is_empty() && outs.iter().all(same) { OpPattern::Elemwise } else { OpPattern::Broadcast }
}

/// A tensor's type, or those of the fields of a tuple of tensors.
fn tensors(ty: &Type) -> Option<Vec<&TensorType>> {
    match ty {
        Type::Tensor(tensor) => Some(vec![tensor]),
        Type::Tuple(tuple) => tuple.fields.iter().map(|field| field.as_tensor().map(|t| &**t)).collect(),
        _ => None,
    }
}
