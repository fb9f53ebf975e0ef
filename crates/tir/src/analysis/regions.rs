//! Which boxes of buffers a statement reads and writes.
//!
//! A loop inside of the statement widens what its body touches to all that it touches over the loop; a block inside counts
//! as its own regions at the values of its axes. Accesses of one buffer are joined in one box, in the order of their first
//! occurrence. Where an index has no interval (it is loaded from memory, say), the box takes the whole dimension.
//!
//! What a block touches of its sub-buffers it touches of the buffers that they are part of.
//!
//! A block that sets its elements first (`init`) does not read what it writes: what it adds to is its own.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimVisitor, VarMap, free_vars, substitute};
use relaxide_ir::{Buffer, Var};

use super::interval::{Interval, Running};
use crate::functor::StmtVisitor;
use crate::stmt::*;

/// The boxes that are read and those that are written.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// What is read, in order of first occurrence.
    pub reads: Vec<Ref<BufferRegion>>,
    /// What is written.
    pub writes: Vec<Ref<BufferRegion>>,
}

/// What a statement touches, the loops in it run through.
pub fn regions_of(stmt: &Stmt) -> Regions {
    let mut touched = Touched::default();
    touched.visit_stmt(stmt);
    touched.finish(&HashSet::new())
}

/// What a block touches, over its axes.
pub fn regions_of_block(block: &SBlock) -> Regions {
    let mut touched = Touched::default();
    for iter in &block.iter_vars {
        touched.analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
    }
    touched.own.extend(block.alloc_buffers.iter().cloned());
    touched.sub_buffers.extend(block.match_buffers.iter().map(|m| (m.buffer.clone(), m.source.clone())));
    if let Some(init) = &block.init {
        touched.visit_stmt(init);
    }
    touched.visit_stmt(&block.body);
    let written = touched.writes.iter().map(|(buffer, _)| buffer.clone());
    let own = if block.init.is_some() { written.collect() } else { HashSet::new() };
    touched.finish(&own)
}

/// The mark of a block that says which of its `reads` were given by hand, by their places.
pub const EXPLICIT_READS: &str = "explicit_read_region";
/// The same of its `writes`.
pub const EXPLICIT_WRITES: &str = "explicit_write_region";

/// The block with its regions worked out anew. Of a buffer that it touches by a pointer, what it declares stays, and so does
/// what was given by hand.
pub fn with_regions(block: SBlock) -> Ref<SBlock> {
    let found = regions_of_block(&block);
    let pointers = pointers_of(&block.body);
    let keep = |declared: &[Ref<BufferRegion>], found: Vec<Ref<BufferRegion>>| {
        let sub_buffer = |b: &Ref<Buffer>| block.match_buffers.iter().any(|m| m.source.buffer == *b);
        let hidden = declared.iter().filter(|r| pointers.contains(&r.buffer.data) || sub_buffer(&r.buffer));
        let mut all: Vec<Ref<BufferRegion>> = hidden.cloned().collect();
        let new: Vec<_> = found.into_iter().filter(|f| !all.iter().any(|r| r.buffer == f.buffer)).collect();
        all.extend(new);
        all
    };
    let (mut reads, mut writes) = (keep(&block.reads, found.reads), keep(&block.writes, found.writes));
    let mut annotations = block.annotations.clone();
    keep_explicit(&mut annotations, EXPLICIT_READS, &block, &block.reads, &mut reads);
    keep_explicit(&mut annotations, EXPLICIT_WRITES, &block, &block.writes, &mut writes);
    Ref::new(SBlock { reads, writes, annotations, ..block })
}

/// Puts the regions that were given by hand back, and marks where they are now. One over axes that the block has no more goes.
fn keep_explicit(
    annotations: &mut relaxide_ir::Attrs,
    key: &str,
    block: &SBlock,
    declared: &[Ref<BufferRegion>],
    found: &mut [Ref<BufferRegion>],
) {
    let is_over_axes = |region: &&Ref<BufferRegion>| {
        let sizes: Vec<Ref<Var>> = region.buffer.shape.iter().flat_map(free_vars).collect();
        let mut used = region.region.iter().flat_map(|r| [&r.min, &r.extent]).flat_map(free_vars);
        used.all(|v| sizes.contains(&v) || block.iter_vars.iter().any(|i| i.var == v))
    };
    let Some(AttrValue::List(marked)) = annotations.0.get(key) else { return };
    let place = |mark: &AttrValue| match mark {
        AttrValue::Int(at) => usize::try_from(*at).ok(),
        AttrValue::Prim(e) => e.as_int().and_then(|at| usize::try_from(at).ok()),
        _ => None,
    };
    let mut kept = Vec::new();
    for given in marked.iter().filter_map(place).filter_map(|at| declared.get(at)).filter(is_over_axes) {
        if let Some(at) = found.iter().position(|r| r.buffer == given.buffer) {
            found[at] = given.clone();
            kept.push(AttrValue::Int(at as i64));
        }
    }
    match kept.is_empty() {
        true => drop(annotations.0.shift_remove(key)),
        false => drop(annotations.0.insert(key.to_string(), AttrValue::List(kept))),
    }
}

/// A region with its variables replaced.
pub fn substitute_region(region: &BufferRegion, map: &VarMap) -> Ref<BufferRegion> {
    let range = |r: &Ref<Range>| Ref::new(Range { min: substitute(&r.min, map), extent: substitute(&r.extent, map) });
    Ref::new(BufferRegion { buffer: region.buffer.clone(), region: region.region.iter().map(range).collect() })
}

/// A region while variables run, as an interval a dimension; a dimension without one is taken whole.
pub fn widened(region: &BufferRegion, running: &Running, analyzer: &mut Analyzer) -> Vec<Interval> {
    let whole = |d: usize| whole_dimension(&region.buffer, d);
    let mut dims = Vec::with_capacity(region.region.len());
    for (d, range) in region.region.iter().enumerate() {
        let ends = Interval::of_range(&range.min, &range.extent);
        let (low, high) = (running.of(&ends.min, analyzer), running.of(&ends.max, analyzer));
        dims.push(match (low, high) {
            (Some(low), Some(high)) => Interval { min: low.min, max: high.max },
            _ => whole(d),
        });
    }
    dims
}

/// All of a dimension.
pub fn whole_dimension(buffer: &Buffer, d: usize) -> Interval {
    let extent = buffer.shape.get(d).cloned().unwrap_or_else(|| prim::int(1));
    Interval::of_range(&prim::int_of(extent.dtype(), 0), &extent)
}

/// Intervals as a region.
pub fn to_region(buffer: &Ref<Buffer>, dims: &[Interval], analyzer: &mut Analyzer) -> Ref<BufferRegion> {
    let range = |dim: &Interval| Ref::new(Range { min: dim.min.clone(), extent: dim.extent(analyzer) });
    Ref::new(BufferRegion { buffer: buffer.clone(), region: dims.iter().map(range).collect() })
}

/// The pointers that a statement uses as values: what it does through them is not seen in loads and stores.
pub fn pointers_of(stmt: &Stmt) -> HashSet<Ref<Var>> {
    struct Pointers(HashSet<Ref<Var>>);
    impl PrimVisitor for Pointers {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Var(var) if var.dtype().is_handle() => drop(self.0.insert(var.clone())),
                _ => self.walk_prim(e),
            }
        }
    }
    impl StmtVisitor for Pointers {}
    let mut pointers = Pointers(HashSet::new());
    pointers.visit_stmt(stmt);
    pointers.0
}

/// Memory that others than its own buffer know of: by its pointer, or as buffers that are declared over it. It can neither
/// move nor change its type or size.
pub fn shared_memory(stmt: &Stmt) -> HashSet<Ref<Var>> {
    struct Views(HashSet<Ref<Var>>);
    impl PrimVisitor for Views {
        fn visit_prim(&mut self, _: &PrimExpr) {}
    }
    impl StmtVisitor for Views {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Decl(n) = stmt {
                self.0.insert(n.buffer.data.clone());
            }
            self.walk_stmt(stmt);
        }
    }
    let mut views = Views(pointers_of(stmt));
    views.visit_stmt(stmt);
    views.0
}

type Boxes = Vec<(Ref<Buffer>, Vec<Interval>)>;

#[derive(Default)]
struct Touched {
    running: Running,
    analyzer: Analyzer,
    reads: Boxes,
    writes: Boxes,
    /// Buffers that live inside: what happens to them is nobody's business outside.
    own: HashSet<Ref<Buffer>>,
    /// Buffers that stand for a region of another.
    sub_buffers: HashMap<Ref<Buffer>, Ref<BufferRegion>>,
}

impl Touched {
    fn finish(mut self, not_read: &HashSet<Ref<Buffer>>) -> Regions {
        let own = std::mem::take(&mut self.own);
        let (reads, writes) = (std::mem::take(&mut self.reads), std::mem::take(&mut self.writes));
        let seen = |b: &Ref<Buffer>| !own.contains(b);
        let mut region = |(buffer, dims): (Ref<Buffer>, Vec<Interval>)| to_region(&buffer, &dims, &mut self.analyzer);
        Regions {
            reads: reads.into_iter().filter(|(b, _)| seen(b) && !not_read.contains(b)).map(&mut region).collect(),
            writes: writes.into_iter().filter(|(b, _)| seen(b)).map(&mut region).collect(),
        }
    }

    fn point(&self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Ref<BufferRegion> {
        let range = |index: &PrimExpr| match index {
            PrimExpr::Ramp(n) => {
                Ref::new(Range { min: n.base.clone(), extent: &n.stride * (prim::lanes_expr(n.lanes) - 1) + 1 })
            }
            _ => Ref::new(Range { min: index.clone(), extent: prim::int_of(index.dtype().element(), 1) }),
        };
        Ref::new(BufferRegion { buffer: buffer.clone(), region: indices.iter().map(range).collect() })
    }

    /// A region of what sub-buffers are part of. Sub-buffers of each other end: each may stand for another once.
    fn at_source(&self, mut region: Ref<BufferRegion>) -> Ref<BufferRegion> {
        for _ in 0..self.sub_buffers.len() {
            let Some(source) = self.sub_buffers.get(&region.buffer) else { break };
            region = within(source, &region);
        }
        region
    }

    fn bind(&mut self, var: &Ref<Var>, interval: Option<Interval>) {
        match interval {
            Some(interval) => self.running.insert(var, interval),
            None => self.running.hide(var),
        }
    }

    fn touch(&mut self, region: Ref<BufferRegion>, written: bool) {
        let region = self.at_source(region);
        let dims = widened(&region, &self.running, &mut self.analyzer);
        let boxes = if written { &mut self.writes } else { &mut self.reads };
        match boxes.iter_mut().find(|(buffer, _)| *buffer == region.buffer) {
            Some((_, known)) => {
                for (d, (known, new)) in known.iter_mut().zip(&dims).enumerate() {
                    *known = joined(known, new, &region.buffer, d, &mut self.analyzer);
                }
            }
            None => boxes.push((region.buffer.clone(), dims)),
        }
    }
}

/// What a region of a sub-buffer is of the buffer that it is part of. The sub-buffer has its source's last dimensions.
fn within(source: &BufferRegion, region: &BufferRegion) -> Ref<BufferRegion> {
    let outer = source.region.len().saturating_sub(region.region.len());
    let (fixed, shared) = source.region.split_at(outer);
    let moved = shared
        .iter()
        .zip(&region.region)
        .map(|(whole, part)| Ref::new(Range { min: prim::add(&whole.min, &part.min), extent: part.extent.clone() }));
    Ref::new(BufferRegion { buffer: source.buffer.clone(), region: fixed.iter().cloned().chain(moved).collect() })
}

/// The box around two; the whole dimension where their ends cannot be compared.
fn joined(a: &Interval, b: &Interval, buffer: &Buffer, d: usize, analyzer: &mut Analyzer) -> Interval {
    let hull = a.hull(b, analyzer);
    let is_open = |e: &PrimExpr, a: &PrimExpr, b: &PrimExpr, analyzer: &mut Analyzer| {
        !analyzer.can_prove_equal(e, a) && !analyzer.can_prove_equal(e, b)
    };
    if is_open(&hull.min, &a.min, &b.min, analyzer) || is_open(&hull.max, &a.max, &b.max, analyzer) {
        return whole_dimension(buffer, d);
    }
    hull
}

impl PrimVisitor for Touched {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Load(load) => {
                let BufferLoad { buffer, indices, .. } = &**load;
                let region = self.point(buffer, indices);
                self.touch(region, false);
                self.walk_prim(e);
            }
            PrimExpr::Let(n) => {
                self.visit_prim(&n.value);
                // What is made of data would be data in the ends of a region.
                let interval = if prim::any(&n.value, |e| matches!(e, PrimExpr::Load(_))) {
                    None
                } else {
                    self.running.of(&n.value, &mut self.analyzer)
                };
                self.bind(&n.var, interval);
                self.visit_prim(&n.body);
            }
            _ => self.walk_prim(e),
        }
    }
}

impl StmtVisitor for Touched {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.visit_prim(&n.min);
                self.visit_prim(&n.extent);
                self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
                self.running.add(&n.var, &n.min, &n.extent, &mut self.analyzer);
                self.visit_stmt(&n.body);
            }
            Stmt::Store(n) => {
                let region = self.point(&n.buffer, &n.indices);
                self.touch(region, true);
                self.walk_stmt(stmt);
            }
            Stmt::Alloc(n) => drop(self.own.insert(n.buffer.clone())),
            Stmt::Bind(n) => {
                self.visit_prim(&n.value);
                let interval = self.running.of(&n.value, &mut self.analyzer);
                self.bind(&n.var, interval);
            }
            Stmt::Block(n) => {
                n.iter_values.iter().for_each(|v| self.visit_prim(v));
                self.visit_prim(&n.predicate);
                let axes = n.block.iter_vars.iter().map(|iter| iter.var.clone());
                let map: VarMap = axes.zip(n.iter_values.iter().cloned()).collect();
                n.block.reads.iter().for_each(|r| self.touch(substitute_region(r, &map), false));
                n.block.writes.iter().for_each(|r| self.touch(substitute_region(r, &map), true));
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;

    use super::super::samples;
    use super::*;

    const F32: DataType = DataType::float(32);

    fn text(regions: &[Ref<BufferRegion>]) -> Vec<String> {
        let dim = |r: &Ref<Range>| format!("{}+{}", r.min, r.extent);
        let one = |r: &Ref<BufferRegion>| {
            format!("{}[{}]", r.buffer.name, r.region.iter().map(dim).collect::<Vec<_>>().join(", "))
        };
        regions.iter().map(one).collect()
    }

    #[test]
    fn loops_widen_what_is_touched() {
        let (a, b) = (Buffer::new("A", F32, [16, 16]), Buffer::new("B", F32, [16]));
        let [i, k] = ["i", "k"].map(Var::dim);
        let (ie, ke) = (PrimExpr::from(&i), PrimExpr::from(&k));
        let near = prim::load(&a, [ie.clone(), &ke * 2 + 1]) + prim::load(&a, [ie.clone(), ke.clone()]);
        let body = Stmt::serial(k, 4, Stmt::store(&b, [ie.clone()], near + prim::load(&b, [ie])));
        let found = regions_of(&body);
        assert_eq!(text(&found.reads), ["A[i+1, 0+8]", "B[i+1]"]);
        assert_eq!(text(&found.writes), ["B[i+1]"]);
    }

    #[test]
    fn an_index_from_memory_takes_the_whole_dimension() {
        let (a, at) = (Buffer::new("A", F32, [16, 8]), Buffer::new("at", DataType::int(64), [4]));
        let (out, i) = (Buffer::new("out", F32, [4, 8]), Var::dim("i"));
        let row = prim::load(&at, [PrimExpr::from(&i)]);
        let body = Stmt::serial(
            i.clone(),
            4,
            Stmt::store(&out, [PrimExpr::from(&i), 3.into()], prim::load(&a, [row, 2.into()])),
        );
        let found = regions_of(&body);
        assert_eq!(text(&found.reads), ["A[0+16, 2+1]", "at[0+4]"]);
        assert_eq!(text(&found.writes), ["out[0+4, 3+1]"]);
    }

    #[test]
    fn names_within_an_expression_are_in_no_region() {
        let (a, at) = (Buffer::new("A", F32, [16, 8]), Buffer::new("at", DataType::int(64), [4]));
        let out = Buffer::new("out", F32, [4]);
        let [i, row, next] = ["i", "row", "next"].map(Var::dim);
        let ie = PrimExpr::from(&i);
        let named = |var: &Ref<Var>, value: PrimExpr, body: PrimExpr| -> PrimExpr {
            Ref::new(prim::Let { var: var.clone(), value, body }).into()
        };
        let value = prim::load(&a, [PrimExpr::from(&row), PrimExpr::from(&next)]);
        let value = named(&next, &ie + 1, named(&row, prim::load(&at, [ie.clone()]), value));
        let store = Stmt::store(&out, [ie], value);
        assert_eq!(text(&regions_of(&store).reads), ["at[i+1]", "A[0+16, i + 1+1]"]);
        let of_compute = crate::te::reads_of_stmt(&store);
        assert_eq!(text(&of_compute), ["at[i+1]", "A[0+16, 0+8]"]);
    }

    #[test]
    fn a_block_with_an_init_does_not_read_its_own_elements() {
        let block = samples::block(&samples::matmul(4), "C");
        let again = with_regions(samples::copy(&block));
        assert_eq!(text(&again.reads), text(&block.reads));
        assert_eq!(text(&again.writes), text(&block.writes));
        let found = regions_of_block(&SBlock { init: None, ..samples::copy(&block) });
        assert_eq!(found.reads.len(), 3);
    }
}
