//! ViewOwnResults: reshapes of a function's own memory that leave their block become views.
//!
//! ```text
//! with R.dataflow():                                       with R.dataflow():
//!     lv = R.call_tir(cls.transpose, (x,), …(2, 3))             lv = R.call_tir(cls.transpose, (x,), …(2, 3))
//!     y = R.call_tir(cls.reshape, (lv,), …(6,))       →         y = R.reshape(lv, R.shape([6]))
//!     R.output(y)                                               R.output(y)
//! ```
//!
//! RewriteDataflowReshape, which does as TVM's pass of that name, leaves what goes out of a dataflow block a copy. It need not be one
//! where the memory is a kernel's of the same block and no other name of it leaves the block: then the result is still the only one that
//! holds it. Memory that anything but a kernel or a view reads in the block is left alone, too, since that may hand it on. Parameters,
//! constants, fields of tuples and what functions give are never viewed.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::{Attrs, IRModule, Type};
use relaxide_tir::PrimFunc;

use super::callees::drop_uncalled;
use super::reshape_proof::is_reshape;
use super::rewrite_dataflow_reshape::escaping;
use crate::functor::used_vars;
use crate::op::MemoryUse;
use crate::op::core::CallTir;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("ViewOwnResults", "Reshapes of a function's own memory that are results become views.", |m, _, _| {
        run(m)
    })
    .ready(relaxide_tir::lower::module_of_unit_steps);

fn run(module: IRModule) -> PassResult {
    let copies = |(name, f): (&str, Ref<PrimFunc>)| is_reshape(&f).then(|| name.to_string());
    let kernels: HashSet<String> = module.functions_of::<PrimFunc>().filter_map(copies).collect();
    if kernels.is_empty() {
        return Ok(module);
    }
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let mut views = Views { kernels: &kernels, found: HashSet::new() };
        views.visit_seq(&func.body);
        if views.found.is_empty() {
            continue;
        }
        let mut rewrite = ViewResults(views.found);
        let new = rewrite_function(&mut b, &func, &mut rewrite).map_err(|e| in_function(PASS.name, &name, e))?;
        b.module_mut().insert(name, new);
    }
    let mut module = b.finish();
    drop_uncalled(&mut module, &kernels);
    Ok(module)
}

/// Finds the results that may be views.
struct Views<'a> {
    /// Kernels that only copy elements in order.
    kernels: &'a HashSet<String>,
    found: HashSet<AnyVar>,
}

impl ExprVisitor for Views<'_> {
    fn visit_seq(&mut self, seq: &SeqExpr) {
        let escaping = escaping(seq);
        for block in seq.blocks.iter().filter(|block| block.dataflow) {
            self.visit_dataflow(block, &escaping);
        }
        for block in &seq.blocks {
            block.bindings.iter().for_each(|b| self.visit_binding(b));
        }
    }
}

impl Views<'_> {
    fn visit_dataflow(&mut self, block: &BindingBlock, escaping: &HashSet<AnyVar>) {
        // Names of the memory that each kernel of the block fills, by the first of them.
        let mut owner: HashMap<AnyVar, AnyVar> = HashMap::new();
        let mut leaving: HashMap<AnyVar, Vec<AnyVar>> = HashMap::new();
        let (mut copies, mut unknown): (HashSet<AnyVar>, HashSet<AnyVar>) = Default::default();
        let leaves = |var: &AnyVar| matches!(var, AnyVar::Var(_)) || escaping.contains(var);
        for binding in &block.bindings {
            let (var, value) = (binding.var(), binding.value());
            let viewed = self.viewed(value);
            let of = match &viewed {
                Some(of) => owner.get(of).cloned(),
                None if is_kernel(value) => Some(var.clone()),
                None => None,
            };
            let Some(of) = of else {
                // What it gives may be the same memory under a name that is not followed.
                if CallTir::of(value).is_none() && !(matches!(value, Expr::Tuple(_)) && leaves(var)) {
                    unknown.extend(used_vars(value).iter().filter_map(|used| owner.get(used).cloned()));
                }
                continue;
            };
            owner.insert(var.clone(), of.clone());
            if leaves(var) {
                leaving.entry(of).or_default().push(var.clone());
                if viewed.is_some() && CallTir::of(value).is_some() {
                    copies.insert(var.clone());
                }
            }
        }
        let alone = leaving.into_iter().filter(|(of, names)| names.len() == 1 && !unknown.contains(of));
        self.found.extend(alone.flat_map(|(_, names)| names).filter(|var| copies.contains(var)));
    }

    /// What a value has the elements of, in order: a copy that is to be a view, a view, or another name.
    fn viewed(&self, value: &Expr) -> Option<AnyVar> {
        if let Some(call) = CallTir::of(value) {
            let copies = self.kernels.contains(&call.func.name) && matches!(call.outputs.as_slice(), [Type::Tensor(_)]);
            return call.args.first().filter(|_| copies).and_then(Expr::as_var);
        }
        match value.as_op_call() {
            Some((call, name)) if op::lookup(name).is_some_and(|def| def.memory == MemoryUse::View) => {
                call.args.first().and_then(Expr::as_var)
            }
            _ => value.as_var(),
        }
    }
}

/// Whether a value is one tensor that a kernel fills.
fn is_kernel(value: &Expr) -> bool {
    CallTir::of(value).is_some_and(|call| matches!(call.outputs.as_slice(), [Type::Tensor(_)]))
}

struct ViewResults(HashSet<AnyVar>);

impl Rewrite for ViewResults {
    fn value(&mut self, _: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some(call) = CallTir::of(&value).filter(|_| self.0.contains(var)) else { return Ok(Action::Bind(value)) };
        match (call.args.first(), call.outputs.as_slice()) {
            (Some(x), [Type::Tensor(out)]) if matches!(x.ty(), Type::Tensor(_)) => match &out.shape {
                Some(dims) => Ok(Action::Bind(op::call("reshape", [x.clone(), Expr::shape(dims)], Attrs::new())?)),
                None => Ok(Action::Bind(value)),
            },
            _ => Ok(Action::Bind(value)),
        }
    }
}
