//! Attributes and subscripts: `A.data`, `cls.f`, `A[i, 0:4]`, `t[0]`, `metadata["ir.GenericConst"][0]`.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, Binary, BufferLoad, Ramp};
use relaxide_ir::{BinaryOp, Buffer, PrimExpr, Type};
use relaxide_relax::{Expr as Relax, TupleGetItem};
use relaxide_tir::Range;
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::host::OF_PYTHON;
use super::value::Value;
use super::{Parsed, Parser};
use crate::meta_json;
use relaxide_ir::diagnostic::{Code, Diagnostic, closest};

impl Parser<'_> {
    pub(super) fn attribute(&mut self, attr: &ast::ExprAttribute) -> Parsed<Value> {
        let base = self.expr(&attr.value)?;
        let name = attr.attr.as_str();
        match base {
            Value::Module => self.global(name, attr.range),
            Value::Buffer(b) => match name {
                "data" => Ok(Value::Prim(PrimExpr::Var(b.data.clone()))),
                // What the type of a buffer says, the buffer does.
                "ty" => Ok(Value::Buffer(b)),
                "dtype" => Ok(Value::DType(b.dtype)),
                "shape" => Ok(Value::Tuple(b.shape.iter().cloned().map(Value::Prim).collect())),
                "strides" => Ok(Value::Tuple(b.strides.iter().cloned().map(Value::Prim).collect())),
                "elem_offset" => Ok(Value::Prim(b.elem_offset.clone())),
                _ if self.host.is_some() && OF_PYTHON.contains(&name) => {
                    let value = self.ask(&Expr::Attribute(attr.clone()))?;
                    self.value_from_host(&value, attr.range)
                }
                _ => Err(self.no_member(&format!("the buffer `{}`", b.name), name, attr.range)),
            },
            Value::Prim(e) if name == "dtype" => Ok(Value::DType(e.dtype())),
            Value::Relax(e) if name == "dtype" => match e.ty() {
                Type::Tensor(t) => Ok(Value::DType(t.dtype)),
                _ => Err(self.no_member("this expression", name, attr.range)),
            },
            other => Err(self.no_member(&other.describe(), name, attr.range)),
        }
    }

    /// A function of the module.
    pub(super) fn global(&self, name: &str, range: TextRange) -> Parsed<Value> {
        if let Some(var) = self.globals.get(name) {
            return Ok(Value::Relax(var.clone().into()));
        }
        let error = self.error(Code::UnknownName, format!("the module has no function `{name}`"), range);
        Err(match closest(name, self.globals.keys().map(String::as_str)) {
            Some(near) => error.with_help(format!("did you mean `{near}`?")).into(),
            None => error,
        })
    }

    fn no_member(&self, of: &str, name: &str, range: TextRange) -> Box<Diagnostic> {
        self.error(Code::UnknownMember, format!("{of} has no `{name}`"), range)
    }

    pub(super) fn subscript(&mut self, subscript: &ast::ExprSubscript) -> Parsed<Value> {
        if let Some((key, index)) = metadata_reference(subscript) {
            return self.metadata_constant(key, index, subscript.range);
        }
        if let Some(path) = self.path(&subscript.value) {
            return Err(self.unsupported(&format!("a subscript of {path}"), subscript.range));
        }
        let base = self.expr(&subscript.value)?;
        match base {
            Value::Buffer(buffer) => self.buffer_access(&buffer, &subscript.slice, subscript.range),
            Value::List(items) | Value::Tuple(items) => {
                let index = self.expr(&subscript.slice)?;
                let index = index.as_int().and_then(|i| {
                    if i < 0 { items.len().checked_sub(i.unsigned_abs() as usize) } else { usize::try_from(i).ok() }
                });
                index.and_then(|i| items.get(i).cloned()).ok_or_else(|| {
                    self.error(
                        Code::Type,
                        format!("an index below {} is expected", items.len()),
                        subscript.slice.range(),
                    )
                })
            }
            Value::Map(items) => {
                let key = self.text(&subscript.slice)?;
                let found = items.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone());
                found.ok_or_else(|| {
                    let message = format!("the dictionary has no key {key:?}");
                    self.error(Code::UnknownMember, message, subscript.slice.range())
                })
            }
            Value::Relax(tuple) => {
                let index = self.expr(&subscript.slice)?;
                self.tuple_field(tuple, &index, subscript.range)
            }
            other => Err(self.error(Code::Type, format!("{} has no elements", other.describe()), subscript.range)),
        }
    }

    fn tuple_field(&mut self, tuple: Relax, index: &Value, range: TextRange) -> Parsed<Value> {
        let ty = tuple.ty();
        let Some(index) = index.as_int().filter(|i| *i >= 0) else {
            return Err(self.error(Code::Type, "a field of a tuple is chosen by a number", range));
        };
        match &ty {
            Type::Tuple(t) if index as usize >= t.fields.len() => {
                let message = format!("the tuple has {} fields, so there is no field {index}", t.fields.len());
                Err(self.error(Code::Type, message, range))
            }
            Type::Tuple(_) | Type::Any(_) | Type::Missing(_) => {
                let tuple = self.leaf(tuple)?;
                Ok(Value::Relax(Ref::new(TupleGetItem { tuple, index }).into()))
            }
            _ => Err(self.no_fields(range)),
        }
    }

    /// Fields are asked of a value that has none.
    pub(super) fn no_fields(&self, range: TextRange) -> Box<Diagnostic> {
        let error = self.error(Code::Type, "only tuples have fields; this is no tuple", range);
        Box::new(error.with_help("R.take or R.strided_slice choose elements of a tensor, R.split cuts it"))
    }

    /// `buffer[...]`: an element, or a region where there are ranges.
    fn buffer_access(&mut self, buffer: &Ref<Buffer>, slice: &Expr, range: TextRange) -> Parsed<Value> {
        let parts: &[Expr] = match slice {
            Expr::Tuple(tuple) => &tuple.elts,
            one => std::slice::from_ref(one),
        };
        if let Some(indices) = self.listed_indices(slice)? {
            if indices.len() != buffer.shape.len() {
                let message = format!(
                    "the buffer `{}` has {} dimensions, not {}",
                    buffer.name,
                    buffer.shape.len(),
                    indices.len()
                );
                return Err(self.error(Code::Arguments, message, range));
            }
            return Ok(Value::Prim(Ref::new(BufferLoad { buffer: buffer.clone(), indices, predicate: None }).into()));
        }
        let is_flat = parts.len() == 1 && (self.kernel.has_flat_indices || buffer.shape.is_empty());
        if parts.len() != buffer.shape.len() && !is_flat {
            let message =
                format!("the buffer `{}` has {} dimensions, not {}", buffer.name, buffer.shape.len(), parts.len());
            let error = self.error(Code::Arguments, message, range);
            return Err(error.with_help("give an index for each dimension").into());
        }
        let (mut ranges, mut sliced) = (Vec::new(), false);
        for part in parts {
            if let Expr::Slice(slice) = part
                && let Some(min) = self.stepped(buffer, ranges.len(), slice)?
            {
                let extent = prim::int_of(min.dtype().element(), 1);
                ranges.push(Ref::new(Range { min, extent }));
            } else {
                sliced |= part.is_slice_expr();
                ranges.push(self.range_of_part(buffer, ranges.len(), part)?);
            }
        }
        if sliced {
            return Ok(Value::Region(buffer.clone(), ranges));
        }
        let indices = ranges.iter().map(|r| r.min.clone()).collect();
        Ok(Value::Prim(Ref::new(BufferLoad { buffer: buffer.clone(), indices, predicate: None }).into()))
    }

    /// One part of a subscript as a range: an index is a range of one element.
    pub(super) fn range_of_part(&mut self, buffer: &Buffer, dim: usize, part: &Expr) -> Parsed<Ref<Range>> {
        if let Expr::Slice(slice) = part {
            return self.slice_range(buffer, dim, slice);
        }
        let min = self.scalar_expr(part)?;
        let min = self.counts(min, part.range())?;
        let extent = prim::int_of(min.dtype().element(), 1);
        Ok(Ref::new(Range { min, extent }))
    }

    /// Indices of which some are listed: `A[all]` with the tuple `all`, `A[(*most, last)]`. Nothing where each is written.
    fn listed_indices(&mut self, slice: &Expr) -> Parsed<Option<Vec<PrimExpr>>> {
        let values = match slice {
            Expr::Name(_) => match self.expr(slice)? {
                Value::Tuple(items) | Value::List(items) => items,
                _ => return Ok(None),
            },
            Expr::Tuple(tuple) if tuple.elts.iter().any(Expr::is_starred_expr) => {
                let mut values = Vec::new();
                for e in &tuple.elts {
                    match e {
                        Expr::Starred(star) => values.extend(self.spread(&star.value)?),
                        one => values.push(self.expr(one)?),
                    }
                }
                values
            }
            _ => return Ok(None),
        };
        let index = |value: Value| {
            let index = self.scalar(&value, slice.range())?;
            self.counts(index, slice.range())
        };
        values.into_iter().map(index).collect::<Parsed<Vec<_>>>().map(Some)
    }

    /// `begin:end:step` as the vector of those indices; nothing where the step is one, or none is written.
    fn stepped(&mut self, buffer: &Buffer, dim: usize, slice: &ast::ExprSlice) -> Parsed<Option<PrimExpr>> {
        let Some(e) = &slice.step else { return Ok(None) };
        let step = match self.expr(e)?.as_int() {
            Some(1) => return Ok(None),
            step => step.filter(|step| *step > 0),
        };
        let range = self.slice_range(buffer, dim, slice)?;
        let (Some(step), Some(extent)) = (step, range.extent.as_int()) else {
            return Err(self
                .error(Code::Unsupported, "a range with a step has numbers for it and for its length", e.range())
                .with_help("T.Ramp(start, step, lanes) is the vector of such indices")
                .into());
        };
        let lanes = extent.saturating_add(step - 1) / step;
        Ok(Some(prim::ramp(range.min.clone(), prim::int_of(range.min.dtype(), step), lanes)))
    }

    fn slice_range(&mut self, buffer: &Buffer, dim: usize, slice: &ast::ExprSlice) -> Parsed<Ref<Range>> {
        let full = buffer.shape.get(dim).cloned().unwrap_or_else(|| PrimExpr::from(1));
        let (lower, upper) = match (&slice.lower, &slice.upper) {
            (Some(lower), Some(upper)) => (self.expr(lower)?, self.expr(upper)?),
            (None, Some(upper)) => (Value::Int(0), self.expr(upper)?),
            (Some(lower), None) => (self.expr(lower)?, Value::Prim(full)),
            (None, None) => (Value::Int(0), Value::Prim(full)),
        };
        let range = slice.range;
        let (min, end) = match self.operands(&lower, &upper) {
            // A bare zero keeps its own type, so that the text stays as it is.
            Some((_, end)) if matches!(lower, Value::Int(0)) => (self.scalar(&lower, range)?, end),
            Some(pair) => pair,
            None => (self.scalar(&lower, range)?, self.scalar(&upper, range)?),
        };
        let (min, end) = (self.counts(min, range)?, self.counts(end, range)?);
        let extent = difference(&end, &min);
        Ok(Ref::new(Range { min, extent }))
    }

    /// An element or a vector of neighbouring elements: a range of constant length becomes lanes.
    pub(super) fn region_indices(&self, ranges: &[Ref<Range>], at: TextRange) -> Parsed<Vec<PrimExpr>> {
        let mut indices = Vec::with_capacity(ranges.len());
        for range in ranges {
            if range.extent.is_int(1) {
                indices.push(range.min.clone());
                continue;
            }
            let lanes = range.extent.as_int().filter(|n| (1..=i64::from(u16::MAX)).contains(n)).ok_or_else(|| {
                self.error(Code::Type, "a range that is read or written at once has a constant length", at)
            })?;
            let stride = prim::int_of(range.min.dtype(), 1);
            indices.push(Ref::new(Ramp { base: range.min.clone(), stride, lanes }).into());
        }
        Ok(indices)
    }

    /// Whether a buffer can be used by its bare name.
    pub(super) fn is_scalar_buffer(&self, buffer: &Ref<Buffer>) -> bool {
        self.scalars.contains(buffer) || matches!(buffer.shape.as_slice(), [d] if d.is_int(1))
    }

    /// The only element of a buffer.
    pub(super) fn scalar_element(&self, buffer: &Ref<Buffer>) -> PrimExpr {
        let dtype = buffer.shape.first().map_or(self.default_int(), PrimExpr::dtype);
        let indices = vec![prim::int_of(dtype, 0)];
        Ref::new(BufferLoad { buffer: buffer.clone(), indices, predicate: None }).into()
    }

    fn metadata_constant(&mut self, key: &str, index: i64, range: TextRange) -> Parsed<Value> {
        let Some(metadata) = &self.metadata else {
            return Err(self
                .error(Code::Metadata, "the text refers to metadata but has no metadata section", range)
                .with_help("print the module with its metadata (show_meta)")
                .into());
        };
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let found = match key {
            meta_json::CONSTANTS => metadata.constants.get(at).map(|c| Value::Relax(c.clone().into())),
            meta_json::TENSORS => metadata.tensors.get(at).map(|t| Value::Object(t.clone().into())),
            _ => return Err(self.error(Code::Metadata, format!("metadata of type {key} is not supported"), range)),
        };
        found.ok_or_else(|| {
            self.error(Code::Metadata, format!("the metadata section has no object {index} of type {key}"), range)
        })
    }
}

/// `metadata["key"][index]`.
fn metadata_reference(subscript: &ast::ExprSubscript) -> Option<(&str, i64)> {
    let Expr::Subscript(inner) = &*subscript.value else { return None };
    let (Expr::Name(base), Expr::StringLiteral(key)) = (&*inner.value, &*inner.slice) else { return None };
    let Expr::NumberLiteral(index) = &*subscript.slice else { return None };
    let ast::Number::Int(index) = &index.value else { return None };
    (base.id.as_str() == "metadata").then_some((key.value.to_str(), index.as_i64()?))
}

/// `end - start`, seen through what the printer writes: `start + n` minus `start` is `n`.
pub(super) fn difference(end: &PrimExpr, start: &PrimExpr) -> PrimExpr {
    if start.is_int(0) {
        return end.clone();
    }
    if let PrimExpr::Binary(sum) = end
        && sum.op == BinaryOp::Add
        && relaxide_ffi::structural_equal(&sum.a, start, relaxide_ffi::FreeVars::Same).is_ok()
    {
        return sum.b.clone();
    }
    let known = Analyzer::new().simplify_as_tvm(&prim::sub(end, start));
    if known.as_int().is_some() {
        return known;
    }
    Ref::new(Binary { op: BinaryOp::Sub, a: end.clone(), b: start.clone() }).into()
}
