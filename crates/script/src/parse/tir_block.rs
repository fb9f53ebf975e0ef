//! Blocks: axes, regions, initial values. Regions that the text leaves out are found in the body.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim;
use relaxide_ir::{AttrValue, Attrs, Buffer, PrimExpr, Type, Var};
use relaxide_tir::analysis::regions::{Regions, regions_of_block};
use relaxide_tir::{BufferRegion, IterKind, IterVar, MatchBufferRegion, SBlock, SBlockRealize, Stmt};
use ruff_python_ast::{self as ast, Expr, Stmt as Py};
use ruff_text_size::{Ranged, TextRange};

use super::access::difference;
use super::args::Args;
use super::block_head::Part;
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
    /// Variables that stand for strides of sub-buffers.
    pub strides: Vec<Ref<Var>>,
    init: Option<Stmt>,
    /// Where its bodies begin among those of the kernel that are open, and its loops among the open loops.
    pub first_body: usize,
    pub first_loop: usize,
}

impl BlockFrame {
    /// Whether nothing was said of the block.
    pub fn is_empty(&self) -> bool {
        let regions = self.reads.is_none() && self.writes.is_none();
        let buffers = self.alloc_buffers.is_empty() && self.match_buffers.is_empty();
        regions && buffers && self.iter_vars.is_empty() && self.predicate.is_none() && self.annotations.is_empty()
    }

    /// The variables of its axes.
    pub fn axes(&self) -> impl Iterator<Item = &Ref<Var>> {
        self.iter_vars.iter().map(|axis| &axis.var)
    }

    /// The buffers that it makes in front of its body.
    pub fn buffers(&self) -> impl Iterator<Item = &Ref<Buffer>> {
        self.alloc_buffers.iter().chain(self.match_buffers.iter().map(|matched| &matched.buffer))
    }

    /// The root block around a whole body.
    pub fn root(self, body: Stmt) -> Stmt {
        self.realize("root".into(), body, false)
    }

    /// The block at its axis values; regions that were not written are found.
    fn realize(self, name: String, body: Stmt, find: bool) -> Stmt {
        let (reads, writes) = (self.reads, self.writes);
        let unsaid = find && (reads.is_none() || writes.is_none());
        let mut block = SBlock {
            iter_vars: self.iter_vars,
            reads: Vec::new(),
            writes: Vec::new(),
            name,
            alloc_buffers: self.alloc_buffers,
            match_buffers: self.match_buffers,
            annotations: self.annotations,
            init: self.init,
            body,
        };
        let found = if unsaid { regions_of_block(&block) } else { Regions::default() };
        (block.reads, block.writes) = (reads.unwrap_or(found.reads), writes.unwrap_or(found.writes));
        let predicate = self.predicate.unwrap_or_else(|| prim::boolean(true));
        Ref::new(SBlockRealize { iter_values: self.iter_values, predicate, block: Ref::new(block) }).into()
    }
}

impl Parser<'_> {
    pub(super) fn block(&mut self, name: String, body: &[Py], range: TextRange) -> Parsed<()> {
        self.kernel.has_blocks = true;
        let (first_body, first_loop) = (self.kernel.stmts.len(), self.kernel.loops.len());
        self.kernel.blocks.push(BlockFrame { first_body, first_loop, ..BlockFrame::default() });
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
        let init = self.in_head(Part::Buffers, |p| p.tir_body(body))?;
        match self.open_block(range)?.init.replace(init) {
            Some(_) => Err(self.error(Code::Structure, "a block has one T.init", range)),
            None => Ok(()),
        }
    }

    /// `T.reads`, `T.writes`, `T.where`, `T.sblock_attr`.
    pub(super) fn block_statement(&mut self, name: &str, args: &mut Args) -> Parsed<()> {
        let range = args.range;
        self.open_block(range)?;
        match name {
            "where" => {
                let e = args.required(self, "predicate")?;
                let predicate = self.scalar_expr(e)?;
                if self.open_block(range)?.predicate.replace(predicate).is_some() {
                    let message = "T.where stands twice in a block: join both conditions with T.And";
                    return Err(self.error(Code::Structure, message, range));
                }
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
                let said = if name == "reads" { &mut block.reads } else { &mut block.writes };
                if said.replace(regions).is_some() {
                    let message = format!("T.{name} stands twice in a block: name all regions in one");
                    return Err(self.error(Code::Structure, message, range));
                }
            }
            _ => {
                let e = args.required(self, "attrs")?;
                let attrs = self.attrs(e)?;
                let said = &mut self.open_block(range)?.annotations.0;
                let clash = attrs.0.into_iter().find_map(|(key, value)| match (said.get_mut(&key), value) {
                    (Some(AttrValue::Map(known)), AttrValue::Map(more)) => {
                        known.extend(more);
                        None
                    }
                    (Some(known), value) => (*known != value).then_some(key),
                    (None, value) => {
                        said.insert(key, value);
                        None
                    }
                });
                if let Some(key) = clash {
                    let message = format!("the block is said to have two values of {key:?}");
                    return Err(self.error(Code::Structure, message, range));
                }
            }
        }
        Ok(())
    }

    /// `vi, vj = T.axis.remap("SR", [i, j])`.
    pub(super) fn axes(&mut self, targets: &ast::ExprTuple, value: &Expr) -> Parsed<()> {
        let names: Option<Vec<&ast::ExprName>> = targets.elts.iter().map(|e| e.as_name_expr()).collect();
        let path = self.call_path(value);
        if let (Some(names), Expr::Call(call), Some(function)) =
            (&names, value, path.as_deref().and_then(|p| p.strip_prefix("T.")))
            && self.scope_ids(names, function, call)?
        {
            return Ok(());
        }
        match (names, value, path.as_deref().and_then(|p| p.strip_prefix("T.axis."))) {
            (Some(names), Expr::Call(call), Some(kind)) => self.in_head(Part::Axes, |p| p.axis(&names, kind, call)),
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
                let Some((_, (min, extent))) = known else {
                    return Err(self.error(Code::Arguments, "T.axis.remap takes counters of the loops around", range));
                };
                let (min, extent) = (min.clone(), extent.clone());
                self.add_axis(target, kind, min, extent, value)?;
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
        self.add_axis(target, kind, min, extent, value)
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

    fn add_axis(
        &mut self,
        target: &ast::ExprName,
        kind: IterKind,
        min: PrimExpr,
        extent: PrimExpr,
        value: PrimExpr,
    ) -> Parsed<()> {
        let name = target.id.as_str();
        if self.kernel.blocks.last().is_some_and(|block| block.iter_vars.iter().any(|axis| axis.var.name == name)) {
            return Err(self.error(Code::BoundTwice, format!("the block has an axis `{name}` already"), target.range));
        }
        let dtype: DataType = extent.dtype();
        let var = Ref::new(Var { name: target.id.to_string(), ty: Type::prim(dtype), span: self.span(target.range) });
        self.define(&target.id, Value::Prim(PrimExpr::Var(var.clone())));
        if let Some(block) = self.kernel.blocks.last_mut() {
            block.iter_vars.push(Ref::new(IterVar { var, min, extent, kind }));
            block.iter_values.push(value);
        }
        Ok(())
    }
}
