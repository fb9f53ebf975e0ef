//! DispatchSampling and DispatchSortScan: operators whose kernels depend on the device become kernels of it.
//!
//! ```text
//! b = R.sort(a)                          →   b = R.call_tir(cls.sort, (a,), …)
//! i = R.multinomial_from_uniform(p, u, r)    c = R.cumsum(p, axis=1)
//!                                        →   i = R.call_tir(cls.get_sample_index, (c, u, r), …)
//! ```
//!
//! The device is that of the result's type, or the one that the module is compiled for. The kernels are those of LegalizeOps; the schedule
//! rules of devices spread their loops over threads.
//!
//! **Differs from TVM**: kernels for sorts and scans are ours; TVM's call functions of its runtime.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{ParamKind, PassContext, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::prim::{self, PrimExpr, int_of};
use relaxide_ir::target::TargetKind;
use relaxide_ir::{Attrs, Buffer, IRModule, Type, Var};
use relaxide_tir::stmt::{BufferRegion, IterKind, IterVar, Range, SBlock, SBlockRealize};
use relaxide_tir::{PrimFunc, Stmt};

use super::fuse_tir::root;
use super::legalize::kernel_call;
use crate::op::core::call_tir;
use crate::rewrite::{Action, Rewrite, rewrite_module};
use crate::*;

pub(super) const SAMPLING: PassInfo =
    PassInfo::new("DispatchSampling", "Sampling becomes kernels of its device.", |module, context, _| {
        run("DispatchSampling", module, context, &["multinomial_from_uniform"])
    });

pub(super) const SORT_SCAN: PassInfo =
    PassInfo::new("DispatchSortScan", "Sorts and scans become kernels of their device.", |module, context, args| {
        if !matches!(args.int("index_bits"), None | Some(32 | 64)) {
            return Err(PassError::new("DispatchSortScan", "index_bits must be either 32 or 64"));
        }
        run("DispatchSortScan", module, context, &["sort", "argsort", "topk", "cumsum", "cumprod", "bucketize"])
    })
    .params(&[PassParam::optional(
        "index_bits",
        ParamKind::Int,
        "How wide the indices of a GPU's sums are, 32 or 64; processors need no such limit.",
    )]);

fn run(pass: &'static str, module: IRModule, context: &PassContext, operators: &'static [&'static str]) -> PassResult {
    rewrite_module(pass, module, &mut Dispatch { operators, default: context.target.kind })
}

struct Dispatch {
    operators: &'static [&'static str],
    /// Where values are that say nothing.
    default: TargetKind,
}

impl Rewrite for Dispatch {
    fn value(&mut self, b: &mut BlockBuilder, _: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let Some((call, name)) = value.as_op_call() else { return Ok(Action::Bind(value)) };
        let name = name.trim_start_matches("relax.");
        if !self.operators.contains(&name) {
            return Ok(Action::Bind(value));
        }
        let kind = kind_of(&call.ty).unwrap_or(self.default);
        let new = match name {
            "multinomial_from_uniform" => Some(sampling(b, call)?),
            _ => kernel_call(b, call, kind.is_gpu())?,
        };
        Ok(Action::Bind(new.unwrap_or(value)))
    }
}

/// The kind of target of a type's device.
pub(super) fn kind_of(ty: &Type) -> Option<TargetKind> {
    match ty {
        Type::Tensor(t) => t.vdevice.as_ref()?.kind(),
        Type::Tuple(t) => t.fields.iter().find_map(kind_of),
        _ => None,
    }
}

/// A draw by sums of probabilities: the first index whose sum is larger than the uniform number.
fn sampling(b: &mut BlockBuilder, call: &Call) -> Result<Expr, BuildError> {
    let [prob, uniform, rows] = call.args.as_slice() else {
        return Err(BuildError::Program("`multinomial_from_uniform` takes three tensors".into()));
    };
    let mut dtypes = Vec::with_capacity(4);
    for (name, arg) in [("prob", prob), ("uniform_sample", uniform), ("sample_indices", rows)] {
        let Type::Tensor(ty) = arg.ty() else { return Err(BuildError::Program(format!("`{name}` is no tensor"))) };
        let Some(dims) = ty.shape.as_ref().filter(|_| !ty.dtype.is_void()) else {
            return Err(BuildError::Program(format!("the shape and dtype of `{name}` must be known")));
        };
        let is_column = dims.get(1).is_some_and(|dim| dim.is_int(1));
        if name != "prob" && !(dims.len() == 2 && is_column) {
            return Err(BuildError::Program(format!("`{name}` should be a 2D tensor with shape (N, 1)")));
        }
        dtypes.push(ty.dtype);
    }
    let [prob_dtype, uniform_dtype, rows_dtype] = dtypes.as_slice() else {
        return Err(BuildError::Program("`multinomial_from_uniform` takes three tensors".into()));
    };
    let dtype = call.attrs.dtype("dtype").unwrap_or(DataType::int(64));
    let attrs = Attrs::new().with("axis", 1).with("dtype", *prob_dtype).with("exclusive", false);
    let sums = b.emit(op::call("cumsum", [prob.clone()], attrs)?)?;
    let kernel = b.add_kernel(sample_index([*prob_dtype, *uniform_dtype, *rows_dtype, dtype]), "get_sample_index");
    Ok(call_tir(kernel, [sums, uniform.clone(), rows.clone()], call.ty.clone())?)
}

/// The kernel over sums of probabilities, uniform numbers, rows, and the indices that it writes.
fn sample_index([prob, uniform, row, index]: [DataType; 4]) -> PrimFunc {
    let int64 = DataType::int(64);
    let dim = |name: &str| Var::prim(name, int64);
    let (batch, vocab, draws) = (dim("batch"), dim("vocab_size"), dim("out_batch"));
    let at = |var: &Ref<Var>| PrimExpr::from(var);
    let number = |value: i64| int_of(int64, value);
    let sums = Buffer::new("prob", prob, [at(&batch), at(&vocab)]);
    let column = |name: &str, dtype| Buffer::new(name, dtype, [at(&draws), int_of(DataType::int(32), 1)]);
    let (numbers, rows, out) =
        (column("usample", uniform), column("sample_indices", row), column("output_index", index));
    let (i, j) = (dim("v_ax0"), dim("v_ax1"));
    let (draw, place) = (at(&i), at(&j));
    let given = prim::load(&numbers, [draw.clone(), number(0)]);
    let row = prim::load(&rows, [draw.clone(), number(0)]);
    let sum = |place: PrimExpr| prim::load(&sums, [row.clone(), place]);
    let write =
        |value: PrimExpr| Stmt::store(&out, [draw.clone(), int_of(DataType::int(32), 0)], prim::cast(index, value));
    let reached = prim::lt(given.clone(), sum(place.clone()));
    let last = prim::eq(&place + 1, at(&vocab));
    let later = Stmt::when(prim::ge(given.clone(), sum(&place - 1)), write(place.clone()));
    let body = Stmt::when(prim::or(reached, last), Stmt::if_else(prim::eq(&place, number(0)), write(number(0)), later));
    let region = |buffer: &Ref<Buffer>, ranges: Vec<(PrimExpr, PrimExpr)>| {
        let region = ranges.into_iter().map(|(min, extent)| Ref::new(Range { min, extent })).collect();
        Ref::new(BufferRegion { buffer: buffer.clone(), region })
    };
    let one = |e: &PrimExpr| (e.clone(), number(1));
    let zero = (number(0), number(1));
    let block = SBlock {
        iter_vars: [(i, &draws), (j, &vocab)]
            .into_iter()
            .map(|(var, extent)| Ref::new(IterVar { var, min: number(0), extent: at(extent), kind: IterKind::Spatial }))
            .collect(),
        reads: vec![
            region(&numbers, vec![one(&draw), zero.clone()]),
            region(&sums, vec![one(&row), (&place - 1, number(2))]),
            region(&rows, vec![one(&draw), zero.clone()]),
        ],
        writes: vec![region(&out, vec![one(&draw), (int_of(DataType::int(32), 0), number(1))])],
        name: "T_get_sample_index".into(),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: Attrs::new(),
        init: None,
        body,
    };
    let (ax0, ax1) = (dim("ax0"), dim("ax1"));
    let values = vec![at(&ax0), at(&ax1)];
    let realize =
        Ref::new(SBlockRealize { iter_values: values, predicate: prim::boolean(true), block: Ref::new(block) });
    let inner = Stmt::serial(ax1, &vocab, realize.into());
    let body = Stmt::serial(ax0, &draws, inner);
    PrimFunc { attrs: Attrs::new(), ..PrimFunc::over_buffers(&[sums, numbers, rows, out], &[], root(Vec::new(), body)) }
}
