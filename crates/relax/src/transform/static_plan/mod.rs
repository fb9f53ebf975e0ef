//! StaticPlanBlockMemory: lets tensors whose lives do not overlap share storage.
//!
//! Kernels write into tensors that `builtin.alloc_tensor` made. Within one sequence of bindings it is known when such a
//! tensor is used last, so a later one may take its storage:
//!
//! ```text
//! a = R.builtin.alloc_tensor([8], ..)        s0 = R.memory.alloc_storage(R.shape([32]), ..)
//! _ = cls.f(x, a)                            a = R.memory.alloc_tensor(s0, 0, [8], ..)
//! b = R.builtin.alloc_tensor([8], ..)        _ = cls.f(x, a)
//! _ = cls.g(a, b)                            s1 = R.memory.alloc_storage(R.shape([32]), ..)
//! c = R.builtin.alloc_tensor([8], ..)        b = R.memory.alloc_tensor(s1, 0, [8], ..)
//! _ = cls.h(b, c)                            _ = cls.g(a, b)
//!                                            c = R.memory.alloc_tensor(s0, 0, [8], ..)   # `a` is dead
//!                                            _ = cls.h(b, c)
//! ```
//!
//! A tensor is planned only where every use is known: as an argument of a kernel, or through another name (a tuple, a
//! reshape, a match_cast). One that is returned, captured, given to an unknown function or used inside a branch keeps
//! storage of its own.
//!
//! Which tensors share is decided by [`assign`]: storages of constant size as TVM's pass does it, which shares among tensors
//! of one element type, or, with `least_memory`, among all of them, in order or by size, whichever needs less; those of symbolic size are
//! shared where the sizes are provably equal. With `tir_var_upper_bound` among a function's attributes, dimensions are taken
//! at their largest (a difference is largest where what is taken away is least: `tir_var_lower_bound`) and are constant.

mod assign;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{PrimExpr, free_vars};
use relaxide_ir::{AttrValue, IRModule, Type};
use relaxide_tir::PrimFunc;

use super::emit::{emit, map_functions};
use super::lower_alloc_tensor::AllocTensor;
use crate::functor::used_vars;
use crate::op::MemoryUse;
use crate::rewrite::in_function;
use crate::*;
use assign::{Wanted, assign};

pub(super) const PASS: PassInfo =
    PassInfo::new("StaticPlanBlockMemory", "Tensors whose lives do not overlap share storage.", |module, _, args| {
        run(module, args.bool("least_memory") == Some(true))
    })
    .params(&[PassParam::new(
        "least_memory",
        ParamKind::Bool,
        ParamDefault::Bool(false),
        "Whether tensors of all element types share, in the way that needs least; otherwise as TVM's pass does it.",
    )]);

/// The attribute by which tensors that a function returns have storages, where their sizes have bounds.
const PLAN_OUTPUT_ATTR: &str = "relax.memory_plan_dynamic_func_output";

fn run(module: IRModule, least: bool) -> PassResult {
    let kernels: HashSet<String> = module.functions_of::<PrimFunc>().map(|(name, _)| name.to_string()).collect();
    map_functions(module, |name, f| {
        let bounds = bounds(f).map_err(|e| in_function(PASS.name, name, e))?;
        let outputs = f.attrs.bool(PLAN_OUTPUT_ATTR) == Some(true);
        let mut plan = MemoryPlanner { kernels: &kernels, bounds, least, outputs, error: None };
        let f = plan.mutate_function(f);
        if let Some(e) = plan.error {
            return Err(in_function(PASS.name, name, e));
        }
        if f.attrs.get(PLAN_OUTPUT_ATTR).is_none() {
            return Ok(f);
        }
        // It asks this pass for something, and that is done.
        let mut attrs = f.attrs.clone();
        attrs.0.shift_remove(PLAN_OUTPUT_ATTR);
        Ok(Ref::new(Function { attrs, ..Function::clone(&f) }))
    })
}

/// Bounds of symbolic variables by name, from the attributes `tir_var_upper_bound` and `tir_var_lower_bound`.
fn bounds(f: &Function) -> Result<HashMap<String, (i64, i64)>, BuildError> {
    let of = |attr: &'static str| -> Result<HashMap<String, i64>, BuildError> {
        let Some(AttrValue::Map(map)) = f.attrs.get(attr) else { return Ok(HashMap::new()) };
        let bound = |value: &AttrValue| match value {
            AttrValue::Int(bound) => Some(*bound),
            AttrValue::Prim(e) => e.as_int(),
            _ => None,
        };
        let wrong = |name: &str| BuildError::Program(format!("the bound of {name} in `{attr}` must be an integer"));
        map.iter().map(|(name, value)| Ok((name.clone(), bound(value).ok_or_else(|| wrong(name))?))).collect()
    };
    let lower = of("tir_var_lower_bound")?;
    let least = |name: &str| lower.get(name).copied().unwrap_or(0);
    Ok(of("tir_var_upper_bound")?.into_iter().map(|(name, most)| (name.clone(), (least(&name), most))).collect())
}

struct MemoryPlanner<'a> {
    kernels: &'a HashSet<String>,
    /// The least and the greatest value of symbolic variables by name, where they have both.
    bounds: HashMap<String, (i64, i64)>,
    /// Whether least memory is asked for.
    least: bool,
    /// Whether what is returned has a storage.
    outputs: bool,
    error: Option<BuildError>,
}

/// What is known of the tensors of one sequence.
#[derive(Default)]
struct Lives {
    /// The allocation behind each name.
    roots: HashMap<AnyVar, Vec<usize>>,
    /// Index of the last binding that uses an allocation.
    last_use: HashMap<usize, usize>,
    /// Those among the escaped that the sequence returns and that get a storage, which nobody shares.
    returned: HashSet<usize>,
    /// Allocations that must keep storage of their own.
    escaped: HashSet<usize>,
}

impl Lives {
    /// An allocation that is never free again.
    fn kept(&mut self, root: usize) {
        self.last_use.insert(root, usize::MAX);
    }
}

impl ExprMutator for MemoryPlanner<'_> {
    fn mutate_seq(&mut self, seq: &Ref<SeqExpr>) -> Ref<SeqExpr> {
        let bindings: Vec<&Binding> = seq.blocks.iter().flat_map(|b| &b.bindings).collect();
        let requests = bindings.iter().map(|b| AllocTensor::of(b.value())).collect::<Vec<_>>();
        let lives = self.lives(&bindings, &requests, &seq.body);
        let plan = assign(&self.wanted(&requests, &lives), self.least);
        let mut storages: HashMap<usize, Expr> = HashMap::new();
        let mut i = 0;
        let blocks = seq.blocks.iter().map(|block| {
            let mut out = Vec::with_capacity(block.bindings.len() + 4);
            for binding in &block.bindings {
                match (&requests[i], plan.storage_of.get(&i), binding) {
                    (Some(request), Some(of), Binding::Var(b)) => {
                        match place(request, &plan.storages[*of], storages.get(of), &mut out) {
                            Ok((storage, value)) => {
                                storages.insert(*of, storage);
                                out.push(Ref::new(VarBinding { var: b.var.clone(), value }).into());
                            }
                            Err(error) => {
                                self.error.get_or_insert(error);
                            }
                        }
                    }
                    (Some(request), None, Binding::Var(b)) if lives.returned.contains(&i) => {
                        let dims = request.dims.iter().map(|dim| self.largest(dim)).reduce(|all, dim| all * dim);
                        let bytes = dims.unwrap_or_else(|| 1.into()) * request.dtype.bytes() as i64;
                        match place(request, &bytes, None, &mut out) {
                            Ok((_, value)) => out.push(Ref::new(VarBinding { var: b.var.clone(), value }).into()),
                            Err(error) => {
                                self.error.get_or_insert(error);
                            }
                        }
                    }
                    _ => out.push(self.remake_binding(binding)),
                }
                i += 1;
            }
            Ref::new(BindingBlock { bindings: out, dataflow: block.dataflow })
        });
        Ref::new(SeqExpr { blocks: blocks.collect(), body: seq.body.clone() })
    }
}

impl MemoryPlanner<'_> {
    fn lives(&self, bindings: &[&Binding], requests: &[Option<AllocTensor>], result: &Expr) -> Lives {
        let mut lives = Lives::default();
        for (i, binding) in bindings.iter().enumerate() {
            if requests[i].is_some() {
                lives.roots.insert(binding.var().clone(), vec![i]);
                lives.last_use.insert(i, i);
                continue;
            }
            let used: Vec<usize> = roots_of(&lives, binding.value());
            for root in &used {
                let last = lives.last_use.entry(*root).or_insert(i);
                *last = i.max(*last);
            }
            match self.role(binding.value()) {
                Role::Reads => {}
                Role::Alias => {
                    lives.roots.insert(binding.var().clone(), used);
                }
                // Nobody else gets its memory.
                Role::Kept => used.iter().for_each(|root| lives.kept(*root)),
                Role::Unknown => lives.escaped.extend(used),
            }
        }
        let returned = roots_of(&lives, result);
        if self.outputs {
            lives.returned.extend(returned.iter().copied().filter(|root| !lives.escaped.contains(root)));
        }
        lives.escaped.extend(returned);
        lives
    }

    fn role(&self, value: &Expr) -> Role {
        match value {
            Expr::Var(_) | Expr::DataflowVar(_) | Expr::Tuple(_) | Expr::TupleGetItem(_) => Role::Alias,
            Expr::Call(call) => match (&call.op, call.op_name()) {
                (Expr::Global(gv), _) if self.kernels.contains(&gv.name) => Role::Reads,
                (Expr::Extern(_), _) | (_, Some("call_packed")) => Role::Kept,
                (_, Some(name)) => match op::lookup(name).map(|def| def.memory) {
                    Some(MemoryUse::Reads) => Role::Reads,
                    Some(MemoryUse::View) => Role::Alias,
                    Some(MemoryUse::Fresh | MemoryUse::Unknown) | None => Role::Unknown,
                },
                _ => Role::Unknown,
            },
            _ => Role::Unknown,
        }
    }

    /// What every allocation that may be planned asks for, and for how long.
    fn wanted(&self, requests: &[Option<AllocTensor>], lives: &Lives) -> Vec<Wanted> {
        let planned = requests.iter().enumerate().filter(|(i, _)| !lives.escaped.contains(i));
        let wanted = planned.filter_map(|(i, request)| {
            let request = request.as_ref()?;
            let dtype = (!self.least).then_some(request.dtype);
            let place = (device_index(&request.device), request.scope.clone(), dtype);
            let last = lives.last_use.get(&i).copied().unwrap_or(i);
            Some(Wanted { first: i, last, bytes: self.bounded(request), place })
        });
        wanted.collect()
    }

    /// The size with every dimension at its upper bound, where its variables have bounds.
    fn bounded(&self, request: &AllocTensor) -> PrimExpr {
        if self.least && self.bounds.is_empty() {
            // As the program computes it elsewhere.
            return request.bytes();
        }
        let bytes = request.dtype.bytes() as i64;
        let dims: Vec<PrimExpr> = request.dims.iter().map(|dim| self.largest(dim)).collect();
        let (numbers, names): (Vec<PrimExpr>, Vec<PrimExpr>) = dims.into_iter().partition(|dim| dim.as_int().is_some());
        let factor = numbers.iter().fold(PrimExpr::from(bytes), |all, dim| all * dim);
        match names.into_iter().reduce(|all, dim| all * dim) {
            Some(rest) if factor.is_int(1) => rest,
            Some(rest) => factor * rest,
            None => factor,
        }
    }

    /// The largest value of a dimension, where it has one.
    fn largest(&self, dim: &PrimExpr) -> PrimExpr {
        let vars = free_vars(dim);
        if vars.is_empty() || !vars.iter().all(|v| self.bounds.contains_key(&v.name)) {
            return dim.clone();
        }
        let mut analyzer = Analyzer::new();
        for var in &vars {
            let (least, most) = self.bounds[&var.name];
            analyzer.bind(var, least, most - least + 1);
        }
        analyzer.bounds(dim).max.map_or_else(|| dim.clone(), PrimExpr::from)
    }
}

/// The storage of an allocation, emitted where it is its first, and the tensor in it.
fn place(
    request: &AllocTensor,
    bytes: &PrimExpr,
    storage: Option<&Expr>,
    out: &mut Vec<Binding>,
) -> Result<(Expr, Expr), BuildError> {
    let storage = match storage {
        Some(storage) => storage.clone(),
        None => emit(out, "storage", Type::any(), request.storage(bytes.clone(), request.dtype)?),
    };
    let value = request.inside(storage.clone())?;
    Ok((storage, value))
}

/// What a binding does with the tensors that its value mentions.
enum Role {
    /// Reads or writes them and lets go.
    Reads,
    /// Makes another name for them.
    Alias,
    /// May keep them; they stay what they are to the end.
    Kept,
    /// Makes something of them that nobody follows.
    Unknown,
}

fn roots_of(lives: &Lives, value: &Expr) -> Vec<usize> {
    let mut roots: Vec<usize> =
        used_vars(value).iter().filter_map(|var| lives.roots.get(var)).flatten().copied().collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

fn device_index(device: &Expr) -> Option<i64> {
    if let Expr::Prim(p) = device { p.value.as_int() } else { None }
}
