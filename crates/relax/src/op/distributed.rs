//! Operators for several workers. They are known by name, so that a program that uses them is told what is the matter.

use relaxide_ir::Type;

use super::*;

const X: ArgDef = ArgDef::any("x", "The value.");
const REST: ArgDef = ArgDef::any("args", "Further arguments.").variadic();
const DOC: &str = "Not supported: Relaxide runs a program in one process.";

const fn row(name: &'static str, attrs: &'static [AttrDef]) -> OpDef {
    OpDef { name, doc: DOC, args: &[X, REST], attrs, infer: refuse, ..OpDef::BASE }
}

const WORKERS: AttrDef = AttrDef::absent("num_workers", AttrKind::Any, "How many workers there are.");
const GROUP: AttrDef = AttrDef::bool("in_group", true, "Whether workers of a group take part only.");
const MESH: AttrDef = AttrDef::absent("device_mesh", AttrKind::Any, "The mesh of devices.");
const PLACEMENT: AttrDef = AttrDef::absent("placement", AttrKind::Any, "How the tensor is spread over the mesh.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    row("ccl.allgather", &[WORKERS, GROUP]),
    row("ccl.allreduce", &[AttrDef::str("op_type", "sum", "How values are combined."), GROUP]),
    row("ccl.broadcast_from_worker0", &[]),
    row("ccl.scatter_from_worker0", &[WORKERS, AttrDef::int("axis", 0, "The dimension that is spread.")]),
    row("dist.annotate_sharding", &[MESH, PLACEMENT]),
    row("dist.call_tir_local_view", &[]),
    row("dist.redistribute", &[MESH, PLACEMENT]),
    row("dist.redistribute_replica_to_shard", &[WORKERS, AttrDef::int("axis", 0, "The dimension that is spread.")]),
];

fn refuse(cx: &CallCx) -> Result<Type, OpError> {
    cx.unsupported(
        "is for programs that several workers run together, which are not supported; a program runs in one process",
    )
}
