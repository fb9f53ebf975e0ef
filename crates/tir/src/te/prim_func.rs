//! From a graph of computes to a kernel in block form.
//!
//! Each stage becomes a nest of serial loops, one for each axis, around one block that computes one element:
//!
//! ```text
//! for i, k in T.grid(n, 64):                      # spatial axes, then reduction axes
//!     with T.sblock("B"):
//!         v_i, v_k = T.axis.remap("SR", [i, k])
//!         with T.init():
//!             B[v_i] = T.float32(0)
//!         B[v_i] = B[v_i] + A[v_i, v_k]
//! ```
//!
//! The nests stand in order of need inside a block named `root`, which allocates what lies between inputs and outputs.
//!
//! **Gives.** Buffers, loop variables and block variables are fresh; names of buffers and of blocks are unique. Symbolic
//! dimensions and scalars are the caller's variables: those that no argument binds as a dimension become parameters behind
//! the buffers, in order of first use.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, PrimMutator, PrimVisitor, VarMap};
use relaxide_ir::{AttrValue, Attrs, Buffer, Var};

use super::access::reads_of_expr;
use super::checks::check_accesses;
use super::layout_free;
use super::nested::levels;
use super::reduce::Reduction;
use super::tensor::{Stage, StageKind, Tensor, output_link};
use crate::PrimFunc;
use crate::analysis::regions::pointers_of;
use crate::functor::{StmtMutator, StmtVisitor, undefined_vars};
use crate::stmt::*;

/// Why a graph of computes is no kernel. All are mistakes in the description of an op.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TeError {
    /// An expression loads from a tensor that is neither an argument nor computed from the arguments.
    #[error("tensor `{0}` is read but is no argument of the kernel and not computed from its arguments")]
    UnknownTensor(String),
    /// A load or store has too few or too many indices.
    #[error("tensor `{name}` has {ndim} dimensions but is indexed with {indices}")]
    WrongRank {
        /// The tensor.
        name: String,
        /// Its rank.
        ndim: usize,
        /// How many indices were given.
        indices: usize,
    },
    /// One tensor is an argument twice.
    #[error("tensor `{0}` is an argument twice")]
    DuplicateArgument(String),
    /// The parts of a scan do not fit each other.
    #[error("the scan `{name}` cannot be: {why}")]
    Scan {
        /// The scan.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The lists of a reduction are not of one length.
    #[error(
        "the reduction of stage `{stage}` combines {values} values into {combined} results with {identity} initial values"
    )]
    UnevenReduction {
        /// The stage.
        stage: String,
        /// How many values there are at a point.
        values: usize,
        /// How many results the combiner makes.
        combined: usize,
        /// How many initial values there are.
        identity: usize,
    },
}

/// A kernel over the given tensors, which become its parameters in this order: by convention inputs, then outputs.
/// Placeholders among them are inputs, all others outputs.
pub fn create_prim_func(args: &[Tensor]) -> Result<PrimFunc, TeError> {
    create_checked(args, Vec::new())
}

/// The same with statements in front that check dimensions and scalars.
pub fn create_checked(args: &[Tensor], checks: Vec<Stmt>) -> Result<PrimFunc, TeError> {
    build(args, checks, Builder::default())
}

/// As [`create_checked`], with each element's expression in the analyzer's form and an axis of one where a block has none, as TVM's
/// kernels have it.
pub fn create_simplified(args: &[Tensor], checks: Vec<Stmt>) -> Result<PrimFunc, TeError> {
    create_simplified_over(args, checks, DataType::int(64))
}

/// The same, where axes of one are of an integer type.
pub fn create_simplified_over(args: &[Tensor], checks: Vec<Stmt>, axis: DataType) -> Result<PrimFunc, TeError> {
    build(args, checks, Builder { axis_of_one: Some(axis), ..Builder::default() })
}

fn build(args: &[Tensor], checks: Vec<Stmt>, mut builder: Builder) -> Result<PrimFunc, TeError> {
    let stages = stages_in_order(args)?;
    let mut params = Vec::with_capacity(args.len());
    for arg in args {
        if builder.known(arg.buffer()).is_some() {
            return Err(TeError::DuplicateArgument(arg.name().to_string()));
        }
        params.push(builder.fresh_buffer(arg.buffer()));
    }
    let mut nests = checks;
    let mut allocated = Vec::new();
    for (stage, outputs) in &stages {
        if matches!(stage.kind, StageKind::Placeholder) {
            if let Some(unknown) = outputs.iter().find(|b| builder.known(b).is_none()) {
                return Err(TeError::UnknownTensor(unknown.name.clone()));
            }
            continue;
        }
        let mut targets = Vec::with_capacity(outputs.len());
        for output in outputs {
            let known = builder.known(output).cloned();
            targets.push(known.unwrap_or_else(|| {
                let buffer = builder.fresh_buffer(output);
                allocated.push(buffer.clone());
                buffer
            }));
        }
        nests.push(builder.nest(stage, &targets)?);
    }
    let body = root_block(allocated, nests);
    check_accesses(&body, builder.buffers.values())?;
    let scalars = unbound_scalars(&params, &body);
    let mut made = PrimFunc::over_buffers(&params, &scalars, body);
    let free = layout_free::places(stages.iter().map(|(stage, _)| &stage.attrs), args);
    if !free.is_empty() {
        made.attrs = made.attrs.with("layout_free_buffers", AttrValue::List(free));
    }
    Ok(made)
}

/// The inputs that outputs are computed from.
pub fn placeholders_of(outputs: &[Tensor]) -> HashSet<Ref<Buffer>> {
    let mut order = Order::default();
    outputs.iter().for_each(|output| order.visit_output(output.buffer()));
    let inputs = order.seen.iter().filter(|((stage, _), _)| matches!(stage.kind, StageKind::Placeholder));
    inputs.map(|(_, buffer)| buffer.clone()).collect()
}

/// A stage's output by the stage's address and its place: two buffers of one output are one tensor.
pub(super) type OutputKey = (Ref<Stage>, usize);

pub(super) fn key_of(buffer: &Buffer) -> Option<OutputKey> {
    output_link(buffer).map(|link| (link.stage.clone(), link.index))
}

/// A stage and a buffer for each of its outputs.
type StageOutputs = (Ref<Stage>, Vec<Ref<Buffer>>);

/// The stages that the arguments need, producers first.
fn stages_in_order(args: &[Tensor]) -> Result<Vec<StageOutputs>, TeError> {
    let mut order = Order::default();
    for arg in args {
        order.visit_output(arg.buffer());
    }
    Ok(order.stages.into_iter().map(|stage| (stage.clone(), outputs_of(&stage, &order.seen))).collect())
}

/// A buffer for each output of a stage; an output that nobody named gets a stand-in like its sibling.
fn outputs_of(stage: &Ref<Stage>, seen: &HashMap<OutputKey, Ref<Buffer>>) -> Vec<Ref<Buffer>> {
    let dtypes: Vec<DataType> = match &stage.kind {
        StageKind::Placeholder => vec![DataType::void()],
        StageKind::Elements(values) => values.iter().map(PrimExpr::dtype).collect(),
        StageKind::Reduction(reduction) => reduction.values.iter().map(PrimExpr::dtype).collect(),
        StageKind::Extern { outputs, .. } => outputs.iter().map(|b| b.dtype).collect(),
    };
    let sibling = (0..dtypes.len()).find_map(|i| seen.get(&(stage.clone(), i)));
    let output = |(i, dtype): (usize, DataType)| {
        if let Some(buffer) = seen.get(&(stage.clone(), i)) {
            return buffer.clone();
        }
        let (name, shape) = match (&stage.kind, sibling) {
            (StageKind::Extern { outputs, .. }, _) => (outputs[i].name.clone(), outputs[i].shape.clone()),
            (_, sibling) => (format!("{}_v{i}", stage.name), sibling.map_or(Vec::new(), |b| b.shape.clone())),
        };
        Tensor::output_of(stage.clone(), i, name, dtype, &shape).buffer().clone()
    };
    dtypes.into_iter().enumerate().map(output).collect()
}

/// A walk from outputs to inputs that lists stages behind those that they read.
#[derive(Default)]
struct Order {
    stages: Vec<Ref<Stage>>,
    visited: HashSet<Ref<Stage>>,
    seen: HashMap<OutputKey, Ref<Buffer>>,
}

impl Order {
    fn visit_output(&mut self, buffer: &Ref<Buffer>) {
        let Some(link) = output_link(buffer) else { return };
        self.seen.entry((link.stage.clone(), link.index)).or_insert_with(|| buffer.clone());
        if !self.visited.insert(link.stage.clone()) {
            return;
        }
        match &link.stage.kind {
            StageKind::Placeholder => {}
            StageKind::Elements(values) => values.iter().for_each(|e| self.visit_prim(e)),
            StageKind::Reduction(reduction) => {
                reduction.identity.iter().chain(&reduction.combined).for_each(|e| self.visit_prim(e));
            }
            StageKind::Extern { inputs, body, .. } => {
                inputs.iter().for_each(|input| self.visit_output(input));
                self.visit_stmt(body);
            }
        }
        self.stages.push(link.stage.clone());
    }
}

impl PrimVisitor for Order {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.visit_output(buffer);
    }
}

impl StmtVisitor for Order {}

/// What has been given a place in the kernel so far.
#[derive(Default)]
pub(super) struct Builder {
    buffers: HashMap<OutputKey, Ref<Buffer>>,
    buffer_names: HashSet<String>,
    pub(super) block_names: HashSet<String>,
    /// The type of an axis of length one that blocks without axes have; expressions are then brought to the analyzer's form.
    axis_of_one: Option<DataType>,
}

impl Builder {
    /// The kernel's buffer for a tensor's.
    fn known(&self, buffer: &Buffer) -> Option<&Ref<Buffer>> {
        self.buffers.get(&key_of(buffer)?)
    }

    fn fresh_buffer(&mut self, like: &Ref<Buffer>) -> Ref<Buffer> {
        let name = unique(&mut self.buffer_names, &like.name);
        let buffer = Buffer::new(name, like.dtype, &like.shape);
        if let Some(key) = key_of(like) {
            self.buffers.insert(key, buffer.clone());
        }
        buffer
    }

    fn nest(&mut self, stage: &Ref<Stage>, targets: &[Ref<Buffer>]) -> Result<Stmt, TeError> {
        let name = unique(&mut self.block_names, &stage.name);
        match &stage.kind {
            StageKind::Placeholder => Ok(Stmt::nop()),
            StageKind::Elements(values) => Ok(self.element_nest(stage, name, values, targets)),
            StageKind::Reduction(reduction) => self.reduction_nest(stage, name, reduction, targets),
            StageKind::Extern { inputs, outputs, body } => Ok(self.extern_block(name, inputs, outputs, body, targets)),
        }
    }

    fn element_nest(&self, stage: &Stage, name: String, values: &[PrimExpr], targets: &[Ref<Buffer>]) -> Stmt {
        let axes = spatial_axes(stage, targets);
        let mut rebind = Rebind { ordered: true, ..self.rebind(&axes) };
        let values: Vec<PrimExpr> = values.iter().map(|e| self.simplified(rebind.mutate_prim(e))).collect();
        let indices = indices_of(&axes);
        let stores = targets.iter().zip(&values).map(|(b, value)| Stmt::store(b, &indices, value.clone()));
        let (reads, body) = (reads_of_expr(&values), Stmt::seq(stores));
        let block = BlockBody { reads, init: None, body, axis_of_one: self.axis_of_one };
        block.into_nest(name, self.annotations(stage), axes, targets, &indices)
    }

    fn reduction_nest(
        &mut self,
        stage: &Stage,
        name: String,
        reduction: &Reduction,
        targets: &[Ref<Buffer>],
    ) -> Result<Stmt, TeError> {
        let (values, combined, identity) = (reduction.values.len(), reduction.combined.len(), reduction.identity.len());
        if values != combined || values != identity {
            return Err(TeError::UnevenReduction { stage: stage.name.clone(), values, combined, identity });
        }
        let mut axes = spatial_axes(stage, targets);
        axes.extend(reduction.axes.iter().map(|a| NestAxis::new(&a.var, &a.extent, IterKind::Reduce)));
        if let Some(levels) = levels(&axes) {
            return Ok(self.nested_reduction(stage, name, reduction, targets, axes, &levels));
        }
        let indices = indices_of(&axes[..axes.len() - reduction.axes.len()]);
        let (init, combined) = self.reduced(reduction, targets, &indices, self.rebind(&axes));
        let reads = reads_of_expr(init.iter().chain(&combined));
        let reads = reads.into_iter().filter(|region| !targets.contains(&region.buffer)).collect();
        let init = targets.iter().zip(init).map(|(b, value)| Stmt::store(b, &indices, value));
        let body = store_together(targets, &indices, combined);
        let block = BlockBody { reads, init: Some(Stmt::seq(init)), body, axis_of_one: self.axis_of_one };
        Ok(block.into_nest(name, self.annotations(stage), axes, targets, &indices))
    }

    /// What the results start as, and what they are with one more point.
    pub(super) fn reduced(
        &self,
        reduction: &Reduction,
        targets: &[Ref<Buffer>],
        indices: &[PrimExpr],
        mut rebind: Rebind<'_>,
    ) -> (Vec<PrimExpr>, Vec<PrimExpr>) {
        let values: Vec<PrimExpr> = reduction.values.iter().map(|e| self.simplified(rebind.mutate_prim(e))).collect();
        if self.axis_of_one.is_some() {
            rebind.made = reduction.values.iter().cloned().zip(values).collect();
        }
        let init = reduction.identity.iter().map(|e| rebind.mutate_prim(e)).collect();
        for (acc, target) in reduction.accumulators.iter().zip(targets) {
            rebind.vars.insert(acc.clone(), prim::load(target, indices));
        }
        (init, reduction.combined.iter().map(|e| rebind.mutate_prim(e)).collect())
    }

    fn extern_block(
        &self,
        name: String,
        inputs: &[Ref<Buffer>],
        formal: &[Ref<Buffer>],
        body: &Stmt,
        targets: &[Ref<Buffer>],
    ) -> Stmt {
        let mut rebind = self.rebind(&[]);
        rebind.formal = formal.iter().cloned().zip(targets.iter().cloned()).collect();
        // What is passed on by its pointer.
        let known: Vec<(&Ref<Buffer>, &Ref<Buffer>)> =
            inputs.iter().filter_map(|input| Some((input, self.known(input)?))).collect();
        let pairs = known.iter().copied().chain(formal.iter().zip(targets));
        rebind.vars.extend(pairs.map(|(old, new)| (old.data.clone(), PrimExpr::from(&new.data))));
        let pointers = pointers_of(body);
        let passed = known.iter().filter(|(input, _)| pointers.contains(&input.data));
        let mut used: Vec<Ref<Buffer>> = passed.map(|(_, buffer)| (*buffer).clone()).collect();
        let body = rebind.mutate_stmt(body);
        for region in super::access::reads_of_stmt(&body) {
            let new = !targets.contains(&region.buffer) && !used.contains(&region.buffer);
            if new && self.buffers.values().any(|b| *b == region.buffer) {
                used.push(region.buffer.clone());
            }
        }
        let block = SBlock {
            iter_vars: Vec::new(),
            reads: used.iter().map(whole).collect(),
            writes: targets.iter().map(whole).collect(),
            name,
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: Attrs::new(),
            init: None,
            body,
        };
        realize(block, Vec::new())
    }

    /// What a stage says of its block, over the kernel's buffers. Inputs whose layout is free are listed by the kernel.
    pub(super) fn annotations(&self, stage: &Stage) -> Attrs {
        let mut said = Attrs(stage.attrs.0.iter().map(|(key, value)| (key.clone(), self.annotation(value))).collect());
        layout_free::without_inputs(&stage.attrs, &mut said);
        said
    }

    fn annotation(&self, value: &AttrValue) -> AttrValue {
        match value {
            AttrValue::List(items) => AttrValue::List(items.iter().map(|item| self.annotation(item)).collect()),
            AttrValue::Object(object) => match object.downcast_ref::<Buffer>().and_then(|buffer| self.known(buffer)) {
                Some(buffer) => AttrValue::Object(buffer.clone().into()),
                None => value.clone(),
            },
            _ => value.clone(),
        }
    }

    fn simplified(&self, value: PrimExpr) -> PrimExpr {
        if self.axis_of_one.is_some() { Analyzer::new().rewrite_and_simplify(&value) } else { value }
    }

    fn rebind(&self, axes: &[NestAxis]) -> Rebind<'_> {
        self.rebind_to(axes.iter().map(|a| (a.source.clone(), PrimExpr::from(&a.block_var))).collect())
    }

    pub(super) fn rebind_to(&self, vars: VarMap) -> Rebind<'_> {
        Rebind { vars, formal: HashMap::new(), buffers: &self.buffers, made: HashMap::new(), ordered: false }
    }
}

/// A loop of a nest and the block axis that it drives.
pub(super) struct NestAxis {
    pub(super) source: Ref<Var>,
    pub(super) loop_var: Ref<Var>,
    pub(super) block_var: Ref<Var>,
    pub(super) extent: PrimExpr,
    pub(super) kind: IterKind,
}

impl NestAxis {
    fn new(source: &Ref<Var>, extent: &PrimExpr, kind: IterKind) -> NestAxis {
        NestAxis {
            source: source.clone(),
            loop_var: Var::new(source.name.clone(), source.ty.clone()),
            block_var: Var::new(format!("v_{}", source.name), source.ty.clone()),
            extent: prim::cast(source.dtype(), extent),
            kind,
        }
    }
}

fn spatial_axes(stage: &Stage, targets: &[Ref<Buffer>]) -> Vec<NestAxis> {
    let shape = targets.first().map_or(&[][..], |b| &b.shape);
    stage.axes.iter().zip(shape).map(|(var, extent)| NestAxis::new(var, extent, IterKind::Spatial)).collect()
}

fn indices_of(axes: &[NestAxis]) -> Vec<PrimExpr> {
    axes.iter().map(|a| PrimExpr::from(&a.block_var)).collect()
}

/// Stores that must not see each other's results: behind the first value, all are computed before any is stored.
pub(super) fn store_together(targets: &[Ref<Buffer>], indices: &[PrimExpr], values: Vec<PrimExpr>) -> Stmt {
    if let [value] = values.as_slice() {
        return Stmt::seq(targets.iter().map(|b| Stmt::store(b, indices, value.clone())));
    }
    let vars: Vec<Ref<Var>> =
        targets.iter().zip(&values).map(|(b, value)| Var::prim(format!("v_{}", b.name), value.dtype())).collect();
    let binds = vars.iter().zip(values).map(|(var, value)| Stmt::bind(var.clone(), value));
    let stores = targets.iter().zip(&vars).map(|(b, var)| Stmt::store(b, indices, var));
    Stmt::seq(binds.chain(stores))
}

/// What a block does, before its axes are known to it.
struct BlockBody {
    reads: Vec<Ref<BufferRegion>>,
    init: Option<Stmt>,
    body: Stmt,
    /// The type of an axis of one that it has where it has no other.
    axis_of_one: Option<DataType>,
}

impl BlockBody {
    fn into_nest(
        self,
        name: String,
        annotations: Attrs,
        axes: Vec<NestAxis>,
        targets: &[Ref<Buffer>],
        indices: &[PrimExpr],
    ) -> Stmt {
        let iter = |a: &NestAxis| {
            let min = prim::int_of(a.extent.dtype(), 0);
            let (var, extent) = (a.block_var.clone(), a.extent.clone());
            Ref::new(IterVar { var, min, extent, kind: a.kind })
        };
        let mut iter_vars: Vec<_> = axes.iter().map(iter).collect();
        let mut iter_values: Vec<PrimExpr> = axes.iter().map(|a| PrimExpr::from(&a.loop_var)).collect();
        if let (true, Some(dtype)) = (axes.is_empty(), self.axis_of_one) {
            let (var, min, extent) = (Var::prim("vi", dtype), prim::int_of(dtype, 0), prim::int_of(dtype, 1));
            iter_values.push(min.clone());
            iter_vars.push(Ref::new(IterVar { var, min, extent, kind: IterKind::Spatial }));
        }
        let block = SBlock {
            iter_vars,
            reads: self.reads,
            writes: targets.iter().map(|b| point(b, indices)).collect(),
            name,
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations,
            init: self.init,
            body: self.body,
        };
        let innermost = realize(block, iter_values);
        axes.into_iter().rev().fold(innermost, |body, a| Stmt::serial(a.loop_var, a.extent, body))
    }
}

fn root_block(alloc_buffers: Vec<Ref<Buffer>>, nests: Vec<Stmt>) -> Stmt {
    let root = SBlock {
        iter_vars: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        name: "root".to_string(),
        alloc_buffers,
        match_buffers: Vec::new(),
        annotations: Attrs::new(),
        init: None,
        body: Stmt::seq(nests),
    };
    realize(root, Vec::new())
}

pub(super) fn realize(block: SBlock, iter_values: Vec<PrimExpr>) -> Stmt {
    Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block: Ref::new(block) }).into()
}

fn point(buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Ref<BufferRegion> {
    let region =
        indices.iter().map(|i| Ref::new(Range { min: i.clone(), extent: prim::int_of(i.dtype(), 1) })).collect();
    Ref::new(BufferRegion { buffer: buffer.clone(), region })
}

fn whole(buffer: &Ref<Buffer>) -> Ref<BufferRegion> {
    let region =
        buffer.shape.iter().map(|d| Ref::new(Range { min: prim::int_of(d.dtype(), 0), extent: d.clone() })).collect();
    Ref::new(BufferRegion { buffer: buffer.clone(), region })
}

/// Puts the kernel's variables and buffers in the place of the description's.
pub(super) struct Rebind<'a> {
    vars: VarMap,
    formal: HashMap<Ref<Buffer>, Ref<Buffer>>,
    buffers: &'a HashMap<OutputKey, Ref<Buffer>>,
    /// What has been made of expressions already.
    made: HashMap<PrimExpr, PrimExpr>,
    /// Whether comparisons get what is smaller on the left. How a reduction combines is recognised by its form.
    ordered: bool,
}

impl PrimMutator for Rebind<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            _ if self.made.contains_key(e) => self.made[e].clone(),
            PrimExpr::Var(var) => self.vars.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ if self.ordered => smaller_first(self.remake_prim(e)),
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(target) = self.formal.get(buffer) {
            return target.clone();
        }
        key_of(buffer).and_then(|key| self.buffers.get(&key)).unwrap_or(buffer).clone()
    }
}

impl StmtMutator for Rebind<'_> {}

/// A comparison with what is smaller on the left, so that there is one form of each.
fn smaller_first(e: PrimExpr) -> PrimExpr {
    match &e {
        PrimExpr::Binary(b) if b.op == BinaryOp::Gt => prim::lt(&b.b, &b.a),
        PrimExpr::Binary(b) if b.op == BinaryOp::Ge => prim::le(&b.b, &b.a),
        _ => e,
    }
}

/// The variables that the kernel uses and no argument's shape gives, in order of first use.
fn unbound_scalars(params: &[Ref<Buffer>], body: &Stmt) -> Vec<Ref<Var>> {
    let bound: HashSet<Ref<Var>> = params.iter().flat_map(|b| &b.shape).filter_map(|d| d.as_var().cloned()).collect();
    let mut scalars: Vec<Ref<Var>> = Vec::new();
    let in_shapes = params.iter().flat_map(|b| &b.shape).flat_map(prim::free_vars);
    // Pointers are those of buffers that are passed on.
    let scalars_of_body = undefined_vars(body).into_iter().filter(|var| !var.dtype().is_handle());
    for var in in_shapes.chain(scalars_of_body) {
        if !bound.contains(&var) && !scalars.contains(&var) {
            scalars.push(var);
        }
    }
    scalars
}

/// A name that is not taken yet: `hint`, or `hint_1`, `hint_2` …
pub(super) fn unique(taken: &mut HashSet<String>, hint: &str) -> String {
    let mut name = hint.to_string();
    let mut count = 0;
    while !taken.insert(name.clone()) {
        count += 1;
        name = format!("{hint}_{count}");
    }
    name
}
