//! The kernel of a loop: what an iteration does, in a loop over its number.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Attrs, Buffer, IRModule, Span, Type, Var};
use relaxide_tir::schedule::RECURRENCE;
use relaxide_tir::stmt::{BufferRegion, IterKind, IterVar, Range, SBlock, SBlockRealize};
use relaxide_tir::{For, ForKind, PrimFunc, Stmt};

use super::super::fuse_tir::merge::{Argument, MergeError, handle, merge};
use super::super::fuse_tir::root;
use super::agrees;
use super::read::{Loop, ParameterRole};
use crate::op::core::{CallTir, call_tir};
use crate::shape::{substitute_type, vars_of};
use crate::*;

/// What the next iteration gets as a part of the state.
enum Next {
    /// What this iteration made: which of its results.
    Made(usize),
    /// What this iteration was given: which parameter of the loop.
    Given(usize),
}

/// A loop in the words of its caller.
pub(super) struct IterationKernel {
    /// What an iteration computes, as a primitive function: parameters are those of the loop that are tensors, and a shape.
    func: Function,
    /// Which parameter of the loop each of those is.
    given: Vec<usize>,
    parts: Vec<ParameterRole>,
    /// For each parameter of the loop that is state.
    next: Vec<(usize, Next)>,
    /// For each row which result it is, and whether the last one comes first.
    rows: Vec<(usize, bool)>,
    /// The parameters of the loop that are its result.
    results: Vec<usize>,
    /// Types of what the kernel gives: results, then rows.
    outputs: Vec<Type>,
    /// The number of the iteration and of iterations, in the kernel's words.
    index: Ref<Var>,
    limit: PrimExpr,
    /// What the kernel's symbolic variables are outside.
    outer: VarMap,
    name: String,
    span: Option<Ref<Span>>,
}

/// An argument of the kernel.
pub(super) enum KernelArgument {
    /// An argument of the loop.
    Argument(usize),
    /// A constant.
    Constant(Expr),
    /// A dimension.
    Dim(PrimExpr),
}

impl KernelArgument {
    /// The argument, of those that the loop was called with.
    pub(super) fn of(&self, args: &[Expr]) -> Expr {
        match self {
            KernelArgument::Argument(i) => args[*i].clone(),
            KernelArgument::Constant(constant) => constant.clone(),
            KernelArgument::Dim(dim) => Expr::prim(dim.clone()),
        }
    }
}

/// What a result of the loop is.
pub(super) enum Gives {
    /// An output of the kernel.
    Output(usize),
    /// What the loop was given, and no iteration changes.
    Argument(usize),
}

/// A kernel, and how it is called.
pub(super) struct LoopKernel {
    pub(super) func: PrimFunc,
    pub(super) name: String,
    pub(super) arguments: Vec<KernelArgument>,
    /// Types of the outputs.
    pub(super) outputs: Vec<Type>,
    /// How many of those are state.
    pub(super) states: usize,
    /// For each result of the loop what it is.
    pub(super) results: Vec<Gives>,
    pub(super) span: Option<Ref<Span>>,
}

/// The kernel's own symbolic variables, since such belong to one function.
struct Own {
    /// What those outside are inside.
    inner: VarMap,
    /// What those inside are outside.
    outer: VarMap,
    /// In the order of the types, so that two compilations make one kernel.
    dims: Vec<Ref<Var>>,
}

impl Own {
    fn of(types: &[Type], limit: &PrimExpr) -> Own {
        let mut own = Own { inner: VarMap::new(), outer: VarMap::new(), dims: Vec::new() };
        for var in vars_of(types).into_iter().chain(free_vars(limit)) {
            own.inner.entry(var.clone()).or_insert_with(|| {
                let inside = Var::new(var.name.clone(), var.ty.clone());
                own.outer.insert(inside.clone(), PrimExpr::from(&var));
                own.dims.push(inside.clone());
                PrimExpr::from(&inside)
            });
        }
        own
    }
}

/// For each row which value it is and whether the last one comes first; the types of all rows together, outside.
type Rows = (Vec<(usize, bool)>, Vec<Type>);

/// What an iteration makes, each value once.
struct Values<'a> {
    of: &'a Loop,
    symbols: &'a VarMap,
    made: Vec<AnyVar>,
}

impl Values<'_> {
    fn is_bound(&self, var: &AnyVar) -> bool {
        self.of.bindings.iter().any(|b| b.var == *var)
    }

    fn place(&mut self, var: AnyVar) -> usize {
        self.made.iter().position(|known| *known == var).unwrap_or_else(|| {
            self.made.push(var);
            self.made.len() - 1
        })
    }

    /// What each state is in the next iteration; none where its type would be another.
    fn next(&mut self, tensors: &[usize], type_of: impl Fn(usize) -> Type) -> Option<Vec<(usize, Next)>> {
        let mut analyzer = Analyzer::new();
        let mut next = Vec::new();
        for i in tensors.iter().copied().filter(|i| self.of.parts[*i] == ParameterRole::State) {
            let var = self.of.next.get(i)?.as_var()?;
            let own = substitute_type(&substitute_type(var.ty(), self.symbols), &VarMap::new());
            if !agrees(&mut analyzer, &type_of(i), &own) {
                return None;
            }
            let position = self.of.params.iter().position(|param| AnyVar::Var(param.clone()) == var);
            let what = match position {
                Some(param) if tensors.contains(&param) => Next::Given(param),
                None if self.is_bound(&var) => Next::Made(self.place(var)),
                _ => return None,
            };
            next.push((i, what));
        }
        Some(next)
    }

    fn rows(&mut self, from_end: Vec<bool>, limit: &PrimExpr, outer: &VarMap) -> Option<Rows> {
        let (mut rows, mut types) = (Vec::new(), Vec::new());
        let of = self.of;
        for (row, from_end) in of.rows.iter().zip(from_end) {
            if !self.is_bound(&row.row) {
                return None;
            }
            let Type::Tensor(ty) = substitute_type(row.row.ty(), self.symbols) else { return None };
            let dims = ty.shape.as_ref()?;
            if dims.iter().flat_map(free_vars).any(|var| !outer.contains_key(&var)) {
                return None;
            }
            let own = dims.iter().map(|e| substitute(e, outer));
            types.push(Type::tensor([limit.clone()].into_iter().chain(own).collect::<Vec<_>>(), ty.dtype));
            rows.push((self.place(row.row.clone()), from_end));
        }
        Some((rows, types))
    }
}

/// How a loop is called.
pub(super) struct Called<'a> {
    pub args: &'a [Expr],
    /// Their types.
    pub types: &'a [Type],
    /// The dimension that counts the iterations.
    pub index: &'a Ref<Var>,
    /// How many there are.
    pub limit: PrimExpr,
}

impl IterationKernel {
    /// Reads a loop that is called with `dims` as the values of its dimensions. `from_end` says of each row whether it is filled from its end.
    pub(super) fn new(of: &Loop, called: Called<'_>, dims: &VarMap, from_end: Vec<bool>) -> Option<IterationKernel> {
        let Called { args, types, index, limit } = called;
        let Own { inner, outer, dims: kernel_dims } = Own::of(types, &limit);
        let own_index = Var::dim("iteration");
        let mut symbols: VarMap = dims.iter().map(|(var, value)| (var.clone(), substitute(value, &inner))).collect();
        for var in dims.values().flat_map(free_vars) {
            if !inner.contains_key(&var) {
                return None;
            }
        }
        symbols.insert(index.clone(), PrimExpr::from(&own_index));

        let tensors: Vec<usize> = (0..of.params.len())
            .filter(|i| matches!(of.parts[*i], ParameterRole::State | ParameterRole::Same))
            .collect();
        let mut vars: HashMap<AnyVar, Expr> = HashMap::new();
        let mut params = Vec::new();
        for i in &tensors {
            let own = Var::new(of.params[*i].name.clone(), substitute_type(&types[*i], &inner));
            vars.insert(of.params[*i].clone().into(), Expr::Var(own.clone()));
            params.push(own);
        }
        let dims_of_kernel = kernel_dims.iter().chain([&own_index]).map(PrimExpr::from);
        params.push(Var::new("dims", Type::shape(dims_of_kernel)));
        let words = Words { vars: &vars, symbols: &symbols };
        let bindings = of.bindings.iter().map(|b| words.binding(b)).collect::<Option<Vec<_>>>()?;

        if of.results.iter().any(|i| !tensors.contains(i)) {
            return None;
        }
        let mut values = Values { of, symbols: &symbols, made: Vec::new() };
        let next = values.next(&tensors, |i| substitute_type(&types[i], &inner))?;
        let (rows, row_types) = values.rows(from_end, &limit, &outer)?;
        let is_state = |i: &&usize| of.parts[**i] == ParameterRole::State;
        let states = of.results.iter().filter(is_state).map(|i| args[*i].ty());
        let outputs: Vec<Type> = states.chain(row_types).collect();
        let results = values.made;
        if outputs.is_empty() || results.is_empty() {
            return None;
        }
        let body = Expr::tuple(results.into_iter().map(Expr::from).collect::<Vec<_>>());
        let ret_ty = body.ty();
        let block = Ref::new(BindingBlock { bindings, dataflow: false });
        let seq = Ref::new(SeqExpr { blocks: vec![block], body });
        let func = Function { params, body: seq, ret_ty, pure: true, attrs: Attrs::new(), span: None };
        let origin = |b: &Ref<VarBinding>| match &b.value {
            Expr::Call(call) => call.span.clone().or_else(|| b.var.span().cloned()),
            _ => None,
        };
        let spans: Vec<Ref<Span>> = of.bindings.iter().filter_map(origin).collect();
        Some(IterationKernel {
            func,
            given: tensors,
            parts: of.parts.clone(),
            next,
            rows,
            results: of.results.clone(),
            outputs,
            index: own_index,
            limit: substitute(&limit, &inner),
            outer,
            name: of.name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_').to_string(),
            span: Span::of_nodes(spans.iter()),
        })
    }

    /// The kernel.
    pub(super) fn kernel(&self, module: &IRModule) -> Result<LoopKernel, MergeError> {
        let merged = merge(module, &self.func)?;
        let count = merged.arguments.len();
        let mut parts = KernelUnderConstruction::default();
        let mut arguments = Vec::new();
        for (argument, (param, buffer)) in
            merged.arguments.iter().zip(merged.kernel.params.iter().zip(&merged.kernel.buffers))
        {
            match (argument, buffer) {
                (Argument::Field { param: at, .. }, Some(buffer)) => {
                    let of = self.given[*at];
                    arguments.push(KernelArgument::Argument(of));
                    if self.parts[of] != ParameterRole::State {
                        parts.given.insert(of, buffer.clone());
                        parts.params.push((param.clone(), Some(buffer.clone())));
                        continue;
                    }
                    let first = alike(buffer, "first");
                    parts.params.push((handle(&first), Some(first.clone())));
                    parts.scratch.push(buffer.clone());
                    parts.given.insert(of, buffer.clone());
                    parts.before.push(copy(buffer, None, &first));
                }
                (Argument::Constant(constant), _) => {
                    arguments.push(KernelArgument::Constant(constant.clone()));
                    parts.params.push((param.clone(), buffer.clone()));
                }
                // The number of the iteration is the loop's.
                _ if *param == self.index => {}
                _ => {
                    arguments.push(KernelArgument::Dim(
                        self.outer.get(param).cloned().unwrap_or_else(|| PrimExpr::from(param)),
                    ));
                    parts.params.push((param.clone(), None));
                }
            }
        }
        let made: Vec<Ref<Buffer>> = merged.kernel.buffers[count..].iter().flatten().cloned().collect();
        parts.scratch.extend(made.iter().cloned());
        let (mut scratch, iteration) = without_allocations(&merged.kernel.body);
        parts.scratch.append(&mut scratch);
        let iteration = self.iteration(&mut parts, iteration, &made);
        let extent = prim::cast(self.index.dtype(), self.limit.clone());
        let plain = For::new(ForKind::Serial, self.index.clone(), prim::int(0), extent, iteration);
        let for_all = For { annotations: Attrs::new().with(RECURRENCE, true), ..plain };
        let kept: Vec<usize> =
            self.results.iter().copied().filter(|i| self.parts[*i] == ParameterRole::State).collect();
        let states: Vec<Ref<Buffer>> = kept.iter().map(|of| alike(&parts.given[of], "last")).collect();
        let after: Vec<Stmt> = states.iter().zip(&kept).map(|(last, of)| copy(last, None, &parts.given[of])).collect();
        self.bind_dims(&mut parts, &mut arguments, &states);
        let outputs = states.iter().chain(&parts.rows).map(|b| (handle(b), Some(b.clone())));
        let (params, buffers) = parts.params.iter().cloned().chain(outputs).unzip();
        let body = parts.before.into_iter().chain([Stmt::from(Ref::new(for_all))]).chain(after);
        let body = root(parts.scratch, Stmt::seq(body));
        let func = PrimFunc { params, ret_type: Type::void(), buffers, attrs: merged.kernel.attrs.clone(), body };
        let mut position = 0..;
        let result = |i: &usize| match self.parts[*i] {
            ParameterRole::State => Gives::Output(position.next().unwrap_or_default()),
            _ => Gives::Argument(*i),
        };
        let results = self.results.iter().map(result).collect();
        let (outputs, span) = (self.outputs.clone(), self.span.clone());
        Ok(LoopKernel { func, name: self.name.clone(), arguments, outputs, states: kept.len(), results, span })
    }

    /// What an iteration does, its rows and its state put away.
    fn iteration(&self, parts: &mut KernelUnderConstruction, body: Stmt, made: &[Ref<Buffer>]) -> Stmt {
        let mut list = vec![body];
        for (row, from_end) in &self.rows {
            let row = &made[*row];
            let all: Vec<PrimExpr> = [self.limit.clone()].into_iter().chain(row.shape.iter().cloned()).collect();
            let rows = Buffer::new("rows", row.dtype, all);
            let iteration = PrimExpr::from(&self.index);
            let place = if *from_end { &self.limit - 1 - iteration } else { iteration };
            list.push(copy(&rows, Some(place), row));
            parts.rows.push(rows);
        }
        // What a part of the state takes over from another must be read before that one changes.
        let (mut first, mut then) = (Vec::new(), Vec::new());
        for (of, next) in &self.next {
            let state = &parts.given[of];
            match next {
                Next::Made(i) => then.push(copy(state, None, &made[*i])),
                Next::Given(other) => {
                    let kept = alike(state, "kept");
                    first.push(copy(&kept, None, &parts.given[other]));
                    then.push(copy(state, None, &kept));
                    parts.scratch.push(kept);
                }
            }
        }
        Stmt::seq(list.into_iter().chain(first).chain(then))
    }

    /// Hands over the dimensions that no buffer of a parameter tells.
    fn bind_dims(
        &self,
        parts: &mut KernelUnderConstruction,
        arguments: &mut Vec<KernelArgument>,
        states: &[Ref<Buffer>],
    ) {
        let known = parts.params.iter().filter_map(|(_, b)| b.as_ref()).chain(states).chain(&parts.rows);
        let mut bound: HashSet<Ref<Var>> = known.flat_map(|b| &b.shape).filter_map(PrimExpr::as_var).cloned().collect();
        bound.extend(parts.params.iter().filter(|(_, b)| b.is_none()).map(|(var, _)| var.clone()));
        let buffers = parts.params.iter().filter_map(|(_, b)| b.as_ref()).chain(&parts.scratch).chain(&parts.rows);
        let wanted: Vec<Ref<Var>> = buffers.flat_map(|b| &b.shape).chain([&self.limit]).flat_map(free_vars).collect();
        for var in wanted {
            if bound.insert(var.clone()) {
                arguments
                    .push(KernelArgument::Dim(self.outer.get(&var).cloned().unwrap_or_else(|| PrimExpr::from(&var))));
                parts.params.push((var, None));
            }
        }
    }
}

/// The kernel under construction.
#[derive(Default)]
struct KernelUnderConstruction {
    params: Vec<(Ref<Var>, Option<Ref<Buffer>>)>,
    scratch: Vec<Ref<Buffer>>,
    /// The memory of each parameter of the loop.
    given: HashMap<usize, Ref<Buffer>>,
    rows: Vec<Ref<Buffer>>,
    before: Vec<Stmt>,
}

/// What a loop's bindings say, with other names.
struct Words<'a> {
    vars: &'a HashMap<AnyVar, Expr>,
    symbols: &'a VarMap,
}

impl Words<'_> {
    fn binding(&self, bound: &VarBinding) -> Option<Binding> {
        let value = match &bound.value {
            Expr::TupleGetItem(_) => bound.value.clone(),
            value => {
                let call = CallTir::of(value)?;
                let args = call.args.iter().map(|arg| self.operand(arg)).collect::<Vec<_>>();
                call_tir(call.func, args, substitute_type(&value.ty(), self.symbols)).ok()?
            }
        };
        Some(Ref::new(VarBinding { var: bound.var.clone(), value }).into())
    }

    fn operand(&self, e: &Expr) -> Expr {
        match e {
            Expr::Prim(p) => Expr::prim(substitute(&p.value, self.symbols)),
            Expr::Var(var) if self.symbols.contains_key(var) => Expr::prim(self.symbols[var].clone()),
            _ => e.as_var().and_then(|var| self.vars.get(&var).cloned()).unwrap_or_else(|| e.clone()),
        }
    }
}

/// The scratch buffers of a kernel and its statements.
fn without_allocations(body: &Stmt) -> (Vec<Ref<Buffer>>, Stmt) {
    match body {
        Stmt::Block(realize) if realize.block.iter_vars.is_empty() => {
            (realize.block.alloc_buffers.clone(), realize.block.body.clone())
        }
        other => (Vec::new(), other.clone()),
    }
}

/// Other memory of the same shape.
fn alike(buffer: &Buffer, what: &str) -> Ref<Buffer> {
    Buffer::new(format!("{}_{what}", buffer.name), buffer.dtype, buffer.shape.clone())
}

/// A copy of all elements, to a row of a tensor where one is given.
fn copy(to: &Ref<Buffer>, row: Option<PrimExpr>, from: &Ref<Buffer>) -> Stmt {
    let axes: Vec<(Ref<Var>, Ref<Var>, &PrimExpr)> =
        from.shape.iter().map(|extent| (Var::dim("ax"), Var::dim("v_ax"), extent)).collect();
    let at: Vec<PrimExpr> = axes.iter().map(|(_, own, _)| PrimExpr::from(own)).collect();
    let place: Vec<PrimExpr> = row.into_iter().chain(at.iter().cloned()).collect();
    let axis = |(_, own, extent): &(Ref<Var>, Ref<Var>, &PrimExpr)| {
        let (var, extent) = (own.clone(), prim::cast(own.dtype(), (*extent).clone()));
        Ref::new(IterVar { var, min: prim::int(0), extent, kind: IterKind::Spatial })
    };
    let block = SBlock {
        iter_vars: axes.iter().map(axis).collect(),
        reads: vec![point(from, &at)],
        writes: vec![point(to, &place)],
        name: to.name.clone(),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: Attrs::new(),
        init: None,
        body: Stmt::store(to, place, prim::load(from, at)),
    };
    let iter_values = axes.iter().map(|(var, ..)| PrimExpr::from(var)).collect();
    let realize = SBlockRealize { iter_values, predicate: prim::boolean(true), block: Ref::new(block) };
    axes.into_iter()
        .rev()
        .fold(Stmt::from(Ref::new(realize)), |body, (var, _, extent)| Stmt::serial(var, extent.clone(), body))
}

fn point(buffer: &Ref<Buffer>, at: &[PrimExpr]) -> Ref<BufferRegion> {
    let one = |i: &PrimExpr| Ref::new(Range { min: i.clone(), extent: prim::int_of(i.dtype(), 1) });
    Ref::new(BufferRegion { buffer: buffer.clone(), region: at.iter().map(one).collect() })
}
