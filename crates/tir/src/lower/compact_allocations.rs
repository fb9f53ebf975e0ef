//! Scratch is as large as what is used of it.
//!
//! ```text
//! for i in range(16):                                 for i in range(16):
//!     with T.sblock(""):                                  with T.sblock(""):
//!         B = T.sblock_alloc_buffer((16, 16))     ->          B = T.sblock_alloc_buffer((1, 16))
//!         for j in range(16):                                 for j in range(16):
//!             B[i, j] = A[i, j] * 2                               B[0, j] = A[i, j] * 2
//! ```
//!
//! For each buffer that a block allocates, the accesses in the block span a box while the loops inside of the block run; of a buffer
//! that a statement allocates they are those behind it in the same sequence. Along a
//! dimension where the box is known to be smaller than the buffer, the buffer begins where the box does and has its extent.
//!
//! Threads that share the memory are counted through like loops inside: a buffer in shared memory has what all threads of a block
//! use, one in global memory what all of the device use.
//!
//! An access under a condition (of a statement, of an `if_then_else`, of a block) spans what of the box is under it: where the condition
//! compares a loop's counter, or what the index is but for a constant, with something that stands still.
//!
//! A buffer whose rows are to begin at certain places (`buffer_dim_align`, which `storage_align` writes) gets strides.
//!
//! A dimension keeps its extent where an index has no interval, where the box depends on what is defined inside the block, or
//! where it is not known that the box is smaller and not negative. With `is_strict=False` it takes the box's extent also where
//! that may be larger.
//!
//! Left as they are: buffers with strides, with another view of their memory, or whose pointer something takes.
//!
//! Needs opaque blocks ([`opaque_blocks`](super::opaque_blocks)) or none: axes hide which loops an index depends on. Blocks with
//! axes are left as they are.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, free_vars};
use relaxide_ir::{AttrValue, Buffer, Var};

use super::used_boxes::Used;
use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::analysis::interval::Interval;
use crate::analysis::regions::shared_memory;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::s_tir::primitive::storage_align::BUFFER_DIM_ALIGN;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.CompactBufferAllocation",
    "Scratch of blocks is as large as what is used of it.",
    |func, _, args| compact(func, args.bool("is_strict") != Some(false))
)
.params(&[PassParam::new("is_strict", ParamKind::Bool, ParamDefault::Bool(true), "Dimensions only become smaller.")]);

/// A kernel whose blocks allocate what they use.
pub(super) fn compact_allocations(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    compact(func, true)
}

fn compact(func: &PrimFunc, strict: bool) -> Result<PrimFunc, LowerError> {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    let mut aligned = Aligned::default();
    aligned.visit_stmt(&func.body);
    let pointers = shared_memory(&func.body);
    let (threads, smaller) = (Vec::new(), HashMap::new());
    let mut find = Find { analyzer, strict, pointers, aligned: aligned.0, threads, smaller };
    find.visit_stmt(&func.body);
    if find.smaller.is_empty() {
        return Ok(func.clone());
    }
    let mut rewrite = Shift { analyzer: find.analyzer, smaller: find.smaller };
    Ok(func.with_body(rewrite.mutate_stmt(&func.body)))
}

/// A smaller buffer in the place of another.
struct Smaller {
    buffer: Ref<Buffer>,
    /// Where it begins in the old one.
    begin: Vec<PrimExpr>,
}

/// Looks for buffers that can be smaller.
struct Find {
    analyzer: Analyzer,
    strict: bool,
    pointers: HashSet<Ref<Var>>,
    aligned: HashMap<Ref<Buffer>, Vec<Align>>,
    /// The loops over threads around, from the outermost.
    threads: Vec<Ref<For>>,
    smaller: HashMap<Ref<Buffer>, Smaller>,
}

impl Find {
    /// Looks at buffers that live as long as some statements.
    fn scratch<'a>(&mut self, buffers: impl Iterator<Item = &'a Ref<Buffer>>, within: &[Stmt]) {
        let candidates = buffers.filter(|b| b.strides.is_empty() && !self.pointers.contains(&b.data));
        let mut by_scope: IndexMap<String, Vec<Ref<Buffer>>> = IndexMap::new();
        candidates.for_each(|buffer| by_scope.entry(buffer.scope.clone()).or_default().push(buffer.clone()));
        by_scope.into_iter().for_each(|(scope, candidates)| self.of_scope(&scope, candidates, within));
    }

    fn of_scope(&mut self, scope: &str, candidates: Vec<Ref<Buffer>>, within: &[Stmt]) {
        let analyzer = std::mem::take(&mut self.analyzer);
        let mut used = Used::of(candidates, analyzer);
        for thread in self.threads.iter().filter(|thread| is_shared_by(scope, &thread.thread_tag)) {
            used.defined.insert(thread.var.clone());
            used.running.add(&thread.var, &thread.min, &thread.extent, &mut used.analyzer);
        }
        within.iter().for_each(|stmt| used.visit_stmt(stmt));
        self.analyzer = used.analyzer;
        for buffer in used.candidates {
            let Some(Some(dims)) = used.boxes.remove(&buffer) else { continue };
            if let Some(smaller) = self.shrink(&buffer, &dims, &used.defined) {
                self.smaller.insert(buffer, smaller);
            }
        }
    }

    fn shrink(
        &mut self,
        buffer: &Ref<Buffer>,
        dims: &[Option<Interval>],
        inside: &HashSet<Ref<Var>>,
    ) -> Option<Smaller> {
        let (mut begin, mut shape) = (Vec::new(), Vec::new());
        for (old, dim) in buffer.shape.iter().zip(dims) {
            let fits = dim.as_ref().and_then(|dim| self.fit(old, dim, inside));
            let (min, extent) = fits.unwrap_or_else(|| (prim::int_of(old.dtype(), 0), old.clone()));
            begin.push(min);
            shape.push(extent);
        }
        let same = |(a, b): (&PrimExpr, &PrimExpr)| relaxide_ir::arith::same(a, b);
        let strides = self.aligned.get(buffer).map_or_else(Vec::new, |aligned| strides(&shape, aligned));
        if strides.is_empty() && begin.iter().all(|b| b.is_int(0)) && shape.iter().zip(&buffer.shape).all(same) {
            return None;
        }
        let data = Var::new(buffer.data.name.clone(), buffer.data.ty.clone());
        let buffer = Buffer {
            name: buffer.name.clone(),
            data,
            dtype: buffer.dtype,
            shape,
            strides,
            elem_offset: buffer.elem_offset.clone(),
            scope: buffer.scope.clone(),
            alignment: buffer.alignment,
            offset_factor: buffer.offset_factor,
            layout: relaxide_ir::layout::Placement::Strided,
            producer: None,
        };
        Some(Smaller { buffer: Ref::new(buffer), begin })
    }

    /// Beginning and extent of a dimension, if it is to change.
    fn fit(&mut self, old: &PrimExpr, dim: &Interval, inside: &HashSet<Ref<Var>>) -> Option<(PrimExpr, PrimExpr)> {
        let dtype = old.dtype();
        let extent = prim::cast(dtype, dim.extent(&mut self.analyzer));
        let visible = |e: &PrimExpr| {
            let data = relaxide_ir::prim::is_data(e);
            !data && !free_vars(e).iter().any(|var| inside.contains(var))
        };
        if !visible(&dim.min) || !visible(&extent) || !self.analyzer.can_prove(&prim::ge(&extent, 0)) {
            return None;
        }
        if self.strict && !self.analyzer.can_prove(&prim::le(&extent, old)) {
            return None;
        }
        Some((dim.min.clone(), extent))
    }
}

/// Rows along a dimension begin at a multiple of `factor` elements and `offset` more.
struct Align {
    dim: usize,
    factor: i64,
    offset: i64,
}

/// What blocks say of the rows of the buffers that they write.
#[derive(Default)]
struct Aligned(HashMap<Ref<Buffer>, Vec<Align>>);

impl PrimVisitor for Aligned {
    fn visit_prim(&mut self, _: &PrimExpr) {}
}

impl StmtVisitor for Aligned {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::Block(n) = stmt {
            let number = |value: &AttrValue| match value {
                AttrValue::Int(number) => Some(*number),
                AttrValue::Prim(e) => e.as_int(),
                _ => None,
            };
            let rows = match n.block.annotations.0.get(BUFFER_DIM_ALIGN) {
                Some(AttrValue::List(rows)) => rows.as_slice(),
                _ => &[],
            };
            for row in rows {
                let AttrValue::List(row) = row else { continue };
                let row: Vec<i64> = row.iter().filter_map(number).collect();
                let [buffer, dim, factor, offset] = row[..] else { continue };
                let written = usize::try_from(buffer).ok().and_then(|at| n.block.writes.get(at));
                if let (Some(written), Ok(dim), 1..) = (written, usize::try_from(dim), factor) {
                    self.0.entry(written.buffer.clone()).or_default().push(Align { dim, factor, offset });
                }
            }
        }
        self.walk_stmt(stmt);
    }
}

/// The distances between neighbours, the rows being aligned; none for a length that is not known.
fn strides(shape: &[PrimExpr], aligned: &[Align]) -> Vec<PrimExpr> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for (dim, extent) in shape.iter().enumerate().rev() {
        if let Some(Align { factor, offset, .. }) = aligned.iter().find(|align| align.dim == dim) {
            stride += (factor + offset - stride % factor) % factor;
        }
        strides.push(prim::int_of(extent.dtype(), stride));
        let Some(extent) = extent.as_int() else { return Vec::new() };
        stride *= extent;
    }
    strides.reverse();
    strides
}

/// Whether threads of a name have one memory of a scope together.
fn is_shared_by(scope: &str, tag: &str) -> bool {
    let of_block = tag.starts_with("threadIdx.") || tag.starts_with("vthread");
    match scope.split('.').next() {
        Some("global" | "") => true,
        Some("shared") => of_block,
        Some("warp") => tag == "threadIdx.x",
        _ => false,
    }
}

impl PrimVisitor for Find {
    fn visit_prim(&mut self, _: &PrimExpr) {}
}

impl StmtVisitor for Find {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                let mark = self.analyzer.assume(&prim::ge(&n.extent, 1));
                self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
                let threads = self.threads.len();
                self.threads.extend((n.kind == ForKind::ThreadBinding).then(|| n.clone()));
                self.visit_stmt(&n.body);
                self.threads.truncate(threads);
                self.analyzer.forget(mark);
                return;
            }
            Stmt::Block(n) if n.block.iter_vars.is_empty() => {
                self.scratch(n.block.alloc_buffers.iter(), std::slice::from_ref(&n.block.body));
            }
            Stmt::Seq(n) if n.seq.iter().any(|s| matches!(s, Stmt::Alloc(_))) => {
                for (at, stmt) in n.seq.iter().enumerate() {
                    if let Stmt::Alloc(alloc) = stmt {
                        self.scratch([&alloc.buffer].into_iter(), &n.seq[at + 1..]);
                    }
                    self.visit_stmt(stmt);
                }
                return;
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

/// Puts smaller buffers in the place of others.
struct Shift {
    analyzer: Analyzer,
    smaller: HashMap<Ref<Buffer>, Smaller>,
}

impl Shift {
    fn moved(&mut self, begin: &PrimExpr, index: &PrimExpr) -> PrimExpr {
        if begin.is_int(0) {
            return index.clone();
        }
        match index {
            PrimExpr::Ramp(n) => prim::ramp(self.moved(begin, &n.base), n.stride.clone(), n.lanes),
            _ => self.analyzer.simplify(&(index - begin)),
        }
    }

    fn element(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Option<(Ref<Buffer>, Vec<PrimExpr>)> {
        let smaller = self.smaller.remove(buffer)?;
        let indices = smaller.begin.iter().zip(indices).map(|(begin, index)| self.moved(begin, index)).collect();
        let moved = smaller.buffer.clone();
        self.smaller.insert(buffer.clone(), smaller);
        Some((moved, indices))
    }
}

impl PrimMutator for Shift {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = self.remake_prim(e);
        let PrimExpr::Load(n) = &e else { return e };
        match self.element(&n.buffer, &n.indices) {
            Some((buffer, indices)) => Ref::new(BufferLoad { buffer, indices, predicate: n.predicate.clone() }).into(),
            None => e,
        }
    }
}

impl StmtMutator for Shift {
    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let value = self.mutate_prim(&n.value);
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        let indices = self.mutate_prims(&n.indices);
        let (buffer, indices) = self.element(&n.buffer, &indices).unwrap_or((n.buffer.clone(), indices));
        Ref::new(BufferStore { buffer, value, indices, predicate })
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.smaller.get(buffer).map_or_else(|| buffer.clone(), |smaller| smaller.buffer.clone())
    }

    fn remake_region(&mut self, n: &Ref<BufferRegion>) -> Ref<BufferRegion> {
        let mins: Vec<PrimExpr> = n.region.iter().map(|r| r.min.clone()).collect();
        let Some((buffer, mins)) = self.element(&n.buffer, &mins) else { return n.clone() };
        let range = |(min, old): (PrimExpr, &Ref<Range>)| Ref::new(Range { min, extent: old.extent.clone() });
        Ref::new(BufferRegion { buffer, region: mins.into_iter().zip(&n.region).map(range).collect() })
    }
}
