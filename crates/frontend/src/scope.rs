//! [`Scope`]: the program under construction, as operators see it.
//!
//! Every tensor that an operator asks about has a known shape, symbolic where the model's is. Where two dimensions must be
//! equal for an operator to make sense, but that cannot be proven (a skip connection past `stride 2` and `resize 2`),
//! [`Scope::agree`] puts a `match_cast` there: the program checks it when it runs, and the compiler relies on it.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, Type, Var};
use relaxide_relax::{BlockBuilder, Call, Expr, guard_note, op};
use relaxide_tir::te;

use crate::{Check, NodeError, Result, constant, dims};

/// What makes a tensor's dimensions those that are wanted.
type Agree = fn(&mut Scope<'_>, Expr, &[PrimExpr]) -> Result<Expr>;

/// The program under construction.
pub struct Scope<'b> {
    builder: &'b mut BlockBuilder,
}

impl Scope<'_> {
    /// A scope that adds to the builder's open block.
    pub fn new(builder: &mut BlockBuilder) -> Scope<'_> {
        Scope { builder }
    }

    /// The builder that it adds to.
    pub fn builder(&mut self) -> &mut BlockBuilder {
        self.builder
    }

    /// Adds an operation and returns its result.
    pub fn op(&mut self, name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Result<Expr> {
        let call = op::call(name, args, attrs)?;
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
        Ok(self.builder.emit_te(name, args, f)?)
    }

    /// Adds a binding of an expression.
    pub fn emit(&mut self, value: Expr) -> Result<Expr> {
        Ok(self.builder.emit(value)?)
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

    /// A constant of one number, without dimensions.
    pub fn scalar(&self, value: f64, dtype: DataType) -> Result<Expr> {
        self.constant(&[value], &[], dtype)
    }

    /// A constant of numbers.
    pub fn constant(&self, values: &[f64], dims: &[i64], dtype: DataType) -> Result<Expr> {
        Ok(Expr::constant(constant::filled(values, dims, dtype)?))
    }

    /// A constant of integers.
    pub fn whole(&self, values: &[i64], dims: &[i64], dtype: DataType) -> Result<Expr> {
        Ok(Expr::constant(constant::whole(values, dims, dtype)?))
    }

    /// A constant of the model with other dimensions of the same count.
    pub fn reshaped_constant(&self, tensor: &Tensor, dims: &[i64]) -> Result<Tensor> {
        tensor.reshape(dims).map_err(|e| NodeError::invalid(e.to_string()))
    }

    /// The same elements in another shape, which must have as many: proven, or checked when the program runs.
    pub fn reshape(&mut self, tensor: Expr, dims: Vec<PrimExpr>) -> Result<Expr> {
        let (own, new) = (dims::product(&self.dims(&tensor)?), dims::product(&dims));
        if !dims::equal(&own, &new) && (own.as_int().is_none() || new.as_int().is_none()) {
            let text = "the new shape must have as many elements as the tensor";
            let (new, own) = (("the product of the new sizes", new), ("the number of elements", own));
            self.require(&[Check::equal(new, own, text)])?;
        }
        self.reshape_known(tensor, dims)
    }

    /// The same, where the new shape is known to have as many elements.
    pub fn reshape_known(&mut self, tensor: Expr, dims: Vec<PrimExpr>) -> Result<Expr> {
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

    /// As [`Scope::agree`], for dimensions that may differ where the model runs: a program for one call's lengths alone does without
    /// this check, which is a guard ([`guard_note`]).
    pub fn take_as_equal(&mut self, tensor: Expr, wanted: &[PrimExpr]) -> Result<Expr> {
        let own = self.dims(&tensor)?;
        let unproven = |(axis, (a, b)): (usize, (&PrimExpr, &PrimExpr))| match dims::equal(a, b) {
            true => String::new(),
            false => {
                let dim = self.named_dim(&tensor, axis);
                guard_note(&format!("the model was compiled for equal lengths here: {dim} is {{{axis}}} and not {b}"))
            }
        };
        let notes: Vec<String> = own.iter().zip(wanted).enumerate().map(unproven).collect();
        let differs = own.iter().zip(wanted).any(|(a, b)| dims::differ(a, b));
        if differs || own.len() != wanted.len() || notes.iter().all(String::is_empty) {
            return self.agree(tensor, wanted);
        }
        let ty = Type::tensor(wanted.iter().cloned(), self.dtype(&tensor));
        Ok(self.builder.match_cast_with(notes, tensor, ty)?)
    }

    /// A value whose type is checked when the program runs.
    pub fn bind_type(&mut self, value: Expr, ty: Type) -> Result<Expr> {
        Ok(self.builder.match_cast(value, ty)?)
    }

    /// Adds a check of a bool, which says what is wrong where it fails.
    pub fn assert(&mut self, truth: Expr, message: &str) -> Result<()> {
        let format = message.replace('{', "{{").replace('}', "}}");
        self.op("assert_op", [truth], Attrs::new().with("format", format)).map(|_| ())
    }

    /// Gives the dimensions of a shape that the program computes symbolic variables.
    pub fn bind_shape(&mut self, shape: Expr, count: usize) -> Result<Vec<PrimExpr>> {
        self.bind_noted(shape, count, &[])
    }

    /// The same, where the shape goes on with what checks need ([`Check::dims`]).
    pub fn bind_noted(&mut self, shape: Expr, count: usize, checks: &[Check]) -> Result<Vec<PrimExpr>> {
        let mut dims: Vec<PrimExpr> = (0..count).map(|i| PrimExpr::Var(Var::dim(format!("d{i}")))).collect();
        let mut notes = vec![String::new(); count];
        let bound = dims.clone();
        for check in checks {
            notes.push(check.note(dims.len() + 1));
            notes.extend(check.values.iter().map(|_| String::new()));
            dims.push(prim::int(1));
            dims.extend(check.values.iter().map(|(_, value)| match value {
                PrimExpr::Int(_) | PrimExpr::Var(_) => value.clone(),
                _ => PrimExpr::Var(Var::dim("v")),
            }));
        }
        let notes = if checks.is_empty() { Vec::new() } else { notes };
        let bind = self.builder.match_cast_with(notes, shape, Type::shape(dims));
        bind?;
        Ok(bound)
    }

    /// Checks, when the program runs, what follows from dimensions alone.
    pub fn require(&mut self, checks: &[Check]) -> Result<()> {
        if checks.is_empty() {
            return Ok(());
        }
        let shape = Expr::shape(checks.iter().flat_map(Check::dims));
        self.bind_noted(shape, 0, checks).map(|_| ())
    }

    /// A dimension of a tensor, as errors name it.
    pub fn named_dim(&self, tensor: &Expr, axis: usize) -> String {
        let var = tensor.as_var();
        match (var.as_ref().and_then(|var| var.span()).filter(|span| span.is_node()), &var) {
            (Some(node), _) => format!("dimension {axis} of the result of {}", node.source),
            (None, Some(var)) => format!("dimension {axis} of `{}`", var.name()),
            (None, None) => format!("dimension {axis} of a constant"),
        }
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
        self.make_equal(tensors, axes, |scope, tensor, wanted| scope.agree(tensor, wanted))
    }

    /// The same as [`Scope::take_as_equal`] does.
    pub fn take_as_equal_on(&mut self, tensors: &mut [Expr], axes: &[usize]) -> Result<PrimExpr> {
        self.make_equal(tensors, axes, |scope, tensor, wanted| scope.take_as_equal(tensor, wanted))
    }

    fn make_equal(&mut self, tensors: &mut [Expr], axes: &[usize], agree: Agree) -> Result<PrimExpr> {
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
            *tensor = agree(self, tensor.clone(), &wanted)?;
        }
        Ok(best)
    }

    /// Prepares tensors for a broadcast: along each axis their dimensions become one, or 1.
    ///
    /// Dimensions that are proven equal stay as they are. Of two that are not, one may be 1 when the program runs, so both
    /// tensors are spread over what the program finds ([`Scope::common_dim`]), unless they are taken to be equal
    /// ([`dims::Relation`]).
    pub fn broadcastable(&mut self, tensors: &mut [Expr]) -> Result<()> {
        let shapes = tensors.iter().map(|t| self.dims(t)).collect::<Result<Vec<_>>>()?;
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut agreed = shapes.clone();
        let mut spread = shapes.clone();
        for back in 1..=rank {
            let at = |shape: &[PrimExpr]| shape.len().checked_sub(back).map(|i| shape[i].clone());
            let open: Vec<PrimExpr> = shapes.iter().filter_map(|s| at(s)).filter(|d| !d.is_int(1)).collect();
            let Some(best) = open.iter().min_by_key(|d| dims::weight(d)).cloned() else { continue };
            let open_ended = open.iter().any(|d| dims::relation(d, &best) == dims::Relation::Open);
            let target = if open_ended {
                let named = tensors.iter().zip(&shapes).filter_map(|(tensor, shape)| {
                    let axis = shape.len().checked_sub(back).filter(|&axis| !shape[axis].is_int(1))?;
                    Some((self.named_dim(tensor, axis), shape[axis].clone()))
                });
                let named: Vec<_> = named.collect();
                self.common_dim(&named)?
            } else {
                best
            };
            for (i, shape) in shapes.iter().enumerate() {
                let Some(axis) = shape.len().checked_sub(back).filter(|&a| !shape[a].is_int(1)) else { continue };
                if !open_ended {
                    agreed[i][axis] = target.clone();
                }
                spread[i][axis] = target.clone();
            }
        }
        for (i, tensor) in tensors.iter_mut().enumerate() {
            *tensor = self.take_as_equal(tensor.clone(), &agreed[i])?;
            if agreed[i].iter().zip(&spread[i]).any(|(a, b)| !dims::equal(a, b)) {
                *tensor = self.spread(tensor.clone(), spread[i].clone())?;
            }
        }
        Ok(())
    }

    /// The dimension that some are broadcast to, bound when the program runs; it checks that the others are 1. Each has what errors
    /// call it.
    pub fn common_dim(&mut self, dims: &[(String, PrimExpr)]) -> Result<PrimExpr> {
        let literal = dims.iter().map(|(_, d)| d).find(|d| d.as_int().is_some()).cloned();
        let chosen = literal.clone().unwrap_or_else(|| {
            let ((_, last), rest) = (&dims[dims.len() - 1], &dims[..dims.len() - 1]);
            rest.iter().rev().fold(last.clone(), |other, (_, d)| prim::select(prim::eq(d, 1), other, d.clone()))
        });
        let open = dims.iter().map(|(_, d)| d).filter(|d| d.as_int().is_none());
        let fits = open.map(|d| prim::or(prim::eq(d, 1), prim::eq(d, &chosen)));
        let check = Check::new(fits.fold(prim::boolean(true), prim::and), "lengths must be the same, or 1")
            .with(dims.iter().cloned());
        let own: Vec<PrimExpr> = literal.is_none().then(|| chosen.clone()).into_iter().collect();
        let shape = Expr::shape(own.iter().cloned().chain(check.dims()));
        let bound = self.bind_noted(shape, own.len(), &[check])?;
        Ok(bound.into_iter().next().unwrap_or(chosen))
    }

    /// A tensor, once the program has found that no dimension is 1 but those that are known to be.
    pub fn none_is_one(&mut self, tensor: Expr) -> Result<Expr> {
        let dims = self.dims(&tensor)?;
        let open = dims.iter().enumerate().filter(|(_, d)| d.as_int().is_none());
        let checks: Vec<Check> = open
            .map(|(axis, d)| {
                let what = "an axis of one element would go away, and with it the number of axes that the model was compiled for";
                Check::new(prim::ne(d, 1), what).as_guard().with([(self.named_dim(&tensor, axis), d.clone())])
            })
            .collect();
        self.require(&checks)?;
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

    /// A vector of expressions as a tensor of a type.
    pub fn shape_tensor(&mut self, dims: Vec<&PrimExpr>, dtype: DataType) -> Result<Expr> {
        let vector = self.call("shape_to_tensor", [Expr::shape(dims.into_iter().map(dims::simplify))])?;
        self.cast(vector, dtype)
    }
}
