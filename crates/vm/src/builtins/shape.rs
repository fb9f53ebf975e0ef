//! Shapes as values, and the heap of symbolic dimensions.
//!
//! A function with symbolic shapes keeps their values in a small tensor of `int64`, the shape heap: `match_shape` checks
//! a shape against what is known and stores what is new, compiled code computes derived values, and `make_shape` reads
//! them back.

use relaxide_ffi::{Any, AnyView, DataType, Error, ErrorKind, Shape, Tensor};
use relaxide_runtime::memory::ShapeHeap;

use super::{Args, Builtin, check};
use crate::machine::Vm;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::with_vm("vm.builtin.alloc_shape_heap", alloc_shape_heap),
    Builtin::plain("vm.builtin.match_shape", match_shape),
    Builtin::plain("vm.builtin.match_prim_value", match_prim_value),
    Builtin::plain("vm.builtin.make_shape", make_shape),
    Builtin::plain("vm.builtin.make_prim_value", make_prim_value),
    Builtin::plain("vm.builtin.shape_of", shape_of),
    Builtin::plain("vm.builtin.tensor_to_shape", tensor_to_shape),
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
const MAX_HEAP: usize = 1 << 20;

/// `(vm, size)`.
fn alloc_shape_heap(_vm: &Vm, args: &Args<'_, '_>) -> Result<Any, Error> {
    let size = args.index(1, "size")?;
    if size > MAX_HEAP {
        return Err(args.error(ErrorKind::ValueError, format_args!("{size} values, where {MAX_HEAP} are possible")));
    }
    ShapeHeap::allocate(size).map(Any::from)
}

/// The heap in an argument; `None` if the program has none.
#[inline]
fn heap<'a>(args: &Args<'_, '_>, index: usize, view: &'a AnyView<'_>) -> Result<Option<ShapeHeap<'a>>, Error> {
    match view.as_tensor() {
        Some(tensor) => ShapeHeap::new(tensor).map(Some),
        None if view.is_none() => Ok(None),
        None => args.get::<Tensor>(index, "heap").map(|_| None),
    }
}

fn no_heap(args: &Args<'_, '_>) -> Error {
    args.error(ErrorKind::ValueError, format_args!("a value is stored or loaded and there is no shape heap"))
}

/// Runs `with` on the dimensions of a tensor or a shape.
fn with_dims<T>(value: AnyView<'_>, with: impl FnOnce(&[i64]) -> Result<T, Error>) -> Result<T, Error> {
    match (value.as_tensor(), value.as_shape()) {
        (Some(tensor), _) => with(tensor.shape()),
        (None, Some(shape)) => with(shape),
        (None, None) => with(&value.to::<Shape>()?),
    }
}

/// `(input, heap, size, (code, reg) × size, context)`.
fn match_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let heap_view = args.view(1, "heap")?;
    let heap = heap(args, 1, &heap_view)?;
    let size = args.index(2, "size")?;
    let at = size.checked_mul(2).and_then(|n| n.checked_add(3)).unwrap_or(usize::MAX);
    args.expect_len(at, at.saturating_add(1))?;
    with_dims(args.view(0, "input")?, |dims| {
        if dims.len() != size {
            let message = format!("{} match_cast shape size mismatch.", check::context(args, at));
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
        for (dim, found) in dims.iter().enumerate() {
            let (code, reg) = (args.get::<i64>(3 + dim * 2, "code")?, args.get::<i64>(4 + dim * 2, "reg")?);
            let what = format_args!(" shape[{dim}]");
            match_value(args, heap.as_ref(), (code, reg), *found, at, what)?;
        }
        Ok(Any::none())
    })
}

/// `(input, heap, code, reg, context)`.
fn match_prim_value(args: &Args<'_, '_>) -> Result<Any, Error> {
    let heap_view = args.view(1, "heap")?;
    let heap = heap(args, 1, &heap_view)?;
    let (found, code, reg) = (args.get(0, "input")?, args.get(2, "code")?, args.get(3, "reg")?);
    match_value(args, heap.as_ref(), (code, reg), found, 4, format_args!(" PrimExpr"))?;
    Ok(Any::none())
}

/// Does to one value what its code says.
#[inline]
fn match_value(
    args: &Args<'_, '_>,
    heap: Option<&ShapeHeap<'_>>,
    (code, reg): (i64, i64),
    found: i64,
    context_at: usize,
    what: std::fmt::Arguments<'_>,
) -> Result<(), Error> {
    let mismatch = |with: &str| {
        let context = check::context(args, context_at);
        Error::new(ErrorKind::RuntimeError, format!("{context} match_cast error, {what} mismatch to {with}."))
    };
    match code {
        match_code::EQUAL_TO_IMMEDIATE if found == reg => Ok(()),
        match_code::EQUAL_TO_IMMEDIATE => Err(mismatch("specified constant")),
        match_code::STORE => heap.ok_or_else(|| no_heap(args))?.set(reg, found),
        match_code::NOTHING => Ok(()),
        match_code::EQUAL_TO_STORED if heap.ok_or_else(|| no_heap(args))?.get(reg)? == found => Ok(()),
        match_code::EQUAL_TO_STORED => Err(mismatch("a previous populated value")),
        _ => Err(args.error(ErrorKind::ValueError, format_args!("there is no code {code}"))),
    }
}

fn load(args: &Args<'_, '_>, heap: Option<&ShapeHeap<'_>>, code: i64, reg: i64) -> Result<i64, Error> {
    match code {
        make_code::IMMEDIATE => Ok(reg),
        make_code::LOAD => heap.ok_or_else(|| no_heap(args))?.get(reg),
        _ => Err(args.error(ErrorKind::ValueError, format_args!("there is no code {code}"))),
    }
}

/// `(heap, size, (code, reg) × size)`.
fn make_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let heap_view = args.view(0, "heap")?;
    let heap = heap(args, 0, &heap_view)?;
    let size = args.index(1, "size")?;
    let len = size.checked_mul(2).and_then(|n| n.checked_add(2)).unwrap_or(usize::MAX);
    args.expect_len(len, len)?;
    let dim = |index: usize| {
        let (code, reg) = (args.get(2 + index * 2, "code")?, args.get(3 + index * 2, "reg")?);
        load(args, heap.as_ref(), code, reg)
    };
    const INLINE: usize = 8;
    if size <= INLINE {
        let mut dims = [0; INLINE];
        for (index, place) in dims.iter_mut().enumerate().take(size) {
            *place = dim(index)?;
        }
        return Ok(Shape::new(dims.get(..size).unwrap_or_default()).into());
    }
    Ok(Shape::from((0..size).map(dim).collect::<Result<Vec<_>, _>>()?).into())
}

/// `(heap, code, reg)`.
fn make_prim_value(args: &Args<'_, '_>) -> Result<Any, Error> {
    let heap_view = args.view(0, "heap")?;
    let heap = heap(args, 0, &heap_view)?;
    load(args, heap.as_ref(), args.get(1, "code")?, args.get(2, "reg")?).map(Any::from)
}

/// `(x)`.
fn shape_of(args: &Args<'_, '_>) -> Result<Any, Error> {
    Ok(Shape::new(args.get::<Tensor>(0, "x")?.shape()).into())
}

/// `(x)`: a tensor of integers of rank one.
fn tensor_to_shape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let tensor: Tensor = args.get(0, "x")?;
    if tensor.ndim() != 1 {
        return Err(args.error(ErrorKind::ValueError, format_args!("{tensor:?} is not of rank 1")));
    }
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

/// `(x, shape)`: a view.
fn reshape(args: &Args<'_, '_>) -> Result<Any, Error> {
    let (tensor, shape): (Tensor, Shape) = (args.get(0, "x")?, args.get(1, "shape")?);
    tensor.reshape(&shape).map(Any::from).map_err(|error| error.context("vm.builtin.reshape"))
}
