//! [`CallCx`]: a call under inspection, with typed access to its arguments and attributes.
//!
//! Type rules and computes read a call through it only, so that every complaint names the operator, the argument and what
//! was found.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, TensorType, Type};

use super::{OpDef, OpError};
use crate::constant::as_scalar;
use crate::{Call, Expr};

/// A call of a known operator.
#[derive(Clone, Copy)]
pub struct CallCx<'a> {
    /// The operator.
    pub def: &'static OpDef,
    /// Arguments.
    pub args: &'a [Expr],
    /// Attributes, complete and checked.
    pub attrs: &'a Attrs,
    /// Types given at the call.
    pub ty_args: &'a [Type],
    /// Whether its kernel is for a device, whose many threads suit other ways of computing the same.
    pub over_threads: bool,
    /// Which of several ways to compute the same its kernel takes.
    pub form: KernelForm,
}

/// The ways in which one operator may be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KernelForm {
    /// As TVM writes it, block by block, for programs that go on with the kernels themselves: padding is a block of its own.
    #[default]
    Plain,
    /// As the schedule rules take least time for, which may be another operator ([`OpDef::instead`]).
    Fast,
}

impl<'a> CallCx<'a> {
    /// A call of an operator as it stands, whose kernel is for a processor and as fast as may be.
    pub fn of(def: &'static OpDef, call: &'a Call) -> CallCx<'a> {
        let (args, attrs, ty_args) = (&call.args, &call.attrs, &call.ty_args);
        CallCx { def, args, attrs, ty_args, over_threads: false, form: KernelForm::Fast }
    }
}

impl CallCx<'_> {
    /// What a maximum of numbers starts with: TVM's least finite number, or minus infinity.
    pub fn lowest(&self, dtype: DataType) -> PrimExpr {
        match self.form {
            KernelForm::Plain => prim::lowest_finite(dtype),
            KernelForm::Fast => prim::lowest(dtype),
        }
    }

    /// What a minimum of numbers starts with.
    pub fn highest(&self, dtype: DataType) -> PrimExpr {
        match self.form {
            KernelForm::Plain => prim::highest_finite(dtype),
            KernelForm::Fast => prim::highest(dtype),
        }
    }
}

/// Dimensions of a tensor as far as they are known, and the element type.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// The dimensions, where known.
    pub dims: Option<Vec<PrimExpr>>,
    /// Rank, where known.
    pub ndim: Option<usize>,
    /// Element type; void where unknown.
    pub dtype: DataType,
}

impl From<&TensorType> for TensorInfo {
    fn from(ty: &TensorType) -> Self {
        TensorInfo { dims: ty.shape.clone(), ndim: usize::try_from(ty.ndim).ok(), dtype: ty.dtype }
    }
}

impl TensorInfo {
    /// The tensor type with these dimensions.
    pub fn ty(&self) -> Type {
        tensor_type(self.dims.clone(), self.ndim, self.dtype)
    }
}

/// A tensor type of what is known.
pub fn tensor_type(dims: Option<Vec<PrimExpr>>, ndim: Option<usize>, dtype: DataType) -> Type {
    match dims {
        Some(dims) => Type::tensor(dims, dtype),
        None => Type::tensor_ndim(ndim.map_or(-1, |n| n as i64), dtype),
    }
}

impl<'a> CallCx<'a> {
    /// The operator's name.
    pub fn name(&self) -> &'static str {
        self.def.name
    }

    /// An error of this call: things do not fit.
    pub fn invalid<T>(&self, message: impl Into<String>) -> Result<T, OpError> {
        Err(OpError::invalid(self.name(), message))
    }

    /// An error of this call: an element type does not do.
    pub fn wrong_dtype<T>(&self, message: impl Into<String>) -> Result<T, OpError> {
        Err(OpError::dtype(self.name(), message))
    }

    /// An error of this call: it cannot be compiled.
    pub fn unsupported<T>(&self, message: impl Into<String>) -> Result<T, OpError> {
        Err(OpError::unsupported(self.name(), message))
    }

    /// The name of argument `i`.
    fn arg_name(&self, i: usize) -> &'static str {
        self.def.args.get(i).or(self.def.args.last()).map_or("?", |a| a.name)
    }

    /// Argument `i`.
    pub fn arg(&self, i: usize) -> Result<&'a Expr, OpError> {
        self.args.get(i).ok_or_else(|| OpError::Arity {
            op: self.name().into(),
            expected: format!("at least {}", i + 1),
            got: self.args.len(),
        })
    }

    /// Whether argument `i` was given.
    pub fn has(&self, i: usize) -> bool {
        i < self.args.len()
    }

    /// The type of argument `i`.
    pub fn ty(&self, i: usize) -> Result<Type, OpError> {
        Ok(self.arg(i)?.ty())
    }

    fn wrong<T>(&self, i: usize, expected: &str) -> Result<T, OpError> {
        Err(OpError::argument(self.name(), self.arg_name(i), expected, &self.ty(i)?))
    }

    /// What is known of tensor argument `i`.
    pub fn tensor(&self, i: usize) -> Result<TensorInfo, OpError> {
        match self.ty(i)? {
            Type::Tensor(ty) => Ok(TensorInfo::from(&*ty)),
            Type::Any(_) | Type::Missing(_) => Ok(TensorInfo { dims: None, ndim: None, dtype: DataType::void() }),
            _ => self.wrong(i, "a tensor"),
        }
    }

    /// What is known of the tensor or scalar that is argument `i`; a scalar has no dimensions.
    pub fn operand(&self, i: usize) -> Result<TensorInfo, OpError> {
        match self.ty(i)? {
            Type::Prim(ty) => Ok(TensorInfo { dims: Some(Vec::new()), ndim: Some(0), dtype: ty.dtype }),
            _ => self.tensor(i),
        }
    }

    /// The tensor type of argument `i`.
    pub fn tensor_ty(&self, i: usize) -> Result<Ref<TensorType>, OpError> {
        match self.ty(i)? {
            Type::Tensor(ty) => Ok(ty),
            _ => self.wrong(i, "a tensor"),
        }
    }

    /// The dimensions of tensor argument `i`, for lowering, which needs them.
    pub fn dims(&self, i: usize) -> Result<Vec<PrimExpr>, OpError> {
        match self.operand(i)?.dims {
            Some(dims) => Ok(dims),
            None => self.unsupported(format!(
                "the shape of argument `{}` is not known to the compiler; give it one with match_cast",
                self.arg_name(i)
            )),
        }
    }

    /// What is known of the tensors in tuple argument `i`.
    pub fn tensors(&self, i: usize) -> Result<Vec<TensorInfo>, OpError> {
        let Type::Tuple(tuple) = self.ty(i)? else { return self.wrong(i, "a tuple of tensors") };
        let infos: Option<Vec<_>> =
            tuple.fields.iter().map(|t| t.as_tensor().map(|t| TensorInfo::from(&**t))).collect();
        infos.map_or_else(|| self.wrong(i, "a tuple of tensors"), Ok)
    }

    /// The dimensions that shape argument `i` holds; `Ok(Err(ndim))` where only the rank is known, if that.
    pub fn shape_arg(&self, i: usize) -> Result<Result<Vec<PrimExpr>, Option<usize>>, OpError> {
        if let Expr::Shape(shape) = self.arg(i)? {
            return Ok(Ok(shape.values.clone()));
        }
        match self.ty(i)? {
            Type::Shape(ty) => Ok(ty.values.clone().ok_or(usize::try_from(ty.ndim).ok())),
            Type::Any(_) | Type::Missing(_) => Ok(Err(None)),
            _ => self.wrong(i, "a shape"),
        }
    }

    /// The dimensions that shape argument `i` holds, for lowering, which needs them.
    pub fn known_shape(&self, i: usize) -> Result<Vec<PrimExpr>, OpError> {
        match self.shape_arg(i)? {
            Ok(dims) => Ok(dims),
            Err(_) => self.unsupported(format!(
                "the dimensions of argument `{}` are not known to the compiler; bind them with match_cast",
                self.arg_name(i)
            )),
        }
    }

    /// The scalar that is argument `i`.
    pub fn scalar(&self, i: usize) -> Result<PrimExpr, OpError> {
        self.arg(i)?.as_scalar().map_or_else(|| self.wrong(i, "a scalar"), Ok)
    }

    /// What argument `i` is, if it is a constant of one element and no dimension.
    pub fn literal(&self, i: usize) -> Option<PrimExpr> {
        match self.args.get(i)? {
            Expr::Constant(c) if c.value.ndim() == 0 => as_scalar(&c.value),
            _ => None,
        }
    }

    /// The scalars in tuple argument `i`.
    pub fn scalars(&self, i: usize) -> Result<Vec<PrimExpr>, OpError> {
        let fields = match self.arg(i)? {
            Expr::Tuple(tuple) => &tuple.fields,
            Expr::Shape(shape) => return Ok(shape.values.clone()),
            _ => return self.wrong(i, "a tuple of scalars"),
        };
        let values: Option<Vec<_>> = fields.iter().map(Expr::as_scalar).collect();
        values.map_or_else(|| self.wrong(i, "a tuple of scalars"), Ok)
    }

    fn no_attr(&self, name: &str, what: &str) -> OpError {
        OpError::Attribute { op: self.name().into(), attr: name.into(), problem: format!("must be {what}") }
    }

    /// An integer attribute.
    pub fn int(&self, name: &str) -> Result<i64, OpError> {
        self.attrs.int(name).ok_or_else(|| self.no_attr(name, "an integer"))
    }

    /// A bool attribute.
    pub fn bool(&self, name: &str) -> Result<bool, OpError> {
        self.attrs.bool(name).ok_or_else(|| self.no_attr(name, "a bool"))
    }

    /// A number attribute.
    pub fn float(&self, name: &str) -> Result<f64, OpError> {
        self.attrs.float(name).ok_or_else(|| self.no_attr(name, "a number"))
    }

    /// A text attribute.
    pub fn str(&self, name: &str) -> Result<&'a str, OpError> {
        self.attrs.str(name).ok_or_else(|| self.no_attr(name, "text"))
    }

    /// An integer-list attribute.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, OpError> {
        self.attrs.ints(name).ok_or_else(|| self.no_attr(name, "a list of integers"))
    }

    /// A dtype attribute; `None` where it is to follow from the arguments.
    pub fn dtype(&self, name: &str) -> Option<DataType> {
        self.attrs.dtype(name).filter(|d| *d != DataType::void())
    }

    /// An axis counted from the front, from one that may count from the back.
    pub fn axis_of(&self, axis: i64, ndim: usize) -> Result<usize, OpError> {
        let n = ndim as i64;
        let from_front = if axis < 0 { axis + n } else { axis };
        if (0..n).contains(&from_front) {
            return Ok(from_front as usize);
        }
        self.invalid(format!("axis {axis} is not one of the {ndim} axes of the tensor"))
    }

    /// An axis attribute, counted from the front.
    pub fn axis(&self, name: &str, ndim: usize) -> Result<usize, OpError> {
        self.axis_of(self.int(name)?, ndim)
    }

    /// A list of axes, counted from the front, each at most once; `None` where absent.
    pub fn axes(&self, name: &str, ndim: usize) -> Result<Option<Vec<usize>>, OpError> {
        if self.attrs.get(name).is_none() {
            return Ok(None);
        }
        let mut axes = Vec::new();
        for axis in self.ints(name)? {
            let axis = self.axis_of(axis, ndim)?;
            if axes.contains(&axis) {
                return self.invalid(format!("axis {axis} is named twice in `{name}`"));
            }
            axes.push(axis);
        }
        Ok(Some(axes))
    }

    /// Refuses a layout other than the one that is implemented.
    pub fn layout(&self, name: &str, implemented: &[&str]) -> Result<&'a str, OpError> {
        let layout = self.str(name)?;
        if implemented.contains(&layout) {
            return Ok(layout);
        }
        self.unsupported(format!("`{name}` is {layout}; implemented are {}", implemented.join(", ")))
    }
}
