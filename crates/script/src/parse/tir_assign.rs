//! Assignments in kernels: names for scalars and buffers, annotated ones, elements of buffers.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::diagnostic::Code;
use relaxide_ir::prim;
use relaxide_ir::{Attrs, Buffer, PrimExpr, Type, Var};
use relaxide_tir::{AllocBuffer, BufferStore, Stmt};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::block_head::Part;
use super::symbols::dtype_name;
use super::value::Value;
use super::{Parsed, Parser};

impl Parser<'_> {
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
            if self.scope_ids(&[target], function, call)? || self.buffer_assign(target, function, call)? {
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
            if function == "handle" && call.arguments.is_empty() {
                return self.declare(name, DataType::handle(), target.range);
            }
            if function == "handle"
                && let ty @ Type::Pointer(_) = self.ty(value)?
            {
                // A pointer from elsewhere, which the text uses without saying where it comes from.
                let var = Ref::new(Var { name: name.to_string(), ty, span: self.span(target.range) });
                self.define(name, Value::Prim(PrimExpr::Var(var)));
                return Ok(());
            }
            if function == "bind" {
                let mut args = Args::of(self, "T.bind", call)?;
                let e = args.required(self, "value")?;
                let value = self.scalar_expr(e)?;
                let ty = args.take("ty").map(|ty| self.ty(ty)).transpose()?;
                args.finish(self)?;
                match ty {
                    None => self.bind_scalar(name, value, target.range),
                    Some(ty) => {
                        let var = Ref::new(Var { name: name.to_string(), ty, span: self.span(target.range) });
                        self.push(Stmt::bind(var.clone(), value));
                        self.define(name, Value::Prim(PrimExpr::Var(var)));
                    }
                }
                return Ok(());
            }
        }
        if self.meta_assign(name, value)? {
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
    pub(super) fn assign_scalar(&mut self, target: &ast::ExprName, value: Value, range: TextRange) -> Parsed<()> {
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

    pub(super) fn bind_scalar(&mut self, name: &str, value: PrimExpr, range: TextRange) {
        let ty = match &value {
            PrimExpr::Var(v) => v.ty.clone(),
            other => Type::prim(other.dtype()),
        };
        let var = Ref::new(Var { name: name.to_string(), ty, span: self.span(range) });
        self.define(name, Value::Prim(PrimExpr::Var(var.clone())));
        self.push(Stmt::bind(var, value));
    }

    /// A variable of a kernel: a local buffer of one element.
    pub(super) fn new_scalar(&mut self, name: &str, dtype: DataType, value: Option<PrimExpr>) {
        let one = prim::int_of(DataType::int(32), 1);
        let buffer = Buffer::scoped(name, dtype, [one], "local");
        self.scalars.insert(buffer.clone());
        self.push(Ref::new(AllocBuffer { buffer: buffer.clone(), annotations: Attrs::new() }));
        if let Some(value) = value {
            self.push(Stmt::store(&buffer, [prim::int_of(DataType::int(32), 0)], value));
        }
        self.define(name, Value::Buffer(buffer));
    }

    pub(super) fn tir_annotated(&mut self, assign: &ast::StmtAnnAssign) -> Parsed<()> {
        let Expr::Name(target) = &*assign.target else { return Err(self.unsupported("this assignment", assign.range)) };
        let name = target.id.as_str();
        if let Some(dtype) = self.dtype_of_elements(&assign.annotation) {
            return self.elements(target, dtype, assign);
        }
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

    /// The element type in `x: T.float32[4, 8]`.
    fn dtype_of_elements(&self, annotation: &Expr) -> Option<DataType> {
        let Expr::Subscript(subscript) = annotation else { return None };
        let path = self.path(&subscript.value)?;
        dtype_name(path.strip_prefix("T.")?)
    }

    /// `x: T.float32[4, 8]`: a local buffer of these dimensions.
    fn elements(&mut self, target: &ast::ExprName, dtype: DataType, assign: &ast::StmtAnnAssign) -> Parsed<()> {
        if let Some(value) = &assign.value {
            return Err(self.unsupported("a value for several elements", value.range()));
        }
        let Expr::Subscript(subscript) = &*assign.annotation else { return Ok(()) };
        let shape = self.dims(&subscript.slice)?;
        let buffer = Buffer::scoped(target.id.as_str(), dtype, shape, "local");
        self.push(Ref::new(AllocBuffer { buffer: buffer.clone(), annotations: Attrs::new() }));
        self.define(target.id.as_str(), Value::Buffer(buffer));
        Ok(())
    }

    pub(super) fn tir_augmented(&mut self, assign: &ast::StmtAugAssign) -> Parsed<()> {
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

    pub(super) fn store(&mut self, target: &ast::ExprSubscript, value: Value, range: TextRange) -> Parsed<()> {
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

    /// `name = I.meta_var(value)`: a name of the surroundings; whether it is one.
    pub(super) fn meta_assign(&mut self, name: &str, value: &Expr) -> Parsed<bool> {
        let Expr::Call(call) = value else { return Ok(false) };
        if !matches!(self.call_path(value).as_deref(), Some("I.meta_var" | "T.meta_var" | "R.meta_var")) {
            return Ok(false);
        }
        let mut args = Args::of(self, "I.meta_var", call)?;
        let inner = args.required(self, "value")?;
        args.finish(self)?;
        let value = self.expr(inner)?;
        self.define(name, value);
        Ok(true)
    }
}
