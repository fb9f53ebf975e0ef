//! Sub-buffers become the parts of buffers that they stand for.
//!
//! ```text
//! with T.sblock("tile"):                                             with T.sblock("tile"):
//!     W = T.match_buffer(A[i, 8:12], (4,), offset_factor=1)    ->        A[i, 8 + j] = 1.0
//!     W[j] = 1.0
//! ```
//!
//! The sub-buffer has the last dimensions of its source. What the block calls its strides, its offset and its dimensions
//! becomes the value of each; its memory becomes the source's, also where a call is handed its pointer. A part of a part is a
//! part of the whole.
//!
//! A sub-buffer that has more dimensions than its source, or is accessed with another number of indices than it has
//! dimensions, is refused; and so is one that says something else of its part than is true: other dimensions, strides, another
//! beginning than the part's, or one name for two different values.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, VarMap};
use relaxide_ir::{Buffer, Var};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.LowerMatchBuffer",
    "Sub-buffers become the parts of buffers that they stand for.",
    lower_match_buffers
);

/// A kernel without sub-buffers.
pub(super) fn lower_match_buffers(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    let (vars, parts, sized) = (VarMap::new(), HashMap::new(), HashMap::new());
    let (known, bound) = (known_outside(func), Vec::new());
    let mut lowering = LowerMatch { vars, known, bound, analyzer, parts, sized, error: None };
    let body = lowering.mutate_stmt(&func.body);
    match lowering.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

/// The names that have values without sub-buffers: those of parameters, of loops and of statements.
fn known_outside(func: &PrimFunc) -> HashSet<Ref<Var>> {
    struct Defined(HashSet<Ref<Var>>);
    impl PrimVisitor for Defined {
        fn visit_prim(&mut self, _: &PrimExpr) {}
    }
    impl StmtVisitor for Defined {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            match stmt {
                Stmt::For(n) => drop(self.0.insert(n.var.clone())),
                Stmt::Bind(n) => drop(self.0.insert(n.var.clone())),
                Stmt::Block(n) => self.0.extend(n.block.iter_vars.iter().map(|iter| iter.var.clone())),
                _ => {}
            }
            self.walk_stmt(stmt);
        }
    }
    let of_buffer = |b: &Ref<Buffer>| -> Vec<Ref<Var>> {
        b.shape.iter().chain(&b.strides).chain([&b.elem_offset]).flat_map(prim::free_vars).collect()
    };
    let of_buffers = func.buffers.iter().flatten().flat_map(of_buffer);
    let mut defined = Defined(func.params.iter().cloned().chain(of_buffers).collect());
    defined.visit_stmt(&func.body);
    defined.0
}

/// The part of a buffer that a sub-buffer stands for.
struct MatchedPart {
    source: Ref<Buffer>,
    /// Where it begins; as many as the source has dimensions.
    begin: Vec<PrimExpr>,
}

impl MatchedPart {
    /// Indices into the part as indices into the source; missing leading ones are zero.
    fn at(&self, indices: &[PrimExpr]) -> Option<Vec<PrimExpr>> {
        let skipped = self.begin.len().checked_sub(indices.len())?;
        let (outer, inner) = self.begin.split_at(skipped);
        let moved = inner.iter().zip(indices).map(|(begin, index)| begin + index);
        Some(outer.iter().cloned().chain(moved).collect())
    }
}

struct LowerMatch {
    vars: VarMap,
    known: HashSet<Ref<Var>>,
    /// Names of sub-buffers of the blocks around.
    bound: Vec<Ref<Var>>,
    analyzer: Analyzer,
    parts: HashMap<Ref<Buffer>, MatchedPart>,
    /// Buffers whose dimensions name what is replaced, with those in their places.
    sized: HashMap<Ref<Buffer>, Ref<Buffer>>,
    error: Option<LowerError>,
}

impl LowerMatch {
    fn match_buffer(&mut self, matched: &MatchBufferRegion) -> Result<(), LowerError> {
        let (buffer, region) = (&matched.buffer, &matched.source);
        let unfit = |reason| LowerError::SubBuffer {
            buffer: buffer.name.clone(),
            source_buffer: region.buffer.name.clone(),
            reason,
        };
        let begin: Vec<PrimExpr> = region.region.iter().map(|r| self.mutate_prim(&r.min)).collect();
        let extents: Vec<PrimExpr> = region.region.iter().map(|r| self.mutate_prim(&r.extent)).collect();
        let kept = extents.len().checked_sub(buffer.ndim()).ok_or_else(|| unfit("it has more dimensions"))?;
        for (dim, extent) in buffer.shape.iter().zip(&extents[kept..]) {
            self.says("a dimension", dim, extent).map_err(|why| differs(matched, why))?;
        }
        let (source, begin) = match self.parts.get(&region.buffer) {
            Some(outer) => (outer.source.clone(), outer.at(&begin).ok_or_else(|| unfit("it has more dimensions"))?),
            None => (self.mutate_buffer_use(&region.buffer), begin),
        };
        let strides = strides_of(&source);
        let skipped = strides.len().checked_sub(buffer.ndim()).ok_or_else(|| unfit("it has more dimensions"))?;
        for (stride, value) in buffer.strides.iter().zip(&strides[skipped..]) {
            self.says("a stride", stride, value).map_err(|why| differs(matched, why))?;
        }
        let terms = begin.iter().zip(&strides).map(|(i, s)| i * s);
        let offset = terms.fold(source.elem_offset.clone(), |sum, term| sum + term);
        // Zero is what a sub-buffer has of which no beginning is said.
        if !buffer.elem_offset.is_int(0) {
            self.says("its beginning", &buffer.elem_offset, &offset).map_err(|why| differs(matched, why))?;
        }
        if buffer.elem_offset.as_var().is_some() {
            // Views of its memory are views of the source's: they begin where they say that the part does.
            self.vars.insert(buffer.data.clone(), PrimExpr::from(&source.data));
        }
        self.parts.insert(buffer.clone(), MatchedPart { source, begin });
        Ok(())
    }

    /// What a sub-buffer says of its part, and what is true. A name of its own becomes the value.
    fn says(&mut self, what: &'static str, said: &PrimExpr, value: &PrimExpr) -> Result<(), Untrue> {
        if let Some(var) = said.as_var()
            && !self.known.contains(var)
            && !self.vars.contains_key(var)
        {
            self.vars.insert(var.clone(), value.clone());
            self.bound.push(var.clone());
            return Ok(());
        }
        let meant = self.mutate_prim(said);
        let (a, b) = (prim::cast(value.dtype(), meant), value.clone());
        match self.analyzer.can_prove_equal(&a, &b) {
            true => Ok(()),
            false => Err(Untrue { what, said: said.clone(), value: value.clone() }),
        }
    }

    /// An access to a sub-buffer as one to its source.
    fn redirect(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Option<(Ref<Buffer>, Vec<PrimExpr>)> {
        let part = self.parts.get(buffer)?;
        let moved = if indices.len() == buffer.ndim() { part.at(indices) } else { None };
        if moved.is_none() {
            let (ndim, indices) = (buffer.ndim(), indices.len());
            self.error.get_or_insert(LowerError::WrongRank { buffer: buffer.name.clone(), ndim, indices });
        }
        Some((part.source.clone(), moved?))
    }
}

/// What a sub-buffer says of its part that is not true.
struct Untrue {
    what: &'static str,
    said: PrimExpr,
    value: PrimExpr,
}

fn differs(matched: &MatchBufferRegion, Untrue { what, said, value }: Untrue) -> LowerError {
    let (buffer, source) = (&matched.buffer.name, &matched.source.buffer.name);
    LowerError::Refused(format!(
        "sub-buffer `{buffer}` says something else of its part of `{source}` than is true: {what} is said to be `{said}`, and is \
         `{value}`; a name that nothing else has (`T.int32()`, `offset_factor=1`) takes what is true"
    ))
}

/// The distances between neighbours, given or as in a compact buffer.
pub(super) fn strides_of(buffer: &Buffer) -> Vec<PrimExpr> {
    if !buffer.strides.is_empty() {
        return buffer.strides.clone();
    }
    let mut strides = vec![PrimExpr::from(1); buffer.ndim()];
    for d in (1..buffer.ndim()).rev() {
        strides[d - 1] = &buffer.shape[d] * &strides[d];
    }
    strides
}

impl PrimMutator for LowerMatch {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).cloned().unwrap_or_else(|| e.clone()),
            PrimExpr::Load(n) if self.parts.contains_key(&n.buffer) => {
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                match self.redirect(&n.buffer, &indices) {
                    Some((buffer, indices)) => Ref::new(BufferLoad { buffer, indices, predicate }).into(),
                    None => e.clone(),
                }
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if let Some(known) = self.sized.get(buffer) {
            return known.clone();
        }
        let shape = self.mutate_prims(&buffer.shape);
        let strides = self.mutate_prims(&buffer.strides);
        let elem_offset = self.mutate_prim(&buffer.elem_offset);
        let data = self.vars.get(&buffer.data).and_then(PrimExpr::as_var).unwrap_or(&buffer.data).clone();
        let same = shape == buffer.shape && strides == buffer.strides && elem_offset == buffer.elem_offset;
        if same && data == buffer.data {
            return buffer.clone();
        }
        let sized = Ref::new(Buffer { shape, strides, elem_offset, data, ..(**buffer).clone() });
        self.sized.insert(buffer.clone(), sized.clone());
        sized
    }
}

impl StmtMutator for LowerMatch {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Store(n) if self.parts.contains_key(&n.buffer) => {
                let value = self.mutate_prim(&n.value);
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                match self.redirect(&n.buffer, &indices) {
                    Some((buffer, indices)) => Ref::new(BufferStore { buffer, value, indices, predicate }).into(),
                    None => stmt.clone(),
                }
            }
            _ => self.remake_stmt(stmt),
        }
    }

    fn remake_region(&mut self, n: &Ref<BufferRegion>) -> Ref<BufferRegion> {
        if self.parts.is_empty() {
            return n.clone();
        }
        let moved = |this: &mut Self, r: &Ref<Range>| {
            Ref::new(Range { min: this.mutate_prim(&r.min), extent: this.mutate_prim(&r.extent) })
        };
        let region: Vec<Ref<Range>> = n.region.iter().map(|r| moved(self, r)).collect();
        let mins: Vec<PrimExpr> = region.iter().map(|r| r.min.clone()).collect();
        let Some((buffer, mins)) = self.redirect(&n.buffer, &mins) else {
            return Ref::new(BufferRegion { buffer: self.mutate_buffer_use(&n.buffer), region });
        };
        // The dimensions of the source that the part does not have are points.
        let outer = mins.len() - region.len();
        let range = |(d, min): (usize, PrimExpr)| {
            let inner = d.checked_sub(outer).and_then(|d| region.get(d));
            let extent = inner.map_or_else(|| prim::int_of(min.dtype(), 1), |r| r.extent.clone());
            Ref::new(Range { min, extent })
        };
        Ref::new(BufferRegion { buffer, region: mins.into_iter().enumerate().map(range).collect() })
    }

    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        let around = self.bound.len();
        let made = self.block(n);
        for var in self.bound.split_off(around) {
            self.vars.remove(&var);
        }
        made
    }
}

impl LowerMatch {
    fn block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        for matched in &n.match_buffers {
            if let Err(error) = self.match_buffer(matched) {
                self.error.get_or_insert(error);
                return n.clone();
            }
        }
        let init = n.init.as_ref().map(|init| self.mutate_stmt(init));
        let alloc_buffers: Vec<_> = n.alloc_buffers.iter().map(|b| self.mutate_buffer_def(b)).collect();
        let reads: Vec<_> = n.reads.iter().map(|r| self.remake_region(r)).collect();
        let writes: Vec<_> = n.writes.iter().map(|r| self.remake_region(r)).collect();
        let body = self.mutate_stmt(&n.body);
        let regions = (&reads, &writes) == (&n.reads, &n.writes);
        if regions && n.match_buffers.is_empty() && alloc_buffers == n.alloc_buffers && init == n.init && body == n.body
        {
            return n.clone();
        }
        Ref::new(SBlock { match_buffers: Vec::new(), alloc_buffers, init, body, reads, writes, ..(**n).clone() })
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;

    use super::*;

    #[test]
    fn a_part_of_another_rank_is_refused() {
        let f32 = DataType::float(32);
        let (a, w) = (Buffer::new("A", f32, [16]), Buffer::new("W", f32, [4, 4]));
        let source = BufferRegion { buffer: a.clone(), region: vec![] };
        let block = SBlock {
            iter_vars: vec![],
            reads: vec![],
            writes: vec![],
            name: "w".into(),
            alloc_buffers: vec![],
            match_buffers: vec![Ref::new(MatchBufferRegion { buffer: w.clone(), source: Ref::new(source) })],
            annotations: Default::default(),
            init: None,
            body: Stmt::store(&w, [&Var::dim("i"), &Var::dim("j")], prim::float_of(f32, 1.0)),
        };
        let realize = SBlockRealize { iter_values: vec![], predicate: prim::boolean(true), block: Ref::new(block) };
        let func = PrimFunc::over_buffers(&[a], &[], Ref::new(realize).into());
        let error = lower_match_buffers(&func).unwrap_err().to_string();
        assert_eq!(error, "sub-buffer `W` does not fit the region of `A` that it stands for: it has more dimensions");
    }
}
