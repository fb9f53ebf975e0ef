//! What a lowering of an operator works with.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs, Type as RxType, Var as RxVar};
use relaxide_relax as rx;
use relaxide_relax::shape::{Broadcast, broadcast, prove_equal};
use relaxide_tir::te;

use super::agreed::{Agreed, is_small};
use super::schema::Mapping;
use super::{OpDef, lookup};
use crate::scalar;

/// Why a call has no form in Relax.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LowerError(pub String);

impl From<rx::builder::BuildError> for LowerError {
    fn from(error: rx::builder::BuildError) -> Self {
        LowerError(error.to_string())
    }
}

impl From<rx::op::OpError> for LowerError {
    fn from(error: rx::op::OpError) -> Self {
        LowerError(error.to_string())
    }
}

impl From<relaxide_ffi::Error> for LowerError {
    fn from(error: relaxide_ffi::Error) -> Self {
        LowerError(error.message().to_string())
    }
}

/// What a dimension is that no tensor shows before the program runs.
#[derive(Clone, Debug)]
pub enum DimDef {
    /// A function of other dimensions.
    Expr(PrimExpr),
    /// An element of a tensor of integers.
    Element(rx::Expr, usize),
    /// How many elements of a tensor are not zero.
    Nonzero(rx::Expr),
}

/// A call that is being written in Relax.
pub struct LowerCx<'a> {
    /// Where its bindings go.
    pub builder: &'a mut rx::BlockBuilder,
    /// The operator.
    pub def: &'static OpDef,
    /// Its arguments.
    pub args: Vec<rx::Expr>,
    /// Its attributes, complete.
    pub attrs: &'a Attrs,
    /// What becomes of dimensions that the call makes.
    pub dims: NewDims<'a>,
}

/// What becomes of dimensions that no tensor shows before the program runs.
pub enum NewDims<'a> {
    /// Only the type is asked for: what must agree is taken to agree.
    Type,
    /// They become variables, which are collected with what they are.
    Collect(&'a mut Vec<(Ref<RxVar>, DimDef)>, &'a mut Agreed),
    /// They are written in place: a small expression stands for itself, a larger one gets a name, an element is read from its
    /// tensor as the program runs.
    Emit(&'a mut Agreed),
}

impl NewDims<'_> {
    fn reborrow(&mut self) -> NewDims<'_> {
        match self {
            NewDims::Collect(list, agreed) => NewDims::Collect(list, agreed),
            NewDims::Emit(agreed) => NewDims::Emit(agreed),
            NewDims::Type => NewDims::Type,
        }
    }
}

/// The result of a lowering.
pub type Lowered = Result<rx::Expr, LowerError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Result<T, LowerError> {
    Err(LowerError(message.into()))
}

impl LowerCx<'_> {
    /// Writes the call.
    pub fn lower(&mut self) -> Lowered {
        let name = self.def.name;
        match self.def.mapping {
            Mapping::Same => self.same(name),
            Mapping::As(other) => self.same(other),
            Mapping::Binary(other) => {
                let (a, b) = (self.arg(0)?, self.arg(1)?);
                self.binary(other, a, b)
            }
            Mapping::By(lower) => lower(self),
            Mapping::Machine => fail(format!("{name} is executed by the machine and has no form in Relax")),
            Mapping::Missing => {
                fail(format!("the operator {name} is known but cannot be compiled yet: it has no form in Relax"))
            }
        }
    }

    fn same(&mut self, name: &str) -> Lowered {
        let def = rx::op::lookup(name).ok_or_else(|| LowerError(format!("Relax has no operator {name}")))?;
        let mut attrs = Attrs::new();
        for attr in def.attrs {
            if let Some(value) = self.attrs.get(attr.name) {
                attrs = attrs.with(attr.name, value.clone());
            }
        }
        self.emit(name, self.args.clone(), attrs)
    }

    /// An argument.
    pub fn arg(&self, i: usize) -> Lowered {
        let name = self.def.args.get(i).copied().unwrap_or("argument");
        self.args.get(i).cloned().ok_or_else(|| LowerError(format!("{} needs the argument `{name}`", self.def.name)))
    }

    /// The arguments that a tuple holds.
    pub fn tuple_args(&mut self, i: usize) -> Result<Vec<rx::Expr>, LowerError> {
        let arg = self.arg(i)?;
        match arg.ty() {
            RxType::Tuple(t) => match &arg {
                rx::Expr::Tuple(tuple) => Ok(tuple.fields.clone()),
                _ => (0..t.fields.len()).map(|k| Ok(self.builder.emit(rx::Expr::field(arg.clone(), k))?)).collect(),
            },
            _ => fail(format!("{} takes a tuple of tensors", self.def.name)),
        }
    }

    /// A call of an operator of Relax, bound to a name.
    pub fn emit(&mut self, name: &str, args: impl Into<Vec<rx::Expr>>, attrs: Attrs) -> Lowered {
        Ok(self.builder.op(name, args, attrs)?)
    }

    /// The same without attributes.
    pub fn op(&mut self, name: &str, args: impl Into<Vec<rx::Expr>>) -> Lowered {
        self.emit(name, args, Attrs::new())
    }

    /// The dimensions of a tensor.
    pub fn shape(&self, e: &rx::Expr) -> Result<Vec<PrimExpr>, LowerError> {
        match e.ty() {
            RxType::Tensor(t) => t.shape.clone().ok_or_else(|| {
                LowerError(format!("{}: the shape of an operand is not known before the program runs", self.def.name))
            }),
            other => fail(format!("{} takes a tensor, not {}", self.def.name, rx::display::type_text(&other))),
        }
    }

    /// The rank of a tensor.
    pub fn ndim(&self, e: &rx::Expr) -> Result<usize, LowerError> {
        Ok(self.shape(e)?.len())
    }

    /// The element type of a tensor.
    pub fn dtype(&self, e: &rx::Expr) -> Result<DataType, LowerError> {
        match e.ty() {
            RxType::Tensor(t) => Ok(t.dtype),
            _ => fail(format!("{} takes a tensor", self.def.name)),
        }
    }

    /// The value of an argument that is a constant.
    pub fn value(&self, i: usize) -> Option<Tensor> {
        match self.args.get(i)? {
            rx::Expr::Constant(c) => Some(c.value.clone()),
            _ => None,
        }
    }

    /// The number that an argument is, which must be a constant.
    pub fn number(&self, i: usize) -> Result<f64, LowerError> {
        let name = self.def.args.get(i).copied().unwrap_or("argument");
        let need = || LowerError(format!("{}: `{name}` must be a constant number", self.def.name));
        let value = self.value(i).ok_or_else(need)?;
        match scalar::numbers(&value).and_then(|n| n.first().copied()).ok_or_else(need)? {
            scalar::Number::Float(v) => Ok(v),
            scalar::Number::Int(v) => Ok(v as f64),
            scalar::Number::Bool(v) => Ok(f64::from(u8::from(v))),
        }
    }

    /// A constant number as a tensor without dimensions.
    pub fn constant(&self, value: f64, dtype: DataType) -> Lowered {
        Ok(rx::Expr::constant(scalar::float(value, dtype)?))
    }

    /// A new dimension.
    pub fn dim(&mut self, name: &str, def: DimDef) -> PrimExpr {
        if let DimDef::Expr(e) = &def
            && e.as_int().is_some()
        {
            return e.clone();
        }
        match (&mut self.dims, def) {
            (NewDims::Collect(list, _), def) => {
                let var = RxVar::dim(name);
                list.push((var.clone(), def));
                PrimExpr::Var(var)
            }
            (NewDims::Type, _) => PrimExpr::Var(RxVar::dim(name)),
            (NewDims::Emit(_), DimDef::Expr(e)) => self.named(name, e),
            (NewDims::Emit(_), DimDef::Element(operand, index)) => self.element(&operand, index),
            (NewDims::Emit(_), DimDef::Nonzero(operand)) => {
                // What cannot be emitted leaves the variable unbound, which the verifier of Relax names.
                match self.counted(operand) {
                    Ok(count) => self.element(&count, 0),
                    Err(_) => PrimExpr::Var(RxVar::dim(name)),
                }
            }
        }
    }

    /// A dimension by a name of its own, where its expression is so large that it must not be written wherever it is used:
    /// each dimension that is made of it would hold it several times.
    fn named(&mut self, name: &str, e: PrimExpr) -> PrimExpr {
        if is_small(&e) {
            return e;
        }
        let var = PrimExpr::Var(RxVar::dim(name));
        match self.builder.match_cast(rx::Expr::shape([e.clone()]), RxType::shape([var.clone()])) {
            Ok(_) => var,
            Err(_) => e,
        }
    }

    /// How many elements are not zero, as a tensor of one.
    fn counted(&mut self, operand: rx::Expr) -> Lowered {
        let zero = self.constant(0.0, self.dtype(&operand)?)?;
        let mask = self.op("not_equal", [operand, zero])?;
        let mask = self.cast(mask, DataType::int(64))?;
        let sum = self.op("sum", [mask])?;
        self.reshape(sum, vec![prim::int(1)])
    }

    /// An element of a tensor of integers as a dimension, by way of a shape that the program makes of the tensor.
    fn element(&mut self, operand: &rx::Expr, index: usize) -> PrimExpr {
        let count = match operand.ty() {
            RxType::Tensor(t) => {
                t.shape.as_ref().and_then(|s| rx::shape::const_dims(s)).map_or(0, |s| s.iter().product())
            }
            _ => 0,
        };
        let dims: Vec<PrimExpr> = (0..count).map(|_| PrimExpr::Var(RxVar::dim("s"))).collect();
        let wanted = dims.get(index).cloned().unwrap_or_else(|| prim::int(0));
        let made = self.emit("astype", [operand.clone()], attrs([("dtype", DataType::int(64).into())]));
        let made = made.and_then(|wide| match self.ndim(&wide)? {
            1 => Ok(wide),
            _ => self.reshape(wide, vec![prim::int(count)]),
        });
        let made = made.and_then(|wide| self.op("tensor_to_shape", [wide]));
        // What cannot be emitted leaves the variable unbound, which the verifier of Relax names.
        if let Ok(shape) = made {
            let _ = self.builder.match_cast(shape, RxType::shape(dims));
        }
        wanted
    }

    // Attributes.

    fn missing<T>(&self, name: &str) -> Result<T, LowerError> {
        fail(format!("{}: the attribute `{name}` is missing", self.def.name))
    }

    /// An integer.
    pub fn int(&self, name: &str) -> Result<i64, LowerError> {
        self.attrs.int(name).map_or_else(|| self.missing(name), Ok)
    }

    /// A number.
    pub fn float(&self, name: &str) -> Result<f64, LowerError> {
        self.attrs.float(name).map_or_else(|| self.missing(name), Ok)
    }

    /// A bool.
    pub fn bool(&self, name: &str) -> bool {
        self.attrs.bool(name).unwrap_or(false)
    }

    /// A text.
    pub fn str(&self, name: &str) -> String {
        self.attrs.str(name).unwrap_or_default().to_string()
    }

    /// Integers, which must be there.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, LowerError> {
        self.attrs.ints(name).map_or_else(|| self.missing(name), Ok)
    }

    /// An element type, or another where none was said.
    pub fn dtype_attr(&self, name: &str, other: DataType) -> DataType {
        self.attrs.dtype(name).filter(|d| !d.is_void()).unwrap_or(other)
    }

    /// A dimension's place; negative ones count from the end.
    pub fn axis(&self, axis: i64, ndim: usize) -> Result<usize, LowerError> {
        let at = if axis < 0 { axis + ndim as i64 } else { axis };
        match usize::try_from(at) {
            Ok(at) if at < ndim => Ok(at),
            _ => fail(format!("{}: there is no dimension {axis} of {ndim}", self.def.name)),
        }
    }

    // Broadcasting.

    /// An element-wise operator of two tensors that are broadcast.
    pub fn binary(&mut self, name: &str, a: rx::Expr, b: rx::Expr) -> Lowered {
        let (da, db) = (self.dtype(&a)?, self.dtype(&b)?);
        if da != db {
            return fail(format!("data types {da} and {db} do not match in BroadcastRel"));
        }
        let (a, b) = self.aligned(a, b)?;
        self.op(name, [a, b])
    }

    /// Two tensors that Relax broadcasts: where only the run shows which dimension is 1, both are repeated first.
    pub fn aligned(&mut self, a: rx::Expr, b: rx::Expr) -> Result<(rx::Expr, rx::Expr), LowerError> {
        let (sa, sb) = (self.shape(&a)?, self.shape(&b)?);
        match broadcast(&sa, &sb) {
            Broadcast::Known(_) => Ok((a, b)),
            Broadcast::Mismatch(_) => {
                let text = |e: &rx::Expr| crate::convert::from_relax(&e.ty()).map(|t| crate::infer::raw_text(&t));
                let (ta, tb) = (text(&a).unwrap_or_default(), text(&b).unwrap_or_default());
                fail(format!("Incompatible broadcast type {ta} and {tb}"))
            }
            Broadcast::Open(_) => {
                let shape = self.open_shape(&sa, &sb);
                Ok((self.repeated(a, &shape)?, self.repeated(b, &shape)?))
            }
        }
    }

    /// Three tensors that Relax broadcasts.
    pub fn aligned_all(&mut self, tensors: [rx::Expr; 3]) -> Result<[rx::Expr; 3], LowerError> {
        let [a, b, c] = tensors;
        let (sa, sb, sc) = (self.shape(&a)?, self.shape(&b)?, self.shape(&c)?);
        let known = match broadcast(&sa, &sb) {
            Broadcast::Known(s) => matches!(broadcast(&s, &sc), Broadcast::Known(_)),
            _ => false,
        };
        if known {
            return Ok([a, b, c]);
        }
        let shape = self.open_shape(&sa, &sb);
        let shape = self.open_shape(&shape, &sc);
        Ok([self.repeated(a, &shape)?, self.repeated(b, &shape)?, self.repeated(c, &shape)?])
    }

    /// The shape of a broadcast whose dimensions only the run shows.
    fn open_shape(&mut self, a: &[PrimExpr], b: &[PrimExpr]) -> Vec<PrimExpr> {
        let ndim = a.len().max(b.len());
        let at = |dims: &[PrimExpr], i: usize| (i + dims.len()).checked_sub(ndim).and_then(|j| dims.get(j).cloned());
        let one = |d: &Option<PrimExpr>| d.as_ref().is_none_or(|d| d.is_int(1));
        (0..ndim)
            .map(|i| {
                let (x, y) = (at(a, i), at(b, i));
                match (&x, &y) {
                    (Some(x), _) if one(&y) => x.clone(),
                    (_, Some(y)) if one(&x) => y.clone(),
                    (Some(p), Some(q)) if prove_equal(p, q) => p.clone(),
                    (Some(p), Some(q)) => self.agreed(p, q, true),
                    _ => prim::int(1),
                }
            })
            .collect()
    }

    /// One dimension of two that must agree, or of which one may be 1 where they are broadcast. Where only the run shows
    /// whether they do, the dimension is -1 if they do not, for which there is no memory: the program ends with an error
    /// before a kernel could read what is not there.
    pub fn agreed(&mut self, p: &PrimExpr, q: &PrimExpr, broadcast: bool) -> PrimExpr {
        let (known_p, known_q) = (p.as_int(), q.as_int());
        if prove_equal(p, q) || (matches!(self.dims, NewDims::Type) && known_p.is_some_and(|p| p != 1 || !broadcast)) {
            return p.clone();
        }
        if matches!(self.dims, NewDims::Type) && known_q.is_some_and(|q| q != 1 || !broadcast) {
            return q.clone();
        }
        if broadcast && let NewDims::Collect(_, agreed) | NewDims::Emit(agreed) = &self.dims {
            let parts = agreed.parts_of_both(p, q);
            if let Some(known) = agreed.known(&parts) {
                return known;
            }
            let made = self.agreement(p, q, true);
            if let NewDims::Collect(_, agreed) | NewDims::Emit(agreed) = &mut self.dims {
                agreed.add(made.clone(), parts);
            }
            return made;
        }
        self.agreement(p, q, broadcast)
    }

    /// The dimension on which two agree, as an expression of both.
    fn agreement(&mut self, p: &PrimExpr, q: &PrimExpr, broadcast: bool) -> PrimExpr {
        let one = prim::int(1);
        let (mut same, mut other) = (prim::eq(p, q.clone()), prim::int(-1));
        if broadcast {
            same = prim::or(same, prim::eq(q, one.clone()));
            other = prim::select(prim::eq(p, one), q.clone(), other);
        }
        self.dim("d", DimDef::Expr(prim::select(same, p.clone(), other)))
    }

    /// A tensor repeated along the dimensions that turn out to be 1.
    pub fn repeated(&mut self, e: rx::Expr, shape: &[PrimExpr]) -> Lowered {
        let own = self.shape(&e)?;
        if rx::shape::same_dims(&own, shape) {
            return Ok(e);
        }
        let shape = shape.to_vec();
        Ok(self.builder.emit_te("broadcast", vec![e], |inputs| {
            let x = inputs[0].clone();
            let skipped = shape.len() - own.len();
            let out = te::compute("T_broadcast", shape.clone(), |indices: &[PrimExpr]| {
                let at: Vec<PrimExpr> = own
                    .iter()
                    .zip(&indices[skipped..])
                    .zip(&shape[skipped..])
                    .map(|((dim, index), wanted)| {
                        if dim.is_int(1) {
                            prim::int(0)
                        } else if prove_equal(dim, wanted) {
                            index.clone()
                        } else {
                            prim::select(prim::eq(dim, prim::int(1)), prim::int(0), index.clone())
                        }
                    })
                    .collect();
                x.at(&at)
            });
            vec![out]
        })?)
    }

    /// Calls another operator of Relay on values.
    pub fn relay(&mut self, name: &str, args: Vec<rx::Expr>, attrs: Attrs) -> Lowered {
        let def = lookup(name).ok_or_else(|| LowerError(format!("there is no operator {name}")))?;
        let attrs = def.complete_attrs(&attrs).map_err(|e| LowerError(e.to_string()))?;
        LowerCx { builder: self.builder, def, args, attrs: &attrs, dims: self.dims.reborrow() }.lower()
    }

    /// A tensor in another element type.
    pub fn cast(&mut self, e: rx::Expr, dtype: DataType) -> Lowered {
        if self.dtype(&e)? == dtype {
            return Ok(e);
        }
        self.emit("astype", [e], Attrs::new().with("dtype", dtype))
    }

    /// A tensor in another shape.
    pub fn reshape(&mut self, e: rx::Expr, shape: Vec<PrimExpr>) -> Lowered {
        self.op("reshape", [e, rx::Expr::shape(shape)])
    }
}

/// Attributes from pairs.
pub(super) fn attrs<const N: usize>(pairs: [(&str, AttrValue); N]) -> Attrs {
    pairs.into_iter().fold(Attrs::new(), |attrs, (name, value)| attrs.with(name, value))
}
