//! DataflowUseInplaceCalls: element-wise operators write over an operand that nothing needs any more.
//!
//! ```text
//! lv = R.exp(x)                      lv = R.exp(x)
//! lv1 = R.add(lv, y)          →      lv1 = R.call_tir_inplace(cls.add_inplace, (lv, y), inplace_indices=[0], …)
//! ```
//!
//! An operand may be overwritten if it is a variable of the dataflow block that a call of an operator made there, if this is
//! the last binding that uses it, if it has the result's shape and element type, and if no other value may share its memory:
//! no user of it only rearranges elements (which may become a view), puts it into a tuple, or passes it to a function.
//!
//! **Works on** dataflow blocks, for operators whose row says so ([`OpDef::in_place`](crate::op::OpDef)).

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::PrimMutator;
use relaxide_ir::{Attrs, Buffer, IRModule};
use relaxide_tir::{PrimFunc, StmtMutator};

use super::callees::drop_uncalled;
use super::legalize::kernel_call;
use crate::analysis::overwrite::computes;
use crate::functor::used_vars;
use crate::op::core::CallTir;
use crate::op::lookup;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::shape::same_type;
use crate::*;

const NAME: &str = "DataflowUseInplaceCalls";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Element-wise operators write over operands that nothing needs any more.", |module, _, _| {
        run(module)
    })
    .ready(relaxide_tir::lower::module_of_unit_steps);

fn run(module: IRModule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let mut copies = HashSet::new();
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    for (name, func) in functions {
        let mut inplace = Inplace { free: HashMap::new(), copies: &mut copies };
        Free(&mut inplace.free).visit_seq(&func.body);
        let new = rewrite_function(&mut b, &func, &mut inplace).map_err(|e| in_function(NAME, &name, e))?;
        b.module_mut().insert(name, new);
    }
    let mut module = b.finish();
    drop_uncalled(&mut module, &copies);
    Ok(module)
}

/// Finds, for each variable, the operands that its value may overwrite.
struct Free<'a>(&'a mut HashMap<AnyVar, Vec<usize>>);

impl ExprVisitor for Free<'_> {
    fn visit_seq(&mut self, seq: &SeqExpr) {
        for block in seq.blocks.iter() {
            if block.dataflow {
                self.block(block);
            }
            block.bindings.iter().for_each(|b| self.visit_binding(b));
        }
        self.visit_expr(&seq.body);
    }
}

impl Free<'_> {
    fn block(&mut self, block: &BindingBlock) {
        let mut made: HashSet<AnyVar> = HashSet::new();
        let mut shared: HashSet<AnyVar> = HashSet::new();
        let mut last: HashMap<AnyVar, usize> = HashMap::new();
        for (i, binding) in block.bindings.iter().enumerate() {
            let computes = computes(binding.value());
            if computes && matches!(binding.var(), AnyVar::Dataflow(_)) {
                made.insert(binding.var().clone());
            }
            for var in used_vars(binding.value()) {
                if !computes {
                    shared.insert(var.clone());
                }
                last.insert(var, i);
            }
        }
        for (i, binding) in block.bindings.iter().enumerate() {
            let may_overwrite = |name: &str| lookup(name).is_some_and(|def| def.in_place);
            let Some((call, _)) = binding.value().as_op_call().filter(|(_, name)| may_overwrite(name)) else {
                continue;
            };
            let may = |arg: &Expr| {
                arg.as_var().is_some_and(|v| {
                    let dies = last.get(&v) == Some(&i);
                    // Kernels promise that no two of their buffers are one.
                    let once = call.args.iter().filter(|other| *other == arg).count() == 1;
                    dies && once && made.contains(&v) && !shared.contains(&v) && same_type(v.ty(), &call.ty)
                })
            };
            let free: Vec<usize> = (0..call.args.len()).filter(|at| call.args.get(*at).is_some_and(may)).collect();
            if !free.is_empty() && call.ty.as_tensor().is_some_and(|t| t.shape.is_some()) {
                self.0.insert(binding.var().clone(), free);
            }
        }
    }
}

struct Inplace<'a> {
    free: HashMap<AnyVar, Vec<usize>>,
    /// Kernels that stand for nothing any more once they write in place.
    copies: &'a mut HashSet<String>,
}

impl Rewrite for Inplace<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Some(free), Expr::Call(call)) = (self.free.get(var), &value) else { return Ok(Action::Bind(value)) };
        let Some(tir) = kernel_call(b, call, false)?.as_ref().and_then(CallTir::of) else {
            return Ok(Action::Bind(value));
        };
        let Some(kernel) = b.module().get_as::<PrimFunc>(&tir.func.name) else { return Ok(Action::Bind(value)) };
        // The kernel's arguments are the call's operands in order, without those that became literals.
        let operand = free.iter().rev().find_map(|at| call.args.get(*at));
        let Some(at) = operand.and_then(|operand| tir.args.iter().position(|arg| arg == operand)) else {
            return Ok(Action::Bind(value));
        };
        let Some(written) = over_input(&kernel, at) else { return Ok(Action::Bind(value)) };
        self.copies.insert(tir.func.name.clone());
        let name = format!("{}_inplace", tir.func.name);
        let callee = b.add_kernel(written, &name);
        let attrs = Attrs::new().with("inplace_indices", vec![at as i64]);
        let args = [callee.into(), Expr::tuple(tir.args)];
        Ok(Action::Bind(op::call_typed("call_tir_inplace", args, attrs, vec![call.ty.clone()])?))
    }
}

/// The kernel that writes its result over input `at`; `None` where it has no single output behind its inputs.
fn over_input(kernel: &PrimFunc, at: usize) -> Option<PrimFunc> {
    let (output, inputs) = kernel.buffers.split_last()?;
    let (output, input) = (output.clone()?, inputs.get(at)?.clone()?);
    let mut params = kernel.params.clone();
    params.pop();
    let body = Over { output, input }.mutate_stmt(&kernel.body);
    Some(PrimFunc { params, buffers: inputs.to_vec(), body, ..kernel.clone() })
}

struct Over {
    output: Ref<Buffer>,
    input: Ref<Buffer>,
}

impl StmtMutator for Over {}

impl PrimMutator for Over {
    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if *buffer == self.output { self.input.clone() } else { buffer.clone() }
    }
}
