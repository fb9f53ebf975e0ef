//! Kernels: signatures and statements.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, Binary};
use relaxide_ir::{Attrs, BinaryOp, Buffer, PrimExpr, Type, Var};
use relaxide_tir::{AllocBuffer, AssertStmt, AttrStmt, BufferStore, Evaluate, For, ForKind, PrimFunc, Stmt, While};
use ruff_python_ast::{self as ast, Expr, Stmt as Py};
use ruff_text_size::{Ranged, TextRange};

use super::access::difference;
use super::args::Args;
use super::block_head::Part;
use super::symbols::dtype_name;
use super::tir_block::BlockFrame;
use super::value::Value;
use super::{Language, Parsed, Parser};
use crate::FLAT_INDICES;
use relaxide_ir::diagnostic::Code;

/// A kernel under construction.
#[derive(Default)]
pub(super) struct Kernel {
    /// Statements of each open body.
    pub stmts: Vec<Vec<Stmt>>,
    /// The open blocks; the first is the root.
    pub blocks: Vec<BlockFrame>,
    /// The open loops with their ranges.
    pub loops: Vec<(Ref<Var>, PrimExpr)>,
    /// Handle parameters and the buffers that are matched to them.
    pub params: Vec<(Ref<Var>, Option<Ref<Buffer>>)>,
    pub attrs: Attrs,
    pub has_blocks: bool,
    /// Whether buffers of several dimensions are accessed by one index, as in kernels whose indices a pass has flattened. In a
    /// program that somebody wrote that is a mistake.
    pub has_flat_indices: bool,
}

impl Parser<'_> {
    pub(super) fn prim_func(
        &mut self,
        def: &ast::StmtFunctionDef,
        s_tir: bool,
        symbol: Option<&str>,
    ) -> Parsed<PrimFunc> {
        self.language = Language::Tir;
        self.kernel = Kernel::default();
        self.scalars.clear();
        self.in_function(&def.body, |p| {
            p.kernel_params(def)?;
            let ret_type = match &def.returns {
                Some(e) => p.ty(e)?,
                None => Type::void(),
            };
            if let Some(symbol) = symbol {
                p.kernel.attrs = Attrs::new().with("global_symbol", symbol);
            }
            p.kernel.blocks.push(BlockFrame::default());
            let body = p.tir_body(&def.body)?;
            let root = p.kernel.blocks.pop().unwrap_or_default();
            let rooted = p.kernel.has_blocks || !root.alloc_buffers.is_empty();
            if s_tir && !rooted {
                p.kernel.attrs.0.insert("s_tir".into(), true.into());
            }
            // A body that is one block without axes is the root itself.
            let is_root = matches!(&body, Stmt::Block(n) if n.block.iter_vars.is_empty()) && root.is_empty();
            let body = if rooted && !is_root { root.root(body) } else { body };
            let Kernel { params, attrs, .. } = std::mem::take(&mut p.kernel);
            let (params, buffers) = params.into_iter().unzip();
            Ok(PrimFunc { params, ret_type, buffers, attrs, body })
        })
    }

    /// Scalars come first into scope: the shapes of buffers before them may name them.
    fn kernel_params(&mut self, def: &ast::StmtFunctionDef) -> Parsed<()> {
        let list = &def.parameters;
        if list.vararg.is_some() || list.kwarg.is_some() || !list.kwonlyargs.is_empty() {
            return Err(self.unsupported("a parameter of this kind", list.range));
        }
        let mut scalars = Vec::new();
        for arg in &list.args {
            let annotation = arg.parameter.annotation.as_deref();
            let scalar = annotation.and_then(|e| self.scalar_annotation(e));
            if let Some(dtype) = scalar {
                let name = &arg.parameter.name;
                let var = Ref::new(Var { name: name.to_string(), ty: Type::prim(dtype), span: self.span(name.range) });
                self.define(name, Value::Prim(PrimExpr::Var(var.clone())));
                scalars.push((name.to_string(), var));
            }
        }
        self.defining = true;
        let result = list.args.iter().try_for_each(|arg| {
            let name = &arg.parameter.name;
            if let Some((_, var)) = scalars.iter().find(|(known, _)| known == name.as_str()) {
                self.kernel.params.push((var.clone(), None));
                return Ok(());
            }
            let Some(annotation) = arg.parameter.annotation.as_deref() else {
                return Err(self
                    .error(Code::Type, format!("the parameter `{name}` has no type"), name.range)
                    .with_help("write T.Buffer((2, 3), \"float32\"), T.handle, T.int64 …")
                    .into());
            };
            self.kernel_param(name, annotation)
        });
        self.defining = false;
        result
    }

    fn scalar_annotation(&self, e: &Expr) -> Option<DataType> {
        let path = match e {
            Expr::Call(call) if call.arguments.args.is_empty() => self.path(&call.func)?,
            other => self.path(other)?,
        };
        path.strip_prefix("T.").filter(|name| *name != "handle").and_then(dtype_name)
    }

    fn kernel_param(&mut self, name: &ast::Identifier, annotation: &Expr) -> Parsed<()> {
        if let Expr::Call(call) = annotation
            && matches!(self.path(&call.func).as_deref(), Some("T.Buffer" | "T.Tensor"))
        {
            let mut args = Args::of(self, "T.Buffer", call)?;
            let buffer = self.buffer(name, &mut args, None)?;
            args.finish(self)?;
            let handle = Type::prim(DataType::handle());
            let var = Ref::new(Var { name: format!("var_{name}"), ty: handle, span: self.span(name.range) });
            self.define(name, Value::Buffer(buffer.clone()));
            self.kernel.params.push((var, Some(buffer)));
            return Ok(());
        }
        let ty = self.ty(annotation)?;
        if !matches!(&ty, Type::Pointer(_)) && !matches!(&ty, Type::Prim(t) if t.dtype.is_handle()) {
            return Err(self.error(
                Code::Type,
                "a kernel's parameter is a buffer, a handle or a scalar",
                annotation.range(),
            ));
        }
        let var = Ref::new(Var { name: name.to_string(), ty, span: self.span(name.range) });
        self.define(name, Value::Prim(PrimExpr::Var(var.clone())));
        self.kernel.params.push((var, None));
        Ok(())
    }

    /// Statements of a body, in a scope of their own.
    pub(super) fn tir_body(&mut self, body: &[Py]) -> Parsed<Stmt> {
        self.kernel.stmts.push(Vec::new());
        let result = self.scoped(|p| p.tir_stmts(body));
        let list = self.kernel.stmts.pop().unwrap_or_default();
        result.map(|()| Stmt::seq(list))
    }

    /// Statements in a row. What is launched, or said of what follows, has the rest inside.
    fn tir_stmts(&mut self, body: &[Py]) -> Parsed<()> {
        for (at, stmt) in body.iter().enumerate() {
            let (named, e) = match stmt {
                Py::Assign(assign) if assign.targets.len() == 1 => (assign.targets.first(), &*assign.value),
                Py::Expr(e) => (None, &*e.value),
                _ => (None, &Expr::NoneLiteral(ast::ExprNoneLiteral::default())),
            };
            let path = self.call_path(e);
            if let (Expr::Call(call), Some("T.launch_thread" | "T.attr")) = (e, path.as_deref()) {
                let rest = body.get(at + 1..).unwrap_or_default();
                let mut args = Args::of(self, path.as_deref().unwrap_or_default(), call)?;
                if path.as_deref() == Some("T.launch_thread") {
                    return self.launch_thread(named, args, rest);
                }
                let pairs = self.attr_pairs(&mut args)?;
                args.finish(self)?;
                return self.under_attrs(pairs, rest);
            }
            self.nested(stmt.range(), |p| p.tir_stmt(stmt))?;
        }
        Ok(())
    }

    pub(super) fn push(&mut self, stmt: impl Into<Stmt>) {
        if let Some(list) = self.kernel.stmts.last_mut() {
            list.push(stmt.into());
        }
    }

    pub(super) fn tir_stmt(&mut self, stmt: &Py) -> Parsed<()> {
        match stmt {
            Py::Pass(_) | Py::Nonlocal(_) | Py::Global(_) => Ok(()),
            Py::Expr(e) => self.tir_expression(&e.value),
            Py::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(target)] => self.tir_assign(target, &assign.value),
                [Expr::Subscript(target)] => {
                    let value = self.expr(&assign.value)?;
                    self.store(target, value, assign.range)
                }
                [Expr::Tuple(targets)] => self.axes(targets, &assign.value),
                _ => Err(self.unsupported("this assignment", assign.range)),
            },
            Py::AnnAssign(assign) => self.tir_annotated(assign),
            Py::AugAssign(assign) => self.tir_augmented(assign),
            Py::For(n) => self.tir_for(n),
            Py::While(n) => {
                let condition = self.scalar_expr(&n.test)?;
                let body = self.tir_body(&n.body)?;
                self.push(Ref::new(While { condition, body }));
                Ok(())
            }
            Py::If(n) => self.tir_if(n),
            Py::With(n) => self.tir_with(n),
            Py::Assert(n) => self.tir_assert(n),
            Py::Return(n) => {
                let Some(e) = &n.value else {
                    let error = self.error(Code::Structure, "a kernel that ends early returns a value", n.range);
                    return Err(error.with_help("write `return 0`").into());
                };
                let value = self.scalar_expr(e)?;
                self.push(Stmt::ret(value));
                Ok(())
            }
            // As TVM reads them; the nodes are what programs build.
            Py::Break(_) => {
                self.push(Stmt::evaluate(prim::call(DataType::void(), "tirx.break_loop", Vec::new())));
                Ok(())
            }
            Py::Continue(_) => {
                self.push(Stmt::evaluate(prim::call(DataType::void(), "tirx.continue_loop", Vec::new())));
                Ok(())
            }
            other => Err(self.unsupported("this statement in a kernel", other.range())),
        }
    }

    fn tir_expression(&mut self, e: &Expr) -> Parsed<()> {
        if matches!(e, Expr::StringLiteral(_)) {
            return Ok(());
        }
        if let (Expr::Call(call), Some(path)) = (e, self.call_path(e))
            && let Some(name) = path.strip_prefix("T.")
            && self.tir_statement_call(name, call)?
        {
            return Ok(());
        }
        if let Expr::Call(call) = e
            && let Expr::Attribute(attr) = &*call.func
            && attr.attr.as_str() == "vstore"
            && self.is_buffer(&attr.value)
        {
            return self.vstore(attr, call);
        }
        if self.macro_call(e).is_some() {
            // The macro's statements stand here now; what it returns is not asked for.
            self.expr(e)?;
            return Ok(());
        }
        let value = self.scalar_expr(e)?;
        self.push(Ref::new(Evaluate { value }));
        Ok(())
    }

    /// Calls that are statements: whether `name` is one.
    fn tir_statement_call(&mut self, name: &str, call: &ast::ExprCall) -> Parsed<bool> {
        let mut args = Args::of(self, &format!("T.{name}"), call)?;
        match name {
            "evaluate" => {
                let e = args.required(self, "value")?;
                let value = self.scalar_expr(e)?;
                self.push(Ref::new(Evaluate { value }));
            }
            "func_attr" => {
                let e = args.required(self, "attrs")?;
                let mut attrs = self.attrs(e)?;
                self.kernel.has_flat_indices |= attrs.0.shift_remove(FLAT_INDICES).is_some();
                self.kernel.attrs.0.extend(attrs.0);
            }
            "Assert" => {
                let (condition, message) = (args.required(self, "condition")?, args.required(self, "message")?);
                let condition = self.scalar_expr(condition)?;
                let message = self.text(message)?;
                let error_kind = args.take("error_kind").map_or(Ok("RuntimeError".into()), |e| self.text(e))?;
                self.push(Ref::new(AssertStmt { condition, error_kind, message, numbers: Vec::new() }));
            }
            "bind" => {
                let (e, var) = (args.required(self, "value")?, args.keyword("var"));
                let value = self.scalar_expr(e)?;
                let Some(var) = var else {
                    let error = self.error(Code::Structure, "what is bound here has no name", args.range);
                    return Err(error.with_help("write `x = T.bind(value)`, or `T.bind(value, var=x)`").into());
                };
                let PrimExpr::Var(own) = self.scalar_expr(var)? else {
                    return Err(self.error(Code::Type, "a variable is expected", var.range()));
                };
                self.push(Stmt::bind(own, value));
            }
            "reads" | "writes" | "where" | "sblock_attr" | "block_attr" => {
                self.in_head(Part::Axes, |p| p.block_statement(name, &mut args))?;
            }
            _ => return Ok(false),
        }
        args.finish(self)?;
        Ok(true)
    }

    pub(super) fn tir_assign(&mut self, target: &ast::ExprName, value: &Expr) -> Parsed<()> {
        let name = target.id.as_str();
        if let Some(dtype) = self.declared_dtype(value) {
            return self.declare(name, dtype, target.range);
        }
        if let (Expr::Call(call), Some(path)) = (value, self.call_path(value))
            && let Some(function) = path.strip_prefix("T.")
        {
            if let Some(kind) = function.strip_prefix("axis.") {
                return self.in_head(Part::Axes, |p| p.axis(&[target], kind, call));
            }
            if self.buffer_assign(target, function, call)? {
                return Ok(());
            }
            if function == "env_thread" {
                // Its name, until it is launched.
                let mut args = Args::of(self, "T.env_thread", call)?;
                let e = args.required(self, "thread_tag")?;
                let tag = self.text(e)?;
                args.finish(self)?;
                self.define(name, Value::Str(tag));
                return Ok(());
            }
            if function == "bind" {
                let mut args = Args::of(self, "T.bind", call)?;
                let e = args.required(self, "value")?;
                let value = self.scalar_expr(e)?;
                args.finish(self)?;
                self.bind_scalar(name, value, target.range);
                return Ok(());
            }
        }
        if matches!(self.call_path(value).as_deref(), Some("I.meta_var" | "T.meta_var" | "R.meta_var"))
            && let Expr::Call(call) = value
        {
            let mut args = Args::of(self, "I.meta_var", call)?;
            let inner = args.required(self, "value")?;
            args.finish(self)?;
            let value = self.expr(inner)?;
            self.define(name, value);
            return Ok(());
        }
        if self.view_assign(name, value)? {
            return Ok(());
        }
        let evaluated = self.expr(value)?;
        if let Value::Host(_) | Value::List(_) | Value::Map(_) = evaluated {
            self.define(name, evaluated);
            return Ok(());
        }
        self.assign_scalar(target, evaluated, value.range())
    }

    /// `x = value`: a store where `x` is a buffer of one element, else a new variable of that kind.
    fn assign_scalar(&mut self, target: &ast::ExprName, value: Value, range: TextRange) -> Parsed<()> {
        let name = target.id.as_str();
        match (self.lookup(name).cloned(), value) {
            (Some(Value::Buffer(buffer)), value) if self.is_scalar_buffer(&buffer) => {
                let value = self.stored(&value, buffer.dtype, range)?;
                let zero = self.scalar_element(&buffer);
                let PrimExpr::Load(at) = zero else { return Ok(()) };
                let indices = at.indices.clone();
                self.push(Ref::new(BufferStore { buffer, value, indices, predicate: None }));
            }
            (_, Value::Buffer(buffer)) if !self.is_scalar_buffer(&buffer) => self.define(name, Value::Buffer(buffer)),
            (_, value) => {
                let value = self.scalar(&value, range)?;
                match value.dtype().is_handle() {
                    true => self.bind_scalar(name, value, target.range),
                    false => self.new_scalar(name, value.dtype(), Some(value)),
                }
            }
        }
        Ok(())
    }

    fn bind_scalar(&mut self, name: &str, value: PrimExpr, range: TextRange) {
        let ty = match &value {
            PrimExpr::Var(v) => v.ty.clone(),
            other => Type::prim(other.dtype()),
        };
        let var = Ref::new(Var { name: name.to_string(), ty, span: self.span(range) });
        self.define(name, Value::Prim(PrimExpr::Var(var.clone())));
        self.push(Stmt::bind(var, value));
    }

    /// A variable of a kernel: a local buffer of one element.
    fn new_scalar(&mut self, name: &str, dtype: DataType, value: Option<PrimExpr>) {
        let one = prim::int_of(DataType::int(32), 1);
        let buffer = Buffer::scoped(name, dtype, [one], "local");
        self.scalars.insert(buffer.clone());
        self.push(Ref::new(AllocBuffer { buffer: buffer.clone(), annotations: Attrs::new() }));
        if let Some(value) = value {
            self.push(Stmt::store(&buffer, [prim::int_of(DataType::int(32), 0)], value));
        }
        self.define(name, Value::Buffer(buffer));
    }

    fn tir_annotated(&mut self, assign: &ast::StmtAnnAssign) -> Parsed<()> {
        let Expr::Name(target) = &*assign.target else { return Err(self.unsupported("this assignment", assign.range)) };
        let name = target.id.as_str();
        let (binds, dtype) = match &*assign.annotation {
            Expr::Subscript(s) if self.path(&s.value).as_deref() == Some("T.let") => (true, Some(self.ty(&s.slice)?)),
            e if self.path(e).as_deref() == Some("T.let") => (true, None),
            e => (false, Some(self.ty(e)?)),
        };
        let Some(value) = &assign.value else {
            let Some(Type::Prim(t)) = dtype.filter(|_| !binds) else {
                return Err(self.error(Code::Structure, "a value is missing", assign.range));
            };
            self.new_scalar(name, t.dtype, None);
            return Ok(());
        };
        let evaluated = self.expr(value)?;
        let value = match &dtype {
            Some(Type::Prim(t)) => self.stored(&evaluated, t.dtype, value.range())?,
            _ => self.scalar(&evaluated, value.range())?,
        };
        match dtype {
            Some(Type::Prim(t)) if !binds && !t.dtype.is_handle() => self.new_scalar(name, t.dtype, Some(value)),
            Some(ty @ Type::Pointer(_)) => {
                let var = Ref::new(Var { name: name.to_string(), ty, span: self.span(target.range) });
                self.define(name, Value::Prim(PrimExpr::Var(var.clone())));
                self.push(Stmt::bind(var, value));
            }
            _ => self.bind_scalar(name, value, target.range),
        }
        Ok(())
    }

    fn tir_augmented(&mut self, assign: &ast::StmtAugAssign) -> Parsed<()> {
        let (old, new) = (self.expr(&assign.target)?, self.expr(&assign.value)?);
        let value = self.operator(assign.op, old, new, assign.range)?;
        match &*assign.target {
            Expr::Subscript(target) => self.store(target, value, assign.range),
            Expr::Name(target) => self.assign_scalar(target, value, assign.range),
            _ => Err(self.unsupported("this assignment", assign.range)),
        }
    }

    /// A value as it is stored: of the buffer's type.
    fn stored(&self, value: &Value, dtype: DataType, range: TextRange) -> Parsed<PrimExpr> {
        let value = self.scalar_as(value, dtype, range)?;
        let got = value.dtype();
        if got == dtype {
            return Ok(value);
        }
        if got.is_handle() || got.is_void() || dtype.is_handle() {
            return Err(self.error(Code::Type, format!("{got} cannot be stored as {dtype}"), range));
        }
        let value =
            if got.element() == dtype.element() { value } else { prim::cast(dtype.with_lanes(got.lanes), value) };
        match (value.dtype().lanes, dtype.lanes) {
            (a, b) if a == b => Ok(value),
            (1, lanes) => Ok(prim::broadcast(value, i64::from(lanes))),
            (a, b) => Err(self.error(Code::Type, format!("{a} lanes are stored where there are {b}"), range)),
        }
    }

    fn store(&mut self, target: &ast::ExprSubscript, value: Value, range: TextRange) -> Parsed<()> {
        let (buffer, indices) = match self.subscript(target)? {
            Value::Prim(PrimExpr::Load(load)) => (load.buffer.clone(), load.indices.clone()),
            Value::Region(buffer, ranges) => {
                let indices = self.region_indices(&ranges, target.range)?;
                (buffer, indices)
            }
            other => {
                return Err(self.error(Code::Type, format!("{} cannot be stored to", other.describe()), target.range));
            }
        };
        let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
        let dtype = buffer.dtype.with_lanes(buffer.dtype.lanes.saturating_mul(lanes));
        let value = match value {
            Value::Region(source, ranges) => Value::Prim(self.region_load(&source, &ranges, range)?),
            value => value,
        };
        let value = self.stored(&value, dtype, range)?;
        self.push(Ref::new(BufferStore { buffer, value, indices, predicate: None }));
        Ok(())
    }

    fn tir_for(&mut self, n: &ast::StmtFor) -> Parsed<()> {
        if let Expr::Call(call) = &*n.iter
            && self.path(&call.func).as_deref() == Some("T.grid")
        {
            return self.tir_grid(n, call);
        }
        let is_range = matches!(&*n.iter, Expr::Call(call)
            if matches!(&*call.func, Expr::Name(name) if name.id.as_str() == "range"));
        if !is_range && let Some(items) = self.unrolled(&n.iter)? {
            return items.into_iter().try_for_each(|item| {
                self.define_target(&n.target, item)?;
                n.body.iter().try_for_each(|stmt| self.tir_stmt(stmt))
            });
        }
        let Expr::Call(call) = &*n.iter else { return Err(self.unsupported("this loop", n.iter.range())) };
        let path = match &*call.func {
            Expr::Name(name) if name.id.as_str() == "range" => "T.serial".to_string(),
            func => self.path(func).unwrap_or_default(),
        };
        let mut args = Args::of(self, &path, call)?;
        let kind = match path.as_str() {
            "T.serial" | "T.range" => ForKind::Serial,
            "T.parallel" => ForKind::Parallel,
            "T.vectorized" => ForKind::Vectorized,
            "T.unroll" => ForKind::Unrolled,
            "T.thread_binding" => ForKind::ThreadBinding,
            _ => {
                return Err(self
                    .error(Code::UnknownMember, "this is no loop", n.iter.range())
                    .with_help(
                        "loops are range, T.grid, T.serial, T.parallel, T.vectorized, T.unroll, T.thread_binding",
                    )
                    .into());
            }
        };
        let Expr::Name(target) = &*n.target else { return Err(self.unsupported("this loop", n.target.range())) };
        let (mut min, mut extent) = self.loop_range(&mut args)?;
        let step = if kind == ForKind::ThreadBinding { 1 } else { self.loop_step(&mut args)? };
        let thread_tag = match (kind, args.take("thread")) {
            (ForKind::ThreadBinding, Some(e)) => self.text(e)?,
            _ => String::new(),
        };
        let annotations = match args.keyword("annotations") {
            Some(e) => self.attrs(e)?,
            None => Attrs::new(),
        };
        args.finish(self)?;
        let var = self.loop_var(target, extent.dtype());
        let mut counter = PrimExpr::from(&var);
        if step != 1 {
            // Loops count by one from here on, as TVM's `CanonicalizeLoop` leaves them.
            let number = |value| prim::int_of(var.dtype(), value);
            counter = prim::add(min, prim::mul(counter, number(step)));
            extent = prim::floordiv(prim::add(extent, number(step - 1)), number(step));
            min = number(0);
        }
        let body = self.loop_body(&[(target, counter, extent.clone())], &n.body)?;
        self.push(Ref::new(For { var, min, extent, kind, thread_tag, annotations, body }));
        Ok(())
    }

    /// By how much a loop counts: the third argument of `range`, `step=` of others.
    fn loop_step(&mut self, args: &mut Args) -> Parsed<i64> {
        let Some(step) = args.take("step") else { return Ok(1) };
        match self.scalar_expr(step)?.as_int() {
            Some(number @ 1..) => Ok(number),
            _ => Err(self
                .error(Code::Type, "a loop counts by a positive number that is known", step.range())
                .with_help("count up by one, and compute the index from the counter")
                .into()),
        }
    }

    fn loop_var(&self, target: &ast::ExprName, dtype: DataType) -> Ref<Var> {
        Ref::new(Var { name: target.id.to_string(), ty: Type::prim(dtype), span: self.span(target.range) })
    }

    fn loop_range(&mut self, args: &mut Args) -> Parsed<(PrimExpr, PrimExpr)> {
        let first = args.required(self, "stop")?;
        let first_value = self.expr(first)?;
        // `T.thread_binding(128, "threadIdx.x")` has the thread in the second place.
        let second = if args.next_is_text() { None } else { args.take("stop") };
        let Some(second) = second else {
            let extent = self.scalar(&first_value, first.range())?;
            let extent = self.counts(extent, first.range())?;
            return Ok((prim::int_of(extent.dtype(), 0), extent));
        };
        let second_value = self.expr(second)?;
        let (min, end) = match self.operands(&first_value, &second_value) {
            Some(pair) => pair,
            None => (self.scalar(&first_value, first.range())?, self.scalar(&second_value, second.range())?),
        };
        let (min, end) = (self.counts(min, first.range())?, self.counts(end, second.range())?);
        let extent = difference(&end, &min);
        Ok((min, extent))
    }

    /// `for i, j in T.grid(…)`. Of `*shape` each dimension is an extent.
    fn tir_grid(&mut self, n: &ast::StmtFor, call: &ast::ExprCall) -> Parsed<()> {
        if let Some(keyword) = call.arguments.keywords.first() {
            return Err(self.unsupported("T.grid with an argument by name", keyword.range));
        }
        let targets: Vec<&ast::ExprName> = match &*n.target {
            Expr::Name(name) => vec![name],
            Expr::Tuple(tuple) => tuple.elts.iter().filter_map(|e| e.as_name_expr()).collect(),
            other => return Err(self.unsupported("this loop", other.range())),
        };
        let mut extents = Vec::with_capacity(targets.len());
        for arg in &call.arguments.args {
            let values = match arg {
                Expr::Starred(star) => self.spread(&star.value)?,
                one => vec![self.expr(one)?],
            };
            for value in values {
                let extent = self.scalar(&value, arg.range())?;
                extents.push(self.counts(extent, arg.range())?);
            }
        }
        if let (Expr::Name(all), false) = (&*n.target, extents.len() == 1) {
            return self.grid_of_one_name(all, extents, &n.body);
        }
        if extents.len() != targets.len() {
            let message = format!("{} extents for {} counters", extents.len(), targets.len());
            return Err(self.error(Code::Arguments, message, call.range()));
        }
        let mut loops = Vec::with_capacity(targets.len());
        for (target, extent) in targets.into_iter().zip(extents) {
            loops.push((target, self.loop_var(target, extent.dtype()), extent));
        }
        let counters: Vec<_> =
            loops.iter().map(|(target, var, extent)| (*target, PrimExpr::from(var), extent.clone())).collect();
        let body = self.loop_body(&counters, &n.body)?;
        let nest = loops.into_iter().rev().fold(body, |body, (_, var, extent)| {
            let min = prim::int_of(extent.dtype(), 0);
            let annotations = Attrs::new();
            Ref::new(For { var, min, extent, kind: ForKind::Serial, thread_tag: String::new(), annotations, body })
                .into()
        });
        self.push(nest);
        Ok(())
    }

    /// `for all in T.grid(…)`: one name for all counters, which are a tuple.
    fn grid_of_one_name(&mut self, all: &ast::ExprName, extents: Vec<PrimExpr>, body: &[Py]) -> Parsed<()> {
        let counter = |(place, extent): (usize, PrimExpr)| {
            (Var::new(format!("{}_{place}", all.id), Type::prim(extent.dtype())), extent)
        };
        let loops: Vec<_> = extents.into_iter().enumerate().map(counter).collect();
        let depth = self.kernel.loops.len();
        let inner = self.scoped(|p| {
            let counters = loops.iter().map(|(var, _)| Value::Prim(PrimExpr::from(var))).collect();
            p.define(&all.id, Value::Tuple(counters));
            p.kernel.loops.extend(loops.iter().cloned());
            p.tir_body(body)
        });
        self.kernel.loops.truncate(depth);
        let nest = loops.into_iter().rev().fold(inner?, |body, (var, extent)| {
            let (min, annotations) = (prim::int_of(extent.dtype(), 0), Attrs::new());
            Ref::new(For { var, min, extent, kind: ForKind::Serial, thread_tag: String::new(), annotations, body })
                .into()
        });
        self.push(nest);
        Ok(())
    }

    /// The body of loops: the names of their counters, what these stand for, and the extents.
    fn loop_body(&mut self, loops: &[(&ast::ExprName, PrimExpr, PrimExpr)], body: &[Py]) -> Parsed<Stmt> {
        let depth = self.kernel.loops.len();
        let result = self.scoped(|p| {
            for (target, counter, extent) in loops {
                p.define(&target.id, Value::Prim(counter.clone()));
                if let PrimExpr::Var(var) = counter {
                    p.kernel.loops.push((var.clone(), extent.clone()));
                }
            }
            p.tir_body(body)
        });
        self.kernel.loops.truncate(depth);
        result
    }

    fn tir_if(&mut self, n: &ast::StmtIf) -> Parsed<()> {
        if n.elif_else_clauses.len() <= 1
            && n.elif_else_clauses.iter().all(|clause| clause.test.is_none())
            && let Some(holds) = self.decided(&n.test)?
        {
            let otherwise = n.elif_else_clauses.first().map_or(&[][..], |clause| &clause.body[..]);
            let body = if holds { &n.body[..] } else { otherwise };
            return body.iter().try_for_each(|stmt| self.tir_stmt(stmt));
        }
        let condition = self.scalar_expr(&n.test)?;
        let then_case = self.tir_body(&n.body)?;
        let mut arms = vec![(condition, then_case)];
        let mut else_case = None;
        for clause in &n.elif_else_clauses {
            match &clause.test {
                Some(test) => arms.push((self.scalar_expr(test)?, self.tir_body(&clause.body)?)),
                None => else_case = Some(self.tir_body(&clause.body)?),
            }
        }
        for (condition, then_case) in arms.into_iter().rev() {
            else_case = Some(Ref::new(relaxide_tir::IfThenElse { condition, then_case, else_case }).into());
        }
        else_case.into_iter().for_each(|stmt| self.push(stmt));
        Ok(())
    }

    fn tir_with(&mut self, with: &ast::StmtWith) -> Parsed<()> {
        let (item, call, path) = self.entered(with)?;
        let mut args = Args::of(self, &path, call)?;
        match path.as_str() {
            "T.sblock" | "T.block" => {
                let name = args.take("name").map_or(Ok(String::new()), |e| self.text(e))?;
                args.finish(self)?;
                self.block(name, &with.body, item.range)
            }
            "T.init" => {
                args.finish(self)?;
                self.init(&with.body, item.range)
            }
            "T.attr" => {
                let pairs = self.attr_pairs(&mut args)?;
                args.finish(self)?;
                self.under_attrs(pairs, &with.body)
            }
            "T.launch_thread" => self.launch_thread(item.optional_vars.as_deref(), args, &with.body),
            _ => Err(self.unsupported("this block in a kernel", item.range)),
        }
    }

    fn under_attrs(&mut self, pairs: Vec<(String, PrimExpr)>, body: &[Py]) -> Parsed<()> {
        let body = self.tir_body(body)?;
        let nest = pairs.into_iter().rev();
        let nest = nest.fold(body, |body, (key, value)| Ref::new(AttrStmt { key, value, body }).into());
        self.push(nest);
        Ok(())
    }

    /// `with T.launch_thread("threadIdx.x", extent) as name:`, which is a loop that the thread carries out.
    fn launch_thread(&mut self, named: Option<&Expr>, mut args: Args, body: &[Py]) -> Parsed<()> {
        let range = args.range;
        let (thread, extent) = (args.required(self, "thread")?, args.required(self, "extent")?);
        let (thread_tag, extent) = (self.text(thread)?, self.scalar_expr(extent)?);
        args.finish(self)?;
        // What `T.env_thread` named is that name inside.
        let ((Some(Expr::Name(target)), _) | (None, Expr::Name(target))) = (named, thread) else {
            let error = self.error(Code::Structure, "a thread that is launched has a name", range);
            return Err(error.with_help("write `with T.launch_thread(\"threadIdx.x\", 8) as tx:`").into());
        };
        let var = self.loop_var(target, extent.dtype());
        let min = prim::int_of(extent.dtype(), 0);
        let body = self.loop_body(&[(target, PrimExpr::from(&var), extent.clone())], body)?;
        let annotations = Attrs::new();
        self.push(Ref::new(For { var, min, extent, kind: ForKind::ThreadBinding, thread_tag, annotations, body }));
        Ok(())
    }

    /// `T.attr({"key": value})`, or the older `T.attr(node, "key", value)`.
    fn attr_pairs(&mut self, args: &mut Args) -> Parsed<Vec<(String, PrimExpr)>> {
        let first = args.required(self, "attrs")?;
        if let Expr::Dict(_) = first {
            let Value::Map(items) = self.expr(first)? else { return Ok(Vec::new()) };
            return items.into_iter().map(|(k, v)| Ok((k, self.scalar(&v, first.range())?))).collect();
        }
        let (key, value) = (args.required(self, "key")?, args.required(self, "value")?);
        Ok(vec![(self.text(key)?, self.scalar_expr(value)?)])
    }

    fn tir_assert(&mut self, n: &ast::StmtAssert) -> Parsed<()> {
        let condition = self.scalar_expr(&n.test)?;
        let (mut error_kind, mut message) = ("RuntimeError".to_string(), String::new());
        match n.msg.as_deref() {
            None => {}
            Some(e) => match self.expr(e)? {
                Value::Str(text) => message = text,
                Value::Tuple(parts) => {
                    let [Value::Str(kind), Value::List(texts)] = parts.as_slice() else {
                        return Err(self.error(Code::Type, "a kind and a list of texts are expected", e.range()));
                    };
                    error_kind = kind.clone();
                    message = texts.iter().map(|t| if let Value::Str(t) = t { t.as_str() } else { "" }).collect();
                }
                other => {
                    let problem = format!("a message is expected, but this is {}", other.describe());
                    return Err(self.error(Code::Type, problem, e.range()));
                }
            },
        }
        self.push(Ref::new(AssertStmt { condition, error_kind, message, numbers: Vec::new() }));
        Ok(())
    }

    /// A comparison with a Python-only condition would have been computed; conditions are scalars.
    pub(super) fn conjunction(a: PrimExpr, b: PrimExpr) -> PrimExpr {
        if a.is_int(1) { b } else { Ref::new(Binary { op: BinaryOp::And, a, b }).into() }
    }
}
