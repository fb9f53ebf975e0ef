//! Random schedules: legal steps on random blocks and loops of a kernel, which must not change results.
//!
//! A step is drawn without asking whether it is legal; the schedule refuses what is not. So a refusal that is missing shows
//! as a wrong result, and one that is too strict as steps that are never executed ([`Drawn::executed`]).

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr};

use super::Random;
use crate::s_tir::{LoopRV, Rv, SBlockRV, Schedule, StepError, UnitLoops};
use crate::stmt::{BufferRegion, SBlock};
use crate::{IndexMap, PrimFunc};

/// A kernel behind random steps.
pub struct Drawn {
    /// The schedule, with its trace.
    pub schedule: Schedule,
    /// Steps that change the program, by name.
    pub executed: Vec<&'static str>,
}

impl Drawn {
    /// The kernel.
    pub fn func(&self) -> Option<Ref<PrimFunc>> {
        self.schedule.func("main").ok()
    }
}

/// Up to `steps` random steps on a kernel. A mistake in the schedule itself (a block that cannot be found, say) is an error.
pub fn schedule_at_random(func: &PrimFunc, seed: u64, steps: usize) -> Result<Drawn, StepError> {
    schedule_from(&mut Random::new(seed), func, (seed % 1_000_003) as i64 + 1, steps)
}

/// The same by any source of choices; `samples` is the seed of the schedule's own sampling steps.
pub fn schedule_from(random: &mut Random, func: &PrimFunc, samples: i64, steps: usize) -> Result<Drawn, StepError> {
    let mut drawing = Drawing { random, schedule: Schedule::of_func(func.clone()) };
    drawing.schedule.seed(samples);
    let wanted = 1 + drawing.random.below(steps);
    for _ in 0..wanted {
        let Some(block) = drawing.block()? else { break };
        // What is refused leaves no trace.
        let _ = drawing.step(&block);
    }
    let trace = drawing.schedule.trace().steps().iter();
    let executed = trace.filter(|(step, _)| !step.kind.is_pure).map(|(step, _)| step.kind.method).collect();
    Ok(Drawn { schedule: drawing.schedule, executed })
}

struct Drawing<'r> {
    random: &'r mut Random,
    schedule: Schedule,
}

/// The scopes that caches are put in.
const SCOPES: [&str; 2] = ["global", "local"];

impl Drawing<'_> {
    /// Some block under the root.
    fn block(&mut self) -> Result<Option<Ref<SBlockRV>>, StepError> {
        let root = self.schedule.get_sblock("root", None)?;
        let children = self.schedule.get_child_blocks(&Rv::Block(root))?;
        Ok(self.random.pick(&children).cloned())
    }

    fn flip(&mut self) -> bool {
        self.random.one_in(2)
    }

    fn factors(&mut self) -> Vec<Option<PrimExpr>> {
        let mut list: Vec<Option<PrimExpr>> =
            (0..1 + self.random.below(2)).map(|_| Some(self.random.between(1, 6).into())).collect();
        let at = self.random.below(list.len() + 1);
        list.insert(at, None);
        list
    }

    fn a_loop(&mut self, block: &Ref<SBlockRV>) -> Result<Option<Ref<LoopRV>>, StepError> {
        let loops = self.schedule.get_loops(block)?;
        Ok(self.random.pick(&loops).cloned())
    }

    fn step(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        match self.random.below(48) {
            0..=2 => self.split(block),
            3 | 4 => self.fuse(block),
            5..=7 => self.reorder(block),
            8..=11 => self.mark(block),
            12 => self.inline(block),
            13 | 14 => self.moved(block),
            15 => self.cached(block),
            16 => {
                let Some(l) = self.a_loop(block)? else { return Ok(()) };
                self.schedule.decompose_reduction(block, &l).map(drop)
            }
            17 => self.schedule.add_unit_loop(&Rv::Block(block.clone())).map(drop),
            18 => {
                let count = self.schedule.block(block).map_or(0, |b| b.iter_vars.len()) as i64;
                let by = self.random.between(0, count);
                let order: Vec<i64> = (0..count).map(|i| (i + by) % count).collect();
                self.schedule.reorder_block_iter_var(block, &order)
            }
            19 => {
                let Some(l) = self.a_loop(block)? else { return Ok(()) };
                let axis = self.random.between(-1, 2);
                self.schedule.rfactor(&l, axis).map(drop)
            }
            20 => {
                let Some(l) = self.a_loop(block)? else { return Ok(()) };
                self.schedule.blockize(&l).map(drop)
            }
            21 => {
                let side = if self.flip() { "read" } else { "write" };
                self.schedule.reindex(block, side, 0).map(drop)
            }
            22 | 23 => self.laid_out(block),
            24..=26 => self.inline(block),
            27 => {
                let Some(l) = self.a_loop(block)? else { return Ok(()) };
                self.schedule.decompose_padding(block, &l).map(drop)
            }
            28..=30 => self.joined(),
            31..=33 => self.copied_by_map(block),
            34 | 35 => self.copied_at(block),
            36 | 37 => self.rolled(block),
            38 | 39 => {
                let consumers = self.schedule.get_consumers(block)?;
                let Some(epilogue) = self.random.pick(&consumers).cloned() else { return Ok(()) };
                self.schedule.fuse_reduction_epilogue(block, &epilogue)
            }
            40 => {
                let Some(l) = self.a_loop(block)? else { return Ok(()) };
                let first = Some(PrimExpr::from(self.random.between(1, 3)));
                let factors = if self.flip() { vec![first, None] } else { vec![None, first] };
                self.schedule.loop_partition(&l, &factors).map(drop)
            }
            41 => self.schedule.cache_index(block, "global", self.random.between(0, 2)).map(drop),
            42 => self.schedule.cache_inplace(block, 0, "local").map(drop),
            43 => {
                let place = self.schedule.sample_compute_location(block, None)?;
                self.schedule.compute_at(block, &place, UnitLoops::Dropped, -1)
            }
            44 => {
                let Ok(node) = self.schedule.block(block) else { return Ok(()) };
                let Some(read) = node.reads.first() else { return Ok(()) };
                self.schedule.annotate_buffer_access(block, 0, "read", &as_declared(&node, read))
            }
            _ => self.schedule.annotate(&Rv::Block(block.clone()), "hint", 1i64),
        }
    }

    fn split(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let Some(l) = self.a_loop(block)? else { return Ok(()) };
        if self.random.one_in(3) {
            let tile = self.schedule.sample_perfect_tile(&l, 2, 8, None)?;
            let factors: Vec<_> = tile.iter().map(|v| Some(PrimExpr::from(v))).collect();
            return self.schedule.split(&l, &factors).map(drop);
        }
        let factors = self.factors();
        self.schedule.split(&l, &factors).map(drop)
    }

    fn fuse(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let loops = self.schedule.get_loops(block)?;
        let from = self.random.below(loops.len());
        let to = (from + 2 + self.random.below(2)).min(loops.len());
        self.schedule.fuse(loops.get(from..to).unwrap_or_default()).map(drop)
    }

    fn reorder(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let mut loops = self.schedule.get_loops(block)?;
        for i in 0..loops.len() {
            let other = self.random.below(loops.len());
            loops.swap(i, other);
        }
        if self.flip() {
            loops.pop();
        }
        self.schedule.reorder(&loops)
    }

    fn mark(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let loops = self.schedule.get_loops(block)?;
        let (Some(first), Some(last)) = (loops.first(), loops.last()) else { return Ok(()) };
        match self.random.below(4) {
            0 => self.schedule.parallel(first),
            1 => self.schedule.vectorize(last),
            2 => self.schedule.unroll(last),
            _ => {
                let Some(l) = self.random.pick(&loops).cloned() else { return Ok(()) };
                match self.random.below(3) {
                    0 => self.schedule.parallel(&l),
                    1 => self.schedule.vectorize(&l),
                    _ => self.schedule.unroll(&l),
                }
            }
        }
    }

    fn inline(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        if self.flip() { self.schedule.compute_inline(block) } else { self.schedule.reverse_compute_inline(block) }
    }

    fn moved(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let keep = if self.flip() { UnitLoops::Kept } else { UnitLoops::Dropped };
        if self.flip() {
            let consumers = self.schedule.get_consumers(block)?;
            let Some(target) = self.random.pick(&consumers).cloned() else { return Ok(()) };
            let Some(l) = self.a_loop(&target)? else { return Ok(()) };
            return self.schedule.compute_at(block, &l, keep, -1);
        }
        let producers = self.schedule.get_producers(block)?;
        let Some(target) = self.random.pick(&producers).cloned() else { return Ok(()) };
        let Some(l) = self.a_loop(&target)? else { return Ok(()) };
        self.schedule.reverse_compute_at(block, &l, keep, -1)
    }

    fn cached(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let scope = self.random.pick(&SCOPES).copied().unwrap_or("global");
        match self.flip() {
            true => self.schedule.cache_read(block, 0, scope, &[]).map(drop),
            false => self.schedule.cache_write(block, 0, scope, &[]).map(drop),
        }
    }

    /// A copy of what a block reads or writes at indices of its axes.
    fn copied_by_map(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let Ok(node) = self.schedule.block(block) else { return Ok(()) };
        let reads = self.flip();
        let regions = if reads { &node.reads } else { &node.writes };
        let Some(region) = regions.first() else { return Ok(()) };
        let used: Vec<Ref<Var>> = region.region.iter().flat_map(|r| prim::free_vars(&r.min)).collect();
        let vars: Vec<Ref<Var>> =
            node.iter_vars.iter().map(|i| Var::new(i.var.name.clone(), i.var.ty.clone())).collect();
        let kept = vars.iter().zip(&node.iter_vars).filter(|(_, i)| used.contains(&i.var));
        let mut to: Vec<PrimExpr> = kept.map(|(var, _)| PrimExpr::from(var)).collect();
        to.reverse();
        if self.flip()
            && let Some(first) = to.first().cloned()
        {
            let by = prim::int_of(first.dtype(), self.random.between(2, 4));
            to.splice(0..1, [prim::floormod(&first, by.clone()), prim::floordiv(first, by)]);
        }
        let map = Ref::new(IndexMap { initial_indices: vars, final_indices: to, inverse_index_map: None });
        match reads {
            true => self.schedule.reindex_cache_read(block, 0, "local", &map).map(drop),
            false => self.schedule.reindex_cache_write(block, 0, "local", &map).map(drop),
        }
    }

    /// A copy of what a block reads or writes in one iteration of a loop.
    fn copied_at(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let Some(l) = self.a_loop(block)? else { return Ok(()) };
        match self.flip() {
            true => self.schedule.read_at(&l, block, 0, "local").map(drop),
            false => self.schedule.write_at(&l, block, 0, "local").map(drop),
        }
    }

    /// A block under a loop of its consumer, of which only what is new is computed.
    fn rolled(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let consumers = self.schedule.get_consumers(block)?;
        if let Some(target) = self.random.pick(&consumers).cloned()
            && let Some(l) = self.a_loop(&target)?
        {
            let _ = self.schedule.compute_at(block, &l, UnitLoops::Kept, -1);
        }
        self.schedule.rolling_buffer(block, 0)
    }

    /// Two or three blocks in one nest, or as one block.
    fn joined(&mut self) -> Result<(), StepError> {
        let root = self.schedule.get_sblock("root", None)?;
        let children = self.schedule.get_child_blocks(&Rv::Block(root))?;
        let from = self.random.below(children.len());
        let to = (from + 2 + self.random.below(2)).min(children.len());
        let blocks = &children[from..to];
        if self.random.one_in(4) {
            return self.schedule.blockize_blocks(blocks).map(drop);
        }
        let nests = blocks.iter().map(|block| self.schedule.get_loops(block)).collect::<Result<Vec<_>, _>>()?;
        let depth = self.random.below(nests.iter().map(Vec::len).min().unwrap_or(0));
        let loops: Vec<Ref<LoopRV>> = nests.iter().filter_map(|nest| nest.get(depth).cloned()).collect();
        self.schedule.merge(&loops).map(drop)
    }

    /// Other axes for a block, or another layout for what it writes, where that is not the kernel's result.
    fn laid_out(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        let Ok(node) = self.schedule.block(block) else { return Ok(()) };
        let factor = self.random.between(2, 4);
        if self.random.one_in(3) {
            let padding: Vec<i64> = node.iter_vars.iter().map(|_| self.random.between(1, 4)).collect();
            return self.schedule.pad_einsum(block, &padding);
        }
        if self.flip() {
            return self.schedule.transform_block_layout(block, &split_of_last(node.iter_vars.len(), factor));
        }
        let (Some(write), Ok(func)) = (node.writes.first(), self.schedule.func("main")) else { return Ok(()) };
        if func.buffers.iter().flatten().any(|b| *b == write.buffer) {
            return Ok(());
        }
        let map = split_of_last(write.region.len(), factor);
        if self.flip() {
            let zero = zero_of(map.final_indices.len(), write.buffer.dtype);
            return self.schedule.transform_layout_padded(block, "write", 0, &map, &zero);
        }
        self.schedule.transform_layout(block, "write", 0, &map, false)
    }
}

/// Zero, whatever the indices.
fn zero_of(rank: usize, dtype: relaxide_ir::DataType) -> Ref<IndexMap> {
    let vars = (0..rank).map(|d| Var::dim(format!("i{d}"))).collect();
    let final_indices = vec![prim::constant(dtype, 0.0)];
    Ref::new(IndexMap { initial_indices: vars, final_indices, inverse_index_map: None })
}

/// The ranges of a region that a block declares.
fn as_declared(block: &SBlock, region: &BufferRegion) -> Ref<IndexMap> {
    let ends = region.region.iter().flat_map(|r| [r.min.clone(), &r.min + &r.extent]).collect();
    let initial_indices = block.iter_vars.iter().map(|i| i.var.clone()).collect();
    Ref::new(IndexMap { initial_indices, final_indices: ends, inverse_index_map: None })
}

/// The map that splits the last of some indices and puts its quotient first.
fn split_of_last(rank: usize, factor: i64) -> Ref<IndexMap> {
    let vars: Vec<Ref<Var>> = (0..rank).map(|d| Var::dim(format!("i{d}"))).collect();
    let mut exprs: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
    if let Some(last) = exprs.pop() {
        exprs.insert(0, prim::floordiv(&last, factor));
        exprs.push(prim::floormod(last, factor));
    }
    Ref::new(IndexMap { initial_indices: vars, final_indices: exprs, inverse_index_map: None })
}
