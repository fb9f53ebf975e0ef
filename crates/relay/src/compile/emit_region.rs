//! Regions: what operators of a program become, kernels that are called on tensors which are allocated for them.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{PrimExpr, Type as RxType, Var as RxVar};
use relaxide_relax as rx;
use relaxide_relax::op::core::CallTir;
use relaxide_relay_vm::{Alignment, Instruction, Size};

use super::emit::{FunctionEmitter, Value};
use super::region::{Leaf, Region};
use super::shapes::{Dims, ShapeSource};
use super::{CompileError, constants, unsupported};
use crate::rooms::ALIGNMENT;
use crate::*;

impl FunctionEmitter<'_, '_> {
    pub(super) fn region(&mut self, region: &Region) -> Result<(), CompileError> {
        let (_, results) = self.executed(region, &[])?;
        let mut results = results.into_iter();
        for (var, ty) in &region.outputs {
            let register = self.output(ty, &mut results)?;
            self.bind(var, register);
        }
        Ok(())
    }

    /// The function that a region became, and what it gives. A result that a kernel computes is written into its place, if
    /// there are places.
    pub(super) fn executed(
        &mut self,
        region: &Region,
        places: &[i64],
    ) -> Result<(Ref<rx::Function>, Vec<Value>), CompileError> {
        let (function, mut cx) = self.region_function(region)?;
        cx.places = super::memory::places_of(&function, places);
        for block in &function.body.blocks {
            for binding in &block.bindings {
                let var = var_address(binding.var());
                let value = self.region_value(&mut cx, var, binding.value())?;
                cx.values.insert(var, value);
            }
        }
        match self.operand(&mut cx, &function.body.body)? {
            Value::Tuple(results) => Ok((function, results)),
            _ => unsupported("a region gives no tuple; this is a defect of Relaxide", None),
        }
    }

    /// The function that a region became, with its parameters in registers.
    pub(super) fn region_function<'r>(
        &mut self,
        region: &'r Region,
    ) -> Result<(Ref<rx::Function>, RegionCx<'r>), CompileError> {
        let Some(function) = self.shared.lowered.get_as::<rx::Function>(&region.name) else {
            return unsupported(format!("{} was lost in lowering; this is a defect of Relaxide", region.name), None);
        };
        self.region_device = region.device;
        let mut values: HashMap<usize, Value> = HashMap::new();
        let mut leaves: HashMap<Leaf, i64> = HashMap::new();
        let mut registers = Vec::new();
        for ((leaf, _), param) in region.params.iter().zip(&function.params) {
            let register = self.leaf(leaf, &mut leaves)?;
            registers.push(register);
            values.insert(Ref::as_ptr(param).addr(), Value::Register(register));
        }
        let (params, shapes, places) = (function.params.clone(), HashMap::new(), HashMap::new());
        Ok((function, RegionCx { region, params, registers, shapes, values, places }))
    }

    /// The register of a tensor inside of a variable's value.
    fn leaf(&mut self, leaf: &Leaf, known: &mut HashMap<Leaf, i64>) -> Result<i64, CompileError> {
        if let Some(register) = known.get(leaf) {
            return Ok(*register);
        }
        let Some((last, before)) = leaf.path.split_last() else {
            return self.atom(&leaf.var.clone().into(), self.region_device);
        };
        let object = self.leaf(&Leaf { var: leaf.var.clone(), path: before.to_vec() }, known)?;
        let dst = self.fresh();
        self.push(Instruction::GetField { object, index: *last as i64, dst });
        known.insert(leaf.clone(), dst);
        Ok(dst)
    }

    /// The value of a type from tensors in order.
    fn output(&mut self, ty: &Type, results: &mut impl Iterator<Item = Value>) -> Result<i64, CompileError> {
        if let Type::Tuple(t) = ty {
            let fields = t.fields.iter().map(|ty| self.output(ty, results)).collect::<Result<Vec<_>, _>>()?;
            let dst = self.fresh();
            self.push(Instruction::AllocAdt { tag: 0, dst, fields });
            return Ok(dst);
        }
        match results.next() {
            Some(value) => self.register(value),
            None => unsupported("a region gives fewer tensors than it should; this is a defect of Relaxide", None),
        }
    }

    pub(super) fn register(&mut self, value: Value) -> Result<i64, CompileError> {
        match value {
            Value::Register(register) => Ok(register),
            Value::Constant(tensor) => Ok(self.constant_on(&tensor, self.region_device)),
            Value::Tuple(fields) => {
                let fields = fields.into_iter().map(|f| self.register(f)).collect::<Result<Vec<_>, _>>()?;
                let dst = self.fresh();
                self.push(Instruction::AllocAdt { tag: 0, dst, fields });
                Ok(dst)
            }
        }
    }

    fn operand(&mut self, cx: &mut RegionCx<'_>, e: &rx::Expr) -> Result<Value, CompileError> {
        match e {
            rx::Expr::Var(_) | rx::Expr::DataflowVar(_) => {
                let found = e.as_var().and_then(|var| cx.values.get(&var_address(&var)).cloned());
                match found {
                    Some(value) => Ok(value),
                    None => unsupported("a kernel takes what is not bound; this is a defect of Relaxide", None),
                }
            }
            rx::Expr::Constant(c) => Ok(Value::Constant(c.value.clone())),
            rx::Expr::Tuple(t) => {
                Ok(Value::Tuple(t.fields.iter().map(|e| self.operand(cx, e)).collect::<Result<_, _>>()?))
            }
            rx::Expr::TupleGetItem(t) => match self.operand(cx, &t.tuple)? {
                Value::Tuple(fields) => {
                    let field = usize::try_from(t.index).ok().and_then(|i| fields.get(i).cloned());
                    field.map_or_else(|| unsupported("a field does not exist; this is a defect of Relaxide", None), Ok)
                }
                other => {
                    let (object, dst) = (self.register(other)?, self.fresh());
                    self.push(Instruction::GetField { object, index: t.index, dst });
                    Ok(Value::Register(dst))
                }
            },
            other => unsupported(
                format!("an operator became {}, which the Relay VM has no instruction for", other.type_key()),
                None,
            ),
        }
    }

    fn region_value(&mut self, cx: &mut RegionCx<'_>, var: usize, value: &rx::Expr) -> Result<Value, CompileError> {
        if let Some(call) = CallTir::of(value) {
            return self.kernel_call(cx, var, &call);
        }
        match value.as_op_call() {
            Some((call, "reshape")) => {
                let (tensor, RxType::Tensor(ty)) = (self.operand(cx, &call.args[0])?, call.ty.clone()) else {
                    return unsupported("a reshape gives no tensor", None);
                };
                let tensor = self.register(tensor)?;
                let dims = ty.shape.clone().unwrap_or_default();
                let shape = match rx::shape::const_dims(&dims) {
                    Some(dims) => self.number(&constants::vector(&dims)?),
                    None => self.shape_function(cx, &dims, ty.dtype, "reshape")?.0,
                };
                let dst = self.fresh();
                self.push(Instruction::ReshapeTensor { tensor, shape, dst });
                Ok(Value::Register(dst))
            }
            Some((_, name)) => unsupported(
                format!(
                    "an operator became a call of {name}, whose result's shape only the run shows; the Relay VM has no \
                         instruction for it"
                ),
                None,
            ),
            None => self.operand(cx, value),
        }
    }

    fn kernel_call(&mut self, cx: &mut RegionCx<'_>, var: usize, call: &CallTir) -> Result<Value, CompileError> {
        let mut args = Vec::new();
        for arg in &call.args {
            if let (Some(dim), false) = (arg.as_scalar(), matches!(arg, rx::Expr::Constant(_))) {
                args.push(self.dimension(cx, &dim, &call.func.name)?);
                continue;
            }
            let value = self.operand(cx, arg)?;
            args.push(self.register(value)?);
        }
        let mut outputs = Vec::new();
        for (i, ty) in call.outputs.iter().enumerate() {
            outputs.push(match cx.places.get(&(var, i)) {
                Some(place) => *place,
                None => self.allocate(cx, ty, &call.func.name)?,
            });
        }
        args.extend(&outputs);
        let index = self.shared.kernel(&call.func.name)?;
        self.push(Instruction::InvokePacked { index, outputs: outputs.len() as i64, args });
        Ok(match outputs.as_slice() {
            [one] => Value::Register(*one),
            many => Value::Tuple(many.iter().map(|r| Value::Register(*r)).collect()),
        })
    }

    /// A dimension that no tensor of a kernel shows, as a tensor without elements whose first dimension it is.
    fn dimension(&mut self, cx: &mut RegionCx<'_>, dim: &PrimExpr, kernel: &str) -> Result<i64, CompileError> {
        let dims = [dim.clone(), relaxide_ir::prim::int(0)];
        let dtype = DataType::int(8);
        let (shape, bytes) = self.shape_function(cx, &dims, dtype, kernel)?;
        let storage = self.storage(Size::Register(bytes), dtype, self.region_device);
        let (offset, dst) = (self.number(&constants::scalar(0)?), self.fresh());
        self.push(Instruction::AllocTensorReg { storage, offset: Some(offset), shape, dtype, dst });
        Ok(dst)
    }

    /// Memory for a result.
    fn allocate(&mut self, cx: &mut RegionCx<'_>, ty: &RxType, kernel: &str) -> Result<i64, CompileError> {
        let RxType::Tensor(ty) = ty else { return unsupported("a kernel gives no tensor", None) };
        let Some(dims) = &ty.shape else {
            return unsupported(format!("the shape of what {kernel} gives is not known before it runs"), None);
        };
        match rx::shape::const_dims(dims) {
            Some(dims) => self.static_tensor(&dims, ty.dtype, self.region_device),
            None => {
                let (shape, bytes) = self.shape_function(cx, dims, ty.dtype, kernel)?;
                let storage = self.storage(Size::Register(bytes), ty.dtype, self.region_device);
                let (offset, dst) = (self.number(&constants::scalar(0)?), self.fresh());
                self.push(Instruction::AllocTensorReg { storage, offset: Some(offset), shape, dtype: ty.dtype, dst });
                Ok(dst)
            }
        }
    }

    fn storage(&mut self, size: Size, dtype: DataType, device: usize) -> i64 {
        let dst = self.fresh();
        let alignment = Alignment::Bytes(ALIGNMENT);
        self.push(Instruction::AllocStorage { size, alignment, dtype, device: device as i64, dst });
        dst
    }

    fn static_tensor(&mut self, shape: &[i64], dtype: DataType, device: usize) -> Result<i64, CompileError> {
        let size = if shape.is_empty() {
            Size::Register(self.number(&constants::scalar(dtype.bytes() as i64)?))
        } else {
            Size::Shape(shape.to_vec())
        };
        let storage = self.storage(size, dtype, device);
        let (offset, dst) = (self.number(&constants::scalar(0)?), self.fresh());
        self.push(Instruction::AllocTensor { storage, offset: Some(offset), shape: shape.to_vec(), dtype, dst });
        Ok(dst)
    }

    /// The registers of a shape and of the bytes that a tensor of it takes.
    fn shape_function(
        &mut self,
        cx: &mut RegionCx<'_>,
        dims: &[PrimExpr],
        dtype: DataType,
        kernel: &str,
    ) -> Result<(i64, i64), CompileError> {
        let shape = self.static_tensor(&[dims.len() as i64], DataType::int(64), 0)?;
        Ok((shape, self.shape_into(cx, dims, dtype, kernel, shape)?))
    }

    /// Computes a shape into a tensor; the register of the bytes that a tensor of it takes.
    pub(super) fn shape_into(
        &mut self,
        cx: &mut RegionCx<'_>,
        dims: &[PrimExpr],
        dtype: DataType,
        kernel: &str,
        shape: i64,
    ) -> Result<i64, CompileError> {
        let name = format!("vm_mod_shape_func_{}", kernel.trim_start_matches("fused_"));
        let name = self.shared.fresh_kernel_name(&name);
        let function = Dims::new(cx.region, &cx.params).function(dims, dtype, &name)?;
        let mut args = Vec::new();
        for source in &function.sources {
            args.push(match source {
                // Shapes are computed by the host.
                ShapeSource::Elements(param) if self.region_device != 0 => {
                    let (src, dst) = (cx.registers[*param], self.fresh());
                    let src_device = self.region_device as i64;
                    self.push(Instruction::DeviceCopy { src, src_device, dst_device: 0, dst });
                    dst
                }
                ShapeSource::Elements(param) => cx.registers[*param],
                ShapeSource::ShapeOf(param) => match cx.shapes.get(param) {
                    Some(register) => *register,
                    None => {
                        let dst = self.fresh();
                        self.push(Instruction::ShapeOf { tensor: cx.registers[*param], dst });
                        cx.shapes.insert(*param, dst);
                        dst
                    }
                },
            });
        }
        let bytes = self.static_tensor(&[], DataType::int(64), 0)?;
        args.extend([shape, bytes]);
        self.shared.kernels.push((name.clone(), Ref::new(function.kernel)));
        let index = self.shared.primitive(name.clone(), &name);
        self.push(Instruction::InvokePacked { index, outputs: 2, args });
        Ok(bytes)
    }
}

/// A region that is being emitted.
pub(super) struct RegionCx<'r> {
    region: &'r Region,
    params: Vec<Ref<RxVar>>,
    /// The registers of the parameters.
    registers: Vec<i64>,
    /// The registers of their shapes.
    shapes: HashMap<usize, i64>,
    values: HashMap<usize, Value>,
    /// Memory that the program took for results of calls of kernels.
    places: HashMap<(usize, usize), i64>,
}

pub(super) fn var_address(var: &rx::AnyVar) -> usize {
    var.as_object().as_ptr().addr()
}
