//! Blocks: axes, regions, initial values. Regions that the text leaves out are found in the body.

use std::collections::HashSet;

use relaxide_ffi::{DataType, Ref, structural_equal};
use relaxide_ir::prim::{self, BufferLoad, PrimVisitor, VarMap, free_vars, substitute};
use relaxide_ir::{Attrs, Buffer, PrimExpr, Type, Var};
use relaxide_tir::{
    BufferRegion, IterKind, IterVar, MatchBufferRegion, Range, SBlock, SBlockRealize, Stmt, StmtVisitor,
};
use ruff_python_ast::{self as ast, Expr, Stmt as Py};
use ruff_text_size::{Ranged, TextRange};

use super::access::difference;
use super::args::Args;
use super::value::Value;
use super::{Parsed, Parser};
use relaxide_ir::diagnostic::Code;

/// A block under construction.
#[derive(Default)]
pub(super) struct BlockFrame {
    iter_vars: Vec<Ref<IterVar>>,
    iter_values: Vec<PrimExpr>,
    predicate: Option<PrimExpr>,
    reads: Option<Vec<Ref<BufferRegion>>>,
    writes: Option<Vec<Ref<BufferRegion>>>,
    annotations: Attrs,
    pub alloc_buffers: Vec<Ref<Buffer>>,
    pub match_buffers: Vec<Ref<MatchBufferRegion>>,
    init: Option<Stmt>,
}

impl BlockFrame {
    /// Whether nothing was said of the block.
    pub fn is_empty(&self) -> bool {
        let regions = self.reads.is_none() && self.writes.is_none();
        let buffers = self.alloc_buffers.is_empty() && self.match_buffers.is_empty();
        regions && buffers && self.iter_vars.is_empty() && self.predicate.is_none() && self.annotations.is_empty()
    }

    /// The root block around a whole body.
    pub fn root(self, body: Stmt) -> Stmt {
        self.realize("root".into(), body, false)
    }

    /// The block at its axis values; regions that were not written are found.
    fn realize(self, name: String, body: Stmt, find: bool) -> Stmt {
        let mut found = Accesses::default();
        if find && (self.reads.is_none() || self.writes.is_none()) {
            self.init.iter().for_each(|init| found.visit_stmt(init));
            found.visit_stmt(&body);
        }
        let writes = self.writes.unwrap_or_else(|| found.regions(&found.writes));
        let reads = self.reads.unwrap_or_else(|| {
            let mut reads = found.regions(&found.reads);
            // What a reduction reads of its own result is no input.
            if self.init.is_some() {
                reads.retain(|r| writes.iter().all(|w| w.buffer != r.buffer));
            }
            reads
        });
        let block = SBlock {
            iter_vars: self.iter_vars,
            reads,
            writes,
            name,
            alloc_buffers: self.alloc_buffers,
            match_buffers: self.match_buffers,
            annotations: self.annotations,
            init: self.init,
            body,
        };
        let predicate = self.predicate.unwrap_or_else(|| prim::boolean(true));
        Ref::new(SBlockRealize { iter_values: self.iter_values, predicate, block: Ref::new(block) }).into()
    }
}

impl Parser<'_> {
    pub(super) fn block(&mut self, name: String, body: &[Py], range: TextRange) -> Parsed<()> {
        self.kernel.has_blocks = true;
        self.kernel.blocks.push(BlockFrame::default());
        let body = self.nested(range, |p| p.tir_body(body));
        let frame = self.kernel.blocks.pop().unwrap_or_default();
        let stmt = frame.realize(name, body?, true);
        self.push(stmt);
        Ok(())
    }

    /// The innermost block that the text has opened.
    fn open_block(&mut self, range: TextRange) -> Parsed<&mut BlockFrame> {
        if self.kernel.blocks.len() < 2 {
            return Err(self.error(Code::Structure, "this stands in a block (with T.sblock(\"name\"):)", range));
        }
        let last = self.kernel.blocks.len() - 1;
        Ok(&mut self.kernel.blocks[last])
    }

    pub(super) fn init(&mut self, body: &[Py], range: TextRange) -> Parsed<()> {
        self.open_block(range)?;
        let init = self.tir_body(body)?;
        self.open_block(range)?.init = Some(init);
        Ok(())
    }

    /// `T.reads`, `T.writes`, `T.where`, `T.sblock_attr`.
    pub(super) fn block_statement(&mut self, name: &str, args: &mut Args) -> Parsed<()> {
        let range = args.range;
        self.open_block(range)?;
        match name {
            "where" => {
                let e = args.required(self, "predicate")?;
                let predicate = self.scalar_expr(e)?;
                let block = self.open_block(range)?;
                let before = block.predicate.take().unwrap_or_else(|| prim::boolean(true));
                let both = Parser::conjunction(before, predicate);
                self.open_block(range)?.predicate = Some(both);
            }
            "reads" | "writes" => {
                let mut regions = Vec::new();
                for e in args.rest() {
                    let value = self.expr(e)?;
                    match value {
                        Value::List(items) | Value::Tuple(items) => {
                            for item in items {
                                regions.push(self.as_region(item, e.range())?);
                            }
                        }
                        one => regions.push(self.as_region(one, e.range())?),
                    }
                }
                let block = self.open_block(range)?;
                match name {
                    "reads" => block.reads = Some(regions),
                    _ => block.writes = Some(regions),
                }
            }
            _ => {
                let e = args.required(self, "attrs")?;
                let attrs = self.attrs(e)?;
                self.open_block(range)?.annotations.0.extend(attrs.0);
            }
        }
        Ok(())
    }

    /// `vi, vj = T.axis.remap("SR", [i, j])`.
    pub(super) fn axes(&mut self, targets: &ast::ExprTuple, value: &Expr) -> Parsed<()> {
        let names: Option<Vec<&ast::ExprName>> = targets.elts.iter().map(|e| e.as_name_expr()).collect();
        let path = self.call_path(value);
        match (names, value, path.as_deref().and_then(|p| p.strip_prefix("T.axis."))) {
            (Some(names), Expr::Call(call), Some(kind)) => self.axis(&names, kind, call),
            (Some(names), Expr::Tuple(values), _) if names.len() == values.elts.len() => {
                names.into_iter().zip(&values.elts).try_for_each(|(name, value)| self.tir_assign(name, value))
            }
            _ => Err(self.unsupported("this assignment in a kernel", targets.range)),
        }
    }

    pub(super) fn axis(&mut self, targets: &[&ast::ExprName], kind: &str, call: &ast::ExprCall) -> Parsed<()> {
        let range = call.range();
        self.open_block(range)?;
        let mut args = Args::of(self, &format!("T.axis.{kind}"), call)?;
        if kind == "remap" {
            let (kinds, values) = (args.required(self, "kinds")?, args.required(self, "bindings")?);
            let kinds = self.text(kinds)?;
            let value = self.expr(values)?;
            let values = value.items().unwrap_or_default();
            args.finish(self)?;
            if kinds.chars().count() != targets.len() || values.len() != targets.len() {
                let message =
                    format!("{} names, {} kinds and {} loops", targets.len(), kinds.chars().count(), values.len());
                return Err(self.error(Code::Arguments, message, range));
            }
            for ((target, kind), value) in targets.iter().zip(kinds.chars()).zip(values) {
                let kind = self.axis_kind(&kind.to_string(), range)?;
                let value = self.scalar(value, range)?;
                let known = self.kernel.loops.iter().rev().find(|(var, _)| value.as_var() == Some(var));
                let Some((_, extent)) = known else {
                    return Err(self.error(Code::Arguments, "T.axis.remap takes counters of the loops around", range));
                };
                let extent = extent.clone();
                self.add_axis(target, kind, prim::int_of(extent.dtype(), 0), extent, value);
            }
            return Ok(());
        }
        let kind = self.axis_kind(kind, range)?;
        let [target] = targets else { return Err(self.error(Code::Arguments, "this makes one axis", range)) };
        let (domain, value) = (args.required(self, "dom")?, args.required(self, "value")?);
        let (mut min, mut extent) = self.domain(domain)?;
        let evaluated = self.expr(value)?;
        let value = self.scalar_as(&evaluated, extent.dtype(), value.range())?;
        if extent.as_int().is_some() && min.as_int().is_some() && value.dtype() != extent.dtype() {
            // A bare domain takes the type of the counter.
            (min, extent) = (prim::cast(value.dtype(), min), prim::cast(value.dtype(), extent));
        }
        args.finish(self)?;
        self.add_axis(target, kind, min, extent, value);
        Ok(())
    }

    fn axis_kind(&self, kind: &str, range: TextRange) -> Parsed<IterKind> {
        match kind {
            "spatial" | "S" => Ok(IterKind::Spatial),
            "reduce" | "R" => Ok(IterKind::Reduce),
            "scan" => Ok(IterKind::Scan),
            "opaque" => Ok(IterKind::Opaque),
            _ => Err(self
                .error(Code::UnknownMember, format!("no axis is of kind `{kind}`"), range)
                .with_help("axes are spatial (S), reduce (R), scan or opaque")
                .into()),
        }
    }

    /// An extent, or a pair of first and end.
    fn domain(&mut self, e: &Expr) -> Parsed<(PrimExpr, PrimExpr)> {
        let value = self.expr(e)?;
        match value.items() {
            None => {
                let extent = self.scalar(&value, e.range())?;
                let extent = self.counts(extent, e.range())?;
                Ok((prim::int_of(extent.dtype(), 0), extent))
            }
            Some([min, end]) => {
                let (min, end) = match self.operands(min, end) {
                    Some(pair) => pair,
                    None => (self.scalar(min, e.range())?, self.scalar(end, e.range())?),
                };
                let (min, end) = (self.counts(min, e.range())?, self.counts(end, e.range())?);
                let extent = difference(&end, &min);
                Ok((min, extent))
            }
            Some(_) => Err(self.error(Code::Arguments, "a domain is an extent or a pair", e.range())),
        }
    }

    fn add_axis(&mut self, target: &ast::ExprName, kind: IterKind, min: PrimExpr, extent: PrimExpr, value: PrimExpr) {
        let dtype: DataType = extent.dtype();
        let var = Ref::new(Var { name: target.id.to_string(), ty: Type::prim(dtype), span: self.span(target.range) });
        self.define(&target.id, Value::Prim(PrimExpr::Var(var.clone())));
        if let Some(block) = self.kernel.blocks.last_mut() {
            block.iter_vars.push(Ref::new(IterVar { var, min, extent, kind }));
            block.iter_values.push(value);
        }
    }
}

/// The accesses of a body. Indices that vary inside the body stand for the whole dimension.
#[derive(Default)]
struct Accesses {
    inner: HashSet<Ref<Var>>,
    local: HashSet<Ref<Buffer>>,
    reads: Vec<Ref<BufferRegion>>,
    writes: Vec<Ref<BufferRegion>>,
}

fn points(buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> Ref<BufferRegion> {
    let range = |i: &PrimExpr| match i {
        PrimExpr::Ramp(r) if r.stride.is_int(1) => {
            Ref::new(Range { min: r.base.clone(), extent: prim::int_of(r.base.dtype(), r.lanes) })
        }
        point => Ref::new(Range { min: point.clone(), extent: prim::int_of(point.dtype().element(), 1) }),
    };
    Ref::new(BufferRegion { buffer: buffer.clone(), region: indices.iter().map(range).collect() })
}

impl PrimVisitor for Accesses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Load(load) => {
                let BufferLoad { buffer, indices, .. } = &**load;
                self.reads.push(points(buffer, indices));
            }
            PrimExpr::Let(l) => {
                self.inner.insert(l.var.clone());
            }
            _ => {}
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Accesses {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.inner.insert(n.var.clone());
            }
            Stmt::Bind(n) => {
                self.inner.insert(n.var.clone());
            }
            Stmt::Alloc(n) => {
                self.local.insert(n.buffer.clone());
            }
            Stmt::Store(n) => self.writes.push(points(&n.buffer, &n.indices)),
            Stmt::Block(realize) => {
                self.nested_block(realize);
                return;
            }
            _ => {}
        }
        self.walk_stmt(stmt);
    }
}

impl Accesses {
    /// What a block inside says it accesses, over the values of its axes.
    fn nested_block(&mut self, realize: &SBlockRealize) {
        let block = &realize.block;
        let axes: VarMap =
            block.iter_vars.iter().map(|a| a.var.clone()).zip(realize.iter_values.iter().cloned()).collect();
        let place = |r: &Ref<BufferRegion>| {
            let range = |r: &Ref<Range>| {
                Ref::new(Range { min: substitute(&r.min, &axes), extent: substitute(&r.extent, &axes) })
            };
            Ref::new(BufferRegion { buffer: r.buffer.clone(), region: r.region.iter().map(range).collect() })
        };
        let outside = |r: &&Ref<BufferRegion>| !block.alloc_buffers.contains(&r.buffer);
        self.reads.extend(block.reads.iter().filter(outside).map(place));
        self.writes.extend(block.writes.iter().filter(outside).map(place));
        realize.iter_values.iter().for_each(|v| self.visit_prim(v));
    }

    /// One region a buffer: the common one, or the whole dimension where accesses differ or vary.
    fn regions(&self, accesses: &[Ref<BufferRegion>]) -> Vec<Ref<BufferRegion>> {
        let mut merged: Vec<(Ref<Buffer>, Vec<Ref<Range>>)> = Vec::new();
        for access in accesses.iter().filter(|a| !self.local.contains(&a.buffer)) {
            let buffer = &access.buffer;
            let whole = |dim: usize| {
                let extent = buffer.shape.get(dim).cloned().unwrap_or_else(|| PrimExpr::from(1));
                Ref::new(Range { min: prim::int_of(extent.dtype(), 0), extent })
            };
            let varies = |r: &Range| {
                [&r.min, &r.extent]
                    .into_iter()
                    .any(|e| reads_memory(e) || free_vars(e).iter().any(|v| self.inner.contains(v)))
            };
            let region: Vec<_> = access
                .region
                .iter()
                .enumerate()
                .map(|(dim, r)| if varies(r) { whole(dim) } else { r.clone() })
                .collect();
            match merged.iter_mut().find(|(known, _)| known == buffer) {
                None => merged.push((buffer.clone(), region)),
                Some((_, known)) => {
                    for (dim, (old, new)) in known.iter_mut().zip(&region).enumerate() {
                        if structural_equal(&*old, new, false).is_err() {
                            *old = whole(dim);
                        }
                    }
                }
            }
        }
        merged.into_iter().map(|(buffer, region)| Ref::new(BufferRegion { buffer, region })).collect()
    }
}

/// Whether an index depends on memory.
fn reads_memory(e: &PrimExpr) -> bool {
    struct Find(bool);
    impl PrimVisitor for Find {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= matches!(e, PrimExpr::Load(_));
            self.walk_prim(e);
        }
    }
    let mut find = Find(false);
    find.visit_prim(e);
    find.0
}
