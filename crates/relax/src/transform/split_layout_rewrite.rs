//! SplitLayoutRewritePreproc: what lays weights out anew leaves the kernel that uses them.
//!
//! A scheduled kernel may begin with blocks that bring a weight to the order in which it is read; they carry the annotation
//! `meta_schedule.layout_rewrite_preproc`. They become a kernel of their own, which depends on weights only, so that
//! `LiftTransformParams` can have it run once:
//!
//! ```text
//! gv = R.call_tir(cls.dense, (x, w), …)    →    lv = R.call_tir(cls.dense_weight_prepack, (w,), …)
//!                                               gv = R.call_tir(cls.dense_prepacked, (x, lv), …)
//! ```
//!
//! **Needs** that such a block reads one parameter and writes one buffer that the root block holds, of known dimensions, and
//! that the statements around it hold no other blocks. **Gives** no kernel with such an annotation; kernels that nothing calls
//! any more are dropped. Kernels without a root block have none, and stay.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassInfo, PassResult};
use relaxide_ir::prim::PrimMutator;
use relaxide_ir::{Attrs, Buffer, IRModule, Type};
use relaxide_tir::functor::fresh_kernel;
use relaxide_tir::{PrimFunc, SBlock, Stmt, StmtMutator};

use super::dead_code;
use super::layout_free_buffers::LAYOUT_FREE_ATTR;
use super::root_block::{blocks_of, root_block, statements, under_root};
use crate::op::core::{CallTir, call_tir};
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

const NAME: &str = "SplitLayoutRewritePreproc";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "What lays weights out anew leaves the kernel that uses them.", |module, _, _| run(module))
        .ready(relaxide_tir::lower::module_of_unit_steps);

const PREPROC_ATTR: &str = "meta_schedule.layout_rewrite_preproc";

fn run(module: IRModule) -> PassResult {
    let kernels: Vec<_> = module.functions_of::<PrimFunc>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut parts = HashMap::new();
    for (name, kernel) in kernels {
        let split = split(&kernel).map_err(|why| PassError::new(NAME, format!("in kernel `{name}`: {why}")))?;
        if let Some(split) = split {
            parts.insert(name, split);
        }
    }
    let module = rewrite_module(NAME, module, &mut SplitCalls { parts })?;
    Ok(dead_code::run(module, &[], dead_code::Packed::MayGo))
}

/// A kernel in two.
struct SplitKernel {
    /// Lays weights out anew.
    prepack: PrimFunc,
    /// Takes them so.
    compute: PrimFunc,
    /// Places of the weights among the parameters, and what they become.
    weights: Vec<(usize, Type)>,
}

/// A weight that is laid out anew.
struct Rewritten {
    place: usize,
    from: Ref<Buffer>,
    to: Ref<Buffer>,
}

/// Why a kernel does not come apart where it lays its weights out anew.
#[derive(Debug, thiserror::Error)]
enum Inseparable {
    #[error("a block that lays a weight out anew stands beside others")]
    Beside,
    #[error("nothing is left that uses the weights")]
    Unused,
    #[error("a weight is laid out anew twice")]
    Twice,
    #[error("block `{0}` reads or writes several buffers")]
    Several(String),
    #[error("block `{0}` has buffers of its own")]
    OwnBuffers(String),
    #[error("block `{block}` reads `{buffer}`, which is no parameter")]
    NoParameter { block: String, buffer: String },
    #[error("block `{block}` writes `{buffer}`, which the root block does not hold")]
    NotHeld { block: String, buffer: String },
    #[error("the dimensions of `{0}` are not known")]
    UnknownDimensions(String),
}

fn split(kernel: &PrimFunc) -> Result<Option<SplitKernel>, Inseparable> {
    let Some(root) = root_block(kernel) else { return Ok(None) };
    let (mut before, mut rest, mut rewritten) = (Vec::new(), Vec::new(), Vec::new());
    for stmt in statements(root) {
        let blocks = blocks_of(&stmt);
        match blocks.iter().filter(|b| is_preproc(b)).count() {
            0 => rest.push(stmt),
            n if n < blocks.len() => return Err(Inseparable::Beside),
            _ => {
                for block in &blocks {
                    rewritten.push(rewrite_of(kernel, root, block)?);
                }
                before.push(without_annotation(&stmt));
            }
        }
    }
    if rewritten.is_empty() {
        return Ok(None);
    }
    if rest.is_empty() {
        return Err(Inseparable::Unused);
    }
    rewritten.sort_by_key(|r| r.place);
    if rewritten.windows(2).any(|w| w[0].place == w[1].place) {
        return Err(Inseparable::Twice);
    }
    let weights = rewritten.iter().map(|r| Ok((r.place, known_type(&r.to)?))).collect::<Result<_, _>>()?;
    Ok(Some(SplitKernel {
        prepack: prepack(kernel, before, &rewritten),
        compute: compute(kernel, root, rest, &rewritten),
        weights,
    }))
}

fn is_preproc(block: &SBlock) -> bool {
    matches!(block.annotations.int(PREPROC_ATTR), Some(1)) || block.annotations.bool(PREPROC_ATTR) == Some(true)
}

/// A statement whose blocks do not say any more that they lay a weight out anew.
fn without_annotation(stmt: &Stmt) -> Stmt {
    struct Unmark;
    impl PrimMutator for Unmark {}
    impl StmtMutator for Unmark {
        fn remake_block(&mut self, block: &Ref<SBlock>) -> Ref<SBlock> {
            let mut annotations = block.annotations.clone();
            annotations.0.shift_remove(PREPROC_ATTR);
            Ref::new(SBlock {
                iter_vars: block.iter_vars.clone(),
                reads: block.reads.clone(),
                writes: block.writes.clone(),
                name: block.name.clone(),
                alloc_buffers: block.alloc_buffers.clone(),
                match_buffers: block.match_buffers.clone(),
                annotations,
                init: block.init.clone(),
                body: block.body.clone(),
            })
        }
    }
    Unmark.mutate_stmt(stmt)
}

fn rewrite_of(kernel: &PrimFunc, root: &SBlock, block: &SBlock) -> Result<Rewritten, Inseparable> {
    let (reads, writes) = (block.reads.as_slice(), block.writes.as_slice());
    let ([read], [write]) = (reads, writes) else {
        return Err(Inseparable::Several(block.name.clone()));
    };
    if !block.alloc_buffers.is_empty() || !block.match_buffers.is_empty() {
        return Err(Inseparable::OwnBuffers(block.name.clone()));
    }
    let is_read = |b: &Option<Ref<Buffer>>| b.as_ref().is_some_and(|b| *b == read.buffer);
    let Some(place) = kernel.buffers.iter().position(is_read) else {
        return Err(Inseparable::NoParameter { block: block.name.clone(), buffer: read.buffer.name.clone() });
    };
    if !root.alloc_buffers.contains(&write.buffer) {
        return Err(Inseparable::NotHeld { block: block.name.clone(), buffer: write.buffer.name.clone() });
    }
    Ok(Rewritten { place, from: read.buffer.clone(), to: write.buffer.clone() })
}

fn known_type(buffer: &Buffer) -> Result<Type, Inseparable> {
    // Dimensions of tensors have 64 bits, whatever the kernel counts in.
    let dims: Option<Vec<i64>> = buffer.shape.iter().map(|dim| dim.as_int()).collect();
    match dims {
        Some(dims) => Ok(Type::tensor(dims, buffer.dtype)),
        None => Err(Inseparable::UnknownDimensions(buffer.name.clone())),
    }
}

/// The kernel's attributes without what was said for scheduling; its exported name with `suffix`.
fn attrs(kernel: &PrimFunc, suffix: &str) -> Attrs {
    let mut attrs = kernel.attrs.clone();
    attrs.0.shift_remove(LAYOUT_FREE_ATTR);
    match kernel.global_symbol() {
        Some(symbol) => attrs.with("global_symbol", format!("{symbol}{suffix}")),
        None => attrs,
    }
}

fn prepack(kernel: &PrimFunc, statements: Vec<Stmt>, rewritten: &[Rewritten]) -> PrimFunc {
    let buffers: Vec<Ref<Buffer>> =
        rewritten.iter().map(|r| &r.from).chain(rewritten.iter().map(|r| &r.to)).cloned().collect();
    let func = PrimFunc::over_buffers(&buffers, &[], under_root(statements, Vec::new()));
    fresh_kernel(&PrimFunc { attrs: attrs(kernel, "_weight_prepack"), ..func })
}

fn compute(kernel: &PrimFunc, root: &SBlock, statements: Vec<Stmt>, rewritten: &[Rewritten]) -> PrimFunc {
    let mut buffers = kernel.buffers.clone();
    for r in rewritten {
        if let Some(buffer) = buffers.get_mut(r.place) {
            *buffer = Some(r.to.clone());
        }
    }
    let held = root.alloc_buffers.iter().filter(|b| rewritten.iter().all(|r| r.to != **b)).cloned().collect();
    let body = under_root(statements, held);
    fresh_kernel(&PrimFunc { buffers, body, attrs: attrs(kernel, "_prepacked"), ..kernel.clone() })
}

struct SplitCalls {
    parts: HashMap<String, SplitKernel>,
}

impl Rewrite for SplitCalls {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let (Expr::Call(call), Some(mut tir)) = (&value, CallTir::of(&value)) else { return Ok(Action::Bind(value)) };
        let Some(parts) = self.parts.get(&tir.func.name) else { return Ok(Action::Bind(value)) };
        let prepack = b.add_kernel(parts.prepack.clone(), &format!("{}_weight_prepack", tir.func.name));
        let compute = b.add_kernel(parts.compute.clone(), &format!("{}_prepacked", tir.func.name));
        let missing = || BuildError::Program(format!("a call of `{}` lacks a weight", tir.func.name));
        let weights = parts.weights.iter().map(|(place, _)| tir.args.get(*place).cloned().ok_or_else(missing));
        let weights = weights.collect::<Result<Vec<_>, _>>()?;
        let types: Vec<Type> = parts.weights.iter().map(|(_, ty)| ty.clone()).collect();
        let ty = if let [one] = types.as_slice() { one.clone() } else { Type::tuple(types) };
        let packed = b.emit(call_tir(prepack, weights, ty)?)?;
        for (i, (place, _)) in parts.weights.iter().enumerate() {
            let one = if parts.weights.len() == 1 { packed.clone() } else { b.emit(Expr::field(packed.clone(), i))? };
            if let Some(arg) = tir.args.get_mut(*place) {
                *arg = one;
            }
        }
        let args = vec![compute.into(), Expr::tuple(tir.args)];
        let computed: Expr = call.with_args(args, call.ty.clone()).into();
        Ok(Action::Bind(b.emit(computed)?))
    }
}
