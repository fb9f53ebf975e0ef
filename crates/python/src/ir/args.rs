//! Arguments of constructors, brought to what nodes hold: Python's numbers, lists and text stand for expressions.

use indexmap::IndexMap;
use relaxide::ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, FromAny, Map, ObjectRef, Ref, Shape, Tensor};
use relaxide::ir::prim::{self, PrimExpr};
use relaxide::ir::{AttrValue, Attrs, Code, Diagnostic, Span, Target, Type};
use relaxide::relax::{self, AnyVar, Expr, nesting};

/// The arguments of one call.
pub struct Args<'a> {
    /// The function that is called.
    pub function: &'static str,
    /// What it was given.
    pub values: &'a [AnyView<'a>],
}

impl<'a> Args<'a> {
    fn view(&self, at: usize) -> AnyView<'a> {
        self.values.get(at).copied().unwrap_or_default()
    }

    fn explain<T>(&self, at: usize, result: Result<T, Error>) -> Result<T, Error> {
        result
            .map_err(|error| Error::new(error.kind(), format!("{}, argument {at}: {}", self.function, error.message())))
    }

    /// An argument of a plain type.
    pub fn get<T: FromAny>(&self, at: usize) -> Result<T, Error> {
        self.explain(at, self.view(at).to())
    }

    /// Whether an argument is not given.
    pub fn absent(&self, at: usize) -> bool {
        self.view(at).is_none()
    }

    /// An argument that may be absent.
    pub fn optional<T: FromAny>(&self, at: usize) -> Result<Option<T>, Error> {
        self.explain(at, self.view(at).to())
    }

    /// An argument as a Relax expression.
    pub fn expr(&self, at: usize) -> Result<Expr, Error> {
        self.explain(at, expr(self.view(at)))
    }

    /// An argument as Relax expressions: a sequence of them, or a tuple expression.
    pub fn exprs(&self, at: usize) -> Result<Vec<Expr>, Error> {
        self.explain(at, exprs(self.view(at)))
    }

    /// An argument as a scalar expression.
    pub fn prim(&self, at: usize) -> Result<PrimExpr, Error> {
        self.explain(at, prim_expr(self.view(at)))
    }

    /// An argument as scalar expressions: dimensions.
    pub fn prims(&self, at: usize) -> Result<Option<Vec<PrimExpr>>, Error> {
        match self.view(at).is_none() {
            true => Ok(None),
            false => self.explain(at, prims(self.view(at))).map(Some),
        }
    }

    /// An argument as a type; missing where absent.
    pub fn ty(&self, at: usize) -> Result<Type, Error> {
        self.explain(at, ty(self.view(at)))
    }

    /// An argument as types.
    pub fn types(&self, at: usize) -> Result<Vec<Type>, Error> {
        let value = self.view(at);
        match value.to::<Array>() {
            Ok(list) => self.explain(at, list.iter().map(|item| ty(item.as_view())).collect()),
            Err(_) if value.is_none() => Ok(Vec::new()),
            Err(_) => Ok(vec![self.ty(at)?]),
        }
    }

    /// An argument as attributes; none where absent.
    pub fn attrs(&self, at: usize) -> Result<Attrs, Error> {
        self.explain(at, attrs(self.view(at)))
    }

    /// An argument as a place in a text.
    pub fn span(&self, at: usize) -> Result<Option<Ref<Span>>, Error> {
        self.optional(at)
    }

    /// An argument as a variable of either kind.
    pub fn var(&self, at: usize) -> Result<AnyVar, Error> {
        self.get(at)
    }
}

fn wrong<T>(expected: &str, value: AnyView<'_>) -> Result<T, Error> {
    Err(Error::new(ErrorKind::TypeError, format!("expected {expected}, got {}", value.type_key())))
}

/// A value as a Relax expression.
pub fn expr(value: AnyView<'_>) -> Result<Expr, Error> {
    if let Some(object) = value.as_object() {
        if let Ok(expr) = Expr::try_from(object.clone()) {
            return if nesting::is_too_deep(&expr) { Err(too_deep()) } else { Ok(expr) };
        }
        if let Ok(scalar) = PrimExpr::try_from(object.clone()) {
            return Ok(Expr::prim(scalar));
        }
    }
    if let Some(text) = value.as_str() {
        return Ok(Expr::string(text));
    }
    if let Ok(tensor) = value.to::<Tensor>() {
        return Ok(Expr::constant(tensor));
    }
    if let Ok(shape) = value.to::<Shape>() {
        return Ok(Expr::shape(shape.iter().copied()));
    }
    if let Ok(list) = value.to::<Array>() {
        return list.iter().map(|item| expr(item.as_view())).collect::<Result<Vec<_>, _>>().map(Expr::tuple);
    }
    use relaxide::ffi::abi::type_index as index;
    match value.type_index() {
        index::INT => Ok(Expr::prim(prim::int(value.to()?))),
        index::BOOL => Ok(Expr::prim(prim::boolean(value.to()?))),
        index::FLOAT => Ok(Expr::prim(prim::float_of(DataType::float(64), value.to()?))),
        index::DATA_TYPE => Ok(Expr::dtype(value.to()?)),
        _ => wrong("a Relax expression", value),
    }
}

/// A sequence of expressions, or the fields of a tuple expression.
pub fn exprs(value: AnyView<'_>) -> Result<Vec<Expr>, Error> {
    if let Ok(list) = value.to::<Array>() {
        return list.iter().map(|item| expr(item.as_view())).collect();
    }
    match expr(value)? {
        Expr::Tuple(tuple) => Ok(tuple.fields.clone()),
        one => Ok(vec![one]),
    }
}

fn too_deep() -> Error {
    let message = format!("expressions are nested more than {} levels deep", nesting::MAX_NESTING);
    let help = "bind what is inside to variables, as BlockBuilder.emit does";
    Error::new(ErrorKind::ValueError, Diagnostic::new(Code::Limit, message).with_help(help).to_string())
}

/// A value as a scalar expression; bare integers are dimensions.
pub fn prim_expr(value: AnyView<'_>) -> Result<PrimExpr, Error> {
    if let Some(object) = value.as_object()
        && let Ok(scalar) = PrimExpr::try_from(object.clone())
    {
        return match &scalar {
            PrimExpr::Var(var) if !matches!(var.ty, Type::Prim(_) | Type::Pointer(_)) => {
                Err(Error::new(ErrorKind::TypeError, format!("the variable {} is no scalar", var.name)))
            }
            scalar if nesting::is_scalar_too_deep(scalar) => Err(too_deep()),
            _ => Ok(scalar),
        };
    }
    use relaxide::ffi::abi::type_index as index;
    match value.type_index() {
        index::INT => Ok(prim::int(value.to()?)),
        index::BOOL => Ok(prim::boolean(value.to()?)),
        index::FLOAT => Ok(prim::float_of(DataType::float(32), value.to()?)),
        _ => match value.as_str() {
            Some(text) => Ok(prim::string(text)),
            None => wrong("a scalar expression", value),
        },
    }
}

/// Dimensions: a sequence, a shape, or a shape expression.
pub fn prims(value: AnyView<'_>) -> Result<Vec<PrimExpr>, Error> {
    if let Ok(shape) = value.to::<Shape>() {
        return Ok(shape.iter().map(|dim| prim::int(*dim)).collect());
    }
    if let Ok(list) = value.to::<Array>() {
        return list.iter().map(|item| prim_expr(item.as_view())).collect();
    }
    if let Some(shape) = value.downcast_ref::<relax::ShapeExpr>() {
        return Ok(shape.values.clone());
    }
    Ok(vec![prim_expr(value)?])
}

/// A value as a type: a type, or the element type of a scalar one.
pub fn ty(value: AnyView<'_>) -> Result<Type, Error> {
    if value.is_none() {
        return Ok(Type::missing());
    }
    if let Some(object) = value.as_object()
        && let Ok(ty) = Type::try_from(object.clone())
    {
        return Ok(ty);
    }
    match value.to::<DataType>() {
        Ok(dtype) => Ok(Type::prim(dtype)),
        Err(_) => wrong("a type", value),
    }
}

/// A value as attributes.
pub fn attrs(value: AnyView<'_>) -> Result<Attrs, Error> {
    if value.is_none() {
        return Ok(Attrs::new());
    }
    let Ok(map) = value.to::<Map>() else { return wrong("a dictionary of attributes", value) };
    let mut attrs = Attrs::new();
    for (key, item) in map.iter() {
        attrs = attrs.with(key.to::<String>()?, attr_value(item.as_view())?);
    }
    Ok(attrs)
}

/// A value as the value of an attribute.
pub fn attr_value(value: AnyView<'_>) -> Result<AttrValue, Error> {
    use relaxide::ffi::abi::type_index as index;
    if let Some(text) = value.as_str() {
        return Ok(AttrValue::Str(text.to_string()));
    }
    match value.type_index() {
        index::NONE => return Ok(AttrValue::None),
        index::BOOL => return Ok(AttrValue::Bool(value.to()?)),
        index::INT => return Ok(AttrValue::Int(value.to()?)),
        index::FLOAT => return Ok(AttrValue::Float(value.to()?)),
        index::DATA_TYPE => return Ok(AttrValue::DType(value.to()?)),
        _ => {}
    }
    if let Ok(shape) = value.to::<Shape>() {
        return Ok(shape.to_vec().into());
    }
    if let Ok(list) = value.to::<Array>() {
        let items = list.iter().map(|item| attr_value(item.as_view())).collect::<Result<Vec<_>, _>>()?;
        return Ok(AttrValue::List(items));
    }
    if let Ok(map) = value.to::<Map>() {
        let entry = |(key, item): (&Any, &Any)| Ok((key.to::<String>()?, attr_value(item.as_view())?));
        return Ok(AttrValue::Map(map.iter().map(entry).collect::<Result<IndexMap<_, _>, Error>>()?));
    }
    let Some(object) = value.as_object() else { return wrong("an attribute", value) };
    if let Some(text) = object.downcast_ref::<prim::StringImm>() {
        return Ok(AttrValue::Str(text.value.clone()));
    }
    if let Some(target) = object.downcast_ref::<Target>() {
        return Ok(AttrValue::Str(target.to_string()));
    }
    if let Ok(scalar) = prim_expr(value) {
        return Ok(AttrValue::Prim(scalar));
    }
    Ok(match Expr::try_from(object.clone()) {
        Ok(Expr::DType(dtype)) => AttrValue::DType(dtype.value),
        Ok(Expr::Shape(shape)) => AttrValue::List(shape.values.iter().cloned().map(AttrValue::Prim).collect()),
        _ => AttrValue::Object(ObjectRef::clone(object)),
    })
}
