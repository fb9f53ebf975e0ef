//! Blocks: axes, regions, initial values.

use relaxide_ffi::{DataType, FreeVars, Ref, structural_equal};
use relaxide_ir::prim::add;
use relaxide_ir::{Attrs, PrimExpr, Var};
use relaxide_tir::{BufferRegion, IterKind, IterVar, MatchBufferRegion, SBlock, SBlockRealize, Stmt};

use super::Printer;
use crate::number::quoted;

impl Printer<'_> {
    /// The body of a kernel. A root block without axes is not written out: its allocations and statements are the body's.
    pub(super) fn root(&mut self, body: &Stmt) {
        if let Stmt::Block(realize) = body
            && is_root(realize)
        {
            self.line("# with T.sblock(\"root\"):");
            self.block_body(&realize.block);
            return;
        }
        self.stmt(body);
    }

    pub(super) fn block_realize(&mut self, realize: &SBlockRealize) {
        let block = &realize.block;
        self.line(format!("with T.sblock({}):", quoted(&block.name)));
        self.indent += 1;
        self.names.push();
        self.axes(realize);
        if !realize.predicate.is_int(1) {
            let predicate = self.prim(&realize.predicate);
            self.line(format!("T.where({predicate})"));
        }
        self.block_inside(block);
        self.names.pop();
        self.indent -= 1;
    }

    /// A block without the values of its axes.
    pub(super) fn block_alone(&mut self, block: &SBlock) {
        self.line(format!("with T.sblock({}, no_realize=True):", quoted(&block.name)));
        self.indent += 1;
        self.names.push();
        for axis in &block.iter_vars {
            let (kind, domain) = (axis_kind(axis.kind), self.axis_domain(axis));
            let name = self.axis_name(axis);
            self.line(format!("{name} = T.axis.{kind}({domain})"));
        }
        self.block_inside(block);
        self.names.pop();
        self.indent -= 1;
    }

    fn block_inside(&mut self, block: &SBlock) {
        // Sub-buffers may appear in the regions, so they are named first and shown where the reader expects them.
        let reads = self.regions(&block.reads);
        let writes = self.regions(&block.writes);
        self.line(format!("T.reads({reads})"));
        self.line(format!("T.writes({writes})"));
        if !block.annotations.is_empty() {
            let attrs = self.attr_map(&block.annotations.0, &[]);
            self.line(format!("T.sblock_attr({attrs})"));
        }
        self.block_body(block);
    }

    fn block_body(&mut self, block: &SBlock) {
        for buffer in &block.alloc_buffers {
            self.allocation("T.sblock_alloc_buffer", buffer, &Attrs::new());
        }
        for matched in &block.match_buffers {
            self.sub_buffer(matched);
        }
        if let Some(init) = &block.init {
            self.line("with T.init():");
            self.nested_stmt(init);
        }
        self.stmt(&block.body);
    }

    /// A buffer that stands for a region; variables for its strides and its offset are defined by it.
    fn sub_buffer(&mut self, matched: &MatchBufferRegion) {
        let (buffer, source) = (&matched.buffer, &matched.source);
        let mut parts = vec![self.region(source), self.shape_tuple(&buffer.shape)];
        let name = self.define_buffer(buffer);
        if buffer.dtype != source.buffer.dtype {
            parts.push(quoted(&buffer.dtype.to_string()));
        }
        if !buffer.strides.is_empty() {
            let strides: Vec<String> =
                buffer.strides.iter().enumerate().map(|(d, s)| self.stride(&name, d, s)).collect();
            let comma = if strides.len() == 1 { "," } else { "" };
            parts.push(format!("strides=({}{comma})", strides.join(", ")));
        }
        let mut is_anywhere = false;
        match &buffer.elem_offset {
            offset if offset.is_int(0) => {}
            PrimExpr::Var(_) if self.offset_is_its_own(buffer) => is_anywhere = true,
            PrimExpr::Var(var) if self.names.get(&var.clone().into()).is_none() => {
                let declared = self.declared(var);
                parts.push(format!("elem_offset={declared}"));
            }
            offset => parts.push(format!("elem_offset={}", self.prim(offset))),
        }
        if buffer.scope != source.buffer.scope {
            parts.push(format!("scope={}", quoted(&buffer.scope)));
        }
        if buffer.alignment != 64 {
            parts.push(format!("align={}", buffer.alignment));
        }
        if is_anywhere || buffer.offset_factor != 1 {
            parts.push(format!("offset_factor={}", buffer.offset_factor));
        }
        self.line(format!("{name} = T.match_buffer({})", parts.join(", ")));
    }

    /// A stride of a sub-buffer. A 32-bit variable that it defines is written in quotes there, and elsewhere as the buffer's.
    fn stride(&mut self, buffer: &str, dimension: usize, stride: &PrimExpr) -> String {
        match stride {
            PrimExpr::Var(var) if self.names.get(&var.clone().into()).is_none() => {
                if var.dtype() != DataType::int(32) {
                    return self.declared(var);
                }
                let quoted = quoted(&self.names.reserve(&var.name));
                self.names.alias(var.clone().into(), format!("{buffer}.strides[{dimension}]"));
                quoted
            }
            other => self.prim(other),
        }
    }

    /// The name of a variable that a line of its own declares.
    fn declared(&mut self, var: &Ref<Var>) -> String {
        let name = self.names.define(var.clone().into(), &var.name);
        let value = self.unbound(var);
        self.line(format!("{name} = {value}"));
        name
    }

    fn axes(&mut self, realize: &SBlockRealize) {
        let axes: Vec<(&Ref<IterVar>, &PrimExpr)> = realize.block.iter_vars.iter().zip(&realize.iter_values).collect();
        let mut rest = axes.as_slice();
        while let Some(((axis, value), tail)) = rest.split_first() {
            let run = rest.iter().take_while(|(axis, value)| self.is_remap(axis, value)).count();
            if run > 1 {
                let (group, tail) = rest.split_at(run);
                let kinds: String = group.iter().map(|(axis, _)| remap_letter(axis.kind)).collect();
                let values: Vec<_> = group.iter().map(|(_, value)| self.prim(value)).collect();
                let names: Vec<_> = group.iter().map(|(axis, _)| self.axis_name(axis)).collect();
                self.line(format!("{} = T.axis.remap({}, [{}])", names.join(", "), quoted(&kinds), values.join(", ")));
                rest = tail;
                continue;
            }
            let (kind, domain) = (axis_kind(axis.kind), self.axis_domain(axis));
            let value = self.prim(value);
            let name = self.axis_name(axis);
            self.line(format!("{name} = T.axis.{kind}({domain}, {value})"));
            rest = tail;
        }
    }

    fn axis_domain(&mut self, axis: &IterVar) -> String {
        if axis.min.is_int(0) {
            return self.prim(&axis.extent);
        }
        let end = add(&axis.min, &axis.extent);
        format!("({}, {})", self.prim(&axis.min), self.prim(&end))
    }

    fn axis_name(&mut self, axis: &IterVar) -> String {
        self.names.define(axis.var.clone().into(), &axis.var.name)
    }

    /// Whether an axis just follows a loop of the same extent.
    fn is_remap(&self, axis: &IterVar, value: &PrimExpr) -> bool {
        let PrimExpr::Var(var) = value else { return false };
        matches!(axis.kind, IterKind::Spatial | IterKind::Reduce)
            && axis.min.is_int(0)
            && self.loops.iter().any(|l| {
                &l.var == var && l.min.is_int(0) && structural_equal(&l.extent, &axis.extent, FreeVars::Same).is_ok()
            })
    }

    fn regions(&mut self, regions: &[Ref<BufferRegion>]) -> String {
        regions.iter().map(|r| self.region(r)).collect::<Vec<_>>().join(", ")
    }

    /// A box of a buffer; a range of one element is an index.
    pub(super) fn region(&mut self, region: &BufferRegion) -> String {
        let name = self.buffer(&region.buffer);
        if region.region.is_empty() {
            return format!("{name}[()]");
        }
        let ranges: Vec<_> = region
            .region
            .iter()
            .map(|r| {
                if r.extent.is_int(1) {
                    return self.prim(&r.min);
                }
                let end = add(&r.min, &r.extent);
                format!("{}:{}", self.prim(&r.min), self.prim(&end))
            })
            .collect();
        format!("{name}[{}]", ranges.join(", "))
    }
}

fn is_root(realize: &SBlockRealize) -> bool {
    let block = &realize.block;
    block.iter_vars.is_empty()
        && block.name == "root"
        && block.init.is_none()
        && block.match_buffers.is_empty()
        && block.annotations.is_empty()
        && realize.predicate.is_int(1)
}

/// What an axis of a kind is called behind `T.axis.`.
fn axis_kind(kind: IterKind) -> &'static str {
    match kind {
        IterKind::Spatial => "spatial",
        IterKind::Reduce => "reduce",
        IterKind::Scan => "scan",
        IterKind::Opaque => "opaque",
    }
}

fn remap_letter(kind: IterKind) -> char {
    if kind == IterKind::Reduce { 'R' } else { 'S' }
}
