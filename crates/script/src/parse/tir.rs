//! Kernels: signatures and statements.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim;
use relaxide_ir::{AttrValue, Attrs, Buffer, PrimExpr, Type, Var};
use relaxide_tir::tile::{DEVICE_ENTRY, HINT, HINT_MESSAGE};
use relaxide_tir::{AssertStmt, AttrStmt, Evaluate, PrimFunc, Stmt, While};
use ruff_python_ast::{self as ast, Expr, Stmt as Py};
use ruff_text_size::Ranged;

use super::args::Args;
use super::block_head::Part;
use super::symbols::dtype_name;
use super::tir_block::BlockFrame;
use super::value::Value;
use super::{Language, Parsed, Parser};
use crate::FLAT_INDICES;
use relaxide_ir::diagnostic::Code;
use relaxide_ir::layout::ScopeIdDef;

/// Where a loop begins, and how far it runs.
pub(super) type Domain = (PrimExpr, PrimExpr);

/// A kernel under construction.
#[derive(Default)]
pub(super) struct Kernel {
    /// Statements of each open body.
    pub stmts: Vec<Vec<Stmt>>,
    /// The open blocks; the first is the root.
    pub blocks: Vec<BlockFrame>,
    /// The open loops with their ranges.
    pub loops: Vec<(Ref<Var>, Domain)>,
    /// Handle parameters and the buffers that are matched to them.
    pub params: Vec<(Ref<Var>, Option<Ref<Buffer>>)>,
    pub attrs: Attrs,
    pub has_blocks: bool,
    /// Whether nobody asks if it is well-formed.
    pub is_unchecked: bool,
    /// The scope ids so far.
    pub scope_ids: Vec<Ref<ScopeIdDef>>,
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
        self.kernel = Kernel { is_unchecked: self.unchecked.contains(def.name.as_str()), ..Kernel::default() };
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
            let body = if rooted && !is_root { root.root(body.or_evaluated()) } else { body };
            let Kernel { params, attrs, .. } = std::mem::take(&mut p.kernel);
            if symbol.is_none() && attrs.get("global_symbol").is_some() {
                let message = "a private kernel has no `global_symbol`: leave out either";
                return Err(p.error(Code::Structure, message, def.name.range));
            }
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
            && matches!(self.path(&call.func).as_deref(), Some("T.Buffer" | "T.buffer" | "T.Tensor"))
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
        result.map(|()| Stmt::seq(without_zeros(list)))
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
            if path.as_deref() == Some("T.device_entry") {
                let rest = body.get(at + 1..).unwrap_or_default();
                return self.under_attrs(None, vec![(DEVICE_ENTRY.to_string(), prim::boolean(true))], rest);
            }
            if let (Expr::Call(call), Some("T.launch_thread" | "T.attr" | "T.hint")) = (e, path.as_deref()) {
                let rest = body.get(at + 1..).unwrap_or_default();
                let args = Args::of(self, path.as_deref().unwrap_or_default(), call)?;
                return match path.as_deref() {
                    Some("T.launch_thread") => self.launch_thread(named, args, rest),
                    Some("T.hint") => self.hint(args, rest),
                    _ => self.attr(args, rest),
                };
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
            Py::FunctionDef(def) => self.define_inline(def),
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
        if self.tile_call(name, call)? || self.scope_ids(&[], name, call)? {
            return Ok(true);
        }
        let mut args = Args::of(self, &format!("T.{name}"), call)?;
        match name {
            "masked_store" => self.masked_store(&mut args)?,
            "evaluate" => {
                let e = args.required(self, "value")?;
                if let (Expr::Call(inner), Some("T.masked_store")) = (e, self.call_path(e).as_deref()) {
                    args.finish(self)?;
                    return self.tir_statement_call("masked_store", inner);
                }
                let value = self.scalar_expr(e)?;
                self.push(Ref::new(Evaluate { value }));
            }
            "Return" => {
                let e = args.required(self, "value")?;
                let value = self.scalar_expr(e)?;
                self.push(Stmt::ret(value));
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

    fn tir_if(&mut self, n: &ast::StmtIf) -> Parsed<()> {
        let first = (Some(&*n.test), &n.body[..]);
        let others = n.elif_else_clauses.iter().map(|clause| (clause.test.as_ref(), &clause.body[..]));
        let (mut arms, mut else_case) = (Vec::new(), None);
        for (test, body) in std::iter::once(first).chain(others) {
            let holds = match test {
                Some(test) => self.decided(test)?,
                None => Some(true),
            };
            match (holds, test) {
                (Some(false), _) => {}
                // The names of what is known to be executed are those of what is around.
                (Some(true), _) if arms.is_empty() => return body.iter().try_for_each(|stmt| self.tir_stmt(stmt)),
                (None, Some(test)) => arms.push((self.scalar_expr(test)?, self.tir_body(body)?)),
                _ => {
                    else_case = Some(self.tir_body(body)?);
                    break;
                }
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
                if let Some(named) = &item.optional_vars {
                    let message = "a block has no name in the program: `T.sblock(\"name\")` names it for schedules";
                    return Err(self.error(Code::Structure, message, named.range()));
                }
                self.block(name, &with.body, item.range)
            }
            "T.init" => {
                args.finish(self)?;
                self.init(&with.body, item.range)
            }
            "T.attr" => self.attr(args, &with.body),
            "T.hint" => self.hint(args, &with.body),
            "T.launch_thread" => self.launch_thread(item.optional_vars.as_deref(), args, &with.body),
            _ => Err(self.unsupported("this block in a kernel", item.range)),
        }
    }

    fn under_attrs(&mut self, node: Option<AttrValue>, pairs: Vec<(String, PrimExpr)>, body: &[Py]) -> Parsed<()> {
        let body = self.tir_body(body)?;
        let nest = pairs.into_iter().rev();
        let under = |body, (key, value)| Ref::new(AttrStmt { node: node.clone(), key, value, body }).into();
        let nest = nest.fold(body, under);
        self.push(nest);
        Ok(())
    }

    /// `with T.launch_thread("threadIdx.x", extent) as name:`, which is a loop that the thread executes.
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
        let domain = (prim::int_of(extent.dtype(), 0), extent.clone());
        let body = self.loop_body(&[(target, PrimExpr::from(&var), domain)], body)?;
        self.push(Stmt::threads(var, extent, thread_tag, body));
        Ok(())
    }

    /// `T.attr({"key": value})`, or the older `T.attr(node, "key", value)`.
    fn attr(&mut self, mut args: Args, body: &[Py]) -> Parsed<()> {
        let first = args.required(self, "attrs")?;
        if let Expr::Call(call) = first
            && self.call_path(first).as_deref() == Some("T.iter_var")
        {
            return self.thread_attr(call, args, body);
        }
        let node = self.attr_node(first)?;
        let pairs = self.attr_pairs(first, &mut args)?;
        args.finish(self)?;
        self.under_attrs(node, pairs, body)
    }

    /// `T.hint("message", name=value)`: what a reader of the kernel is to know of the statements.
    fn hint(&mut self, mut args: Args, body: &[Py]) -> Parsed<()> {
        let message = args.required(self, "message")?;
        let mut said = indexmap::IndexMap::from([(HINT_MESSAGE.to_string(), AttrValue::Str(self.text(message)?))]);
        for (name, e) in args.rest_keywords() {
            said.insert(name.to_string(), self.config_value(e)?);
        }
        args.finish(self)?;
        self.under_attrs(Some(AttrValue::Map(said)), vec![(HINT.to_string(), prim::int_of(DataType::int(32), 1))], body)
    }

    /// What an attribute is about; nothing where that is the statement, for which programs write a number.
    fn attr_node(&mut self, first: &Expr) -> Parsed<Option<AttrValue>> {
        if let Some(reducer) = self.reducer(first)? {
            return Ok(Some(AttrValue::Object(reducer.into())));
        }
        if matches!(first, Expr::Dict(_)) {
            return Ok(None);
        }
        Ok(match self.expr(first)? {
            Value::Buffer(buffer) => Some(AttrValue::Object(buffer.into())),
            Value::Str(text) => Some(AttrValue::Str(text)),
            Value::Prim(e) if e.as_int().is_none() => Some(AttrValue::Prim(e)),
            _ => None,
        })
    }

    /// `T.attr(T.iter_var(v, range, "ThreadIndex", "threadIdx.x"), "thread_extent", extent)`: `v` is launched, and is the loop's
    /// variable.
    fn thread_attr(&mut self, call: &ast::ExprCall, mut args: Args, body: &[Py]) -> Parsed<()> {
        let mut axis = Args::of(self, "T.iter_var", call)?;
        let (var, _range) = (axis.required(self, "var")?, axis.required(self, "dom")?);
        let kind = axis.required(self, "iter_type")?;
        let (kind, tag) = (self.text(kind)?, axis.required(self, "thread_tag")?);
        let (key, extent) = (args.required(self, "key")?, args.required(self, "value")?);
        let (key, extent) = (self.text(key)?, self.scalar_expr(extent)?);
        let (thread_tag, named) = (self.text(tag)?, self.scalar_expr(var)?);
        axis.finish(self)?;
        args.finish(self)?;
        if (kind.as_str(), key.as_str()) != ("ThreadIndex", "thread_extent") {
            let problem = format!("attribute `{key}` of an axis of kind {kind} has no meaning here");
            return Err(self.error(Code::Type, problem, call.range()));
        }
        let PrimExpr::Var(var) = named else {
            let problem = format!("a variable is expected, but this is {named}");
            return Err(self.error(Code::Type, problem, var.range()));
        };
        let body = self.tir_body(body)?;
        self.push(Stmt::threads(var, extent, thread_tag, body));
        Ok(())
    }

    fn attr_pairs(&mut self, first: &Expr, args: &mut Args) -> Parsed<Vec<(String, PrimExpr)>> {
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
}

/// Statements without those that evaluate zero, which stand for no statement where there are others.
fn without_zeros(list: Vec<Stmt>) -> Vec<Stmt> {
    let is_zero = |stmt: &Stmt| matches!(stmt, Stmt::Evaluate(n) if n.value.is_int(0));
    if list.iter().all(is_zero) { list } else { list.into_iter().filter(|stmt| !is_zero(stmt)).collect() }
}
