//! `annotate_buffer_access`: says what a block touches of a buffer, where that cannot be worked out from its accesses.
//!
//! ```text
//! with T.sblock("B"):                                           with T.sblock("B"):
//!     T.reads(A[0:128])      -- lambda vi: ((vi - 1, vi + 1)) ->    T.reads(A[vi - 1:vi + 1])
//!     B[vi] = A[at[vi]]                                             T.sblock_attr({"explicit_read_region": [0]})
//!                                                                   B[vi] = A[at[vi]]
//! ```
//!
//! The map gives two indices for each dimension of the buffer: where the region begins, and where it ends. What is said is
//! trusted where the accesses do not tell it; where they do, the region must hold them. It stays while the block is changed
//! by other steps, for which the block is marked.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};

use super::structure::nth_buffer;
use super::transform_layout::map_operand;
use crate::IndexMap;
use crate::analysis::interval::Interval;
use crate::analysis::regions::{EXPLICIT_READS, EXPLICIT_WRITES, regions_of_block, whole_dimension};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, ints_of, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "AnnotateBufferAccess",
    method: "annotate_buffer_access",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Input("buffer_index"),
        Param::Side("buf_type"),
        Param::Ranges("gen_new_ranges"),
    ],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    let (index, side) = (call.input_int(1)?, call.input_int(2)?);
    let map: Ref<IndexMap> = call.input_object(3)?;
    let (regions, what, key) = match side {
        0 => (&block.reads, "reads", EXPLICIT_READS),
        1 => (&block.writes, "writes", EXPLICIT_WRITES),
        _ => return Err(ScheduleError::Operand("a region is one that is read (0) or written (1)".into())),
    };
    let buffer = nth_buffer(block, index, regions, what)?.buffer.clone();
    let region = Ref::new(BufferRegion { buffer: buffer.clone(), region: ranges(block, &map, buffer.ndim())? });
    if sch.checked {
        check_covers(block, &region, side == 0)?;
    }
    let changed = |list: &[Ref<BufferRegion>], mine: bool| -> Vec<Ref<BufferRegion>> {
        let swap = |(at, old): (usize, &Ref<BufferRegion>)| {
            if mine && at as i64 == index { region.clone() } else { old.clone() }
        };
        list.iter().enumerate().map(swap).collect()
    };
    let mut annotations = block.annotations.clone();
    let mut marked = annotations.0.get(key).and_then(ints_of).unwrap_or_default();
    if !marked.contains(&index) {
        marked.push(index);
    }
    annotations.0.insert(key.to_string(), AttrValue::List(marked.into_iter().map(AttrValue::Int).collect()));
    let (reads, writes) = (changed(&block.reads, side == 0), changed(&block.writes, side == 1));
    let new = Ref::new(SBlock { reads, writes, annotations, ..copy_block(block) });
    let body =
        replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), with_block(&realize, new.clone()).into())]);
    sch.commit(&place.func, body, &[(block.clone(), new)])?;
    Ok(Vec::new())
}

/// The ranges that a map gives, over the block's axes.
fn ranges(block: &SBlock, map: &IndexMap, ndim: usize) -> Result<Vec<Ref<Range>>, ScheduleError> {
    let (axes, given) = (block.iter_vars.len(), map.initial_indices.len());
    if axes != given || map.final_indices.len() != 2 * ndim {
        let reason = format!(
            "the ranges are {} of {given} axes, but block `{}` has {axes} and the buffer {ndim} dimensions",
            map.final_indices.len() / 2,
            block.name
        );
        return Err(
            ScheduleError::at_block(block, reason).with_help("give one range, or one index, for each dimension")
        );
    }
    let vars: VarMap =
        map.initial_indices.iter().cloned().zip(block.iter_vars.iter().map(|i| PrimExpr::from(&i.var))).collect();
    let mut analyzer = Analyzer::new();
    let ends: Vec<PrimExpr> = map.final_indices.iter().map(|e| substitute(e, &vars)).collect();
    let range = |pair: &[PrimExpr]| match pair {
        [begin, end] => Some(Ref::new(Range { min: begin.clone(), extent: analyzer.simplify_as_tvm(&(end - begin)) })),
        _ => None,
    };
    Ok(ends.chunks(2).filter_map(range).collect())
}

/// Where the accesses of the block are known along a dimension, the region holds them.
fn check_covers(block: &SBlock, region: &BufferRegion, read: bool) -> Result<(), ScheduleError> {
    let found = regions_of_block(block);
    let list = if read { &found.reads } else { &found.writes };
    let Some(touched) = list.iter().find(|r| r.buffer == region.buffer) else { return Ok(()) };
    let mut analyzer = Analyzer::new();
    for iter in &block.iter_vars {
        analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    for (d, (said, known)) in region.region.iter().zip(&touched.region).enumerate() {
        let (said, known) =
            (Interval::of_range(&said.min, &said.extent), Interval::of_range(&known.min, &known.extent));
        if known.covers(&whole_dimension(&region.buffer, d), &mut analyzer) || said.covers(&known, &mut analyzer) {
            continue;
        }
        let reason = format!(
            "block `{}` touches {} to {} along dimension {d} of buffer `{}`, which {} to {} does not hold",
            block.name, known.min, known.max, region.buffer.name, said.min, said.max
        );
        return Err(ScheduleError::at_block(block, reason)
            .with_help("a region may be larger than what is touched, not smaller"));
    }
    Ok(())
}

impl Schedule {
    /// Says what a block touches of the `buffer_index`th buffer that it reads (`side` is `"read"`) or writes: a map of its
    /// axes gives where each dimension's range begins and ends.
    pub fn annotate_buffer_access(
        &mut self,
        block: &Ref<SBlockRV>,
        buffer_index: i64,
        side: &str,
        ranges: &Ref<IndexMap>,
    ) -> Result<(), StepError> {
        let side = i64::from(side == "write");
        let inputs = vec![operand(block), buffer_index.into(), side.into(), map_operand(ranges)];
        self.step_only(&KIND, inputs, vec![])
    }
}
