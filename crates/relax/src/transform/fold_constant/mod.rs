//! FoldConstant: kernels over constants are executed by the compiler.
//!
//! ```text
//! lv = R.call_tir(cls.transpose, (metadata["ir.GenericConst"][0],), …)     →     (a constant takes the place of lv)
//! lv1 = R.call_tir(cls.matmul, (x, lv), …)
//! ```
//!
//! A call is folded if all its arguments are constants or literal scalars and all dimensions are known. What it computes is
//! known from its kernel in block form ([`evaluate`]), with the reference interpreter's arithmetic; so is what it costs,
//! ahead of time. Kernels of few operations are interpreted; others are compiled for this machine and run, where the
//! context has who does that ([`KernelRunner`]), and what fails there is interpreted. A kernel of more than
//! `relax.FoldConstant.max_work` operations stays: by default what takes a second or two.
//!
//! An operator within a dataflow block is executed by the kernel that it would become, if it has one and the program does not lower it
//! itself. What takes no tensor, as `R.zeros`, becomes a constant only where that is small. A shape of a constant's numbers
//! (`tensor_to_shape`) is one that is known.
//!
//! **Leaves alone** what it cannot bound or see through (sorting, scans, loops with a condition of their own), what has an effect, what a
//! call overwrites, and what fails: a division by zero is the program's business, when and if it runs.

mod evaluate;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{Any, Ref, Tensor};
use relaxide_ir::pass::{KernelRunner, PassContext, PassInfo, PassResult};
use relaxide_ir::{IRModule, PrimExpr, Type};
use relaxide_tir::PrimFunc;

use self::evaluate::{Argument, Evaluator};
use super::callees::drop_uncalled;
use super::legalize::{has_own_lowering, kernel_call};
use crate::analysis::overwritten_vars;
use crate::builder::is_pure;
use crate::constant::as_ints;
use crate::functor::used_vars;
use crate::op::core::CallTir;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::shape::const_dims;
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("FoldConstant", "Kernels over constants are executed by the compiler.", |module, context, _| {
        run(module, context)
    })
    .ready(relaxide_tir::lower::module_of_unit_steps);

/// The most operations that one kernel may take where it is interpreted.
const MAX_WORK: i64 = 150_000_000;
/// The same where it is compiled.
const MAX_NATIVE_WORK: i64 = 20_000_000_000;
/// The most elements of a constant that takes the place of an operator without tensors.
const MAX_CREATED: i64 = 1024;
/// Operations that are interpreted in the time that compiling takes.
const WORTH_COMPILING: i64 = 2_000_000;

fn run(module: IRModule, context: &PassContext) -> PassResult {
    let max_work = context.config.int("relax.FoldConstant.max_work");
    let kernels = module.functions_of::<PrimFunc>().map(|(n, f)| (n.to_string(), f)).collect();
    let overwritten = module.functions_of::<Function>().flat_map(|(_, f)| overwritten_vars(&f)).collect();
    let runner = context.runner.clone();
    let mut fold = Fold {
        kernels,
        max_work,
        runner,
        known: HashMap::new(),
        folded: HashSet::new(),
        overwritten,
        in_dataflow: false,
    };
    let mut module = rewrite_module(PASS.name, module, &mut fold)?;
    drop_uncalled(&mut module, &fold.folded);
    Ok(module)
}

struct Fold {
    kernels: HashMap<String, Ref<PrimFunc>>,
    /// The limit that was asked for.
    max_work: Option<i64>,
    runner: Option<KernelRunner>,
    /// Values that became constants but kept their variable.
    known: HashMap<AnyVar, Expr>,
    /// Kernels that were executed.
    folded: HashSet<String>,
    /// Values that need memory of their own in every run, because a call writes over it.
    overwritten: HashSet<AnyVar>,
    /// Whether the binding stands in a dataflow block.
    in_dataflow: bool,
}

impl Rewrite for Fold {
    fn begin_block(&mut self, dataflow: bool) {
        self.in_dataflow = dataflow;
    }

    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        if self.overwritten.contains(var) {
            return Ok(Action::Bind(value));
        }
        let Some(constant) = self.fold(&value) else { return Ok(Action::Bind(value)) };
        // A branch ends by binding its result; elsewhere a name of a constant says nothing.
        if matches!(var, AnyVar::Dataflow(_)) || b.depth() == 1 {
            return Ok(Action::Replace(constant));
        }
        self.known.insert(var.clone(), constant.clone());
        Ok(Action::Bind(constant))
    }
}

impl Fold {
    /// The constant, or the tuple of constants, that a call gives.
    fn fold(&mut self, value: &Expr) -> Option<Expr> {
        let Some(call) = CallTir::of(value) else { return self.fold_operator(value) };
        let kernel = self.kernels.get(&call.func.name)?.clone();
        let constant = self.execute(&kernel, &call, &value.ty())?;
        self.folded.insert(call.func.name.clone());
        Some(constant)
    }

    /// The same of a call of an operator that takes constants only.
    fn fold_operator(&mut self, value: &Expr) -> Option<Expr> {
        let (call, name) = value.as_op_call().filter(|_| self.in_dataflow)?;
        if has_own_lowering(name) || !is_pure(value) || !used_vars(value).is_empty() {
            return None;
        }
        // Dimensions that are numbers of a constant are a shape that is known.
        if let ("tensor_to_shape", [Expr::Constant(dims)]) = (name, call.args.as_slice()) {
            let dims = as_ints(&dims.value)?;
            return Some(Expr::shape(dims.into_iter().map(PrimExpr::from).collect::<Vec<_>>()));
        }
        let takes_tensors = call.args.iter().any(|arg| matches!(arg, Expr::Constant(_) | Expr::Tuple(_)));
        let size = |ty: &Type| Some(const_dims(ty.as_tensor()?.shape.as_ref()?)?.iter().product::<i64>());
        if !takes_tensors && size(&call.ty).is_none_or(|size| size > MAX_CREATED) {
            return None;
        }
        let mut scratch = BlockBuilder::new();
        let lowered = kernel_call(&mut scratch, call, false).ok()??;
        let lowered = CallTir::of(&lowered)?;
        let kernel = scratch.finish().get_as::<PrimFunc>(&lowered.func.name)?;
        self.execute(&kernel, &lowered, &call.ty)
    }

    /// What a kernel gives for constants.
    fn execute(&self, kernel: &Ref<PrimFunc>, call: &CallTir, ty: &Type) -> Option<Expr> {
        let mut args = call.args.iter().map(|a| self.argument(a)).collect::<Option<Vec<_>>>()?;
        let mut outputs = Vec::with_capacity(call.outputs.len());
        for ty in &call.outputs {
            let Type::Tensor(ty) = ty else { return None };
            if ty.vdevice.is_some() {
                return None;
            }
            let output = Tensor::zeros(&const_dims(ty.shape.as_ref()?)?, ty.dtype).ok()?;
            outputs.push(output.clone());
            args.push(Argument::Tensor(output));
        }
        let evaluator = Evaluator::new(kernel, &args)?;
        let work = evaluator.work();
        let ran = work > WORTH_COMPILING && self.run_native(kernel, &args, work);
        if !ran {
            if work > self.max_work.unwrap_or(MAX_WORK) {
                return None;
            }
            evaluator.run(&args, call.args.len()).ok()?;
        }
        let mut constants: Vec<Expr> = outputs.into_iter().map(Expr::constant).collect();
        if matches!(ty, Type::Tuple(_)) { Some(Expr::tuple(constants)) } else { constants.pop() }
    }

    /// Compiles a kernel and runs it. False where nobody can, or it is too much.
    fn run_native(&self, kernel: &Ref<PrimFunc>, args: &[Argument], work: i64) -> bool {
        let Some(runner) = &self.runner else { return false };
        if work > self.max_work.unwrap_or(MAX_NATIVE_WORK) {
            return false;
        }
        let values: Vec<Any> = args.iter().map(Argument::value).collect();
        runner.run(&kernel.clone().into(), &values).is_ok()
    }

    /// The value of an argument, if it is known.
    fn argument(&self, arg: &Expr) -> Option<Argument> {
        match arg {
            Expr::Constant(c) => Some(Argument::Tensor(c.value.clone())),
            Expr::Prim(p) => Argument::scalar(&p.value),
            Expr::Var(_) | Expr::DataflowVar(_) => self.known.get(&arg.as_var()?).and_then(|c| self.argument(c)),
            _ => None,
        }
    }
}
