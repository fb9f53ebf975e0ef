//! Builtins as operations of the interpreter.
//!
//! Allocations, shape arithmetic and checks make up most of the instructions of a model, and nearly all their operands
//! are known when the program is linked: sizes, shapes, element types, codes. [`Plan::of`] reads them once; running a
//! plan then takes no arguments apart. An instruction whose operands do not allow a plan, or are wrong, stays a call of
//! the builtin, which does the same thing or says what is wrong. What a plan does is the builtin's own code.
//!
//! A plan that allocates keeps its last object in the stack it runs on. If nobody else holds the object when the
//! instruction comes by again, it is used again: a loop, and every call after the first, then takes no memory from
//! anywhere. Objects above [`MAX_KEPT_BYTES`] go back to their allocator instead, which other instructions and other
//! machines share.

use std::sync::atomic::{Ordering, fence};

use relaxide_ffi::{Any, AnyView, DataType, Error, FromAny, Handle, ObjectRef, Shape};
use relaxide_runtime::memory::{ShapeHeap, Storage};

use super::Vm;
use super::program::Operand;
use crate::builtins::{self, Builtin, Coded};

/// Objects that a stack keeps are at most this large.
const MAX_KEPT_BYTES: usize = 1 << 18;

/// A builtin with operands that are known.
pub(super) enum Plan {
    /// Memory of a known size.
    Storage { device: i64, bytes: usize },
    /// A tensor of a known shape and type in a storage.
    Tensor { storage: Operand, offset: usize, shape: Shape, dtype: DataType },
    /// A shape heap of a known size.
    Heap { size: usize },
    /// A check of a tensor's rank and type.
    CheckTensor { value: Operand, ndim: i64, dtype: Option<DataType>, context: Operand },
    /// A match of dimensions with known codes.
    MatchShape { input: Operand, heap: Operand, codes: Box<[Coded]>, context: Operand },
    /// A shape from known codes.
    MakeShape { heap: Operand, codes: Box<[Coded]> },
}

/// What plans keep from one time to the next, by the number of the plan.
pub(super) type Kept = Vec<Any>;

/// The constant that an operand names, as a Rust value.
fn constant<T: FromAny>(operand: Operand, constants: &[Any]) -> Option<T> {
    let Operand::Constant(index) = operand else { return None };
    constants.get(index as usize)?.to().ok()
}

fn immediate(operand: &Operand) -> Option<i64> {
    if let Operand::Immediate(value) = operand { Some(*value) } else { None }
}

/// Pairs of immediates; as many as the count in front says.
fn codes(count: i64, operands: &[Operand]) -> Option<Box<[Coded]>> {
    let (pairs, rest) = operands.as_chunks::<2>();
    let codes =
        pairs.iter().map(|[code, reg]| Some((immediate(code)?, immediate(reg)?))).collect::<Option<Box<_>>>()?;
    (rest.is_empty() && usize::try_from(count) == Ok(codes.len())).then_some(codes)
}

impl Plan {
    /// The plan of a call, if its operands allow one.
    pub(super) fn of(builtin: &Builtin, operands: &[Operand], constants: &[Any]) -> Option<Self> {
        match builtin.name {
            builtins::ALLOC_STORAGE => Self::storage(operands, constants),
            builtins::ALLOC_TENSOR => Self::tensor(operands, constants),
            builtins::ALLOC_SHAPE_HEAP => Self::heap(operands),
            builtins::CHECK_TENSOR => Self::check_tensor(operands, constants),
            builtins::MATCH_SHAPE => Self::match_shape(operands),
            builtins::MAKE_SHAPE => Self::make_shape(operands),
            _ => None,
        }
    }

    fn storage(operands: &[Operand], constants: &[Any]) -> Option<Self> {
        let [Operand::Machine, size, Operand::Immediate(device), dtype, scope] = *operands else { return None };
        let bytes = builtins::storage_bytes(&constant::<Shape>(size, constants)?, constant(dtype, constants)?)?;
        let scope: String = constant(scope, constants)?;
        builtins::is_plain_scope(&scope).then_some(Self::Storage { device, bytes })
    }

    fn tensor(operands: &[Operand], constants: &[Any]) -> Option<Self> {
        let [storage, Operand::Immediate(offset), shape, dtype, ..] = *operands else { return None };
        let (shape, dtype) = (constant(shape, constants)?, constant(dtype, constants)?);
        Some(Self::Tensor { storage, offset: usize::try_from(offset).ok()?, shape, dtype })
    }

    fn heap(operands: &[Operand]) -> Option<Self> {
        let [Operand::Machine, Operand::Immediate(size)] = *operands else { return None };
        let size = usize::try_from(size).ok().filter(|size| *size <= builtins::MAX_HEAP)?;
        Some(Self::Heap { size })
    }

    fn check_tensor(operands: &[Operand], constants: &[Any]) -> Option<Self> {
        match *operands {
            [value, Operand::Immediate(ndim), context] => Some(Self::CheckTensor { value, ndim, dtype: None, context }),
            [value, Operand::Immediate(ndim), dtype, context] => {
                let dtype = Some(constant(dtype, constants)?);
                Some(Self::CheckTensor { value, ndim, dtype, context })
            }
            _ => None,
        }
    }

    fn match_shape(operands: &[Operand]) -> Option<Self> {
        let [input, heap, Operand::Immediate(count), rest @ .., context] = operands else { return None };
        let codes = codes(*count, rest)?;
        Some(Self::MatchShape { input: *input, heap: *heap, codes, context: *context })
    }

    fn make_shape(operands: &[Operand]) -> Option<Self> {
        let [heap, Operand::Immediate(count), rest @ ..] = operands else { return None };
        Some(Self::MakeShape { heap: *heap, codes: codes(*count, rest)? })
    }

    /// Runs the plan. `view` reads an operand; `kept` is the plan's own place, if the stack has one.
    #[inline]
    pub(super) fn run<'a>(
        &self,
        vm: &Vm,
        view: impl Fn(Operand) -> AnyView<'a>,
        kept: Option<&mut Any>,
    ) -> Result<Any, Error> {
        match self {
            Self::Storage { device, bytes } => storage_again(vm, *device, *bytes, kept),
            Self::Tensor { storage, offset, shape, dtype } => {
                let storage = view(*storage);
                let mismatch =
                    || Error::type_mismatch("vm.Storage", storage.type_key()).context(builtins::ALLOC_TENSOR);
                let storage = storage.downcast_ref::<Storage>().ok_or_else(mismatch)?;
                Storage::tensor(storage, *offset, shape, *dtype).map(Any::from)
            }
            Self::Heap { size } => heap_again(*size, kept),
            Self::CheckTensor { value, ndim, dtype, context } => {
                builtins::tensor_info(view(*value), *ndim, *dtype, view(*context)).map(Any::from)
            }
            Self::MatchShape { input, heap, codes, context } => {
                let coded = |dim: usize| Ok(codes.get(dim).copied().unwrap_or_default());
                builtins::match_dims(view(*input), view(*heap), codes.len(), coded, view(*context)).map(Any::from)
            }
            Self::MakeShape { heap, codes } => {
                let coded = |dim: usize| Ok(codes.get(dim).copied().unwrap_or_default());
                builtins::make_dims(view(*heap), codes.len(), coded).map(Any::from)
            }
        }
    }
}

/// The storage of last time if nobody else has it, else a new one.
fn storage_again(vm: &Vm, device: i64, bytes: usize, kept: Option<&mut Any>) -> Result<Any, Error> {
    let Some(kept) = kept.filter(|_| bytes <= MAX_KEPT_BYTES) else { return vm.allocate(device, bytes) };
    match kept.downcast_ref::<Storage>() {
        Some(storage) if is_unshared(storage.as_object()) => Ok(kept.clone()),
        Some(_) => vm.allocate(device, bytes),
        None => {
            *kept = vm.allocate(device, bytes)?;
            Ok(kept.clone())
        }
    }
}

/// The heap of last time, cleared, if nobody else has it, else a new one.
fn heap_again(size: usize, kept: Option<&mut Any>) -> Result<Any, Error> {
    let Some(kept) = kept else { return ShapeHeap::allocate(size).map(Any::from) };
    match kept.as_view().as_tensor() {
        Some(tensor) if is_unshared(tensor.as_object()) => {
            ShapeHeap::new(tensor)?.clear();
            Ok(kept.clone())
        }
        Some(_) => ShapeHeap::allocate(size).map(Any::from),
        None => {
            *kept = ShapeHeap::allocate(size)?.into();
            Ok(kept.clone())
        }
    }
}

/// Whether a stack is the only one that holds an object. Then nobody can take another reference meanwhile.
fn is_unshared(object: &ObjectRef) -> bool {
    let alone = object.header().strong_count() == 1;
    // What others did to the memory before they let go of it has happened.
    fence(Ordering::Acquire);
    alone
}
