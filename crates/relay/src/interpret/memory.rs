//! Memory that a program takes itself, as ManifestAlloc and the passes behind it write it.

use relaxide_ffi::{Any, DataType, Error, Tensor};
use relaxide_relay_vm::Adt;

use super::{Interpreter, error, field, tensor};
use crate::*;
use relaxide_ffi::Ref;

/// Whether an operator works on memory.
pub(super) fn is_memory(name: &str) -> bool {
    matches!(
        name,
        "memory.alloc_storage" | "memory.alloc_tensor" | "vm.invoke_tvm_op" | "vm.shape_func" | "vm.reshape_tensor"
    )
}

/// What a storage holds before a kernel wrote into it. No test expects it.
const UNWRITTEN: u8 = 0xa5;

/// A program of the interpreter takes no storage of more bytes.
const MOST_BYTES: i64 = 1 << 34;

fn numbers(value: &Any) -> Result<Vec<i64>, Error> {
    scalar::ints(&tensor(value)?).ok_or_else(|| error("a shape or a size is no tensor of integers"))
}

fn number(value: &Any) -> Result<i64, Error> {
    numbers(value)?.first().copied().ok_or_else(|| error("a number is missing"))
}

/// The tensors of a value, tuples flattened.
fn tensors(value: &Any, out: &mut Vec<Tensor>) -> Result<(), Error> {
    match value.downcast_ref::<Adt>() {
        Some(adt) => adt.fields.iter().try_for_each(|field| tensors(field, out)),
        None => {
            out.push(tensor(value)?);
            Ok(())
        }
    }
}

impl Interpreter {
    pub(super) fn memory(&mut self, call: &Ref<Call>, name: &str, args: Vec<Any>) -> Result<Any, Error> {
        let arg = |i: usize| args.get(i).ok_or_else(|| error(format!("{name} lacks an argument")));
        match name {
            "memory.alloc_storage" => {
                let bytes = number(arg(0)?)?;
                if !(0..=MOST_BYTES).contains(&bytes) {
                    return Err(error(format!("a storage cannot have {bytes} bytes")));
                }
                let storage = Tensor::zeros(&[bytes], DataType::uint(8))?;
                storage.copy_from_bytes(&vec![UNWRITTEN; bytes as usize])?;
                Ok(storage.into())
            }
            "memory.alloc_tensor" => {
                let (storage, offset, shape) = (tensor(arg(0)?)?, number(arg(1)?)?, numbers(arg(2)?)?);
                let offset = usize::try_from(offset).map_err(|_| error(format!("{offset} is no offset")))?;
                let dtype = call.attrs.dtype("dtype").unwrap_or(DataType::float(32));
                Ok(storage.view(&shape, dtype, offset)?.into())
            }
            "vm.reshape_tensor" => Ok(tensor(arg(0)?)?.reshape(&numbers(arg(1)?)?)?.into()),
            _ => {
                let inputs = self.given(arg(1)?)?;
                let made = self.kernel_value(arg(0)?, inputs)?;
                let (mut results, mut outputs) = (Vec::new(), Vec::new());
                tensors(&made, &mut results)?;
                tensors(arg(2)?, &mut outputs)?;
                if results.len() != outputs.len() {
                    return Err(error(format!("{name}: {} results have {} places", results.len(), outputs.len())));
                }
                for (result, output) in results.iter().zip(&outputs) {
                    if name == "vm.shape_func" {
                        let bytes: Vec<u8> = result.shape().iter().flat_map(|dim| dim.to_ne_bytes()).collect();
                        output.copy_from_bytes(&bytes)?;
                    } else if (result.shape(), result.dtype()) != (output.shape(), output.dtype()) {
                        return Err(error(format!("{name}: {result:?} does not fit its place {output:?}")));
                    } else {
                        output.copy_from_bytes(&result.to_bytes()?)?;
                    }
                }
                Ok(Adt::tuple(Vec::new()).into())
            }
        }
    }

    fn given(&self, inputs: &Any) -> Result<Vec<Any>, Error> {
        let count = inputs.downcast_ref::<Adt>().map(|adt| adt.fields.len());
        let count = count.ok_or_else(|| error("the inputs of a kernel are a tuple"))?;
        (0..count).map(|i| field(inputs, i as i64)).collect()
    }

    /// What a kernel computes, before it is written to its place.
    fn kernel_value(&mut self, kernel: &Any, inputs: Vec<Any>) -> Result<Any, Error> {
        let closure = kernel.downcast_ref::<super::InterpretedFunction>();
        let closure = closure.cloned().ok_or_else(|| error("a kernel is a function"))?;
        match &closure.function {
            super::Callable::Function(function) => self.call(function, inputs),
            super::Callable::Constructor(c) => Err(error(format!("{} is no kernel", c.name))),
        }
    }
}
