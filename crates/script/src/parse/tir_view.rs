//! Buffers over memory that exists: `T.decl_buffer(…, data=address)`, `buffer.view(…)`.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::Stmt;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::value::Value;
use super::{Parsed, Parser};
use relaxide_ir::diagnostic::Code;

impl Parser<'_> {
    /// The address that a buffer is declared over.
    pub(super) fn address_argument(&mut self, call: &ast::ExprCall) -> Parsed<Option<PrimExpr>> {
        let e = match call.arguments.find_keyword("data") {
            None => return Ok(None),
            Some(keyword) => &keyword.value,
        };
        if let Expr::NoneLiteral(_) = e {
            return Ok(None);
        }
        let data = self.scalar_expr(e)?;
        if !data.dtype().is_handle() {
            return Err(self.error(Code::Type, "a pointer is expected", e.range()));
        }
        Ok(Some(data))
    }

    /// `name = buffer.view(…)`: whether it is that.
    pub(super) fn view_assign(&mut self, name: &str, value: &Expr) -> Parsed<bool> {
        let Expr::Call(call) = value else { return Ok(false) };
        let Expr::Attribute(method) = &*call.func else { return Ok(false) };
        if method.attr.as_str() != "view" || !self.is_buffer(&method.value) {
            return Ok(false);
        }
        let Value::Buffer(owner) = self.expr(&method.value)? else { return Ok(false) };
        let known = |k: &ast::Keyword| k.arg.as_ref().is_some_and(|arg| arg.as_str() == "layout");
        if let Some(other) = call.arguments.keywords.iter().find(|k| !known(k)) {
            return Err(self.unsupported("this argument of a view", other.range));
        }
        let args = &call.arguments.args;
        let (dtype, shape) = match args.first() {
            Some(Expr::StringLiteral(_)) if args.len() == 1 => {
                let dtype = self.element_dtype(&args[0])?;
                (dtype, self.reshaped_for(&owner, dtype, call.range())?)
            }
            Some(_) => {
                let shape = args.iter().map(|e| self.dim(e)).collect::<Parsed<Vec<_>>>()?;
                (owner.dtype, self.inferred(&owner, shape, call.range())?)
            }
            None => return Err(self.error(Code::Arguments, "a view has a shape, or an element type", call.range())),
        };
        let view = Ref::new(Buffer {
            name: name.to_string(),
            data: owner.data.clone(),
            dtype,
            shape,
            strides: Vec::new(),
            elem_offset: owner.elem_offset.clone(),
            scope: owner.scope.clone(),
            alignment: owner.alignment,
            offset_factor: owner.offset_factor,
            producer: None,
        });
        self.push(Stmt::decl(&view, &owner.data));
        self.define(name, Value::Buffer(view));
        Ok(true)
    }

    /// A dimension of -1 is what the others leave.
    fn inferred(&self, owner: &Buffer, mut shape: Vec<PrimExpr>, range: TextRange) -> Parsed<Vec<PrimExpr>> {
        let open: Vec<usize> = (0..shape.len()).filter(|d| shape[*d].is_int(-1)).collect();
        match open.as_slice() {
            [] => Ok(shape),
            [one] => {
                let others = shape.iter().enumerate().filter(|(d, _)| d != one).map(|(_, e)| e);
                let others = others.fold(prim::int_of(DataType::int(32), 1), |n, d| n * d);
                shape[*one] = prim::floordiv(owner.num_elements(), others);
                Ok(shape)
            }
            _ => Err(self.error(Code::Arguments, "one dimension at most can be left open", range)),
        }
    }

    /// The shape of the same bytes as elements of another type.
    fn reshaped_for(&self, owner: &Buffer, dtype: DataType, range: TextRange) -> Parsed<Vec<PrimExpr>> {
        let bits = |dtype: DataType| i64::from(dtype.bits) * i64::from(dtype.lanes.max(1));
        let (old, new) = (bits(owner.dtype), bits(dtype));
        let mut shape = owner.shape.clone();
        if old == new {
            return Ok(shape);
        }
        let Some(last) = shape.last_mut() else {
            return Err(self.error(Code::Type, format!("one element of {} as {dtype}", owner.dtype), range));
        };
        let of = |value: i64| prim::int_of(last.dtype(), value);
        *last = if old % new == 0 { &*last * of(old / new) } else { prim::floordiv(&*last * of(old), of(new)) };
        Ok(shape)
    }
}
