//! Shapes as values, and the heap of symbolic dimensions.
//!
//! A function with symbolic shapes keeps their values in a small tensor of `int64`, the shape heap: `match_shape` checks
//! a shape against what is known and stores what is new, compiled code computes derived values, and `make_shape` reads
//! them back.

use relaxide_ffi::{Any, AnyView, DataType, Error, ErrorKind, Shape, Tensor};
use relaxide_runtime::device;
use relaxide_runtime::memory::{ShapeHeap, Storage};

use super::{Args, Builtin, mismatch};
use crate::host::{HOST_DEVICE, Host};

/// The interpreter knows these four: with operands that are known, as nearly always, they are operations of its own.
pub(crate) const ALLOC_SHAPE_HEAP: &str = "vm.builtin.alloc_shape_heap";
/// See [`ALLOC_SHAPE_HEAP`].
pub(crate) const MATCH_SHAPE: &str = "vm.builtin.match_shape";
/// See [`ALLOC_SHAPE_HEAP`].
pub(crate) const MAKE_SHAPE: &str = "vm.builtin.make_shape";
/// See [`ALLOC_SHAPE_HEAP`].
pub(crate) const SHAPE_OF: &str = "vm.builtin.shape_of";

pub(super) const TABLE: &[Builtin] = &[
    Builtin::with_host(ALLOC_SHAPE_HEAP, alloc_shape_heap),
    Builtin::plain(MATCH_SHAPE, match_shape),
    Builtin::plain("vm.builtin.match_prim_value", match_prim_value),
    Builtin::plain(MAKE_SHAPE, make_shape),
    Builtin::plain("vm.builtin.make_prim_value", make_prim_value),
    Builtin::plain(SHAPE_OF, shape_of),
    Builtin::plain("vm.builtin.tensor_to_shape", tensor_to_shape),
    Builtin::plain("relax.run.shape_to_tensor", shape_to_tensor),
    Builtin::plain("vm.builtin.reshape", reshape),
];

/// What `match_shape` does with a dimension.
mod match_code {
    pub(super) const EQUAL_TO_IMMEDIATE: i64 = 0;
    pub(super) const STORE: i64 = 1;
    pub(super) const NOTHING: i64 = 2;
    pub(super) const EQUAL_TO_STORED: i64 = 3;
}

/// Where `make_shape` takes a dimension from.
mod make_code {
    pub(super) const IMMEDIATE: i64 = 0;
    pub(super) const LOAD: i64 = 1;
}

/// The largest heap: a function has a handful of symbolic values.
pub(crate) const MAX_HEAP: usize = 1 << 16;

/// `(vm, size)`.
fn alloc_shape_heap(host: &dyn Host, args: &Args<'_, '_>) -> Result<Any, Error> {
    let size = args.index(1, "size")?;
    if size > MAX_HEAP {
        return Err(args.error(ErrorKind::ValueError, format_args!("{size} values, where {MAX_HEAP} are possible")));
    }
    // From the host's allocator, so that it counts where memory is limited.
    let storage = Storage::new(host.buffer(HOST_DEVICE, size * size_of::<i64>())?);
    let heap = Storage::tensor(&storage, 0, &[size as i64], DataType::int(64))?;
    ShapeHeap::new(&heap)?.clear();
    Ok(heap.into())
}

/// The heap in a value; `None` if the program has none.
#[inline]
fn heap_in<'a>(view: &'a AnyView<'_>) -> Result<Option<ShapeHeap<'a>>, Error> {
    match view.as_tensor() {
        Some(tensor) => ShapeHeap::new(tensor).map(Some),
        None if view.is_none() => Ok(None),
        None => Err(Error::type_mismatch("a shape heap", view.type_key())),
    }
}

#[cold]
fn no_heap() -> Error {
    Error::new(ErrorKind::ValueError, "a symbolic value is stored or loaded and there is no shape heap")
}

#[cold]
fn no_code(code: i64) -> Error {
    Error::new(ErrorKind::ValueError, format!("there is no code {code} for a symbolic value"))
}

/// Runs `with` on the dimensions of a tensor, also a bare one, or a shape.
#[inline]
fn with_dims<T>(value: AnyView<'_>, with: impl FnOnce(&[i64]) -> Result<T, Error>) -> Result<T, Error> {
    match (value.dims_and_dtype(), value.as_shape()) {
        (Some((dims, _)), _) => with(dims),
        (None, Some(shape)) => with(shape),
        (None, None) => with(&value.to::<Shape>()?),
    }
}

/// What is to be done with one value: a code, and what it needs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coded {
    pub(crate) code: i64,
    /// An immediate, or a place in the heap.
    pub(crate) operand: i64,
}

impl Coded {
    /// The two arguments from a position on.
    fn of(args: &Args<'_, '_>, at: usize) -> Result<Coded, Error> {
        Ok(Coded { code: args.get(at, "code")?, operand: args.get(at + 1, "reg")? })
    }
}

/// `(input, heap, size, (code, reg) × size, context)`.
fn match_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let size = args.index(2, "size")?;
    let at = size.checked_mul(2).and_then(|n| n.checked_add(3)).unwrap_or(usize::MAX);
    args.expect_len(at, at.saturating_add(1))?;
    let coded = |dim: usize| Coded::of(args, 3 + dim * 2);
    let context = args.view(at, "context").unwrap_or(AnyView::none());
    match_dims(args.view(0, "input")?, args.view(1, "heap")?, size, coded, context)?;
    Ok(Any::none())
}

/// Matches the dimensions of a tensor or a shape; `coded` says what is done with each.
#[inline]
pub(crate) fn match_dims(
    input: AnyView<'_>,
    heap: AnyView<'_>,
    size: usize,
    coded: impl Fn(usize) -> Result<Coded, Error>,
    context: AnyView<'_>,
) -> Result<(), Error> {
    let heap = heap_in(&heap)?;
    with_dims(input, |dims| {
        if dims.len() != size {
            return Err(mismatch::rank(context, dims.len(), size));
        }
        for (dim, found) in dims.iter().enumerate() {
            match_value(heap.as_ref(), coded(dim)?, *found, |expected| {
                mismatch::dimension(context, dims, dim, expected)
            })?;
        }
        Ok(())
    })
}

/// `(input, heap, code, reg, context)`.
fn match_prim_value(args: &Args<'_, '_>) -> Result<Any, Error> {
    let heap = args.view(1, "heap")?;
    let coded = Coded::of(args, 2)?;
    let context = args.view(4, "context").unwrap_or(AnyView::none());
    let found = args.get(0, "input")?;
    match_value(heap_in(&heap)?.as_ref(), coded, found, |expected| mismatch::number(context, found, expected))?;
    Ok(Any::none())
}

/// Does to one value what its code says; `otherwise` makes the error where it is not what is expected.
#[inline]
fn match_value(
    heap: Option<&ShapeHeap<'_>>,
    coded: Coded,
    found: i64,
    otherwise: impl FnOnce(i64) -> Error,
) -> Result<(), Error> {
    let Coded { code, operand } = coded;
    match code {
        match_code::EQUAL_TO_IMMEDIATE if found == operand => Ok(()),
        match_code::EQUAL_TO_IMMEDIATE => Err(otherwise(operand)),
        match_code::STORE => heap.ok_or_else(no_heap)?.set(operand, found),
        match_code::NOTHING => Ok(()),
        match_code::EQUAL_TO_STORED => {
            let stored = heap.ok_or_else(no_heap)?.get(operand)?;
            if stored == found { Ok(()) } else { Err(otherwise(stored)) }
        }
        _ => Err(no_code(code)),
    }
}

#[inline]
fn load(heap: Option<&ShapeHeap<'_>>, coded: Coded) -> Result<i64, Error> {
    match coded.code {
        make_code::IMMEDIATE => Ok(coded.operand),
        make_code::LOAD => heap.ok_or_else(no_heap)?.get(coded.operand),
        _ => Err(no_code(coded.code)),
    }
}

/// `(heap, size, (code, reg) × size)`.
fn make_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let size = args.index(1, "size")?;
    let len = size.checked_mul(2).and_then(|n| n.checked_add(2)).unwrap_or(usize::MAX);
    args.expect_len(len, len)?;
    let coded = |dim: usize| Coded::of(args, 2 + dim * 2);
    let codes = (0..size).map(coded).collect::<Result<Vec<Coded>, Error>>()?;
    with_made_dims(args.view(0, "heap")?, &codes, |dims| Ok(Shape::new(dims).into()))
}

/// Runs `with` on the dimensions that codes describe.
#[inline]
pub(crate) fn with_made_dims<T>(
    heap: AnyView<'_>,
    codes: &[Coded],
    with: impl FnOnce(&[i64]) -> Result<T, Error>,
) -> Result<T, Error> {
    const INLINE: usize = 8;
    let heap = heap_in(&heap)?;
    if codes.len() > INLINE {
        let dims = codes.iter().map(|code| load(heap.as_ref(), *code)).collect::<Result<Vec<_>, _>>()?;
        return with(&dims);
    }
    let mut dims = [0; INLINE];
    for (place, code) in dims.iter_mut().zip(codes) {
        *place = load(heap.as_ref(), *code)?;
    }
    with(dims.get(..codes.len()).unwrap_or_default())
}

/// Whether dimensions are those that codes describe. An error among them is for [`with_made_dims`] to tell.
#[inline]
pub(crate) fn are_made_dims(heap: AnyView<'_>, codes: &[Coded], dims: &[i64]) -> bool {
    let Ok(heap) = heap_in(&heap) else { return false };
    let is_made = |(code, dim): (&Coded, &i64)| load(heap.as_ref(), *code).is_ok_and(|made| made == *dim);
    codes.len() == dims.len() && codes.iter().zip(dims).all(is_made)
}

/// `(heap, code, reg)`.
fn make_prim_value(args: &Args<'_, '_>) -> Result<Any, Error> {
    let heap = args.view(0, "heap")?;
    load(heap_in(&heap)?.as_ref(), Coded::of(args, 1)?).map(Any::from)
}

/// `(x)`.
fn shape_of(args: &Args<'_, '_>) -> Result<Any, Error> {
    match args.view(0, "x")?.dims_and_dtype() {
        Some((dims, _)) => Ok(Shape::new(dims).into()),
        None => Ok(Shape::new(args.get::<Tensor>(0, "x")?.shape()).into()),
    }
}

/// `(shape)`: its dimensions as a tensor.
fn shape_to_tensor(args: &Args<'_, '_>) -> Result<Any, Error> {
    let shape: Shape = args.get(0, "shape")?;
    let dims = shape.to_vec();
    Ok(Tensor::from_slice(&dims, &[dims.len() as i64])?.into())
}

/// `(x)`: a tensor of integers of rank one.
fn tensor_to_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let tensor: Tensor = args.get(0, "x")?;
    if tensor.ndim() != 1 {
        return Err(args.error(ErrorKind::ValueError, format_args!("{tensor:?} is not of rank 1")));
    }
    let tensor = device::on_host(&tensor)?;
    let dims = match tensor.dtype() {
        DataType { code: DataType::INT, bits: 64, lanes: 1 } => tensor.to_vec::<i64>()?,
        DataType { code: DataType::INT, bits: 32, lanes: 1 } => {
            tensor.to_vec::<i32>()?.into_iter().map(i64::from).collect()
        }
        DataType { code: DataType::INT, bits: 16, lanes: 1 } => {
            tensor.to_vec::<i16>()?.into_iter().map(i64::from).collect()
        }
        DataType { code: DataType::INT, bits: 8, lanes: 1 } => {
            tensor.to_vec::<i8>()?.into_iter().map(i64::from).collect()
        }
        _ => return Err(args.error(ErrorKind::TypeError, format_args!("{tensor:?} does not hold integers"))),
    };
    Ok(Shape::from(dims).into())
}

/// `(x, shape)`: a view, of the first elements where the shape has fewer.
fn reshape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let (tensor, shape): (Tensor, Shape) = (args.get(0, "x")?, args.get(1, "shape")?);
    tensor.view(&shape, tensor.dtype(), 0).map(Any::from).map_err(|error| error.context("vm.builtin.reshape"))
}
