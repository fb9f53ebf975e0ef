//! [`Scope`]: the program under construction, as operators see it.
//!
//! Every tensor that an operator asks about has a known shape, symbolic where the model's is. Where two dimensions must be
//! equal for an operator to make sense, but that cannot be proven (a skip connection past `stride 2` and `resize 2`),
//! [`Scope::agree`] puts a `match_cast` there: the program checks it when it runs, and the compiler relies on it.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::{BlockBuilder, Call, Expr, op};
use relaxide_tir::te;

use crate::constant;
use crate::dims;
use crate::error::NodeError;
use crate::flow::optional::Optional;
use crate::symbolic::Symbolic;
use crate::value::Value;

type Result<T> = std::result::Result<T, NodeError>;

/// The program under construction.
pub struct Scope<'b> {
    builder: &'b mut BlockBuilder,
}

impl Scope<'_> {
    /// A scope that adds to the builder's open block.
    pub fn new(builder: &mut BlockBuilder) -> Scope<'_> {
        Scope { builder }
    }

    /// Adds an operation and returns its result.
    pub fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr> {
        let call = op::call(name, args, attrs).map_err(|e| NodeError::Relax(e.to_string()))?;
        self.emit(call)
    }

    /// Adds an operation without attributes.
    pub fn call(&mut self, name: &str, args: impl Into<Vec<Expr>>) -> Result<Expr> {
        self.op(name, args, Attrs::new())
    }

    /// Adds a kernel that is described here and now.
    pub fn te(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        f: impl FnOnce(&[te::Tensor]) -> Vec<te::Tensor>,
    ) -> Result<Expr> {
        self.builder.emit_te(name, args, f).map_err(|e| NodeError::Relax(e.to_string()))
    }

    /// Adds a binding of an expression.
    pub fn emit(&mut self, value: Expr) -> Result<Expr> {
        self.builder.emit(value).map_err(|e| NodeError::Relax(e.to_string()))
    }

    /// The tensor that a value stands for; a symbolic value is built where it is first needed as one.
    pub fn tensor(&mut self, value: &Value) -> Result<Expr> {
        match value {
            Value::Computed(expr) => Ok(expr.clone()),
            Value::Constant(tensor) => Ok(Expr::constant(tensor.clone())),
            Value::Symbolic(symbolic) => self.build(symbolic),
            Value::Texts(_) => Err(no_number()),
            Value::Maps(_) => Err(NodeError::invalid("an input is a map where a tensor is needed")),
            Value::Sequence(_) => Err(NodeError::invalid("an input is a sequence where a tensor is needed")),
            Value::Optional(optional) => {
                let value = optional.taken(self.builder)?;
                self.tensor(&value)
            }
        }
    }

    /// What an optional value holds, which the program checks to be there.
    pub fn taken(&mut self, optional: &Optional) -> Result<Value> {
        optional.taken(self.builder)
    }

    /// The value of the program that a value stands for: a tensor, an array, or null.
    pub fn object(&mut self, value: &Value) -> Result<Expr> {
        match value {
            Value::Texts(texts) => texts.object(self),
            Value::Maps(maps) => Ok(maps.object.clone()),
            Value::Sequence(sequence) => sequence.object(self),
            Value::Optional(optional) => optional.object(self),
            other => self.tensor(other),
        }
    }

    /// An array whose length is not part of its type.
    pub fn array(&mut self, tuple: Expr) -> Result<Expr> {
        if !matches!(tuple.ty(), Type::Tuple(_)) {
            return Ok(tuple);
        }
        let Expr::Tuple(fields) = &tuple else { return Ok(tuple) };
        let call = Call {
            op: Expr::external("vm.builtin.make_tuple"),
            args: fields.fields.clone(),
            attrs: Attrs::new(),
            ty_args: vec![Type::any()],
            ty: Type::any(),
            span: None,
        };
        self.emit(Ref::new(call).into())
    }

    /// Dimensions of a tensor expression.
    pub fn dims(&self, tensor: &Expr) -> Result<Vec<PrimExpr>> {
        match tensor.ty() {
            Type::Tensor(ty) => ty.shape.clone().ok_or_else(|| {
                NodeError::unsupported("the shape of an input is not known when the model is compiled")
                    .help("give the model's inputs shapes (`shape_dict`)")
            }),
            _ => Err(NodeError::invalid("an input is not a tensor")),
        }
    }

    /// Element type of a tensor expression.
    pub fn dtype(&self, tensor: &Expr) -> DataType {
        tensor.ty().as_tensor().map_or(DataType::void(), |ty| ty.dtype)
    }

    /// Dimensions of a value, without adding anything.
    pub fn value_dims(&self, value: &Value) -> Result<Vec<PrimExpr>> {
        match value {
            Value::Computed(expr) => self.dims(expr),
            Value::Constant(tensor) => Ok(tensor.shape().iter().map(|&d| prim::int(d)).collect()),
            Value::Symbolic(s) => Ok(s.shape.iter().map(|&d| prim::int(d as i64)).collect()),
            Value::Texts(texts) => texts.dims(self),
            Value::Maps(_) => Err(NodeError::invalid("an input is a map where a tensor is needed")),
            Value::Sequence(_) => Err(NodeError::invalid("an input is a sequence where a tensor is needed")),
            Value::Optional(_) => Err(NodeError::invalid("an input is an optional value where a tensor is needed")),
        }
    }

    /// A constant of one number, without dimensions.
    pub fn scalar(&self, value: f64, dtype: DataType) -> Result<Expr> {
        self.constant(&[value], &[], dtype)
    }

    /// A constant of numbers.
    pub fn constant(&self, values: &[f64], dims: &[i64], dtype: DataType) -> Result<Expr> {
        let tensor = constant::filled(values, dims, dtype).map_err(|e| NodeError::invalid(e.to_string()))?;
        Ok(Expr::constant(tensor))
    }

    /// A constant of integers.
    pub fn whole(&self, values: &[i64], dims: &[i64], dtype: DataType) -> Result<Expr> {
        let tensor = constant::whole(values, dims, dtype).map_err(|e| NodeError::invalid(e.to_string()))?;
        Ok(Expr::constant(tensor))
    }

    /// A constant of the model with other dimensions of the same count.
    pub fn reshaped_constant(&self, tensor: &Tensor, dims: &[i64]) -> Result<Tensor> {
        tensor.reshape(dims).map_err(|e| NodeError::invalid(e.to_string()))
    }

    /// The same elements in another shape.
    pub fn reshape(&mut self, tensor: Expr, dims: Vec<PrimExpr>) -> Result<Expr> {
        let dims: Vec<PrimExpr> = dims.iter().map(dims::simplify).collect();
        let old = self.dims(&tensor)?;
        if old.len() == dims.len() && old.iter().zip(&dims).all(|(a, b)| dims::equal(a, b)) {
            return Ok(tensor);
        }
        self.call("reshape", [tensor, Expr::shape(dims)])
    }

    /// The same elements with another element type.
    pub fn cast(&mut self, tensor: Expr, dtype: DataType) -> Result<Expr> {
        if self.dtype(&tensor) == dtype {
            return Ok(tensor);
        }
        self.op("astype", [tensor], Attrs::new().with("dtype", dtype))
    }

    /// A tensor with axes in another order.
    pub fn transpose(&mut self, tensor: Expr, axes: &[usize]) -> Result<Expr> {
        let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        self.op("permute_dims", [tensor], Attrs::new().with("axes", axes))
    }

    /// A tensor whose dimensions are taken to be the given ones: proven, or checked when the program runs.
    pub fn agree(&mut self, tensor: Expr, wanted: &[PrimExpr]) -> Result<Expr> {
        let own = self.dims(&tensor)?;
        if let Some((a, b)) = own.iter().zip(wanted).find(|(a, b)| dims::differ(a, b)) {
            return Err(NodeError::invalid(format!("a dimension is {a} where {b} is needed")));
        }
        if own.len() != wanted.len() {
            let (a, b) = (own.len(), wanted.len());
            return Err(NodeError::invalid(format!("a tensor has {a} dimensions where {b} are needed")));
        }
        if own.iter().zip(wanted).all(|(a, b)| dims::equal(a, b)) {
            return Ok(tensor);
        }
        let ty = Type::tensor(wanted.iter().cloned(), self.dtype(&tensor));
        self.bind_type(tensor, ty)
    }

    /// A value whose type is checked when the program runs.
    pub fn bind_type(&mut self, value: Expr, ty: Type) -> Result<Expr> {
        self.builder.match_cast(value, ty).map_err(|e| NodeError::Relax(e.to_string()))
    }

    /// Adds a check of a truth value, which says what is wrong where it fails.
    pub fn assert(&mut self, truth: Expr, message: &str) -> Result<()> {
        let format = message.replace('{', "{{").replace('}', "}}");
        self.op("assert_op", [truth], Attrs::new().with("format", format)).map(|_| ())
    }

    /// Gives the dimensions of a shape that the program computes symbolic variables.
    pub fn bind_shape(&mut self, shape: Expr, count: usize) -> Result<Vec<PrimExpr>> {
        self.bind_checked(shape, count, 0)
    }

    /// The same, where the shape has further dimensions that must be 1: conditions that the program checks.
    pub fn bind_checked(&mut self, shape: Expr, count: usize, checks: usize) -> Result<Vec<PrimExpr>> {
        self.bind_further("lv", shape, count, vec![prim::int(1); checks])
    }

    /// The same, where each further dimension must be what is said. `name` says to the user what is checked.
    pub fn bind_further(
        &mut self,
        name: &str,
        shape: Expr,
        count: usize,
        further: Vec<PrimExpr>,
    ) -> Result<Vec<PrimExpr>> {
        let dims: Vec<PrimExpr> = (0..count).map(|i| PrimExpr::Var(Var::dim(format!("d{i}")))).collect();
        let ty = Type::shape(dims.iter().cloned().chain(further));
        self.builder.match_cast_as(name, shape, ty).map_err(|e| NodeError::Relax(e.to_string()))?;
        Ok(dims)
    }

    /// A tensor whose dimensions the program finds out: those that are not given get symbolic variables.
    pub fn bind_dims(&mut self, tensor: Expr, dims: Vec<Option<PrimExpr>>, dtype: DataType) -> Result<Expr> {
        let fresh =
            |(i, dim): (usize, Option<PrimExpr>)| dim.unwrap_or_else(|| PrimExpr::Var(Var::dim(format!("d{i}"))));
        let dims: Vec<PrimExpr> = dims.into_iter().enumerate().map(fresh).collect();
        self.bind_type(tensor, Type::tensor(dims, dtype))
    }

    /// One expression as a tensor without dimensions.
    pub fn dim_tensor(&mut self, dim: &PrimExpr, dtype: DataType) -> Result<Expr> {
        if let Some(value) = dim.as_int() {
            return self.whole(&[value], &[], dtype);
        }
        let vector = self.shape_tensor(vec![dim], dtype)?;
        self.reshape(vector, Vec::new())
    }

    /// Makes dimension `axes[i]` of tensor `i` the same for all, by proof or by a check when the program runs.
    pub fn agree_on(&mut self, tensors: &mut [Expr], axes: &[usize]) -> Result<PrimExpr> {
        let mut best: Option<PrimExpr> = None;
        for (tensor, &axis) in tensors.iter().zip(axes) {
            let dims = self.dims(tensor)?;
            let dim = dims.get(axis).ok_or_else(|| NodeError::invalid(format!("there is no axis {axis}")))?;
            if best.as_ref().is_none_or(|b| dims::weight(dim) < dims::weight(b)) {
                best = Some(dim.clone());
            }
        }
        let best = best.ok_or_else(|| NodeError::invalid("there are no inputs"))?;
        for (tensor, &axis) in tensors.iter_mut().zip(axes) {
            let mut wanted = self.dims(tensor)?;
            wanted[axis] = best.clone();
            *tensor = self.agree(tensor.clone(), &wanted)?;
        }
        Ok(best)
    }

    /// Prepares tensors for a broadcast: along each axis their dimensions become one, or 1.
    ///
    /// Dimensions that are proven equal stay as they are. Of two that are not, one may be 1 when the program runs, so both
    /// tensors are spread over what the program finds ([`Scope::common_dim`]). Only where one was computed from the other
    /// (a skip connection past a stride) are they taken to be equal, which the program checks.
    pub fn broadcastable(&mut self, tensors: &mut [Expr]) -> Result<()> {
        let shapes = tensors.iter().map(|t| self.dims(t)).collect::<Result<Vec<_>>>()?;
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut agreed = shapes.clone();
        let mut spread = shapes.clone();
        for back in 1..=rank {
            let at = |shape: &[PrimExpr]| shape.len().checked_sub(back).map(|i| shape[i].clone());
            let open: Vec<PrimExpr> = shapes.iter().filter_map(|s| at(s)).filter(|d| !d.is_int(1)).collect();
            let Some(best) = open.iter().min_by_key(|d| dims::weight(d)).cloned() else { continue };
            let related = |d: &PrimExpr| {
                dims::equal(d, &best) || dims::share_variable(d, &best) && !dims::one_may_be_one(d, &best)
            };
            let open_ended = open.iter().any(|d| !related(d) && !dims::differ(d, &best));
            let target = if open_ended { self.common_dim(&open)? } else { best };
            for (i, shape) in shapes.iter().enumerate() {
                let Some(axis) = shape.len().checked_sub(back).filter(|&a| !shape[a].is_int(1)) else { continue };
                if !open_ended {
                    agreed[i][axis] = target.clone();
                }
                spread[i][axis] = target.clone();
            }
        }
        for (i, tensor) in tensors.iter_mut().enumerate() {
            *tensor = self.agree(tensor.clone(), &agreed[i])?;
            if agreed[i].iter().zip(&spread[i]).any(|(a, b)| !dims::equal(a, b)) {
                *tensor = self.spread(tensor.clone(), spread[i].clone())?;
            }
        }
        Ok(())
    }

    /// The dimension that some are broadcast to, bound when the program runs; it checks that the others are 1.
    pub fn common_dim(&mut self, dims: &[PrimExpr]) -> Result<PrimExpr> {
        let literal = dims.iter().find(|d| d.as_int().is_some()).cloned();
        let chosen = literal.clone().unwrap_or_else(|| {
            let (last, rest) = (dims[dims.len() - 1].clone(), &dims[..dims.len() - 1]);
            rest.iter().rev().fold(last, |other, d| prim::select(prim::eq(d, 1), other, d.clone()))
        });
        let fits = |d: &PrimExpr| {
            let fits = prim::or(prim::eq(d, 1), prim::eq(d, &chosen));
            prim::select(fits, prim::int(1), prim::int(0))
        };
        let checks: Vec<PrimExpr> = dims.iter().filter(|d| d.as_int().is_none()).map(fits).collect();
        let count = checks.len();
        let own = usize::from(literal.is_none());
        let shape = Expr::shape(std::iter::once(chosen.clone()).filter(|_| own == 1).chain(checks));
        let bound = self.bind_checked(shape, own, count)?;
        Ok(bound.into_iter().next().unwrap_or(chosen))
    }

    /// A tensor, once the program has found that no dimension is 1 but those that are known to be.
    pub fn none_is_one(&mut self, tensor: Expr) -> Result<Expr> {
        let dims = self.dims(&tensor)?;
        let open: Vec<&PrimExpr> = dims.iter().filter(|d| d.as_int().is_none()).collect();
        if !open.is_empty() {
            let other = |d: &&PrimExpr| prim::select(prim::eq(*d, 1), prim::int(0), prim::int(1));
            let checks: Vec<PrimExpr> = open.iter().map(other).collect();
            let count = checks.len();
            self.bind_checked(Expr::shape(checks), 0, count)?;
        }
        Ok(tensor)
    }

    /// A tensor repeated along those axes where it turns out to have one element.
    pub fn spread(&mut self, tensor: Expr, dims: Vec<PrimExpr>) -> Result<Expr> {
        let own = self.dims(&tensor)?;
        let lead = dims.len().checked_sub(own.len());
        let lead = lead.ok_or_else(|| NodeError::invalid("a tensor has more axes than it is spread over"))?;
        self.te("spread", vec![tensor], |inputs| {
            vec![te::compute("spread", &dims, |at| {
                let place = |(axis, n): (usize, &PrimExpr)| match n.as_int() {
                    Some(1) => prim::int(0),
                    Some(_) => at[lead + axis].clone(),
                    None if dims::equal(n, &dims[lead + axis]) => at[lead + axis].clone(),
                    None => prim::select(prim::eq(n, 1), prim::int(0), at[lead + axis].clone()),
                };
                let index: Vec<PrimExpr> = own.iter().enumerate().map(place).collect();
                inputs[0].at(&index)
            })]
        })
    }

    /// A symbolic value as a tensor.
    fn build(&mut self, value: &Symbolic) -> Result<Expr> {
        let dims: Vec<i64> = value.shape.iter().map(|&d| d as i64).collect();
        if let Some(numbers) = value.literals() {
            return self.whole(&numbers, &dims, value.dtype);
        }
        if let Some(numbers) = value.elements.iter().map(|e| e.as_float()).collect::<Option<Vec<_>>>() {
            return self.constant(&numbers, &dims, value.dtype);
        }
        // Numerators and denominators are shapes; their quotient is the value.
        let (nums, dens): (Vec<_>, Vec<_>) = value.elements.iter().map(|e| e.parts()).unzip();
        let mut tensor = self.shape_tensor(nums, value.dtype)?;
        if dens.iter().any(|d| !d.is_int(1)) {
            let divisor = self.shape_tensor(dens, value.dtype)?;
            tensor = self.call("divide", [tensor, divisor])?;
        }
        self.reshape(tensor, dims.into_iter().map(prim::int).collect())
    }

    /// A vector of expressions as a tensor of a type.
    fn shape_tensor(&mut self, dims: Vec<&PrimExpr>, dtype: DataType) -> Result<Expr> {
        let vector = self.call("shape_to_tensor", [Expr::shape(dims.into_iter().map(dims::simplify))])?;
        self.cast(vector, dtype)
    }
}

/// A tensor of texts stands where numbers are computed with.
fn no_number() -> NodeError {
    NodeError::unsupported("an input is a tensor of texts, and this operator does nothing with texts here")
}
