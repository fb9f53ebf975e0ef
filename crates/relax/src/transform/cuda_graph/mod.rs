//! RewriteCUDAGraph: calls of kernels that are the same in every run become a function that a GPU captures once.
//!
//! ```text
//! storage = R.memory.alloc_storage(R.shape([32]), …)      gv = R.call_builtin_with_ctx("….get_cached_alloc", (cls.cuda_graph_alloc, 0))
//! alloc = R.memory.alloc_tensor(storage, …)               storage = gv[0]
//! cls.exp(x, alloc)                                       alloc = R.memory.alloc_tensor(storage, …)
//! storage1 = R.memory.alloc_storage(R.shape([32]), …)  →  cls.exp(x, alloc)
//! alloc1 = R.memory.alloc_tensor(storage1, …)             storage1 = gv[1]
//! cls.exp(alloc, alloc1)                                  alloc1 = R.memory.alloc_tensor(storage1, …)
//! cls.tanh(alloc1, alloc)                                 gv1 = R.call_builtin_with_ctx("….run_or_capture",
//!                                                                 (cls.main_cuda_graph_capture, (alloc, alloc1), 0))
//! ```
//!
//! **Model.** A value is *static* where every run has it at the same address with the same shape: storages of known size,
//! tensors inside them, weights (the parameters behind the function's attribute `num_input`), constants, and what is computed
//! of static values only; not so what holds the result, which the caller keeps. Storages move to one function that is called once (all
//! functions of the module share it: their
//! storages are paired by size). From a static call of a kernel on, static bindings go to a *region*, which ends at the first
//! one that is not static, at a branch and at the end of the function; what is used behind it is its result.
//!
//! Dimensions that the attribute `relax.rewrite_cuda_graph.capture_symbolic_vars` names count as known: a graph is captured
//! for each of their values.
//!
//! **Needs** planned memory, thus stands behind StaticPlanBlockMemory. **Does nothing** unless the option
//! `relax.backend.use_cuda_graph` is set. The builtins are those of a runtime with CUDA; a run without one says so.

mod plan;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassContext, PassInfo, PassResult};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, GlobalVar, IRModule, Type, Var};

use self::plan::{CapturePlan, Region, Storage, plan};
use super::emit::call_packed;
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "RewriteCUDAGraph";

/// The option without which nothing is captured.
const OPTION: &str = "relax.backend.use_cuda_graph";

const GET_ALLOC: &str = "vm.builtin.cuda_graph.get_cached_alloc";
const RUN_OR_CAPTURE: &str = "vm.builtin.cuda_graph.run_or_capture";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Calls of kernels that are the same in every run are captured once.", |module, context, _| {
        run(module, context)
    });

fn run(mut module: IRModule, context: &PassContext) -> PassResult {
    if context.config.bool(OPTION) != Some(true) {
        return Ok(module);
    }
    let mut functions: Vec<_> = module.functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    functions.sort_by(|(a, _), (b, _)| a.cmp(b));
    let plans: Vec<CapturePlan> = functions.iter().map(|(_, func)| plan(&module, func)).collect();
    let (storages, places) = shared(&plans);
    let alloc = if storages.is_empty() {
        None
    } else {
        let func = alloc_function(&storages);
        let var = GlobalVar::typed(module.fresh_name("cuda_graph_alloc"), func.ty());
        module.insert(var.name.clone(), func);
        Some((var, Type::tuple(vec![Type::any(); storages.len()])))
    };
    let mut graphs = 0;
    for (((name, func), plan), places) in functions.iter().zip(&plans).zip(places) {
        if plan.storages.is_empty() && plan.regions.is_empty() {
            continue;
        }
        let mut captures = Vec::with_capacity(plan.regions.len());
        for region in &plan.regions {
            let (func, symbols) = region.function().map_err(|error| in_function(NAME, name, error))?;
            let var = GlobalVar::typed(module.fresh_name(&format!("{name}_cuda_graph_capture")), func.ty());
            module.insert(var.name.clone(), func.clone());
            captures.push(Capture { var, ret: region.result_type(), symbols, graph: graphs });
            graphs += 1;
        }
        let mut launch = Launch { plan, places, captures, alloc: alloc.clone(), fetched: None, done: HashSet::new() };
        let new = launch.mutate_function(func);
        module.insert(name.clone(), new);
    }
    Ok(module)
}

/// The storages of all functions, paired by size: the largest of each function share one, then the next ones. With the place
/// of each function's own.
fn shared(plans: &[CapturePlan]) -> (Vec<Storage>, Vec<HashMap<AnyVar, usize>>) {
    let mut scopes: Vec<&str> = plans.iter().flat_map(|p| &p.storages).map(|s| s.scope.as_str()).collect();
    scopes.sort_unstable();
    scopes.dedup();
    let mut all: Vec<Storage> = Vec::new();
    let mut places = vec![HashMap::new(); plans.len()];
    for scope in scopes {
        let first = all.len();
        for (plan, places) in plans.iter().zip(&mut places) {
            let mut own: Vec<&Storage> = plan.storages.iter().filter(|s| s.scope == scope).collect();
            own.sort_by_key(|s| std::cmp::Reverse(s.bytes));
            for (i, storage) in own.into_iter().enumerate() {
                match all.get_mut(first + i) {
                    Some(known) if known.bytes >= storage.bytes => {}
                    Some(known) => *known = storage.clone(),
                    None => all.push(storage.clone()),
                }
                places.insert(storage.var.clone(), first + i);
            }
        }
    }
    (all, places)
}

fn alloc_function(storages: &[Storage]) -> Ref<Function> {
    let bind = |storage: &Storage| {
        let var = Var::new(storage.var.name(), storage.var.ty().clone());
        (Binding::from(Ref::new(VarBinding { var: var.clone().into(), value: storage.value.clone() })), Expr::from(var))
    };
    let (mut bindings, fields): (Vec<Binding>, Vec<Expr>) = storages.iter().map(bind).unzip();
    let ty = Type::tuple(vec![Type::any(); storages.len()]);
    let result = Var::new("gv", ty);
    bindings.push(Ref::new(VarBinding { var: result.clone().into(), value: Expr::tuple(fields) }).into());
    Ref::new(private(Vec::new(), bindings, result.clone().into(), result.ty.clone()))
}

/// A private function of plain bindings. It has effects, and callers treat it as pure.
fn private(params: Vec<Ref<Var>>, bindings: Vec<Binding>, body: Expr, ret_ty: Type) -> Function {
    let block = Ref::new(BindingBlock { bindings, dataflow: false });
    let body = Ref::new(SeqExpr { blocks: vec![block], body });
    let attrs = Attrs::new().with("relax.force_pure", true);
    Function { params, body, ret_ty, pure: true, attrs, span: None }
}

/// A function that holds a region.
struct Capture {
    var: Ref<GlobalVar>,
    ret: Type,
    /// Symbolic dimensions that graphs differ in.
    symbols: Vec<Ref<Var>>,
    graph: i64,
}

/// Puts launches in the place of regions.
struct Launch<'a> {
    plan: &'a CapturePlan,
    places: HashMap<AnyVar, usize>,
    captures: Vec<Capture>,
    alloc: Option<(Ref<GlobalVar>, Type)>,
    /// The variable that holds the storages, once it is bound.
    fetched: Option<Ref<Var>>,
    /// Variables that are bound already.
    done: HashSet<AnyVar>,
}

impl Launch<'_> {
    /// Binds a storage to its place, unless that is done.
    fn storage(&mut self, var: &AnyVar, out: &mut Vec<Binding>) {
        let (Some(place), Some((func, ty))) = (self.places.get(var), &self.alloc) else { return };
        if !self.done.insert(var.clone()) {
            return;
        }
        let all = self.fetched.clone().unwrap_or_else(|| {
            let all = Var::new("gv", ty.clone());
            let value = builtin(GET_ALLOC, vec![func.clone().into(), Expr::prim(0)], ty);
            out.push(Ref::new(VarBinding { var: all.clone().into(), value }).into());
            all
        });
        self.fetched = Some(all.clone());
        out.push(Ref::new(VarBinding { var: var.clone(), value: Expr::field(all, *place) }).into());
    }

    fn launch(&mut self, region: &Region, capture: &Capture, out: &mut Vec<Binding>) {
        region.inputs.iter().for_each(|input| self.storage(input, out));
        let mut inputs: Vec<Expr> = region.inputs.iter().map(|var| Expr::from(var.clone())).collect();
        let shape = Expr::shape(capture.symbols.iter().map(PrimExpr::from));
        if !capture.symbols.is_empty() {
            inputs.push(shape.clone());
        }
        let mut args = vec![capture.var.clone().into(), Expr::tuple(inputs), Expr::prim(capture.graph)];
        if !capture.symbols.is_empty() {
            args.push(shape);
        }
        let results = Var::new("gv", capture.ret.clone());
        let value = builtin(RUN_OR_CAPTURE, args, &capture.ret);
        out.push(Ref::new(VarBinding { var: results.clone().into(), value }).into());
        for (i, output) in region.outputs.iter().enumerate() {
            out.push(Ref::new(VarBinding { var: output.clone(), value: Expr::field(results.clone(), i) }).into());
        }
    }
}

/// A call of a builtin with the machine.
fn builtin(symbol: &str, args: Vec<Expr>, ty: &Type) -> Expr {
    let func = Expr::external(symbol);
    let args = [func, Expr::tuple(args)];
    let attrs = Attrs::new();
    op::call_typed("call_builtin_with_ctx", args.clone(), attrs, vec![ty.clone()])
        .unwrap_or_else(|_| call_packed(symbol, args.into(), ty.clone()))
}

impl ExprMutator for Launch<'_> {
    fn mutate_binding(&mut self, binding: &Binding, out: &mut Vec<Binding>) {
        let var = binding.var();
        let plan = self.plan;
        if let Some(at) = plan.regions.iter().position(|region| region.bindings.first().is_some_and(|b| b.var() == var))
        {
            if let Some(region) = plan.regions.get(at)
                && at < self.captures.len()
            {
                let capture = std::mem::take(&mut self.captures);
                if let Some(one) = capture.get(at) {
                    self.launch(region, one, out);
                }
                self.captures = capture;
            }
            return;
        }
        if plan.taken.contains(var) {
            return;
        }
        if self.places.contains_key(var) {
            self.storage(var, out);
            return;
        }
        out.push(self.remake_binding(binding));
    }
}
