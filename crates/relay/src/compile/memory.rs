//! Memory that a program takes itself, as ManifestAlloc and the passes behind it write it.
//!
//! Each operation of the dialect is an instruction; a kernel's operators are a region as all operators are, whose results have
//! places. What a region gives without computing it, such as one of its operands, is copied to its place.
//!
//! `memory.kill` says what liveness finds anyway, so nothing is emitted for it.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{PrimExpr, Type as RxType, Var as RxVar};
use relaxide_relax as rx;
use relaxide_relax::op::core::CallTir;
use relaxide_relay_vm::{Alignment, Instruction, Size};
use relaxide_tir::te;

use super::blocks::Filling;
use super::emit::{FunctionEmitter, Value};
use super::emit_region::var_address;
use super::region::Region;
use super::{CompileError, unsupported};
use crate::*;

/// Whether an operation of the dialect becomes an instruction of its own.
pub(super) fn takes(name: &str) -> bool {
    matches!(name, "memory.alloc_storage" | "memory.alloc_tensor" | "memory.kill" | "vm.reshape_tensor")
}

/// The results of kernel calls that are results of a function, by the call's variable and the output's number, with their
/// places. Each place is given once.
pub(super) fn places_of(function: &rx::Function, places: &[i64]) -> HashMap<(usize, usize), i64> {
    let mut out = HashMap::new();
    if places.is_empty() {
        return out;
    }
    let bindings = function.body.blocks.iter().flat_map(|block| &block.bindings);
    let values: HashMap<usize, &rx::Expr> = bindings.map(|b| (var_address(b.var()), b.value())).collect();
    let value_of = |e: &rx::Expr| e.as_var().and_then(|var| values.get(&var_address(&var)).copied());
    let mut result = &function.body.body;
    while let Some(value) = value_of(result) {
        result = value;
    }
    let rx::Expr::Tuple(results) = result else { return out };
    for (result, place) in results.fields.iter().zip(places) {
        if let Some(made) = maker(result, &value_of) {
            out.entry(made).or_insert(*place);
        }
    }
    out
}

/// The kernel call that computes a value, and the number of its output.
fn maker<'e>(e: &'e rx::Expr, value_of: &dyn Fn(&rx::Expr) -> Option<&'e rx::Expr>) -> Option<(usize, usize)> {
    let (mut e, mut index) = (e, None);
    loop {
        let value = match e {
            rx::Expr::TupleGetItem(_) => e,
            _ => value_of(e)?,
        };
        match value {
            rx::Expr::Var(_) | rx::Expr::DataflowVar(_) => e = value,
            rx::Expr::TupleGetItem(t) if index.is_none() => {
                index = Some(usize::try_from(t.index).ok()?);
                e = &t.tuple;
            }
            rx::Expr::Tuple(t) => e = t.fields.get(index.take()?)?,
            other => {
                let call = CallTir::of(other)?;
                let index = if call.outputs.len() == 1 { 0 } else { index? };
                return Some((var_address(&e.as_var()?), index));
            }
        }
    }
}

impl FunctionEmitter<'_, '_> {
    pub(super) fn memory(&mut self, call: &Ref<Call>, name: &str) -> Result<i64, CompileError> {
        let span = call.span.as_deref();
        let dtype = call.attrs.dtype("dtype").unwrap_or(DataType::float(32));
        match (name, call.args.as_slice()) {
            ("memory.alloc_storage", [size, ..]) => {
                let size = Size::Register(self.atom(size, 0)?);
                let device = call.attrs.get("virtual_device").map_or(Ok(None), VirtualDevice::of_attr);
                let device = match device.or_else(|why| unsupported(why, span))? {
                    Some(device) => self.device_number(&device)?,
                    None => 0,
                };
                let (alignment, dst) = (Alignment::Bytes(crate::rooms::ALIGNMENT), self.fresh());
                self.push(Instruction::AllocStorage { size, alignment, dtype, device, dst });
                Ok(dst)
            }
            ("memory.alloc_tensor", [storage, offset, shape]) => {
                let (storage, offset) = (self.atom(storage, 0)?, Some(self.atom(offset, 0)?));
                let known = match shape {
                    Expr::Constant(c) => scalar::ints(&c.data),
                    _ => None,
                };
                let Some(shape) = known else {
                    let (shape, dst) = (self.atom(shape, 0)?, self.fresh());
                    self.push(Instruction::AllocTensorReg { storage, offset, shape, dtype, dst });
                    return Ok(dst);
                };
                let dst = self.fresh();
                self.push(Instruction::AllocTensor { storage, offset, shape, dtype, dst });
                Ok(dst)
            }
            ("vm.reshape_tensor", [tensor, shape]) => {
                let (tensor, shape, dst) = (self.atom(tensor, 0)?, self.atom(shape, 0)?, self.fresh());
                self.push(Instruction::ReshapeTensor { tensor, shape, dst });
                Ok(dst)
            }
            // Its value is the empty tuple, which nobody reads.
            ("memory.kill", _) => Ok(self.fresh()),
            _ => unsupported(format!("{name} has {} arguments", call.args.len()), span),
        }
    }

    /// A region whose results, or the shapes of them, are written to places.
    pub(super) fn filled(&mut self, region: &Region, places: &Expr, what: Filling) -> Result<(), CompileError> {
        let places = match places {
            Expr::Tuple(t) => self.atoms(&t.fields, region.device)?,
            other => {
                let object = self.atom(other, region.device)?;
                let count =
                    region.outputs.iter().map(|(_, ty)| ty.flat_tensors().map_or(0, |l| l.len())).sum::<usize>();
                (0..count as i64)
                    .map(|index| {
                        let dst = self.fresh();
                        self.push(Instruction::GetField { object, index, dst });
                        dst
                    })
                    .collect()
            }
        };
        if what == Filling::Shapes {
            return self.shapes_filled(region, &places);
        }
        let (function, results) = self.executed(region, &places)?;
        let types = tensor_types(&function);
        if results.len() != places.len() || types.len() != places.len() {
            return unsupported(
                format!("a kernel gives {} results and has {} places", results.len(), places.len()),
                None,
            );
        }
        for ((result, place), ty) in results.into_iter().zip(&places).zip(types) {
            self.copied(result, *place, &ty)?;
        }
        Ok(())
    }

    fn shapes_filled(&mut self, region: &Region, places: &[i64]) -> Result<(), CompileError> {
        let (function, mut cx) = self.region_function(region)?;
        let types = tensor_types(&function);
        if types.len() != places.len() {
            return unsupported(
                format!("a kernel gives {} results and has {} shapes", types.len(), places.len()),
                None,
            );
        }
        for (ty, place) in types.iter().zip(places) {
            let Some(dims) = &ty.shape else {
                return unsupported("the shape of what a kernel gives is not known before it runs", None);
            };
            self.shape_into(&mut cx, dims, ty.dtype, &region.name, *place)?;
        }
        Ok(())
    }

    /// Copies a result to its place, unless it was computed there.
    fn copied(&mut self, result: Value, place: i64, ty: &relaxide_ir::TensorType) -> Result<(), CompileError> {
        let register = self.register(result)?;
        if register == place {
            return Ok(());
        }
        let dims = ty.shape.as_ref().and_then(|dims| rx::shape::const_dims(dims));
        let dims: Vec<PrimExpr> = match dims {
            Some(dims) => dims.into_iter().map(relaxide_ir::prim::int).collect(),
            None => (0..ty.ndim.max(0)).map(|_| PrimExpr::Var(RxVar::dim("n"))).collect(),
        };
        let name = self.shared.fresh_kernel_name("vm_mod_fused_copy");
        let from = te::placeholder("from", dims.clone(), ty.dtype);
        let input = from.clone();
        let copy = te::compute("copy", dims, |at: &[PrimExpr]| input.at(at));
        let (kernel, scalars) =
            rx::builder::make_kernel(&name, vec![from], vec![copy], Vec::new(), rx::op::KernelForm::Fast)?;
        if !scalars.is_empty() {
            return unsupported("a copy has a dimension that nothing shows; this is a defect of Relaxide", None);
        }
        self.shared.kernels.push((name.clone(), Ref::new(kernel)));
        let index = self.shared.primitive(name.clone(), &name);
        self.push(Instruction::InvokePacked { index, outputs: 1, args: vec![register, place] });
        Ok(())
    }
}

/// The types of a region's results.
fn tensor_types(function: &rx::Function) -> Vec<Ref<relaxide_ir::TensorType>> {
    let RxType::Tuple(tuple) = function.body.body.ty() else { return Vec::new() };
    tuple.fields.iter().filter_map(|ty| ty.as_tensor().cloned()).collect()
}
