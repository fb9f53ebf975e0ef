//! Kernels: signature and statements.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{PrimVisitor, add, free_vars};
use relaxide_ir::{AttrValue, Buffer, PrimExpr, Type, Var};
use relaxide_tir::kernel_call::CALL_KERNEL;
use relaxide_tir::tile::{DEVICE_ENTRY, HINT, HINT_MESSAGE, PERSISTENT_KERNEL};
use relaxide_tir::{AllocBuffer, AttrStmt, BufferStore, For, ForKind, IfThenElse, PrimFunc, Stmt, StmtVisitor};

use super::Printer;
use super::names::identifier;
use crate::FLAT_INDICES;
use crate::number::quoted;
use crate::parse::{ALLOCATED_AT, DISABLE_UNROLL, PRAGMA_UNROLL};

/// How a buffer's type is written: as an annotation, which always shows the dtype, or as an allocation, which leaves out
/// `float32`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BufferForm {
    Annotation,
    Allocation,
}

impl Printer<'_> {
    /// A kernel with its decorator.
    pub(super) fn prim_func(&mut self, name: &str, func: &PrimFunc) {
        self.enter_tir();
        self.names.push();
        let private = func.global_symbol().is_none();
        let blocks = has_blocks(&func.body) || func.attrs.bool("s_tir") == Some(true);
        let persistent = func.attrs.bool(PERSISTENT_KERNEL) == Some(true);
        let said = [("private", private), ("persistent", persistent), ("s_tir", blocks)];
        let options: Vec<_> = said.iter().filter(|(_, on)| *on).map(|(name, _)| format!("{name}=True")).collect();
        let options = if options.is_empty() { String::new() } else { format!("({})", options.join(", ")) };
        self.line(format!("@T.prim_func{options}"));
        let (params, matched) = self.signature(func);
        let ret = match &func.ret_type {
            Type::Tuple(t) if t.fields.is_empty() => String::new(),
            Type::Missing(_) => String::new(),
            ty => format!(" -> {}", self.ty(ty)),
        };
        self.mark_kernel(func, name);
        self.line(format!("def {}({}){ret}:", identifier(name), params.join(", ")));
        self.indent += 1;
        let start = self.out.len();
        let mut hidden = vec!["s_tir"];
        hidden.extend(persistent.then_some(PERSISTENT_KERNEL));
        if func.global_symbol() == Some(name) {
            hidden.push("global_symbol");
        }
        let mut attrs = func.attrs.0.clone();
        if has_flat_indices(&func.body) {
            attrs.insert(FLAT_INDICES.into(), true.into());
        }
        if attrs.keys().any(|k| !hidden.contains(&k.as_str())) {
            let attrs = self.attr_map(&attrs, &hidden);
            self.line(format!("T.func_attr({attrs})"));
        }
        self.declare_symbols();
        matched.iter().for_each(|line| self.line(line));
        self.parameter_views(func);
        self.root(&func.body);
        self.declare_late(start);
        self.indent -= 1;
        self.names.pop();
    }

    /// Parameters, and the lines that match buffers to handles which the body also uses as they are.
    fn signature(&mut self, func: &PrimFunc) -> (Vec<String>, Vec<String>) {
        let used = used_vars(&func.body);
        let (mut params, mut matched) = (Vec::new(), Vec::new());
        for (param, buffer) in func.params.iter().zip(func.buffers.iter().chain(std::iter::repeat(&None))) {
            if buffer.is_none() {
                self.names.define(param.clone().into(), &param.name);
                self.forward.insert(param.clone());
            }
        }
        for (param, buffer) in func.params.iter().zip(func.buffers.iter().chain(std::iter::repeat(&None))) {
            match buffer {
                Some(buffer) if !used.contains(param) => {
                    let name = self.define_buffer(buffer);
                    params.push(format!("{name}: T.Buffer({})", self.buffer_type(buffer, BufferForm::Annotation)));
                }
                Some(buffer) => {
                    let handle = self.names.define(param.clone().into(), &param.name);
                    params.push(format!("{handle}: T.handle"));
                    let name = self.define_buffer(buffer);
                    let ty = self.buffer_type(buffer, BufferForm::Annotation);
                    matched.push(format!("{name} = T.match_buffer({handle}, {ty})"));
                }
                None => {
                    self.forward.remove(param);
                    let ty = self.ty(&param.ty);
                    params.push(format!("{}: {ty}", self.var(param)));
                }
            }
        }
        (params, matched)
    }

    /// Other views of the parameters' memory are declared once, above the body.
    fn parameter_views(&mut self, func: &PrimFunc) {
        let params: Vec<&Ref<Var>> = func.buffers.iter().flatten().map(|b| &b.data).collect();
        for buffer in undeclared_buffers(&func.body).iter().filter(|b| params.contains(&&b.data)) {
            self.buffer(buffer);
        }
    }

    /// Variables of other types than dimensions that came up first in the body are declared above it.
    fn declare_late(&mut self, start: usize) {
        let indent = "    ".repeat(self.indent);
        for (name, value) in std::mem::take(&mut self.declarations) {
            self.insert(start, &format!("{indent}{name} = {value}\n"));
        }
    }

    /// Shape, dtype and what differs from the defaults.
    pub(super) fn buffer_type(&mut self, buffer: &Buffer, place: BufferForm) -> String {
        self.buffer_type_over(buffer, place, None)
    }

    /// The same of a buffer over an address.
    pub(super) fn buffer_type_over(&mut self, buffer: &Buffer, place: BufferForm, data: Option<String>) -> String {
        let shape: Vec<_> = buffer.shape.clone();
        let mut parts = vec![self.shape_tuple(&shape)];
        if place == BufferForm::Annotation || buffer.dtype != DataType::float(32) {
            parts.push(quoted(&buffer.dtype.to_string()));
        }
        parts.extend(data.map(|data| format!("data={data}")));
        if !buffer.strides.is_empty() {
            parts.push(format!("strides={}", self.shape_tuple(&buffer.strides)));
        }
        let is_anywhere = self.offset_is_its_own(buffer);
        if !is_anywhere && !buffer.elem_offset.is_int(0) {
            parts.push(format!("elem_offset={}", self.prim(&buffer.elem_offset)));
        }
        if buffer.scope != "global" {
            parts.push(format!("scope={}", quoted(&buffer.scope)));
        }
        if buffer.alignment != 64 {
            parts.push(format!("align={}", buffer.alignment));
        }
        if is_anywhere || buffer.offset_factor != 1 {
            parts.push(format!("offset_factor={}", buffer.offset_factor));
        }
        parts.extend(self.placement(&buffer.layout));
        parts.join(", ")
    }

    /// Whether a buffer's offset is the variable that an offset factor asks for, of its dimensions' type. It goes by the
    /// buffer's name.
    pub(super) fn offset_is_its_own(&self, buffer: &Buffer) -> bool {
        let PrimExpr::Var(var) = &buffer.elem_offset else { return false };
        let dtype = buffer.shape.first().map_or(DataType::int(32), PrimExpr::dtype);
        let named = self.names.get(&var.clone().into());
        let is_called_so = var.name == "elem_offset" || var.name.ends_with("_elem_offset");
        let fits = var.dtype() == dtype && (is_called_so || dtype == DataType::int(32));
        fits && named.is_none_or(|name| name.ends_with(".elem_offset"))
    }

    /// `T.call((shape…), …)` for an allocation.
    pub(super) fn allocation(&mut self, call: &str, buffer: &Ref<Buffer>, annotations: &relaxide_ir::Attrs) {
        let ty = self.buffer_type(buffer, BufferForm::Allocation);
        let name = self.define_buffer(buffer);
        let address = match annotations.0.get(ALLOCATED_AT) {
            Some(address) => format!(", {ALLOCATED_AT}={}", self.attr(address)),
            None => String::new(),
        };
        let annotations = match annotations.0.keys().all(|key| key == ALLOCATED_AT) {
            true => String::new(),
            false => format!(", annotations={}", self.attr_map(&annotations.0, &[ALLOCATED_AT])),
        };
        self.line(format!("{name} = {call}({ty}{address}{annotations})"));
    }

    /// A statement, as one line or several.
    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        let start = self.out.len();
        self.stmt_lines(stmt);
        self.watch_stmt(start, stmt);
    }

    fn watch_stmt(&mut self, start: usize, stmt: &Stmt) {
        self.watch_since(start, || stmt.clone().into());
    }

    fn stmt_lines(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(seq) => self.sequence(&seq.seq),
            Stmt::For(n) => self.loop_nest(n),
            Stmt::While(n) => {
                let condition = self.prim(&n.condition);
                self.mark_next(|| stmt.clone());
                self.line(format!("while {condition}:"));
                self.nested_stmt(&n.body);
            }
            Stmt::If(n) => self.choice(n),
            Stmt::Store(n) => {
                self.store(n);
                self.mark_last(stmt);
            }
            Stmt::Bind(n) => {
                let value = self.prim(&n.value);
                let name = self.names.define(n.var.clone().into(), &n.var.name);
                let ty = self.ty(&n.var.ty);
                self.line(format!("{name}: T.let[{ty}] = {value}"));
                self.mark_last(stmt);
            }
            Stmt::Alloc(n) => self.alloc(n, None),
            Stmt::Evaluate(n) => {
                self.evaluate(&n.value);
                self.mark_last(stmt);
            }
            Stmt::Assert(n) => {
                let condition = self.prim(&n.condition);
                self.line(format!("assert {condition}, ({}, [{}])", quoted(&n.error_kind), quoted(&n.said())));
                self.mark_last(stmt);
            }
            Stmt::Block(n) => self.block_realize(n),
            Stmt::Attr(n) if n.key == DEVICE_ENTRY => self.device_entry(n),
            Stmt::Attr(n) => self.attr_block(n),
            Stmt::Decl(n) => self.declaration(n),
            Stmt::Break(_) => self.jump("break", stmt),
            Stmt::Continue(_) => self.jump("continue", stmt),
            Stmt::ScopeIds(n) => self.scope_ids(n),
            Stmt::Tile(n) => self.tile_call(n),
            Stmt::Return(n) => {
                let value = self.prim(&n.value);
                self.jump(&format!("return {value}"), stmt);
            }
        }
    }

    /// `with T.attr({key: value}):`, or `with T.attr(node, key, value):`.
    fn attr_block(&mut self, n: &Ref<AttrStmt>) {
        if let (HINT, Some(AttrValue::Map(said))) = (n.key.as_str(), &n.node)
            && let Some(message) = said.get(HINT_MESSAGE)
        {
            let others = said.iter().filter(|(name, _)| *name != HINT_MESSAGE);
            let others: Vec<_> = others.map(|(name, value)| format!(", {name}={}", self.attr(value))).collect();
            let message = self.attr(message);
            self.mark_next(|| Stmt::Attr(n.clone()));
            self.line(format!("with T.hint({message}{}):", others.concat()));
            return self.nested_stmt(&n.body);
        }
        let (key, value) = (quoted(&n.key), self.prim(&n.value));
        let said = match &n.node {
            None => format!("{{{key}: {value}}}"),
            Some(node) => {
                let node = match n.reducer() {
                    Some(reducer) => self.reducer(&reducer),
                    None => self.attr(node),
                };
                format!("{node}, {key}, {value}")
            }
        };
        self.mark_next(|| Stmt::Attr(n.clone()));
        self.line(format!("with T.attr({said}):"));
        self.nested_stmt(&n.body);
    }

    fn jump(&mut self, text: &str, stmt: &Stmt) {
        self.line(text);
        self.mark_last(stmt);
    }

    fn sequence(&mut self, seq: &[Stmt]) {
        let mut rest = seq.iter().peekable();
        while let Some(stmt) = rest.next() {
            let start = self.out.len();
            if let Stmt::Alloc(alloc) = stmt {
                let init = rest.next_if(|next| initialises(next, alloc));
                self.alloc(alloc, init);
                init.iter().for_each(|init| self.watch_stmt(start, init));
                self.watch_stmt(start, stmt);
            } else if let (Stmt::Attr(n), Some(_)) = (stmt, rest.peek()) {
                // What it is over ends before the sequence does.
                self.attr_block(n);
                self.watch_stmt(start, stmt);
            } else {
                self.stmt(stmt);
            }
        }
        if seq.is_empty() {
            self.line("T.evaluate(0)");
        }
    }

    /// The body of a compound statement, in a scope of its own.
    pub(super) fn nested_stmt(&mut self, body: &Stmt) {
        self.indent += 1;
        self.names.push();
        self.stmt(body);
        self.names.pop();
        self.indent -= 1;
    }

    /// An allocation; one local element is a variable, perhaps with its first value.
    fn alloc(&mut self, n: &Ref<AllocBuffer>, init: Option<&Stmt>) {
        let buffer = &n.buffer;
        if is_scalar(buffer) && n.annotations.is_empty() {
            let value = match init {
                Some(Stmt::Store(store)) => format!(" = {}", self.prim(&store.value)),
                _ => String::new(),
            };
            self.scalars.insert(buffer.clone());
            let name = self.define_buffer(buffer);
            self.line(format!("{name}: T.{}{value}", buffer.dtype));
            self.mark_last(&Stmt::Alloc(n.clone()));
            init.iter().for_each(|stmt| self.mark_last(stmt));
            return;
        }
        let call = match buffer.scope.as_str() {
            "local" => "T.alloc_local",
            "shared" => "T.alloc_shared",
            _ => "T.alloc_buffer",
        };
        let start = self.out.len();
        self.allocation(call, buffer, &n.annotations);
        if matches!(buffer.scope.as_str(), "local" | "shared") {
            // The call's name says the scope.
            let line = self.out.split_off(start);
            self.out.push_str(&line.replacen(&format!(", scope={}", quoted(&buffer.scope)), "", 1));
        }
        self.mark_last(&Stmt::Alloc(n.clone()));
        init.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn store(&mut self, n: &BufferStore) {
        let value = self.prim(&n.value);
        if let Some(predicate) = &n.predicate {
            let (buffer, indices) = (self.buffer(&n.buffer), self.prims(&n.indices));
            let predicate = self.prim(predicate);
            self.uses_tir = true;
            self.line(format!("T.masked_store({buffer}, {value}, {indices}, {predicate})"));
            return;
        }
        let target = self.target(&n.buffer, &n.indices);
        self.line(format!("{target} = {value}"));
    }

    fn evaluate(&mut self, value: &PrimExpr) {
        let text = self.prim(value);
        // A call is a statement of its own; what reads as anything else is no statement of a kernel.
        match value {
            PrimExpr::Call(call) if self.begins_with(&text, "T.") || call.op == CALL_KERNEL => self.line(text),
            _ => self.line(format!("T.evaluate({text})")),
        }
    }

    fn choice(&mut self, n: &Ref<IfThenElse>) {
        let condition = self.prim(&n.condition);
        self.mark_next(|| Stmt::If(n.clone()));
        self.line(format!("if {condition}:"));
        self.nested_stmt(&n.then_case);
        if let Some(else_case) = &n.else_case {
            self.line("else:");
            self.nested_stmt(else_case);
        }
    }

    /// Plain loops from zero share one line as long as no extent needs a counter of the same line.
    fn loop_nest(&mut self, first: &Ref<For>) {
        let mut nest: Vec<Ref<For>> = vec![first.clone()];
        let mut body = &first.body;
        while is_plain(first)
            && let Stmt::For(next) = body
            && is_plain(next)
            && !free_vars(&next.extent).iter().any(|v| nest.iter().any(|l| &l.var == v))
        {
            nest.push(next.clone());
            body = &next.body;
        }
        let start = self.out.len();
        let header = self.loop_header(&nest);
        self.names.push();
        let vars: Vec<_> = nest.iter().map(|l| self.names.define(l.var.clone().into(), &l.var.name)).collect();
        for n in &nest {
            self.mark_next(|| Stmt::For(n.clone()));
        }
        self.line(format!("for {} in {header}:", vars.join(", ")));
        let depth = self.loops.len();
        let inner: Vec<Stmt> = nest.iter().skip(1).cloned().map(Stmt::For).collect();
        self.loops.extend(nest);
        self.nested_stmt(body);
        self.loops.truncate(depth);
        inner.iter().for_each(|stmt| self.watch_stmt(start, stmt));
        self.names.pop();
    }

    fn loop_header(&mut self, nest: &[Ref<For>]) -> String {
        if nest.len() > 1 {
            let extents: Vec<_> = nest.iter().map(|l| self.prim(&l.extent)).collect();
            return format!("T.grid({})", extents.join(", "));
        }
        let Some(n) = nest.first() else { return String::new() };
        let plain = n.annotations.is_empty();
        let call = match n.kind {
            ForKind::Serial if plain => "range",
            ForKind::Serial => "T.serial",
            ForKind::Parallel => "T.parallel",
            ForKind::Vectorized => "T.vectorized",
            ForKind::Unrolled => "T.unroll",
            ForKind::ThreadBinding => "T.thread_binding",
        };
        let mut parts = Vec::new();
        if n.min.is_int(0) && n.step.is_none() {
            parts.push(self.prim(&n.extent));
        } else {
            let end = add(&n.min, &n.extent);
            parts.push(self.prim(&n.min));
            parts.push(self.prim(&end));
        }
        if n.kind == ForKind::ThreadBinding {
            parts.push(format!("thread={}", quoted(&n.thread_tag)));
        }
        let step = n.step.as_ref().map(|step| self.prim(step));
        let in_place = call == "range";
        parts.extend(step.iter().filter(|_| in_place).cloned());
        let unroll = (n.kind == ForKind::Serial).then(|| unroll_request(n)).flatten();
        let hidden = unroll.as_ref().map_or("", |(key, _)| *key);
        if n.annotations.0.keys().any(|key| key != hidden) {
            parts.push(format!("annotations={}", self.attr_map(&n.annotations.0, &[hidden])));
        }
        parts.extend(step.filter(|_| !in_place).map(|step| format!("step={step}")));
        parts.extend(unroll.map(|(_, request)| format!("unroll={request}")));
        format!("{call}({})", parts.join(", "))
    }
}

/// The annotation that `unroll=` stands for, and what is written for it.
fn unroll_request(n: &For) -> Option<(&'static str, String)> {
    match (n.annotations.get(PRAGMA_UNROLL), n.annotations.get(DISABLE_UNROLL)) {
        (Some(AttrValue::Bool(true)), None) => Some((PRAGMA_UNROLL, "True".into())),
        (Some(AttrValue::Int(times @ 1..)), None) => Some((PRAGMA_UNROLL, times.to_string())),
        (None, Some(AttrValue::Bool(true))) => Some((DISABLE_UNROLL, "False".into())),
        _ => None,
    }
}

fn is_plain(n: &For) -> bool {
    n.kind == ForKind::Serial && n.min.is_int(0) && n.step.is_none() && n.annotations.is_empty()
}

/// Whether an allocation is what `x: T.int32` makes: one element, local, with a 32-bit dimension.
fn is_scalar(buffer: &Buffer) -> bool {
    let one = matches!(buffer.shape.as_slice(), [PrimExpr::Int(d)] if d.value == 1 && d.dtype == DataType::int(32));
    one && buffer.scope == "local"
        && buffer.layout == relaxide_ir::layout::Placement::Strided
        && buffer.strides.is_empty()
        && buffer.elem_offset.is_int(0)
        && buffer.dtype.lanes == 1
}

/// Whether a statement gives an allocated variable its first value.
fn initialises(stmt: &Stmt, alloc: &AllocBuffer) -> bool {
    let Stmt::Store(store) = stmt else { return false };
    store.buffer == alloc.buffer
        && is_scalar(&alloc.buffer)
        && store.predicate.is_none()
        && matches!(store.indices.as_slice(), [i] if i.is_int(0))
        && !reads(&store.value, &alloc.buffer)
}

fn reads(e: &PrimExpr, buffer: &Ref<Buffer>) -> bool {
    struct Reads<'b>(&'b Ref<Buffer>, bool);
    impl PrimVisitor for Reads<'_> {
        fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
            self.1 |= buffer == self.0;
        }
    }
    let mut found = Reads(buffer, false);
    found.visit_prim(e);
    found.1
}

/// Whether a body accesses buffers of several dimensions by one index.
fn has_flat_indices(body: &Stmt) -> bool {
    struct Find(bool);
    impl Find {
        fn access(&mut self, buffer: &Buffer, indices: &[PrimExpr]) {
            self.0 |= indices.len() == 1 && buffer.ndim() > 1;
        }
    }
    impl PrimVisitor for Find {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Load(load) = e {
                self.access(&load.buffer, &load.indices);
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Store(store) = stmt {
                self.access(&store.buffer, &store.indices);
            }
            self.walk_stmt(stmt);
        }
    }
    let mut find = Find(false);
    find.visit_stmt(body);
    find.0
}

fn has_blocks(body: &Stmt) -> bool {
    struct Find(bool);
    impl PrimVisitor for Find {}
    impl StmtVisitor for Find {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= matches!(stmt, Stmt::Block(_));
            if !self.0 {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut find = Find(false);
    find.visit_stmt(body);
    find.0
}

/// Buffers that a body reads or writes and that no statement declares, in order.
fn undeclared_buffers(body: &Stmt) -> Vec<Ref<Buffer>> {
    #[derive(Default)]
    struct Used {
        seen: std::collections::HashSet<Ref<Buffer>>,
        list: Vec<Ref<Buffer>>,
    }
    impl PrimVisitor for Used {
        fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
            if self.seen.insert(buffer.clone()) {
                self.list.push(buffer.clone());
            }
        }
    }
    impl StmtVisitor for Used {
        fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
            self.visit_buffer_use(buffer);
        }

        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Decl(n) = stmt {
                self.seen.insert(n.buffer.clone());
            }
            self.walk_stmt(stmt);
        }
    }
    let mut used = Used::default();
    used.visit_stmt(body);
    used.list
}

/// Variables that expressions of a body mention.
fn used_vars(body: &Stmt) -> std::collections::HashSet<Ref<Var>> {
    struct Used(std::collections::HashSet<Ref<Var>>);
    impl PrimVisitor for Used {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Var(v) = e {
                self.0.insert(v.clone());
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Used {}
    let mut used = Used(Default::default());
    used.visit_stmt(body);
    used.0
}
