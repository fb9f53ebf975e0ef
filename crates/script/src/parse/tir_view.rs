//! Buffers over memory that exists: `T.decl_buffer(…, data=address)`, `buffer.view(…)`.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Buffer;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::layout::{Layout, Placement, TileLayout};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::Stmt;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::value::Value;
use super::{Parsed, Parser};
use relaxide_ir::diagnostic::Code;

/// What a view shows of a buffer.
struct Seen {
    dtype: DataType,
    shape: Vec<PrimExpr>,
    layout: Placement,
}

impl Parser<'_> {
    /// The address that a buffer is declared over.
    pub(super) fn address_argument(&mut self, call: &ast::ExprCall) -> Parsed<Option<PrimExpr>> {
        // Behind the shape and the type, where it is not named.
        let Some(e) = call.arguments.find_argument_value("data", 2) else { return Ok(None) };
        if let Expr::NoneLiteral(_) = e {
            return Ok(None);
        }
        let data = self.scalar_expr(e)?;
        if !data.dtype().is_handle() {
            return Err(self.error(Code::Type, "a pointer is expected", e.range()));
        }
        Ok(Some(data))
    }

    /// `name = buffer.view(…)`, `name = buffer.local(…)`: whether it is that.
    pub(super) fn view_assign(&mut self, name: &str, value: &Expr) -> Parsed<bool> {
        let Expr::Call(call) = value else { return Ok(false) };
        let Expr::Attribute(method) = &*call.func else { return Ok(false) };
        if !matches!(method.attr.as_str(), "view" | "local") || !self.is_buffer(&method.value) {
            return Ok(false);
        }
        let Value::Buffer(owner) = self.expr(&method.value)? else { return Ok(false) };
        let known = |k: &ast::Keyword| k.arg.as_ref().is_some_and(|arg| arg.as_str() == "layout");
        if let Some(other) = call.arguments.keywords.iter().find(|k| !known(k)) {
            return Err(self.unsupported("this argument of a view", other.range));
        }
        let layout = call.arguments.find_keyword("layout").map(|keyword| &keyword.value);
        let Seen { dtype, shape, layout } = match method.attr.as_str() {
            "local" => self.storage_of(&owner, call, layout)?,
            _ => self.seen(&owner, call, layout)?,
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
            layout,
            producer: None,
        });
        self.push(Stmt::decl(&view, &owner.data));
        self.define(name, Value::Buffer(view));
        Ok(true)
    }

    /// What `buffer.view(…)` changes: the dimensions, or the element type. The layout stays where none is given.
    fn seen(&mut self, owner: &Buffer, call: &ast::ExprCall, layout: Option<&Expr>) -> Parsed<Seen> {
        let args = &call.arguments.args;
        match args.first() {
            Some(Expr::StringLiteral(_)) if args.len() == 1 => {
                let dtype = self.element_dtype(&args[0])?;
                let shape = self.reshaped_for(owner, dtype, call.range())?;
                if layout.is_some() || owner.layout.layout().is_some() {
                    return Err(self.unsupported("another element type of a buffer with a layout", call.range()));
                }
                Ok(Seen { dtype, shape, layout: owner.layout.clone() })
            }
            Some(_) => {
                let shape = args.iter().map(|e| self.dim(e)).collect::<Parsed<Vec<_>>>()?;
                let shape = self.inferred(owner, shape, call.range())?;
                let layout = match layout {
                    Some(_) => self.placement(layout, &shape)?,
                    None => owner.layout.clone(),
                };
                Ok(Seen { dtype: owner.dtype, shape, layout })
            }
            None => Err(self.error(Code::Arguments, "a view has a shape, or an element type", call.range())),
        }
    }

    /// `buffer.local(…)`: what a thread holds of a buffer that is spread over threads, one element behind another.
    fn storage_of(&mut self, owner: &Buffer, call: &ast::ExprCall, layout: Option<&Expr>) -> Parsed<Seen> {
        let held = match &owner.layout {
            Placement::By(of) => of.tile_layout().storage(),
            Placement::Strided => TileLayout::compact(&owner.shape),
            Placement::Unsaid if layout.is_some() && !call.arguments.args.is_empty() => TileLayout::compact(&[]),
            Placement::Unsaid => {
                let message = "the parent buffer has layout=None: what a thread holds of it is not known";
                let error = self.error(Code::Arguments, message, call.range());
                return Err(error.with_help("give a layout where the buffer is made").into());
            }
        };
        let held = Layout::from(held);
        let told = |p: &Self, size: Result<PrimExpr, _>| {
            size.map_err(|why: relaxide_ir::layout::LayoutError| {
                p.error(Code::Arguments, why.to_string(), call.range())
            })
        };
        let args = &call.arguments.args;
        let mut shape = args.iter().map(|e| self.dim(e)).collect::<Parsed<Vec<_>>>()?;
        if shape.is_empty() {
            shape = vec![told(self, if layout.is_some() { held.size(None) } else { held.span(None) })?];
        } else if layout.is_none() {
            let span = told(self, held.span(None))?;
            let count = shape.iter().cloned().reduce(prim::mul).unwrap_or_else(|| span.clone());
            if !Analyzer::new().can_prove_equal(&count, &span) {
                let message = format!(
                    "the local view has {count} elements, but the buffer has physical storage span {span} per thread"
                );
                return Err(self.error(Code::Arguments, message, call.range()));
            }
        }
        let layout = self.placement(layout, &shape)?;
        Ok(Seen { dtype: owner.dtype, shape, layout })
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
