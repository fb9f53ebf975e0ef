//! Buffers: parameters' types, allocations, sub-buffers, vector access.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, BufferLoad};
use relaxide_ir::{AttrValue, Attrs, Buffer, PointerType, PrimExpr, Type, Var};
use relaxide_tir::{AllocBuffer, BufferRegion, BufferStore, MatchBufferRegion, Range, Stmt};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::block_head::Part;
use super::symbols::variable;
use super::value::Value;
use super::{Parsed, Parser};
use relaxide_ir::diagnostic::Code;

/// The annotation of an allocation whose place in memory is said, and the argument that says it.
pub(crate) const ALLOCATED_AT: &str = "allocated_addr";

impl Parser<'_> {
    /// A buffer from the arguments `shape, dtype, data, strides, elem_offset, scope, align, …`.
    pub(super) fn buffer(&mut self, name: &str, args: &mut Args, scope: Option<&str>) -> Parsed<Ref<Buffer>> {
        let shape = args.required(self, "shape")?;
        let shape = self.dims(shape)?;
        let dtype = args.take("dtype").map_or(Ok(DataType::float(32)), |e| self.element_dtype(e))?;
        let data = match args.take("data") {
            None | Some(Expr::NoneLiteral(_)) => None,
            Some(e) => {
                let value = self.expr(e)?;
                variable(&value).cloned()
            }
        };
        let strides = match args.take("strides") {
            None | Some(Expr::NoneLiteral(_)) => Vec::new(),
            Some(e) => self.dims(e)?,
        };
        // An offset factor without an offset asks for a variable that stands for it; zero is as good as none.
        let factor = args.keyword("offset_factor").map_or(Ok(0), |e| self.int(e))?;
        let elem_offset = match args.take("elem_offset") {
            None | Some(Expr::NoneLiteral(_)) if factor != 0 => self.offset_variable(name, &shape),
            None | Some(Expr::NoneLiteral(_)) => PrimExpr::from(0),
            Some(e) => match self.declared_dtype(e) {
                Some(dtype) => PrimExpr::Var(Var::prim(format!("{name}_elem_offset"), dtype)),
                None => self.offset(e)?,
            },
        };
        let scope = match args.keyword("scope") {
            // No name is that of the memory that everything sees.
            Some(e) => Some(self.text(e)?).filter(|scope| !scope.is_empty()).unwrap_or_else(|| "global".to_string()),
            None => scope.unwrap_or("global").to_string(),
        };
        let alignment = match args.keyword("align") {
            Some(e) => Some(self.int(e)?).filter(|a| *a > 0).unwrap_or(64),
            None => 64,
        };
        let layout = self.placement(args.keyword("layout"), &shape)?;
        // Hints for alignment analysis; nothing here depends on them.
        for hint in ["buffer_type", "axis_separators", "byte_offset"] {
            args.keyword(hint);
        }
        let data = data.unwrap_or_else(|| {
            let pointer = PointerType { element: Type::prim(dtype), scope: scope.clone() };
            Var::new(name, Ref::new(pointer))
        });
        let (name, offset_factor) = (name.to_string(), factor.max(1));
        let producer = None;
        Ok(Ref::new(Buffer {
            name,
            data,
            dtype,
            shape,
            strides,
            elem_offset,
            scope,
            alignment,
            offset_factor,
            layout,
            producer,
        }))
    }

    /// The variable that stands for the offset of a buffer of some dimensions.
    fn offset_variable(&self, name: &str, shape: &[PrimExpr]) -> PrimExpr {
        let dtype = shape.first().map_or(DataType::int(32), PrimExpr::dtype);
        PrimExpr::Var(Var::prim(format!("{name}_elem_offset"), dtype))
    }

    /// `name = T.alloc_buffer(...)` and its like; false if `function` makes no buffer.
    pub(super) fn buffer_assign(
        &mut self,
        target: &ast::ExprName,
        function: &str,
        call: &ast::ExprCall,
    ) -> Parsed<bool> {
        let name = target.id.as_str();
        let mut args = Args::of(self, &format!("T.{function}"), call)?;
        match function {
            "alloc_buffer" | "alloc_local" | "alloc_shared" | "decl_buffer" => {
                let scope = match function {
                    "alloc_local" => Some("local"),
                    "alloc_shared" => Some("shared"),
                    _ => None,
                };
                let data = self.address_argument(call)?;
                // Memory that exists is where its pointer says.
                let of_pointer = match data.as_ref().and_then(PrimExpr::as_var).map(|var| &var.ty) {
                    Some(Type::Pointer(pointer)) => Some(pointer.scope.clone()),
                    _ => None,
                };
                let scope = scope.or(of_pointer.as_deref());
                let mut annotations = args.keyword("annotations").map_or(Ok(Attrs::new()), |e| self.attrs(e))?;
                // Where a device's memory holds it: as many numbers as the address has.
                if let Some(e) = args.keyword(ALLOCATED_AT).filter(|_| data.is_none()) {
                    let address = match self.attr_value(e)? {
                        address @ (AttrValue::List(_) | AttrValue::None) => address,
                        one => AttrValue::List(vec![one]),
                    };
                    if address != AttrValue::None {
                        annotations = annotations.with(ALLOCATED_AT, address);
                    }
                }
                let buffer = self.buffer(name, &mut args, scope)?;
                match data {
                    Some(data) => self.push(Stmt::decl(&buffer, data)),
                    None => self.push(Ref::new(AllocBuffer { buffer: buffer.clone(), annotations })),
                }
                self.define(name, Value::Buffer(buffer));
            }
            // A name for a buffer that nothing declares, as parameters are written.
            "Buffer" => {
                let buffer = self.buffer(name, &mut args, None)?;
                self.define(name, Value::Buffer(buffer));
            }
            "sblock_alloc_buffer" => {
                let known = self.scopes.last().and_then(|names| names.get(name));
                if let (Some(Value::Buffer(known)), Some(block)) = (known, self.kernel.blocks.last())
                    && block.alloc_buffers.contains(known)
                {
                    let message = format!("the block has a buffer `{name}` already");
                    return Err(self.error(Code::Structure, message, args.range));
                }
                let buffer = self.in_head(Part::Buffers, |p| p.buffer(name, &mut args, None))?;
                self.define(name, Value::Buffer(buffer.clone()));
                if let Some(block) = self.kernel.blocks.last_mut() {
                    block.alloc_buffers.push(buffer);
                }
            }
            "match_buffer" => self.in_head(Part::Buffers, |p| p.match_buffer(name, &mut args))?,
            _ => return Ok(false),
        }
        args.finish(self)?;
        Ok(true)
    }

    /// An offset; none at all is written as zero, too.
    fn offset(&mut self, e: &Expr) -> Parsed<PrimExpr> {
        let offset = self.dim(e)?;
        Ok(if offset.as_int() == Some(0) { PrimExpr::from(0) } else { offset })
    }

    /// A buffer over a handle parameter, or a sub-buffer of a region.
    fn match_buffer(&mut self, name: &str, args: &mut Args) -> Parsed<()> {
        let e = args.required(self, "param")?;
        let source = self.expr(e)?;
        if let Some(var) = variable(&source) {
            let var = var.clone();
            self.defining = true;
            let buffer = self.in_signature(|p| p.buffer(name, args, None));
            self.defining = false;
            let buffer = buffer?;
            let Some((_, slot)) = self.kernel.params.iter_mut().find(|(param, _)| *param == var) else {
                let message = format!("`{}` is no parameter of the kernel", var.name);
                return Err(self.error(Code::Type, message, e.range()));
            };
            *slot = Some(buffer.clone());
            self.define(name, Value::Buffer(buffer));
            return Ok(());
        }
        let source = self.as_region(source, e.range())?;
        let has_dtype = args.keyword("dtype");
        // Without a shape it is the region's own.
        let shape = match args.take("shape") {
            Some(e) => self.dims(e)?,
            None => source.region.iter().map(|range| range.extent.clone()).collect(),
        };
        if let Some(problem) = misfit(&shape, &source) {
            return Err(self.error(Code::Type, format!("the sub-buffer `{name}` {problem}"), args.range));
        }
        let dtype = match has_dtype.or_else(|| args.take("dtype")) {
            Some(e) => self.element_dtype(e)?,
            None => source.buffer.dtype,
        };
        let strides = match args.keyword("strides") {
            None | Some(Expr::NoneLiteral(_)) => Vec::new(),
            Some(e) => self.strides_of_region(e)?,
        };
        let factor = args.keyword("offset_factor").map_or(Ok(0), |e| self.int(e))?;
        let elem_offset = match args.keyword("elem_offset") {
            None | Some(Expr::NoneLiteral(_)) if factor != 0 => self.offset_variable(name, &shape),
            None | Some(Expr::NoneLiteral(_)) => PrimExpr::from(0),
            Some(e) => self.offset(e)?,
        };
        let scope = args.keyword("scope").map_or(Ok(source.buffer.scope.clone()), |e| self.text(e))?;
        let alignment = args.keyword("align").map_or(Ok(64), |e| self.int(e))?;
        args.keyword("buffer_type");
        let layout = self.placement(args.keyword("layout"), &shape)?;
        let data = Var::new(name, Ref::new(PointerType { element: Type::prim(dtype), scope: scope.clone() }));
        let alignment = if alignment > 0 { alignment } else { 64 };
        let (name_of, offset_factor, producer) = (name.to_string(), factor.max(1), None);
        let buffer = Ref::new(Buffer {
            name: name_of,
            data,
            dtype,
            shape,
            strides,
            elem_offset,
            scope,
            alignment,
            offset_factor,
            layout,
            producer,
        });
        self.define(name, Value::Buffer(buffer.clone()));
        if let Some(block) = self.kernel.blocks.last_mut() {
            block.match_buffers.push(Ref::new(MatchBufferRegion { buffer, source }));
        }
        Ok(())
    }

    /// The strides of a sub-buffer. A name in quotes that means nothing yet is a variable that stands for what the source has.
    fn strides_of_region(&mut self, e: &Expr) -> Parsed<Vec<PrimExpr>> {
        let parts: &[Expr] = match e {
            Expr::Tuple(tuple) => &tuple.elts,
            Expr::List(list) => &list.elts,
            other => return self.dims(other),
        };
        let stride = |part: &Expr| match part {
            Expr::StringLiteral(text) if self.lookup(text.value.to_str()).is_none() => {
                let name = text.value.to_str();
                let stride = Var::prim(name, DataType::int(32));
                self.define(name, Value::Prim(PrimExpr::Var(stride.clone())));
                if let Some(block) = self.kernel.blocks.last_mut() {
                    block.strides.push(stride.clone());
                }
                Ok(PrimExpr::Var(stride))
            }
            part => self.dim(part),
        };
        parts.iter().map(stride).collect()
    }

    /// A value as a box of a buffer: ranges, an element, or a whole buffer.
    pub(super) fn as_region(&self, value: Value, range: TextRange) -> Parsed<Ref<BufferRegion>> {
        match value {
            Value::Region(buffer, region) => Ok(Ref::new(BufferRegion { buffer, region })),
            Value::Prim(PrimExpr::Load(load)) => {
                let point = |min: &PrimExpr| Ref::new(Range { min: min.clone(), extent: prim::int_of(min.dtype(), 1) });
                let region = load.indices.iter().map(point).collect();
                Ok(Ref::new(BufferRegion { buffer: load.buffer.clone(), region }))
            }
            Value::Buffer(buffer) => {
                let whole = |d: &PrimExpr| Ref::new(Range { min: prim::int_of(d.dtype(), 0), extent: d.clone() });
                let region = buffer.shape.iter().map(whole).collect();
                Ok(Ref::new(BufferRegion { buffer, region }))
            }
            other => Err(self.error(
                Code::Type,
                format!("a region of a buffer is expected, not {}", other.describe()),
                range,
            )),
        }
    }

    /// The vector that a region of constant length is.
    pub(super) fn region_load(&self, buffer: &Ref<Buffer>, ranges: &[Ref<Range>], at: TextRange) -> Parsed<PrimExpr> {
        let indices = self.region_indices(ranges, at)?;
        Ok(Ref::new(BufferLoad { buffer: buffer.clone(), indices, predicate: None }).into())
    }

    /// Whether an expression names a buffer.
    pub(super) fn is_buffer(&self, e: &Expr) -> bool {
        matches!(e, Expr::Name(name) if matches!(self.lookup(&name.id), Some(Value::Buffer(_))))
    }

    fn method_buffer(&mut self, attr: &ast::ExprAttribute) -> Parsed<Ref<Buffer>> {
        match self.expr(&attr.value)? {
            Value::Buffer(buffer) => Ok(buffer),
            other => Err(self.error(Code::Type, format!("{} is no buffer", other.describe()), attr.range)),
        }
    }

    /// `buffer.vload([indices], predicate=…)`.
    pub(super) fn buffer_method(&mut self, attr: &ast::ExprAttribute, call: &ast::ExprCall) -> Parsed<Value> {
        let buffer = self.method_buffer(attr)?;
        if attr.attr.as_str() != "vload" && self.host.is_some() {
            // What else buffers can do is known where they are written in Python.
            let value = self.ask(&Expr::Call(call.clone()))?;
            return self.value_from_host(&value, call.range());
        }
        if attr.attr.as_str() != "vload" {
            return Err(self.unsupported(&format!("the buffer method `{}`", attr.attr), call.range()));
        }
        let mut args = Args::of(self, "vload", call)?;
        let indices = args.required(self, "indices")?;
        let mut indices = self.dims(indices)?;
        if let Some(e) = args.take("dtype")
            && !matches!(e, Expr::NoneLiteral(_))
        {
            let (lanes, last) = (self.dtype(e)?.lane_count(), indices.last_mut());
            if let Some(last) = last.filter(|last| lanes > 1 && last.dtype().lanes == 1) {
                *last = prim::ramp(last.clone(), prim::int_of(last.dtype(), 1), lanes);
            }
        }
        let predicate = args.keyword("predicate").map(|e| self.scalar_expr(e)).transpose()?;
        args.finish(self)?;
        Ok(Value::Prim(Ref::new(BufferLoad { buffer, indices, predicate }).into()))
    }

    /// `buffer.vstore([indices], value, predicate=…)`.
    pub(super) fn vstore(&mut self, attr: &ast::ExprAttribute, call: &ast::ExprCall) -> Parsed<()> {
        let buffer = self.method_buffer(attr)?;
        let mut args = Args::of(self, "vstore", call)?;
        let (indices, value) = (args.required(self, "indices")?, args.required(self, "value")?);
        let indices = self.dims(indices)?;
        let value = self.scalar_expr(value)?;
        let predicate = args.take("predicate").map(|e| self.scalar_expr(e)).transpose()?;
        args.finish(self)?;
        self.push(Ref::new(BufferStore { buffer, value, indices, predicate }));
        Ok(())
    }
}

impl Parser<'_> {
    /// `T.masked_load(dtype, buffer, indices…, mask)`.
    pub(super) fn masked_load(&mut self, args: &mut Args) -> Parsed<PrimExpr> {
        let e = args.required(self, "dtype")?;
        let dtype = self.dtype(e)?;
        let buffer = self.accessed(args)?;
        let (indices, predicate) = self.masked_place(args)?;
        let load: PrimExpr = Ref::new(BufferLoad { buffer, indices, predicate }).into();
        if load.dtype() != dtype {
            let message = format!("the elements that are loaded are {}, not {dtype}", load.dtype());
            return Err(self.error(Code::Type, message, e.range()));
        }
        Ok(load)
    }

    /// `T.masked_store(buffer, value, indices…, mask)`.
    pub(super) fn masked_store(&mut self, args: &mut Args) -> Parsed<()> {
        let buffer = self.accessed(args)?;
        let e = args.required(self, "value")?;
        let value = self.scalar_expr(e)?;
        let (indices, predicate) = self.masked_place(args)?;
        self.push(Ref::new(BufferStore { buffer, value, indices, predicate }));
        Ok(())
    }

    fn accessed(&mut self, args: &mut Args) -> Parsed<Ref<Buffer>> {
        let e = args.required(self, "buffer")?;
        match self.expr(e)? {
            Value::Buffer(buffer) => Ok(buffer),
            other => Err(self.error(Code::Type, format!("{} is no buffer", other.describe()), e.range())),
        }
    }

    /// Indices, and the lanes that take part.
    fn masked_place(&mut self, args: &mut Args) -> Parsed<(Vec<PrimExpr>, Option<PrimExpr>)> {
        let mut indices = args.rest().into_iter().map(|e| self.scalar_expr(e)).collect::<Parsed<Vec<_>>>()?;
        match indices.pop() {
            Some(mask) => Ok((indices, Some(mask))),
            None => Err(self.error(Code::Arguments, "indices and a mask are missing", args.range)),
        }
    }
}

/// Why dimensions are not those of a region: its last ones, behind others of one element.
fn misfit(shape: &[PrimExpr], source: &BufferRegion) -> Option<String> {
    let Some(left_out) = source.region.len().checked_sub(shape.len()) else {
        return Some(format!("has {} dimensions, and its region {}", shape.len(), source.region.len()));
    };
    let ones = std::iter::repeat_n(1, left_out).map(Some);
    let wanted = ones.chain(shape.iter().map(PrimExpr::as_int));
    let mut pairs = wanted.zip(source.region.iter().map(|range| range.extent.as_int()));
    let at = pairs.position(|pair| matches!(pair, (Some(own), Some(there)) if own != there))?;
    let there = source.region[at].extent.clone();
    Some(match at.checked_sub(left_out) {
        Some(own) => format!("has {} elements along dimension {own}, and its region {there}", shape[own]),
        None => format!("leaves out a dimension of which its region has {there} elements"),
    })
}
