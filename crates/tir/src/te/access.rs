//! What a block reads, as boxes over its axes.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimVisitor, free_vars};

use crate::functor::StmtVisitor;
use crate::stmt::{BufferRegion, Range, Stmt};

/// The regions that expressions read: a point for each load, and where several loads of one buffer differ by constants,
/// the box around them; along a dimension where they differ otherwise, all of it.
pub fn reads_of_expr<'a>(exprs: impl IntoIterator<Item = &'a PrimExpr>) -> Vec<Ref<BufferRegion>> {
    let mut loads = Loads::default();
    exprs.into_iter().for_each(|e| loads.visit_prim(e));
    loads.regions()
}

/// The regions that a statement reads, its own loop variables aside.
pub fn reads_of_stmt(stmt: &Stmt) -> Vec<Ref<BufferRegion>> {
    let mut loads = Loads::default();
    loads.visit_stmt(stmt);
    loads.regions()
}

/// All loads of each buffer, in order of first occurrence, outer before inner.
#[derive(Default)]
struct Loads {
    by_buffer: Vec<(Ref<BufferLoad>, Vec<Ref<BufferLoad>>)>,
    /// Names that are known inside of an expression alone.
    inner: HashSet<Ref<Var>>,
}

impl PrimVisitor for Loads {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Let(n) = e {
            self.inner.insert(n.var.clone());
        }
        if let PrimExpr::Load(load) = e {
            match self.by_buffer.iter_mut().find(|(first, _)| first.buffer == load.buffer) {
                Some((_, more)) => more.push(load.clone()),
                None => self.by_buffer.push((load.clone(), Vec::new())),
            }
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Loads {}

impl Loads {
    fn regions(&self) -> Vec<Ref<BufferRegion>> {
        let mut analyzer = Analyzer::new();
        let mut regions = Vec::with_capacity(self.by_buffer.len());
        for (first, more) in &self.by_buffer {
            let mut region = Vec::with_capacity(first.indices.len());
            for (d, index) in first.indices.iter().enumerate() {
                let others = more.iter().filter_map(|load| load.indices.get(d));
                let whole = first.buffer.shape.get(d);
                let names = |e: &PrimExpr| free_vars(e).iter().any(|var| self.inner.contains(var));
                let hidden = !self.inner.is_empty() && std::iter::once(index).chain(others.clone()).any(names);
                region.push(if hidden { all(whole) } else { hull(&mut analyzer, index, others, whole) });
            }
            regions.push(Ref::new(BufferRegion { buffer: first.buffer.clone(), region }));
        }
        regions
    }
}

/// All of a dimension.
fn all(extent: Option<&PrimExpr>) -> Ref<Range> {
    let extent = extent.cloned().unwrap_or_else(|| PrimExpr::from(1));
    Ref::new(Range { min: prim::int_of(extent.dtype(), 0), extent })
}

/// The range around indices that differ from the first by constants, else the whole dimension.
fn hull<'a>(
    analyzer: &mut Analyzer,
    first: &PrimExpr,
    others: impl Iterator<Item = &'a PrimExpr>,
    whole: Option<&PrimExpr>,
) -> Ref<Range> {
    let (mut low, mut high) = (0, 0);
    for other in others {
        match analyzer.constant_difference(other, first) {
            Some(distance) => (low, high) = (low.min(distance), high.max(distance)),
            None => return all(whole),
        }
    }
    let min = if low == 0 { first.clone() } else { analyzer.simplify(&(first + low)) };
    Ref::new(Range { min, extent: prim::int_of(first.dtype(), high - low + 1) })
}
