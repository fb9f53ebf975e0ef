//! Shape functions: kernels on the host that compute what is not known of a result, its dimensions and its bytes.
//!
//! A dimension is an expression over variables; each variable is a dimension of a tensor that the region was given, an
//! element of a tensor of integers, or an expression over others. The function takes the tensors of shapes and of integers
//! that the expression needs, and gives the dimensions and the bytes as 64-bit integers.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{Type as RxType, Var as RxVar};
use relaxide_relax as rx;
use relaxide_tir::{PrimFunc, te};

use super::CompileError;
use super::region::Region;
use crate::op::DimDef;

/// A tensor that a shape function reads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShapeSource {
    /// The shape of a parameter.
    ShapeOf(usize),
    /// The elements of a parameter.
    Elements(usize),
}

/// A shape function, with what it reads.
pub(super) struct ShapeFunction {
    pub kernel: PrimFunc,
    pub sources: Vec<ShapeSource>,
}

/// What each variable of a region is, and the types of its parameters.
pub(super) struct Dims<'r> {
    region: &'r Region,
    params: &'r [Ref<RxVar>],
    of_var: HashMap<Ref<RxVar>, (usize, usize)>,
}

impl<'r> Dims<'r> {
    /// The variables of a region whose function has these parameters now.
    pub fn new(region: &'r Region, params: &'r [Ref<RxVar>]) -> Dims<'r> {
        let mut of_var = HashMap::new();
        for (i, param) in params.iter().enumerate().take(region.params.len()) {
            let RxType::Tensor(ty) = &param.ty else { continue };
            for (k, dim) in ty.shape.iter().flatten().enumerate() {
                if let Some(var) = dim.as_var() {
                    of_var.entry(var.clone()).or_insert((i, k));
                }
            }
        }
        Dims { region, params, of_var }
    }

    /// The variables that stand in the last parameter's shape, in the order of the region's own.
    fn own(&self) -> Vec<Ref<RxVar>> {
        match self.params.last().map(|p| p.ty.clone()) {
            Some(RxType::Shape(shape)) => {
                shape.values.iter().flatten().filter_map(|dim| dim.as_var().cloned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The function that computes these dimensions, and the bytes of a tensor of them.
    pub fn function(&self, dims: &[PrimExpr], dtype: DataType, name: &str) -> Result<ShapeFunction, CompileError> {
        let mut reader = ShapeReader { dims: self, sources: Vec::new(), inputs: Vec::new(), map: VarMap::new() };
        let mut shape = Vec::new();
        for dim in dims {
            shape.push(reader.read(dim, 0)?);
        }
        let count = shape.iter().fold(prim::int(1), |n, dim| n * prim::max(dim.clone(), prim::int(0)));
        let bits = i64::from(dtype.bits) * i64::from(dtype.lanes);
        let bytes = prim::floordiv(count * bits + 7, prim::int(8));
        let ndim = shape.len() as i64;
        let wide = DataType::int(64);
        let out = te::compute("out_shape", [ndim], |at: &[PrimExpr]| {
            let last = shape.last().cloned().unwrap_or_else(|| prim::int(0));
            let chosen =
                shape.iter().enumerate().rev().skip(1).fold(last, |other, (i, dim)| {
                    prim::select(prim::eq(&at[0], prim::int(i as i64)), dim.clone(), other)
                });
            prim::cast(wide, chosen)
        });
        let none: [i64; 0] = [];
        let size = te::compute("out_bytes", none, |_: &[PrimExpr]| prim::cast(wide, bytes));
        let (kernel, scalars) =
            rx::builder::make_kernel(name, reader.inputs, vec![out, size], Vec::new(), rx::op::KernelForm::Fast)?;
        if !scalars.is_empty() {
            return super::unsupported("a shape depends on what no tensor shows; this is a defect of Relaxide", None);
        }
        Ok(ShapeFunction { kernel, sources: reader.sources })
    }
}

struct ShapeReader<'d, 'r> {
    dims: &'d Dims<'r>,
    sources: Vec<ShapeSource>,
    inputs: Vec<te::Tensor>,
    map: VarMap,
}

impl ShapeReader<'_, '_> {
    /// An expression over what the function reads.
    fn read(&mut self, e: &PrimExpr, depth: usize) -> Result<PrimExpr, CompileError> {
        if depth > 100 {
            return super::unsupported(
                "dimensions depend on each other in a circle; this is a defect of Relaxide",
                None,
            );
        }
        for var in free_vars(e) {
            if !self.map.contains_key(&var) {
                let value = self.variable(&var, depth)?;
                self.map.insert(var, value);
            }
        }
        Ok(substitute(e, &self.map))
    }

    fn variable(&mut self, var: &Ref<RxVar>, depth: usize) -> Result<PrimExpr, CompileError> {
        if let Some((param, axis)) = self.dims.of_var.get(var).copied() {
            let RxType::Tensor(ty) = &self.dims.params[param].ty else { return Ok(prim::int(0)) };
            let tensor = self.source(ShapeSource::ShapeOf(param), vec![prim::int(ty.ndim)], DataType::int(64));
            return Ok(tensor.at(&[prim::int(axis as i64)]));
        }
        let place = self.dims.own().iter().position(|own| own == var);
        let Some((_, def)) = place.and_then(|i| self.dims.region.dims.get(i)) else {
            return super::unsupported(
                format!("nothing shows the dimension {} before the kernel runs", var.name),
                None,
            );
        };
        match def {
            DimDef::Expr(e) => {
                let e = self.renamed(e);
                let value = self.read(&e, depth + 1)?;
                // A number of its own: what is made of it names it, and does not hold its expression.
                let none: [i64; 0] = [];
                let wide = DataType::int(64);
                Ok(te::compute("dim", none, |_: &[PrimExpr]| prim::cast(wide, value)).at(&[]))
            }
            DimDef::Element(operand, index) => {
                let (param, ty) = self.operand(operand)?;
                let shape = ty.shape.as_ref().and_then(|s| rx::shape::const_dims(s));
                let Some(shape) = shape else {
                    return super::unsupported("a shape must be a tensor of a known number of elements", None);
                };
                let place = unravelled(*index as i64, &shape);
                let shape = shape.into_iter().map(prim::int).collect();
                let tensor = self.source(ShapeSource::Elements(param), shape, ty.dtype);
                Ok(prim::cast(DataType::int(64), tensor.at(&place)))
            }
            DimDef::Nonzero(operand) => {
                let (param, ty) = self.operand(operand)?;
                let shape = ty.shape.clone().unwrap_or_default();
                let tensor = self.source(ShapeSource::Elements(param), shape.clone(), ty.dtype);
                let axes: Vec<te::ReduceAxis> = shape.into_iter().map(te::reduce_axis).collect();
                let none: [i64; 0] = [];
                let count = te::compute("nonzero_count", none, |_: &[PrimExpr]| {
                    let at: Vec<PrimExpr> = axes.iter().map(te::ReduceAxis::var).collect();
                    let holds = prim::ne(tensor.at(&at), prim::constant(ty.dtype, 0.0));
                    te::sum(prim::cast(DataType::int(64), holds), axes.clone())
                });
                Ok(count.at(&[]))
            }
        }
    }

    /// The parameter that a dimension is read from, which must exist before the operators run.
    fn operand(&self, operand: &rx::Expr) -> Result<(usize, Ref<relaxide_ir::TensorType>), CompileError> {
        let found = self.dims.region.params.iter().position(|(_, p)| matches!(operand, rx::Expr::Var(v) if v == p));
        match found.map(|param| (param, &self.dims.params[param].ty)) {
            Some((param, RxType::Tensor(ty))) => Ok((param, ty.clone())),
            _ => super::unsupported("a shape must be a value that exists before the operators run", None),
        }
    }

    /// An expression over the region's own variables, over those that the function has now.
    fn renamed(&self, e: &PrimExpr) -> PrimExpr {
        let mut map = VarMap::new();
        for ((old, _), new) in self.dims.region.dims.iter().zip(self.dims.own()) {
            map.insert(old.clone(), PrimExpr::Var(new));
        }
        for ((_, old), new) in self.dims.region.params.iter().zip(self.dims.params) {
            rx::shape::bind_dims(&old.ty, &new.ty, &mut map);
        }
        substitute(e, &map)
    }

    fn source(&mut self, source: ShapeSource, shape: Vec<PrimExpr>, dtype: DataType) -> te::Tensor {
        if let Some(place) = self.sources.iter().position(|s| *s == source) {
            return self.inputs[place].clone();
        }
        let tensor = te::placeholder(format!("in{}", self.inputs.len()), shape, dtype);
        self.sources.push(source);
        self.inputs.push(tensor.clone());
        tensor
    }
}

/// The indices of an element by its place among all.
fn unravelled(place: i64, shape: &[i64]) -> Vec<PrimExpr> {
    let mut rest = place;
    let mut out: Vec<PrimExpr> = Vec::new();
    for dim in shape.iter().rev() {
        out.push(prim::int(rest % dim.max(&1)));
        rest /= dim.max(&1);
    }
    out.reverse();
    out
}
