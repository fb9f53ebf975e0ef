//! Annotations.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{PointerType, PrimExpr, ShapeType, TensorType, Type};
use ruff_python_ast::{self as ast, Expr};
use ruff_text_size::{Ranged, TextRange};

use super::args::Args;
use super::symbols::dtype_name;
use super::value::Value;
use super::{Parsed, Parser};
use relaxide_ir::diagnostic::{Code, closest};

/// Names behind `R.` that are types.
const RELAX_TYPES: &[&str] = &["Any", "Callable", "Object", "PackedFunc", "Prim", "Shape", "Tensor", "Tuple", "str"];

impl Parser<'_> {
    /// The type that a path is by itself, or the dtype.
    pub(super) fn bare_type(&self, path: &str) -> Option<Value> {
        let ty = match path {
            "R.Tensor" => Type::tensor_ndim(-1, DataType::void()),
            "R.Shape" => Type::shape_ndim(-1),
            "R.Tuple" => Type::void(),
            "R.Any" | "R.Object" => Type::any(),
            "R.Callable" | "R.PackedFunc" => Type::packed_func(Type::any(), false),
            "I.StringType" => Type::string(),
            "T.handle" => Type::prim(DataType::handle()),
            _ => return path.strip_prefix("T.").and_then(dtype_name).map(Value::DType),
        };
        Some(Value::Type(ty))
    }

    /// An annotation.
    pub(super) fn ty(&mut self, e: &Expr) -> Parsed<Type> {
        self.nested(e.range(), |p| p.ty_here(e))
    }

    fn ty_here(&mut self, e: &Expr) -> Parsed<Type> {
        if let Expr::Call(call) = e
            && let Some(path) = self.path(&call.func)
        {
            return self.called_type(&path, call);
        }
        if let Expr::NoneLiteral(_) = e {
            return Ok(Type::void());
        }
        if self.path(e).as_deref() == Some("R.str") {
            return Ok(Type::string());
        }
        let value = self.expr(e)?;
        self.as_type(value, e.range())
    }

    pub(super) fn as_type(&self, value: Value, range: TextRange) -> Parsed<Type> {
        match value {
            Value::Type(ty) => Ok(ty),
            Value::DType(dtype) => Ok(Type::prim(dtype)),
            Value::Path(path) => Err(self.unknown_type(&path, range)),
            other => {
                Err(self.error(Code::Type, format!("a type is expected, but this is {}", other.describe()), range))
            }
        }
    }

    fn unknown_type(&self, path: &str, range: TextRange) -> Box<relaxide_ir::Diagnostic> {
        let error = self.error(Code::UnknownMember, format!("no type is called `{path}`"), range);
        if path == "T.Optional" {
            return error.with_help("parameters that may be left out are only supported by @T.jit").into();
        }
        let near = path.strip_prefix("R.").and_then(|name| closest(name, RELAX_TYPES.iter().copied()));
        match near {
            Some(near) => error.with_help(format!("did you mean `R.{near}`?")).into(),
            None => error,
        }
    }

    fn called_type(&mut self, path: &str, call: &ast::ExprCall) -> Parsed<Type> {
        let mut args = Args::of(self, path, call)?;
        let ty = match path {
            "R.Tensor" => self.tensor_type(&mut args)?,
            "R.Shape" => self.shape_type(&mut args)?,
            "R.Tuple" => self.tuple_type(&mut args)?,
            "R.Callable" => self.callable_type(&mut args)?,
            "R.Prim" => {
                if args.names("value") {
                    let message = "`R.Prim` has no value: a scalar parameter is a symbolic variable itself, as in \
                                   `n: R.Prim(\"int64\")`";
                    return Err(self.error(Code::Arguments, message, call.range()));
                }
                let dtype = args.required(self, "dtype")?;
                Type::prim(self.dtype(dtype)?)
            }
            "R.Any" | "R.Object" => Type::any(),
            "I.StringType" | "R.str" => Type::string(),
            "T.handle" => self.handle_type(&mut args)?,
            _ => match path.strip_prefix("T.").and_then(dtype_name) {
                Some(dtype) => Type::prim(dtype),
                None => return Err(self.unknown_type(path, call.func.range())),
            },
        };
        args.finish(self)?;
        Ok(ty)
    }

    fn tensor_type(&mut self, args: &mut Args) -> Parsed<Type> {
        let (mut shape, mut rank) = (None, -1);
        let mut dtype = DataType::void();
        let first = args.take("shape");
        // `R.Tensor("float32")` gives the dtype alone.
        match first {
            Some(Expr::StringLiteral(_)) => dtype = first.map_or(Ok(dtype), |e| self.dtype(e))?,
            Some(dims) => (shape, rank) = self.shape_or_rank(dims)?,
            None => {}
        }
        if let Some(e) = args.take("dtype") {
            dtype = self.dtype(e)?;
        }
        let vdevice = match args.take("vdevice") {
            None | Some(Expr::NoneLiteral(_)) => None,
            Some(e) => Some(self.vdevice(e)?),
        };
        let mut ndim = rank;
        if let Some(e) = args.keyword("ndim") {
            let given = self.int(e)?;
            // As many as the shape has, where it says none.
            let given = if given == -1 { ndim } else { given };
            if shape.is_some() && given != ndim {
                return Err(self.error(
                    Code::Type,
                    format!("ndim is {given}, but the shape has {ndim} dimensions"),
                    e.range(),
                ));
            }
            if given < -1 {
                let message =
                    format!("ndim is {given}: a number of dimensions is not negative, and -1 where it is unknown");
                return Err(self.error(Code::Type, message, e.range()));
            }
            ndim = given;
        }
        Ok(Ref::new(TensorType { shape, dtype, ndim, vdevice }).into())
    }

    fn shape_type(&mut self, args: &mut Args) -> Parsed<Type> {
        let (values, mut ndim) = match args.take("values") {
            None => (None, -1),
            Some(dims) => self.shape_or_rank(dims)?,
        };
        if let Some(e) = args.keyword("ndim") {
            let given = self.int(e)?;
            ndim = if given == -1 { ndim } else { given };
        }
        Ok(Ref::new(ShapeType { values, ndim }).into())
    }

    fn tuple_type(&mut self, args: &mut Args) -> Parsed<Type> {
        let mut fields = Vec::new();
        for e in args.rest() {
            match e {
                Expr::List(list) => {
                    for e in &list.elts {
                        fields.push(self.ty(e)?);
                    }
                }
                Expr::Tuple(tuple) => {
                    for e in &tuple.elts {
                        fields.push(self.ty(e)?);
                    }
                }
                e => fields.push(self.ty(e)?),
            }
        }
        Ok(Type::tuple(fields))
    }

    fn callable_type(&mut self, args: &mut Args) -> Parsed<Type> {
        let params = match args.take("params") {
            None | Some(Expr::NoneLiteral(_)) => None,
            Some(Expr::Tuple(tuple)) => Some(self.types(&tuple.elts)?),
            Some(Expr::List(list)) => Some(self.types(&list.elts)?),
            Some(one) => Some(vec![self.ty(one)?]),
        };
        let ret = match args.take("ret") {
            None => Type::any(),
            Some(e) => self.ty(e)?,
        };
        let pure = match args.take("purity") {
            None => params.is_some(),
            Some(e) => self.bool(e)?,
        };
        let derive = args.take("derive_func");
        Ok(match (params, derive) {
            (None, Some(rule)) => Type::derived_func(self.text(rule)?, pure),
            (Some(_), Some(rule)) => {
                let message =
                    "a function whose parameters are known tells the type of its calls by `ret`, not by `derive_func`";
                return Err(self.error(Code::Arguments, message, rule.range()));
            }
            (Some(params), None) => Type::func(params, ret, pure),
            (None, None) => Type::packed_func(ret, pure),
        })
    }

    pub(super) fn types(&mut self, list: &[Expr]) -> Parsed<Vec<Type>> {
        list.iter().map(|e| self.ty(e)).collect()
    }

    fn handle_type(&mut self, args: &mut Args) -> Parsed<Type> {
        let element = match args.take("dtype") {
            Some(dtype) => self.dtype(dtype)?,
            None => DataType::void(),
        };
        let scope = match args.take("scope").or_else(|| args.keyword("storage_scope")) {
            Some(e) => self.text(e)?,
            None => "global".into(),
        };
        // An address of nothing in particular is that of any memory.
        if element.is_void() && scope == "global" {
            return Ok(Type::prim(DataType::handle()));
        }
        Ok(Ref::new(PointerType { element: Type::prim(element), scope }).into())
    }

    /// The dimensions that are written, and how many they are: none and -1 for `None`, and for a value that is a shape what its type says.
    fn shape_or_rank(&mut self, e: &Expr) -> Parsed<(Option<Vec<PrimExpr>>, i64)> {
        let dims = if matches!(e, Expr::Tuple(_) | Expr::List(_)) {
            self.dims(e)?
        } else {
            match self.expr(e)? {
                Value::None => return Ok((None, -1)),
                Value::Int(dim) => {
                    let message = format!("a shape is a tuple: write ({dim},)");
                    return Err(self.error(Code::Type, message, e.range()));
                }
                Value::Relax(value) => match value.ty() {
                    Type::Shape(shape) => return Ok((shape.values.clone(), shape.ndim)),
                    _ => self.dims_of(&Value::Relax(value), e.range())?,
                },
                value => self.dims_of(&value, e.range())?,
            }
        };
        let ndim = dims.len() as i64;
        Ok((Some(dims), ndim))
    }

    /// Dimensions: a tuple or list of scalars, names, or texts.
    pub(super) fn dims(&mut self, e: &Expr) -> Parsed<Vec<PrimExpr>> {
        let parts: &[Expr] = match e {
            Expr::Tuple(tuple) if !self.is_hosted(e) => &tuple.elts,
            Expr::List(list) if !self.is_hosted(e) => &list.elts,
            other => {
                let value = self.expr(other)?;
                return self.dims_of(&value, other.range());
            }
        };
        parts.iter().map(|part| self.dim(part)).collect()
    }

    fn dims_of(&mut self, value: &Value, range: TextRange) -> Parsed<Vec<PrimExpr>> {
        let dims = value.items().unwrap_or(std::slice::from_ref(value));
        dims.iter().map(|d| self.as_dim(d, range)).collect()
    }

    pub(super) fn dim(&mut self, e: &Expr) -> Parsed<PrimExpr> {
        let value = match e {
            Expr::StringLiteral(text) => self.text_expr(text)?,
            e => self.expr(e)?,
        };
        self.as_dim(&value, e.range())
    }

    fn as_dim(&self, value: &Value, range: TextRange) -> Parsed<PrimExpr> {
        match value {
            Value::Str(_) | Value::Float(_) | Value::Bool(_) => {
                let message = format!("a dimension is expected, but this is {}", value.describe());
                let error = self.error(Code::Type, message, range);
                Err(error.with_help("dimensions are a tuple of integers and names, such as (4, \"n\")").into())
            }
            value => {
                let dim = self.scalar(value, range)?;
                self.counts(dim, range)
            }
        }
    }

    /// A dtype, as text or as `T.float32`.
    pub(super) fn dtype(&mut self, e: &Expr) -> Parsed<DataType> {
        // `T.handle("int64").ty`: the type of such a value.
        if let Expr::Attribute(member) = e
            && member.attr.as_str() == "ty"
            && let Expr::Call(made) = &*member.value
            && self.path(&made.func).as_deref() == Some("T.handle")
        {
            self.ty(&member.value)?;
            return Ok(DataType::handle());
        }
        match self.expr(e)? {
            Value::DType(dtype) => Ok(dtype),
            Value::None => Ok(DataType::void()),
            Value::Relax(relaxide_relax::Expr::DType(d)) => Ok(d.value),
            Value::Str(text) if text.is_empty() || text == "void" => Ok(DataType::void()),
            Value::Str(text) => text.parse().map_err(|_| {
                self.error(Code::Type, format!("{text:?} is no dtype"), e.range())
                    .with_help("dtypes are written like \"float32\", \"int8\", \"bool\", \"float16x4\"")
                    .into()
            }),
            other => {
                Err(self.error(Code::Type, format!("a dtype is expected, but this is {}", other.describe()), e.range()))
            }
        }
    }

    /// The dtype of a buffer's elements, of which there must be one.
    pub(super) fn element_dtype(&mut self, e: &Expr) -> Parsed<DataType> {
        let dtype = self.dtype(e)?;
        if dtype.is_void() {
            let error = self.error(Code::Type, "the elements of a buffer must have a dtype", e.range());
            return Err(error.with_help("dtypes are written like \"float32\", \"int8\", \"bool\"").into());
        }
        Ok(dtype)
    }

    pub(super) fn int(&mut self, e: &Expr) -> Parsed<i64> {
        let value = self.expr(e)?;
        value.as_int().ok_or_else(|| {
            self.error(Code::Type, format!("an integer is expected, but this is {}", value.describe()), e.range())
        })
    }

    pub(super) fn bool(&mut self, e: &Expr) -> Parsed<bool> {
        match self.expr(e)? {
            Value::Bool(v) => Ok(v),
            other => {
                let message = format!("True or False is expected, but this is {}", other.describe());
                Err(self.error(Code::Type, message, e.range()))
            }
        }
    }

    pub(super) fn text(&mut self, e: &Expr) -> Parsed<String> {
        match self.expr(e)? {
            Value::Str(v) => Ok(v),
            Value::Relax(relaxide_relax::Expr::Str(s)) => Ok(s.value.clone()),
            other => {
                Err(self.error(Code::Type, format!("text is expected, but this is {}", other.describe()), e.range()))
            }
        }
    }
}
