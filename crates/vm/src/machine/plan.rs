//! Builtins as operations of the interpreter.
//!
//! Allocations, shape arithmetic and checks make up most of the instructions of a model, and nearly all their operands
//! are known when the program is linked: sizes, shapes, element types, codes. [`BuiltinKind::of`] reads them once; running a
//! plan then takes no arguments apart. An instruction whose operands do not allow a plan, or are wrong, stays a call of
//! the builtin, which does the same thing or says what is wrong. What a plan does is the builtin's own code.
//!
//! Objects that a plan made come back to it when the program is done with them ([`slots`](super::allocation_cache)), where its register
//! holds nothing else (the plan is its *sole writer*, as [`resolve`](super::resolve) finds out). Where it may hold something else, the slot shares
//! the object with the program and asks later whether the program has let go of it.

use relaxide_ffi::{Any, AnyView, DataType, Error, FromAny, Shape, Tensor};
use relaxide_runtime::memory::{ShapeHeap, Storage};

use super::Vm;
use super::allocation_cache::{AllocationCache, MAX_OBJECT_BYTES, is_unshared};
use super::program::{Operand, constant_at};
use crate::builtins::{self, Builtin, Coded};
use crate::host::Host;

/// Where operands are read.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) vm: &'a Vm,
    pub(super) registers: &'a [Any],
}

impl<'a> Source<'a> {
    #[inline]
    pub(super) fn view(self, operand: Operand) -> AnyView<'a> {
        self.vm.view(self.registers, operand)
    }
}

/// Where dimensions come from.
#[derive(Clone, Debug)]
pub(super) enum Dims {
    Known(Shape),
    /// A shape.
    Value(Operand),
    /// The dimensions of a tensor.
    OfTensor(Operand),
    /// Immediates and places of a heap.
    Codes {
        heap: Operand,
        codes: Box<[Coded]>,
    },
}

/// The bytes of a storage.
#[derive(Clone, Debug)]
pub(super) enum Size {
    Known(usize),
    Elements(Dims, DataType),
}

/// What a plan does.
#[derive(Debug)]
pub(super) enum BuiltinKind {
    /// Memory. `aliases` are the plans of the tensors in it that have registers of their own.
    Storage { device: i64, size: Size, aliases: Vec<u32> },
    /// A tensor in a storage. `storage_plan` is the plan of the storage, if both have registers of their own.
    Tensor { storage: Operand, offset: usize, dims: Dims, dtype: DataType, storage_plan: Option<u32> },
    /// A tensor in a storage of its own.
    Alone { device: i64, size: Size, offset: usize, dims: Dims, dtype: DataType },
    /// A shape heap.
    Heap { size: usize },
    /// A shape.
    Shape { dims: Dims },
    /// A check of a tensor's rank and type.
    CheckTensor { value: Operand, ndim: i64, dtype: Option<DataType>, context: Operand },
    /// A match of dimensions.
    MatchShape { input: Operand, heap: Operand, codes: Box<[Coded]>, context: Operand },
}

/// A builtin with operands that are known.
#[derive(Debug)]
pub(super) struct DecodedBuiltin {
    pub(super) kind: BuiltinKind,
    /// Whether its register holds nothing but what the plan makes.
    pub(super) has_own_register: bool,
}

/// The constant that an operand names, as a Rust value.
fn constant<T: FromAny>(operand: Operand, constants: &[Any]) -> Option<T> {
    constant_at(constants, operand)?.to().ok()
}

fn immediate(operand: &Operand) -> Option<i64> {
    if let Operand::Immediate(value) = operand { Some(*value) } else { None }
}

/// Pairs of immediates; as many as the count in front says.
fn codes(count: i64, operands: &[Operand]) -> Option<Box<[Coded]>> {
    let (pairs, rest) = operands.as_chunks::<2>();
    let coded = |[code, operand]: &[Operand; 2]| Some(Coded { code: immediate(code)?, operand: immediate(operand)? });
    let codes = pairs.iter().map(coded).collect::<Option<Box<_>>>()?;
    (rest.is_empty() && usize::try_from(count) == Ok(codes.len())).then_some(codes)
}

impl BuiltinKind {
    /// The plan of a call, if its operands allow one.
    pub(super) fn of(builtin: &Builtin, operands: &[Operand], constants: &[Any]) -> Option<Self> {
        match builtin.name {
            builtins::ALLOC_STORAGE => Self::storage(operands, constants),
            builtins::ALLOC_TENSOR => Self::tensor(operands, constants),
            builtins::ALLOC_SHAPE_HEAP => Self::heap(operands),
            builtins::CHECK_TENSOR => Self::check_tensor(operands, constants),
            builtins::MATCH_SHAPE => Self::match_shape(operands),
            builtins::MAKE_SHAPE => Self::make_shape(operands),
            builtins::SHAPE_OF => match *operands {
                [tensor] => Some(Self::Shape { dims: Dims::OfTensor(tensor) }),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it makes an object that can be used again.
    pub(super) fn makes(&self) -> bool {
        !matches!(self, Self::CheckTensor { .. } | Self::MatchShape { .. })
    }

    fn storage(operands: &[Operand], constants: &[Any]) -> Option<Self> {
        let [Operand::Machine, size, Operand::Immediate(device), dtype, scope] = *operands else { return None };
        let dtype = constant(dtype, constants)?;
        let scope = constant_at(constants, scope)?.as_str()?;
        let size = match Dims::of(size, constants)? {
            Dims::Known(shape) => Size::Known(builtins::storage_bytes(&shape, dtype)?),
            dims => Size::Elements(dims, dtype),
        };
        builtins::is_plain_scope(scope).then_some(Self::Storage { device, size, aliases: Vec::new() })
    }

    fn tensor(operands: &[Operand], constants: &[Any]) -> Option<Self> {
        let [storage, Operand::Immediate(offset), shape, dtype, ..] = *operands else { return None };
        let (dims, dtype) = (Dims::of(shape, constants)?, constant(dtype, constants)?);
        Some(Self::Tensor { storage, offset: usize::try_from(offset).ok()?, dims, dtype, storage_plan: None })
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
        Some(Self::Shape { dims: Dims::Codes { heap: *heap, codes: codes(*count, rest)? } })
    }
}

impl Dims {
    fn of(operand: Operand, constants: &[Any]) -> Option<Self> {
        match operand {
            Operand::Register(_) => Some(Self::Value(operand)),
            _ => constant(operand, constants).map(Self::Known),
        }
    }

    /// Runs `with` on the dimensions; `what` names them in errors.
    #[inline]
    fn with<T>(&self, at: Source<'_>, what: &str, with: impl FnOnce(&[i64]) -> Result<T, Error>) -> Result<T, Error> {
        match self {
            Self::Known(shape) => with(shape),
            Self::Codes { heap, codes } => builtins::with_made_dims(at.view(*heap), codes, with),
            Self::Value(operand) => {
                let view = at.view(*operand);
                match view.as_shape() {
                    Some(shape) => with(shape),
                    None => with(&view.to::<Shape>().map_err(|error| error.context(what))?),
                }
            }
            Self::OfTensor(operand) => {
                let view = at.view(*operand);
                match view.as_tensor() {
                    Some(tensor) => with(tensor.shape()),
                    None => with(view.to::<Tensor>().map_err(|error| error.context(what))?.shape()),
                }
            }
        }
    }
}

impl Dims {
    /// Whether a tensor that the same plan made has these dimensions.
    #[inline]
    fn are_of(&self, at: Source<'_>, tensor: &Any) -> bool {
        let Some(found) = tensor.as_tensor().map(Tensor::shape) else { return false };
        match self {
            Self::Known(_) => true,
            Self::Codes { heap, codes } => builtins::are_made_dims(at.view(*heap), codes, found),
            _ => self.with(at, builtins::ALLOC_TENSOR, |shape| Ok(shape == found)).unwrap_or(false),
        }
    }
}

impl Size {
    #[inline]
    fn bytes(&self, at: Source<'_>) -> Result<usize, Error> {
        match self {
            Self::Known(bytes) => Ok(*bytes),
            Self::Elements(dims, dtype) => dims.with(at, "vm.builtin.alloc_storage: argument 1 (size)", |dims| {
                builtins::storage_bytes(dims, *dtype).ok_or_else(|| builtins::impossible_storage(dims, *dtype))
            }),
        }
    }
}

impl DecodedBuiltin {
    /// Makes the object of a plan that makes one, or does what another plan does. `index` is the plan's number.
    #[inline]
    pub(super) fn run(&self, index: u32, at: Source<'_>, cache: &mut AllocationCache) -> Result<Any, Error> {
        match &self.kind {
            BuiltinKind::Alone { device, size, offset, dims, dtype } => {
                if let Some(tensor) = self.again(index, cache, |tensor| dims.are_of(at, tensor)) {
                    return Ok(tensor);
                }
                dims.with(at, builtins::ALLOC_TENSOR, |shape| {
                    let bytes = size.bytes(at)?;
                    let storage = Storage::new(at.vm.buffer(*device, bytes)?);
                    let tensor = Storage::tensor(&storage, *offset, shape, *dtype)?;
                    Ok(self.made(index, cache, tensor.into(), bytes))
                })
            }
            BuiltinKind::Tensor { storage, offset, dims, dtype, storage_plan } => {
                let storage = at.view(*storage);
                let Some(storage) = storage.downcast_ref::<Storage>() else { return Err(no_storage(storage)) };
                if let Some(storage_plan) = *storage_plan
                    && let Some(tensor) = cache.take_alias(index, storage_plan, storage)
                    && dims.are_of(at, &tensor)
                {
                    return Ok(tensor);
                }
                dims.with(at, builtins::ALLOC_TENSOR, |shape| {
                    Storage::tensor(storage, *offset, shape, *dtype).map(Any::from)
                })
            }
            BuiltinKind::Storage { device, size, aliases } => {
                let bytes = size.bytes(at)?;
                self.storage(index, at, cache, *device, bytes, aliases)
            }
            BuiltinKind::Heap { size } => match self.again(index, cache, |_| true) {
                Some(heap) => {
                    if let Some(tensor) = heap.as_tensor() {
                        ShapeHeap::new(tensor)?.clear();
                    }
                    Ok(heap)
                }
                None => {
                    let heap = ShapeHeap::allocate(*size)?;
                    Ok(self.made(index, cache, heap.into(), size * size_of::<i64>()))
                }
            },
            BuiltinKind::Shape { dims } => dims.with(at, "vm.builtin.shape_of: argument 0 (x)", |shape| {
                let fits = |kept: &Any| kept.as_view().as_shape().is_some_and(|kept| kept.as_slice() == shape);
                if let Some(kept) = self.again(index, cache, fits) {
                    return Ok(kept);
                }
                Ok(self.made(index, cache, Shape::new(shape).into(), size_of_val(shape)))
            }),
            BuiltinKind::CheckTensor { value, ndim, dtype, context } => {
                builtins::tensor_info(at.view(*value), *ndim, *dtype, at.view(*context)).map(Any::from)
            }
            BuiltinKind::MatchShape { input, heap, codes, context } => {
                let coded = |dim: usize| Ok(codes.get(dim).copied().unwrap_or_default());
                builtins::match_dims(at.view(*input), at.view(*heap), codes.len(), coded, at.view(*context))
                    .map(Any::from)
            }
        }
    }

    /// The object of last time, if it is free and fits.
    #[inline]
    fn again(&self, index: u32, cache: &mut AllocationCache, fits: impl Fn(&Any) -> bool) -> Option<Any> {
        if self.has_own_register {
            return cache.take(index).filter(fits);
        }
        cache.peek(index).filter(|value| is_unshared(value) && fits(value)).cloned()
    }

    /// Passes a new object on. Where it will not come back, the slot shares it, unless it has one that somebody uses.
    fn made(&self, index: u32, cache: &mut AllocationCache, value: Any, bytes: usize) -> Any {
        if !self.has_own_register && cache.peek(index).is_none_or(is_unshared) {
            cache.clear(index);
            cache.give(index, value.clone(), bytes);
        }
        value
    }

    /// A storage: the one of last time, if only tensors refer to it that wait in their slots.
    fn storage(
        &self,
        index: u32,
        at: Source<'_>,
        cache: &mut AllocationCache,
        device: i64,
        bytes: usize,
        aliases: &[u32],
    ) -> Result<Any, Error> {
        if !self.has_own_register {
            let fits = |value: &Any| value.downcast_ref::<Storage>().is_some_and(|storage| has_room(storage, bytes));
            if let Some(storage) = self.again(index, cache, fits) {
                return Ok(storage);
            }
            let storage = Any::from(Storage::new(at.vm.buffer(device, bytes)?));
            return Ok(self.made(index, cache, storage, bytes));
        }
        if let Some(storage) = cache.take_storage(index, |storage| has_room(storage, bytes)) {
            return Ok(storage);
        }
        let storage = Any::from(Storage::new(at.vm.buffer(device, bytes)?));
        let place = storage.downcast_ref::<Storage>().filter(|_| bytes <= MAX_OBJECT_BYTES);
        cache.note_storage(index, place.map_or(0, |storage| storage.buffer().data() as usize), aliases);
        Ok(storage)
    }

    /// Takes a value back that the plan made and that the program needs no more.
    #[inline]
    pub(super) fn take_back(&self, index: u32, value: Any, cache: &mut AllocationCache) {
        match &self.kind {
            // It is asked for its references when it is used again.
            BuiltinKind::Storage { .. } => {
                let bytes = value.downcast_ref::<Storage>().map_or(usize::MAX, |storage| storage.buffer().bytes());
                if bytes <= MAX_OBJECT_BYTES && cache.peek(index).is_none() {
                    cache.give(index, value, bytes);
                }
            }
            BuiltinKind::Tensor { storage_plan: Some(storage_plan), offset, .. } => {
                cache.give_alias(index, *storage_plan, *offset, value);
            }
            _ if is_unshared(&value) => {
                let bytes = value.as_tensor().map_or(0, Tensor::byte_size);
                cache.give(index, value, bytes);
            }
            _ => {}
        }
    }
}

#[cold]
fn no_storage(found: AnyView<'_>) -> Error {
    Error::type_mismatch("vm.Storage", found.type_key()).context(builtins::ALLOC_TENSOR)
}

/// Whether a storage is large enough and not wastefully large.
#[inline]
fn has_room(storage: &Storage, bytes: usize) -> bool {
    let room = storage.buffer().bytes();
    room >= bytes && room / 4 <= bytes.max(1024)
}
