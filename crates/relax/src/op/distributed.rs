//! Operators for several workers.
//!
//! Collective ones (`ccl`) have types, and become calls of the functions that a session of workers registers
//! (`runtime.disco.allreduce` …). This runtime has no such sessions, so a program that uses them is compiled, and names the function that it
//! misses when it is loaded. Those that spread tensors over a mesh (`dist`) are known by name only, so that a program that uses them is
//! told what is the matter.

use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, Type, prim};

use super::*;
use crate::BlockBuilder;

const X: ArgDef = ArgDef::any("x", "The value.");
const TENSOR: ArgDef = ArgDef::tensor("x", "The worker's tensor.");
const REST: ArgDef = ArgDef::any("args", "Further arguments.").variadic();
const DOC: &str = "Not supported: Relaxide runs a program in one process.";

const fn unknown(name: &'static str, attrs: &'static [AttrDef]) -> OpDef {
    OpDef { name, doc: DOC, args: &[X, REST], attrs, infer: refuse, ..OpDef::BASE }
}

const WORKERS: AttrDef = AttrDef::required("num_workers", AttrKind::Int, "How many workers there are.");
const GROUP: AttrDef = AttrDef::bool("in_group", true, "Whether workers of a group take part only.");
const AXIS: AttrDef = AttrDef::int("axis", 0, "The dimension that is spread.");
const PARTS: AttrDef = AttrDef::absent("num_workers", AttrKind::Any, "How many workers there are.");
const MESH: AttrDef = AttrDef::absent("device_mesh", AttrKind::Any, "The mesh of devices.");
const PLACEMENT: AttrDef = AttrDef::absent("placement", AttrKind::Any, "How the tensor is spread over the mesh.");

/// The ways to combine values, by their numbers in calls.
const REDUCTIONS: [&str; 5] = ["sum", "prod", "min", "max", "avg"];

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::decomposed(
        "ccl.allgather",
        &[TENSOR],
        &[WORKERS, GROUP],
        gathered,
        |cx, _| collective(cx, "allgather", vec![cx.arg(0)?.clone(), flag(cx.bool("in_group")?)]),
        "The tensors of all workers, one behind the other along the first dimension.",
    ),
    OpDef::decomposed(
        "ccl.allreduce",
        &[TENSOR],
        &[AttrDef::str("op_type", "sum", "How values are combined: sum, prod, min, max or avg."), GROUP],
        reduced,
        reduce,
        "The tensors of all workers, combined element by element.",
    ),
    OpDef::decomposed(
        "ccl.broadcast_from_worker0",
        &[TENSOR],
        &[],
        |cx| cx.ty(0),
        |cx, _| collective(cx, "broadcast_from_worker0", vec![cx.arg(0)?.clone(), flag(false)]),
        "The tensor of the first worker.",
    ),
    OpDef::decomposed(
        "ccl.scatter_from_worker0",
        &[TENSOR],
        &[WORKERS, AXIS],
        scattered,
        scatter,
        "The worker's part of the first worker's tensor, which is divided along a dimension.",
    ),
    unknown("dist.annotate_sharding", &[MESH, PLACEMENT]),
    unknown("dist.call_tir_local_view", &[]),
    unknown("dist.redistribute", &[MESH, PLACEMENT]),
    unknown("dist.redistribute_replica_to_shard", &[PARTS, AXIS]),
];

fn refuse(cx: &CallCx) -> Result<Type, OpError> {
    cx.unsupported(
        "is for programs that several workers run together, which are not supported; a program runs in one process",
    )
}

/// The number of workers, which is positive.
fn workers(cx: &CallCx) -> Result<i64, OpError> {
    match cx.int("num_workers")? {
        count if count >= 1 => Ok(count),
        count => cx.invalid(format!("num_workers is {count}, and there is at least one worker")),
    }
}

fn gathered(cx: &CallCx) -> Result<Type, OpError> {
    let (x, workers) = (cx.tensor(0)?, workers(cx)?);
    let dims = x.dims.map(|mut dims| {
        if let Some(first) = dims.first_mut() {
            *first = first.clone() * workers;
        }
        dims
    });
    Ok(tensor_type(dims, x.ndim, x.dtype))
}

/// The number of the way to combine values.
fn reduction(cx: &CallCx) -> Result<i64, OpError> {
    let name = cx.str("op_type")?;
    match REDUCTIONS.iter().position(|known| *known == name) {
        Some(at) => Ok(at as i64),
        None => cx.invalid(format!("op_type is {}, not {name:?}", REDUCTIONS.join(", "))),
    }
}

fn reduced(cx: &CallCx) -> Result<Type, OpError> {
    reduction(cx)?;
    cx.ty(0)
}

fn reduce(cx: &CallCx, _: &mut BlockBuilder) -> Result<Expr, OpError> {
    let how = Expr::shape([PrimExpr::from(reduction(cx)?)]);
    collective(cx, "allreduce", vec![cx.arg(0)?.clone(), how, flag(cx.bool("in_group")?)])
}

/// The dimension that is divided, and the length of a part, where dimensions are known.
fn part(cx: &CallCx, dims: &[PrimExpr]) -> Result<(usize, PrimExpr), OpError> {
    let (axis, workers) = (cx.int("axis")?, workers(cx)?);
    let Some((at, extent)) = usize::try_from(axis).ok().and_then(|at| Some((at, dims.get(at)?))) else {
        return cx.invalid(format!("axis {axis} is none of {} dimensions", dims.len()));
    };
    match extent.as_int() {
        Some(length) if length % workers != 0 => {
            cx.invalid(format!("{workers} workers do not divide dimension {axis}, which is {length}"))
        }
        Some(length) => Ok((at, PrimExpr::from(length / workers))),
        None => Ok((at, prim::binary(prim::BinaryOp::Div, extent.clone(), PrimExpr::from(workers)))),
    }
}

fn scattered(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let Some(mut dims) = x.dims else { return Ok(tensor_type(None, x.ndim, x.dtype)) };
    let (at, length) = part(cx, &dims)?;
    dims[at] = length;
    Ok(Type::tensor(dims, x.dtype))
}

/// The workers' parts come to lie one behind the other, then they are sent.
fn scatter(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let plain = |e| OpError::of_build(cx.name(), e);
    let (mut dims, workers) = (cx.dims(0)?, workers(cx)?);
    let (at, length) = part(cx, &dims)?;
    dims[at] = length;
    dims.insert(at, PrimExpr::from(workers));
    let mut parts = b.op("reshape", [cx.arg(0)?.clone(), Expr::shape(dims.clone())], Attrs::new()).map_err(plain)?;
    if at > 0 {
        let rest = (0..dims.len()).filter(|i| *i != at);
        let axes: Vec<i64> = [at].into_iter().chain(rest).map(|i| i as i64).collect();
        parts = b.op("permute_dims", [parts], Attrs::new().with("axes", axes)).map_err(plain)?;
    }
    collective(cx, "scatter_from_worker0", vec![parts, flag(false)])
}

fn flag(value: bool) -> Expr {
    Expr::prim(prim::boolean(value))
}

/// A call of the function that a session of workers registers.
fn collective(cx: &CallCx, name: &str, args: Vec<Expr>) -> Result<Expr, OpError> {
    let function = Expr::external(format!("runtime.disco.{name}"));
    call_typed("call_dps_packed", [function, Expr::tuple(args)], Attrs::new(), vec![(cx.def.infer)(cx)?])
}
