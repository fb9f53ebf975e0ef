//! [`Cx`]: what a rule sees of its node, and how it adds to the program.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_frontend::Scope;
use relaxide_ir::arith::dims;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::{BlockBuilder, Expr};
use relaxide_tir::te;

use crate::dtype;
use crate::error::NodeError;
use crate::program::{Argument, Node, OptionalTensor, Symbolic};
use crate::value::{Scalar, Value};

/// How many elements a constant may have that is no weight of the program.
const MAX_CONSTANT: i64 = 1 << 24;

/// What a rule gives, or why not.
pub type Result<T> = std::result::Result<T, NodeError>;

/// The results of a node.
pub type Outputs = Result<Vec<Value>>;

/// One tensor as the results of a node.
pub fn one(tensor: Expr) -> Outputs {
    Ok(vec![Value::Tensor(tensor)])
}

/// The type that the program says a tensor has.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Dimensions.
    pub dims: Vec<PrimExpr>,
    /// Element type.
    pub dtype: DataType,
}

impl Declared {
    /// As a type of the program.
    pub fn ty(&self) -> Type {
        Type::tensor(self.dims.iter().cloned(), self.dtype)
    }
}

/// A node, the values that it may use, and the program under construction.
pub struct Cx<'a> {
    /// The program under construction.
    pub builder: &'a mut BlockBuilder,
    /// The node.
    pub node: &'a Node,
    /// What names stand for.
    pub values: &'a HashMap<String, Value>,
    /// The tensors that the node gives, as the program declares them, in order.
    pub results: Vec<Declared>,
}

impl Cx<'_> {
    // Arguments.

    /// An argument that is given and not nothing.
    pub fn get(&self, name: &str) -> Option<&Argument> {
        let found = self.node.inputs.iter().find(|input| input.name == name)?;
        match &found.arg {
            Argument::AsNone(_) | Argument::AsOptionalTensor(OptionalTensor::AsNone(_)) => None,
            arg => Some(arg),
        }
    }

    fn wrong(&self, name: &str, wanted: &str) -> NodeError {
        match self.get(name) {
            Some(_) => NodeError::invalid(format!("`{name}` is not {wanted}")),
            None => NodeError::invalid(format!("`{name}` is missing, which must be {wanted}")),
        }
    }

    /// What a name stands for.
    pub fn value(&self, name: &str) -> Result<&Value> {
        self.values.get(name).ok_or_else(|| NodeError::invalid(format!("nothing before it gives `{name}`")))
    }

    fn named_tensor(&self, name: &str) -> Result<Expr> {
        match self.value(name)? {
            Value::Tensor(expr) => Ok(expr.clone()),
            _ => Err(NodeError::invalid(format!("`{name}` is no tensor"))),
        }
    }

    /// An argument that is a tensor.
    pub fn tensor(&self, name: &str) -> Result<Expr> {
        self.optional(name)?.ok_or_else(|| self.wrong(name, "a tensor"))
    }

    /// An argument that is a tensor, or nothing.
    pub fn optional(&self, name: &str) -> Result<Option<Expr>> {
        match self.get(name) {
            None => Ok(None),
            Some(Argument::AsTensor(tensor) | Argument::AsOptionalTensor(OptionalTensor::AsTensor(tensor))) => {
                self.named_tensor(&tensor.name).map(Some)
            }
            Some(_) => Err(self.wrong(name, "a tensor")),
        }
    }

    /// An argument that is several tensors.
    pub fn tensors(&self, name: &str) -> Result<Vec<Expr>> {
        let all = self.optional_tensors(name)?;
        all.into_iter().map(|t| t.ok_or_else(|| self.wrong(name, "tensors, none of them missing"))).collect()
    }

    /// An argument that is several tensors, of which some may be missing.
    pub fn optional_tensors(&self, name: &str) -> Result<Vec<Option<Expr>>> {
        match self.get(name) {
            Some(Argument::AsTensors(list)) => list.iter().map(|t| self.named_tensor(&t.name).map(Some)).collect(),
            Some(Argument::AsOptionalTensors(list)) => list
                .iter()
                .map(|t| match t {
                    OptionalTensor::AsTensor(tensor) => self.named_tensor(&tensor.name).map(Some),
                    OptionalTensor::AsNone(_) => Ok(None),
                })
                .collect(),
            _ => Err(self.wrong(name, "a list of tensors")),
        }
    }

    /// An integer over dimensions.
    pub fn dim(&self, name: &str) -> Result<Option<PrimExpr>> {
        match self.get(name) {
            None => Ok(None),
            Some(Argument::AsInt(value)) => Ok(Some(prim::int(*value))),
            Some(Argument::AsSymInt(value)) => self.symbolic(value).map(Some),
            Some(_) => Err(self.wrong(name, "an integer")),
        }
    }

    fn symbolic(&self, value: &Symbolic<i64>) -> Result<PrimExpr> {
        match value {
            Symbolic::Known(value) => Ok(prim::int(*value)),
            Symbolic::Named(name) => match self.value(name)? {
                Value::Int(value) => Ok(value.clone()),
                _ => Err(NodeError::invalid(format!("`{name}` is no integer"))),
            },
        }
    }

    /// Integers over dimensions; none where the argument is left out.
    pub fn dims(&self, name: &str) -> Result<Option<Vec<PrimExpr>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Argument::AsInts(values)) => Ok(Some(values.iter().map(|&v| prim::int(v)).collect())),
            Some(Argument::AsInt(value)) => Ok(Some(vec![prim::int(*value)])),
            Some(Argument::AsSymInts(values)) => {
                values.iter().map(|v| self.symbolic(v)).collect::<Result<_>>().map(Some)
            }
            Some(Argument::AsSymInt(value)) => Ok(Some(vec![self.symbolic(value)?])),
            // A list that is empty has no kind.
            Some(Argument::AsTensors(list)) if list.is_empty() => Ok(Some(Vec::new())),
            Some(_) => Err(self.wrong(name, "a list of integers")),
        }
    }

    /// An integer that is known when the program is imported.
    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        let Some(dim) = self.dim(name)? else { return Ok(None) };
        dim.as_int().map(Some).ok_or_else(|| self.wrong(name, "an integer that is known at export"))
    }

    /// The same with a value where the argument is left out.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// Integers that are known when the program is imported.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        let Some(dims) = self.dims(name)? else { return Ok(None) };
        let known: Option<Vec<i64>> = dims.iter().map(PrimExpr::as_int).collect();
        known.map(Some).ok_or_else(|| self.wrong(name, "a list of integers that are known at export"))
    }

    /// So many integers that are known; one stands for all of them.
    pub fn window(&self, name: &str, count: usize, default: &[i64]) -> Result<Vec<i64>> {
        let given = self.ints(name)?.filter(|list| !list.is_empty()).unwrap_or_else(|| default.to_vec());
        match given.as_slice() {
            [one] => Ok(vec![*one; count]),
            list if list.len() == count => Ok(given),
            list => Err(NodeError::invalid(format!("`{name}` has {} integers where {count} are needed", list.len()))),
        }
    }

    /// A bool, with a value where the argument is left out.
    pub fn flag(&self, name: &str, default: bool) -> Result<bool> {
        match self.get(name) {
            None => Ok(default),
            Some(Argument::AsBool(value)) => Ok(*value),
            Some(Argument::AsInt(value)) => Ok(*value != 0),
            Some(_) => Err(self.wrong(name, "a bool")),
        }
    }

    /// A number that is known, with a value where the argument is left out.
    pub fn float_or(&self, name: &str, default: f64) -> Result<f64> {
        match self.get(name) {
            None => Ok(default),
            Some(Argument::AsInt(value)) => Ok(*value as f64),
            Some(Argument::AsBool(value)) => Ok(f64::from(u8::from(*value))),
            Some(Argument::AsFloat(value)) => value.value().ok_or_else(|| self.wrong(name, "a number")),
            Some(_) => Err(self.wrong(name, "a number that is known at export")),
        }
    }

    /// Numbers that are known.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f64>>> {
        match self.get(name) {
            None => Ok(None),
            Some(Argument::AsFloats(values)) => {
                let known: Option<Vec<f64>> = values.iter().map(|v| v.value()).collect();
                known.map(Some).ok_or_else(|| self.wrong(name, "a list of numbers"))
            }
            Some(Argument::AsInts(values)) => Ok(Some(values.iter().map(|&v| v as f64).collect())),
            Some(_) => Err(self.wrong(name, "a list of numbers")),
        }
    }

    /// A text, with a value where the argument is left out.
    pub fn text_or<'s>(&'s self, name: &str, default: &'s str) -> Result<&'s str> {
        match self.get(name) {
            None => Ok(default),
            Some(Argument::AsString(value)) => Ok(value),
            Some(_) => Err(self.wrong(name, "a text")),
        }
    }

    /// A number, a tensor, or nothing.
    pub fn scalar(&self, name: &str) -> Result<Option<Scalar>> {
        Ok(Some(match self.get(name) {
            None => return Ok(None),
            Some(Argument::AsInt(_) | Argument::AsSymInt(_)) => match self.dim(name)? {
                Some(dim) => Scalar::Int(dim),
                None => return Ok(None),
            },
            Some(Argument::AsBool(value)) => Scalar::Bool(*value),
            Some(Argument::AsFloat(_) | Argument::AsSymFloat(Symbolic::Known(_))) => {
                Scalar::Float(self.float_or(name, 0.0)?)
            }
            Some(Argument::AsSymFloat(Symbolic::Named(value))) => Scalar::Tensor(self.named_tensor(value)?),
            Some(_) => Scalar::Tensor(self.tensor(name)?),
        }))
    }

    // Types.

    /// The declared type of the first result.
    pub fn result(&self) -> Result<&Declared> {
        self.results.first().ok_or_else(|| NodeError::invalid("the program does not say what it gives"))
    }

    /// Dimensions of a tensor.
    pub fn shape(&self, tensor: &Expr) -> Result<Vec<PrimExpr>> {
        let ty = tensor.ty();
        let shape = ty.as_tensor().and_then(|ty| ty.shape.clone());
        shape.ok_or_else(|| NodeError::unsupported("the dimensions of an argument are not known"))
    }

    /// How many dimensions a tensor has.
    pub fn rank(&self, tensor: &Expr) -> Result<usize> {
        Ok(self.shape(tensor)?.len())
    }

    /// Element type of a tensor.
    pub fn dtype(&self, tensor: &Expr) -> DataType {
        tensor.ty().as_tensor().map_or(DataType::void(), |ty| ty.dtype)
    }

    /// An axis from the front, from an argument that may count from the back.
    pub fn axis(&self, name: &str, default: i64, rank: usize) -> Result<usize> {
        self.axis_from_front(self.int_or(name, default)?, rank)
    }

    /// An axis from the front, from one that may count from the back. A tensor without dimensions has axis 0 for this.
    pub fn axis_from_front(&self, axis: i64, rank: usize) -> Result<usize> {
        let rank = rank.max(1) as i64;
        let at = if axis < 0 { axis + rank } else { axis };
        usize::try_from(at)
            .ok()
            .filter(|&a| (a as i64) < rank)
            .ok_or_else(|| NodeError::invalid(format!("axis {axis} is not one of {rank} axes")))
    }

    /// Axes from the front; none given are all.
    pub fn axes(&self, name: &str, rank: usize) -> Result<Vec<usize>> {
        match self.ints(name)? {
            Some(axes) if !axes.is_empty() => axes.into_iter().map(|axis| self.axis_from_front(axis, rank)).collect(),
            _ => Ok((0..rank).collect()),
        }
    }

    // The program.

    fn scope(&mut self) -> Scope<'_> {
        Scope::new(self.builder)
    }

    /// Adds an operation with attributes.
    pub fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr> {
        self.scope().op(name, args, attrs)
    }

    /// Adds an operation without attributes.
    pub fn call(&mut self, name: &str, args: impl Into<Vec<Expr>>) -> Result<Expr> {
        self.op(name, args, Attrs::new())
    }

    /// Adds a binding of an expression.
    pub fn emit(&mut self, value: Expr) -> Result<Expr> {
        self.scope().emit(value)
    }

    /// Adds a kernel that is described here and now.
    pub fn te(
        &mut self,
        name: &str,
        args: Vec<Expr>,
        f: impl FnOnce(&[te::Tensor]) -> Vec<te::Tensor>,
    ) -> Result<Expr> {
        self.scope().te(name, args, f)
    }

    /// A field of a tuple.
    pub fn field(&mut self, tuple: &Expr, index: usize) -> Result<Expr> {
        self.emit(Expr::field(tuple.clone(), index))
    }

    /// The same elements with another element type.
    pub fn cast(&mut self, tensor: Expr, dtype: DataType) -> Result<Expr> {
        self.scope().cast(tensor, dtype)
    }

    /// The same elements in other dimensions.
    pub fn reshape(&mut self, tensor: Expr, to: &[PrimExpr]) -> Result<Expr> {
        self.scope().reshape_known(tensor, to.to_vec())
    }

    /// The tensor repeated along axes where it has one element.
    pub fn broadcast(&mut self, tensor: Expr, to: &[PrimExpr]) -> Result<Expr> {
        let own = self.shape(&tensor)?;
        if own.len() == to.len() && own.iter().zip(to).all(|(a, b)| dims::equal(a, b)) {
            return Ok(tensor);
        }
        self.call("broadcast_to", [tensor, Expr::shape(to.iter().map(dims::simplify))])
    }

    /// The tensor with its axes in another order.
    pub fn permute(&mut self, tensor: Expr, axes: &[usize]) -> Result<Expr> {
        if axes.iter().enumerate().all(|(i, &axis)| i == axis) {
            return Ok(tensor);
        }
        let axes: Vec<i64> = axes.iter().map(|&a| a as i64).collect();
        self.op("permute_dims", [tensor], Attrs::new().with("axes", axes))
    }

    /// A tensor whose type is the declared one: proved, or checked when the program runs. A symbol that no value had before
    /// is bound there.
    pub fn declared(&mut self, tensor: Expr, wanted: &Declared) -> Result<Expr> {
        let tensor = self.cast(tensor, wanted.dtype)?;
        let own = tensor.ty().as_tensor().and_then(|ty| ty.shape.clone());
        if let Some(own) = own {
            if own.len() != wanted.dims.len() {
                let (a, b) = (own.len(), wanted.dims.len());
                return Err(NodeError::invalid(format!("the result has {a} dimensions, and the program says {b}")));
            }
            if own.iter().zip(&wanted.dims).all(|(a, b)| dims::equal(a, b)) {
                return Ok(tensor);
            }
            if let Some((a, b)) = own.iter().zip(&wanted.dims).find(|(a, b)| dims::differ(a, b)) {
                return Err(NodeError::invalid(format!("a dimension of the result is {a}, and the program says {b}")));
            }
        }
        Ok(self.builder.match_cast(tensor, wanted.ty())?)
    }

    /// Binds the one number of a tensor of integers to a variable.
    pub fn bind_number(&mut self, tensor: Expr, var: Ref<Var>) -> Result<()> {
        let wide = self.cast(tensor, DataType::int(64))?;
        let list = self.reshape(wide, &[prim::int(1)])?;
        let shape = self.call("tensor_to_shape", [list])?;
        self.builder.match_cast(shape, Type::shape([PrimExpr::Var(var)]))?;
        Ok(())
    }

    // Constants.

    /// How many elements there are in dimensions that are known, of which a constant may be made.
    pub fn count(&self, dims: &[i64]) -> Result<usize> {
        let count = dims.iter().try_fold(1i64, |n, &dim| n.checked_mul(dim)).filter(|n| (0..=MAX_CONSTANT).contains(n));
        count.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
            NodeError::unsupported(format!("a constant of dimensions {dims:?}; {MAX_CONSTANT} elements are the most"))
        })
    }

    /// A constant without dimensions.
    pub fn number(&self, value: f64, dtype: DataType) -> Result<Expr> {
        self.constant(&[value], &[], dtype)
    }

    /// A constant of numbers.
    pub fn constant(&self, values: &[f64], dims: &[i64], dtype: DataType) -> Result<Expr> {
        Ok(Expr::constant(relaxide_frontend::constant::filled(values, dims, dtype)?))
    }

    /// A constant integer without dimensions, exact in 64 bits.
    pub fn whole(&self, value: i64, dtype: DataType) -> Result<Expr> {
        Ok(Expr::constant(relaxide_frontend::constant::whole(&[value], &[], dtype)?))
    }

    /// A scalar as a tensor of a type.
    pub fn operand(&mut self, scalar: Scalar, dtype: DataType) -> Result<Expr> {
        match scalar {
            Scalar::Tensor(tensor) => self.cast(tensor, dtype),
            Scalar::Float(value) => self.number(value, dtype),
            Scalar::Bool(value) => self.whole(i64::from(value), dtype),
            Scalar::Int(value) => match value.as_int() {
                Some(value) => self.whole(value, dtype),
                None => {
                    let tensor = self.call("shape_to_tensor", [Expr::shape([value])])?;
                    let tensor = self.reshape(tensor, &[])?;
                    self.cast(tensor, dtype)
                }
            },
        }
    }

    /// The type of a scalar as PyTorch counts it, and whether it gives way to tensors with dimensions of its kind.
    pub fn scalar_type(&self, scalar: &Scalar) -> (DataType, bool) {
        match scalar {
            Scalar::Tensor(tensor) => {
                let weak = tensor.ty().as_tensor().and_then(|ty| ty.shape.as_ref().map(|s| s.is_empty()));
                (self.dtype(tensor), weak.unwrap_or(false))
            }
            Scalar::Float(_) => (DataType::float(32), true),
            Scalar::Int(_) => (DataType::int(64), true),
            Scalar::Bool(_) => (DataType::bool(), true),
        }
    }

    /// An argument that names an element type; none where it is left out.
    pub fn dtype_arg(&self, name: &str) -> Result<Option<DataType>> {
        match self.get(name) {
            None => Ok(None),
            Some(Argument::AsScalarType(number)) => dtype::of_number(*number)
                .map(Some)
                .ok_or_else(|| NodeError::unsupported(format!("element type {}", dtype::name_of(*number)))),
            Some(_) => Err(self.wrong(name, "an element type")),
        }
    }
}
