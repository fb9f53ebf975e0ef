//! What of a function is the same in every run.

use std::collections::{HashMap, HashSet};

use indexmap::IndexSet;
use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars};
use relaxide_ir::{AttrValue, IRModule, Type, Var};
use relaxide_tir::PrimFunc;

use super::private;
use crate::functor::used_vars;
use crate::op::MemoryUse;
use crate::shape::{substitute_type, vars_of};
use crate::transform::bind_symbols::SymbolMutator;
use crate::*;

/// How many parameters differ from run to run; those behind them are weights.
const NUM_INPUT: &str = "num_input";

/// The names of dimensions for each of whose values a graph is captured.
const CAPTURED_DIMS: &str = "relax.rewrite_cuda_graph.capture_symbolic_vars";

/// A storage that is the same in every run.
#[derive(Clone)]
pub(super) struct Storage {
    pub(super) var: AnyVar,
    pub(super) value: Expr,
    pub(super) bytes: i64,
    pub(super) scope: String,
}

/// Bindings that a graph holds.
#[derive(Default)]
pub(super) struct Region {
    pub(super) bindings: Vec<Binding>,
    /// What comes from in front of it, in order of first use.
    pub(super) inputs: IndexSet<AnyVar>,
    /// What is used behind it, in order of first use.
    pub(super) outputs: IndexSet<AnyVar>,
}

/// What becomes of a function.
#[derive(Default)]
pub(super) struct CapturePlan {
    pub(super) storages: Vec<Storage>,
    pub(super) regions: Vec<Region>,
    /// The variables that regions bind.
    pub(super) taken: HashSet<AnyVar>,
}

/// The plan of a function.
pub(super) fn plan(module: &IRModule, func: &Function) -> CapturePlan {
    let names: HashSet<&str> = match func.attrs.get(CAPTURED_DIMS) {
        Some(AttrValue::List(names)) => names
            .iter()
            .filter_map(|name| match name {
                AttrValue::Str(name) => Some(name.as_str()),
                _ => None,
            })
            .collect(),
        _ => HashSet::new(),
    };
    let dims = vars_of(func.params.iter().map(|p| &p.ty)).into_iter().filter(|v| names.contains(v.name.as_str()));
    let weights = func.attrs.int(NUM_INPUT).and_then(|n| usize::try_from(n).ok()).unwrap_or(func.params.len());
    let mut planner = Planner {
        module,
        fixed: func.params.iter().skip(weights).map(|p| AnyVar::Var(p.clone())).collect(),
        dims: dims.collect(),
        returned: returned(func),
        plan: CapturePlan::default(),
        region_of: HashMap::new(),
        open: None,
    };
    planner.seq(&func.body);
    planner.plan
}

/// The variables behind the result of a function, as far as they name the same memory: a caller keeps that, and the next run
/// must not write to it.
fn returned(func: &Function) -> HashSet<AnyVar> {
    let mut held: HashSet<AnyVar> = used_vars(&func.body.body).into_iter().collect();
    let bindings: Vec<&Binding> = func.body.blocks.iter().flat_map(|block| &block.bindings).collect();
    for binding in bindings.into_iter().rev().filter(|b| !matches!(b.value(), Expr::If(_) | Expr::Function(_))) {
        if !held.contains(binding.var()) {
            continue;
        }
        let Expr::Call(call) = binding.value() else {
            held.extend(used_vars(binding.value()));
            continue;
        };
        let names_memory = match (&call.op, call.op_name().map(|name| name.trim_start_matches("relax."))) {
            (Expr::Extern(f), _) => f.global_symbol == "vm.builtin.reshape",
            (_, Some(name)) => {
                let is_view = || op::lookup(name).is_some_and(|def| def.memory == MemoryUse::View);
                name == "memory.alloc_tensor" || is_view()
            }
            (_, None) => false,
        };
        if let (true, Some(memory)) = (names_memory, call.args.first()) {
            held.extend(used_vars(memory));
        }
    }
    held
}

struct Planner<'a> {
    module: &'a IRModule,
    /// Variables whose values are static.
    fixed: HashSet<AnyVar>,
    dims: HashSet<Ref<Var>>,
    /// What holds the function's result.
    returned: HashSet<AnyVar>,
    plan: CapturePlan,
    region_of: HashMap<AnyVar, usize>,
    /// The region that takes bindings.
    open: Option<usize>,
}

impl Planner<'_> {
    fn seq(&mut self, seq: &SeqExpr) {
        let outer = self.open.take();
        for block in &seq.blocks {
            for binding in &block.bindings {
                // The rules of a dataflow block let nothing in that a launch is.
                if block.dataflow { self.leave(binding.value()) } else { self.binding(binding) }
            }
        }
        self.leave(&seq.body);
        self.open = outer;
    }

    /// Ends the open region; what a value uses of regions becomes a result.
    fn leave(&mut self, value: &Expr) {
        self.open = None;
        self.mark_outputs(value);
    }

    fn mark_outputs(&mut self, value: &Expr) {
        for var in used_vars(value) {
            if let Some(region) = self.region_of.get(&var).filter(|r| self.open != Some(**r))
                && let Some(region) = self.plan.regions.get_mut(*region)
            {
                region.outputs.insert(var);
            }
        }
    }

    fn binding(&mut self, binding: &Binding) {
        let (var, value) = (binding.var(), binding.value());
        match value {
            Expr::If(choice) => {
                self.leave(&choice.condition);
                self.seq(&choice.true_branch);
                self.seq(&choice.false_branch);
            }
            Expr::Function(_) => self.leave(value),
            Expr::Call(call) => match call.op_name().map(|name| name.trim_start_matches("relax.")) {
                Some("memory.alloc_storage") => {
                    if !self.returned.contains(var)
                        && let Some(storage) = self.storage(var, value, call)
                    {
                        self.fixed.insert(var.clone());
                        self.plan.storages.push(storage);
                    }
                }
                Some("builtin.alloc_tensor") => {}
                name => self.call(binding, call, name),
            },
            _ if self.is_static(value) => self.take(binding, false),
            _ => self.leave(value),
        }
    }

    fn call(&mut self, binding: &Binding, call: &Call, name: Option<&str>) {
        if !call.args.iter().all(|arg| self.is_static(arg)) {
            return self.leave(binding.value());
        }
        let is_kernel = match (&call.op, name) {
            (Expr::Global(g), _) => self.module.get_as::<PrimFunc>(&g.name).is_some(),
            (Expr::Extern(f), _) => !f.global_symbol.starts_with("vm.builtin."),
            (Expr::Op(_), Some(name)) => {
                let is_view = op::lookup(name).is_some_and(|def| def.memory == MemoryUse::View);
                !name.starts_with("memory.") && !name.starts_with("builtin.") && !is_view && name != "null_value"
            }
            _ => return self.leave(binding.value()),
        };
        if name == Some("memory.kill_storage") {
            return;
        }
        self.take(binding, is_kernel);
    }

    /// A static binding: it goes to the open region, which a kernel opens.
    fn take(&mut self, binding: &Binding, is_kernel: bool) {
        if self.open.is_none() && is_kernel {
            self.plan.regions.push(Region::default());
            self.open = Some(self.plan.regions.len() - 1);
        }
        self.mark_outputs(binding.value());
        self.fixed.insert(binding.var().clone());
        let Some(at) = self.open else { return };
        let Some(region) = self.plan.regions.get_mut(at) else { return };
        for used in used_vars(binding.value()) {
            if self.region_of.get(&used) != Some(&at) {
                region.inputs.insert(used);
            }
        }
        region.bindings.push(binding.clone());
        self.region_of.insert(binding.var().clone(), at);
        self.plan.taken.insert(binding.var().clone());
    }

    /// A storage of known size.
    fn storage(&self, var: &AnyVar, value: &Expr, call: &Call) -> Option<Storage> {
        let [Expr::Shape(size), _, Expr::Str(scope), _] = call.args.as_slice() else { return None };
        let [bytes] = size.values.as_slice() else { return None };
        let bytes = bytes.as_int()?;
        Some(Storage { var: var.clone(), value: value.clone(), bytes, scope: scope.value.clone() })
    }

    fn is_known(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().all(|var| self.dims.contains(var))
    }

    fn is_static(&self, e: &Expr) -> bool {
        match e {
            Expr::Var(_) | Expr::DataflowVar(_) => e.as_var().is_some_and(|var| self.fixed.contains(&var)),
            Expr::Constant(_) | Expr::Str(_) | Expr::DType(_) | Expr::Global(_) | Expr::Extern(_) | Expr::Op(_) => true,
            Expr::Prim(p) => self.is_known(&p.value),
            Expr::Shape(shape) => shape.values.iter().all(|dim| self.is_known(dim)),
            Expr::Tuple(tuple) => tuple.fields.iter().all(|field| self.is_static(field)),
            Expr::TupleGetItem(item) => self.is_static(&item.tuple),
            _ => false,
        }
    }
}

impl Region {
    /// The type of its results.
    pub(super) fn result_type(&self) -> Type {
        Type::tuple(self.outputs.iter().map(|var| var.ty().clone()).collect::<Vec<_>>())
    }

    /// The function of the region, and the symbolic dimensions that it needs.
    pub(super) fn function(&self) -> Result<(Ref<Function>, Vec<Ref<Var>>), BuildError> {
        let mut symbols: IndexSet<Ref<Var>> = IndexSet::new();
        let mut shapes = Shapes(&mut symbols);
        self.bindings.iter().for_each(|binding| shapes.visit_expr(binding.value()));
        symbols.extend(vars_of(self.inputs.iter().map(AnyVar::ty)));
        let symbols: Vec<Ref<Var>> = symbols.into_iter().collect();
        let own: VarMap =
            symbols.iter().map(|s| (s.clone(), PrimExpr::from(&Var::prim(s.name.clone(), s.dtype())))).collect();
        let mut params: Vec<Ref<Var>> =
            self.inputs.iter().map(|var| Var::new(var.name(), substitute_type(var.ty(), &own))).collect();
        let replace = self.inputs.iter().cloned().zip(params.iter().map(|p| Expr::from(p.clone()))).collect();
        if !symbols.is_empty() {
            params
                .push(Var::new("shape_expr", substitute_type(&Type::shape(symbols.iter().map(PrimExpr::from)), &own)));
        }
        let fields: Vec<Expr> = self.outputs.iter().map(|var| Expr::from(var.clone())).collect();
        let result = Var::new("gv", self.result_type());
        let mut bindings = self.bindings.clone();
        bindings.push(Ref::new(VarBinding { var: result.clone().into(), value: Expr::tuple(fields) }).into());
        let func = private(params, bindings, result.clone().into(), result.ty.clone());
        let body = functor::VarReplacer(replace).mutate_seq(&func.body);
        let func = Ref::new(Function { body, ..func });
        Ok((SymbolMutator::renewing(own).function_body(&func), symbols))
    }
}

/// Symbolic dimensions of the shapes and scalars in a value.
struct Shapes<'a>(&'a mut IndexSet<Ref<Var>>);

impl ExprVisitor for Shapes<'_> {
    fn visit_expr(&mut self, e: &Expr) {
        match e {
            Expr::Prim(p) => self.0.extend(free_vars(&p.value)),
            Expr::Shape(shape) => self.0.extend(shape.values.iter().flat_map(free_vars)),
            _ => self.walk_expr(e),
        }
    }
}
