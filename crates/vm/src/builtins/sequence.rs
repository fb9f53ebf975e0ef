//! Sequences of values whose length a program computes: arrays that do not change.
//!
//! Positions may count from the end. A position, a size and an axis is an integer, or a tensor of one. What makes a sequence
//! longer or shorter copies its references, not its tensors.

use relaxide_ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, Shape, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.builtin.sequence_length", length),
    Builtin::plain("vm.builtin.sequence_at", at),
    Builtin::plain("vm.builtin.sequence_insert", insert),
    Builtin::plain("vm.builtin.sequence_erase", erase),
    Builtin::plain("vm.builtin.sequence_split", split),
    Builtin::plain("vm.builtin.sequence_concat", concat),
    Builtin::placed("vm.builtin.optional_has", has),
];

/// An integer, or the one that a tensor holds.
fn whole(args: &Args<'_, '_>, view: AnyView<'_>, name: &str) -> Result<i64, Error> {
    if let Some(value) = view.as_int() {
        return Ok(value);
    }
    match wholes(args, view, name)?[..] {
        [value] => Ok(value),
        ref many => Err(args.error(ErrorKind::ValueError, format_args!("{name} is {} numbers, not one", many.len()))),
    }
}

/// The integers that a tensor holds.
fn wholes(args: &Args<'_, '_>, view: AnyView<'_>, name: &str) -> Result<Vec<i64>, Error> {
    let tensor: Tensor = view.to()?;
    let bytes = device::on_host(&tensor)?.to_bytes()?;
    match (tensor.dtype().code, tensor.dtype().bits) {
        (DataType::INT, 64) => {
            Ok(bytes.chunks_exact(8).filter_map(|c| c.try_into().ok()).map(i64::from_le_bytes).collect())
        }
        (DataType::INT, 32) => {
            let words = bytes.chunks_exact(4).filter_map(|c| c.try_into().ok());
            Ok(words.map(|c| i64::from(i32::from_le_bytes(c))).collect())
        }
        _ => Err(args.error(ErrorKind::TypeError, format_args!("{name} is {}, not int32 or int64", tensor.dtype()))),
    }
}

/// A place among `count`, which may count from the end.
fn place(args: &Args<'_, '_>, position: i64, count: usize) -> Result<usize, Error> {
    let from_front = if position < 0 { position.saturating_add(count as i64) } else { position };
    let found = usize::try_from(from_front).ok().filter(|place| *place < count);
    found.ok_or_else(|| args.error(ErrorKind::IndexError, format_args!("position {position} is out of {count}")))
}

/// `(sequence)`: how many values there are, as a shape of one dimension.
fn length(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let sequence: Array = args.get(0, "sequence")?;
    Ok(Shape::new(&[sequence.len() as i64]).into())
}

/// `(sequence, position)`: one value.
fn at(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let sequence: Array = args.get(0, "sequence")?;
    let position = whole(args, args.view(1, "position")?, "position")?;
    let place = place(args, position, sequence.len())?;
    Ok(sequence.get(place).cloned().unwrap_or_else(Any::none))
}

/// `(sequence, value, position?)`: the sequence with a value more, at its end if no position is given.
fn insert(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 3)?;
    let sequence: Array = args.get(0, "sequence")?;
    let place = match args.rest(2).first() {
        Some(position) => {
            let position = whole(args, *position, "position")?;
            // Behind the last value is a place too.
            if position == sequence.len() as i64 { sequence.len() } else { place(args, position, sequence.len())? }
        }
        None => sequence.len(),
    };
    let mut values: Vec<Any> = sequence.iter().cloned().collect();
    values.insert(place, args.view(1, "value")?.to_owned());
    Ok(Array::from_vec(values).into())
}

/// `(sequence, position?)`: the sequence without a value, the last if no position is given.
fn erase(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 2)?;
    let sequence: Array = args.get(0, "sequence")?;
    let position = args.rest(1).first().map_or(Ok(-1), |position| whole(args, *position, "position"))?;
    let place = place(args, position, sequence.len())?;
    let mut values: Vec<Any> = sequence.iter().cloned().collect();
    values.remove(place);
    Ok(Array::from_vec(values).into())
}

/// A tensor as `outer × count × inner` bytes around an axis.
struct Around {
    outer: usize,
    count: usize,
    inner: usize,
}

fn around(shape: &[i64], axis: usize, width: usize) -> Around {
    let size = |dims: &[i64]| dims.iter().map(|d| usize::try_from(*d).unwrap_or(0)).product::<usize>();
    let (front, back) = shape.split_at(axis);
    Around { outer: size(front), count: size(&back[..1]), inner: size(&back[1..]) * width }
}

/// Refuses elements that share bytes.
fn bytes_of(args: &Args<'_, '_>, tensor: &Tensor) -> Result<Vec<u8>, Error> {
    if tensor.dtype().is_packed() {
        let dtype = tensor.dtype();
        return Err(args.error(ErrorKind::TypeError, format_args!("elements of {dtype} share bytes")));
    }
    device::on_host(tensor)?.to_bytes()
}

/// `(tensor, axis, sizes or None, keep)`: the parts of a tensor along an axis. One size holds for all parts but the last;
/// without sizes every part is one row, whose axis stays if `keep`.
fn split(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(4, 4)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let axis = place(args, whole(args, args.view(1, "axis")?, "axis")?, tensor.ndim())?;
    let sizes = args.view(2, "sizes")?;
    let keep: bool = args.get(3, "keep")?;
    let bytes = bytes_of(args, &tensor)?;
    let around = around(tensor.shape(), axis, tensor.dtype().bytes());
    let total = around.count as i64;
    let is_list = sizes.as_tensor().is_some_and(|t| t.ndim() == 1);
    let sizes: Vec<i64> = if is_list {
        wholes(args, sizes, "sizes")?
    } else {
        let size = if sizes.is_none() { 1 } else { whole(args, sizes, "sizes")? };
        if size < 1 {
            return Err(args.error(ErrorKind::ValueError, format_args!("parts have size {size}")));
        }
        (0..total).step_by(usize::try_from(size).unwrap_or(1)).map(|from| size.min(total - from)).collect()
    };
    let sum = sizes.iter().try_fold(0i64, |sum, size| sum.checked_add(*size).filter(|_| *size >= 0));
    if sum != Some(total) {
        return Err(args.error(ErrorKind::ValueError, format_args!("sizes {sizes:?} are no parts of {total}")));
    }
    let squeeze = !keep && args.view(2, "sizes")?.is_none();
    let mut parts = Vec::with_capacity(sizes.len());
    let mut from = 0;
    for size in sizes {
        let rows = usize::try_from(size).unwrap_or(0);
        let mut part = Vec::with_capacity(around.outer * rows * around.inner);
        for outer in 0..around.outer {
            let start = (outer * around.count + from) * around.inner;
            part.extend_from_slice(bytes.get(start..start + rows * around.inner).unwrap_or_default());
        }
        from += rows;
        let mut shape = tensor.shape().to_vec();
        if squeeze {
            shape.remove(axis);
        } else {
            shape[axis] = size
        }
        let part = Tensor::from_bytes(&part, &shape, tensor.dtype())?;
        parts.push(device::to_device(&part, tensor.device())?.into());
    }
    Ok(Array::from_vec(parts).into())
}

/// `(sequence, axis, new)`: the tensors of a sequence as one, along an axis of theirs or, if `new`, one more.
fn concat(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let sequence: Array = args.get(0, "sequence")?;
    let new: bool = args.get(2, "new")?;
    let tensors = sequence.iter().map(|v| v.as_view().to::<Tensor>()).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = tensors.first() else {
        return Err(args.error(ErrorKind::ValueError, format_args!("the sequence is empty")));
    };
    let rank = first.ndim() + usize::from(new);
    let axis = place(args, whole(args, args.view(1, "axis")?, "axis")?, rank)?;
    let shape_of = |tensor: &Tensor| {
        let mut shape = tensor.shape().to_vec();
        if new {
            shape.insert(axis.min(shape.len()), 1);
        }
        shape
    };
    let mut result = shape_of(first);
    let mut pieces = Vec::with_capacity(tensors.len());
    let mut count = 0;
    for (i, tensor) in tensors.iter().enumerate() {
        let shape = shape_of(tensor);
        let fits = shape.len() == rank && (0..rank).all(|a| a == axis || shape[a] == result[a]);
        if !fits || tensor.dtype() != first.dtype() {
            let message = format_args!("value {i} is {tensor:?}, which does not fit {first:?} along axis {axis}");
            return Err(args.error(ErrorKind::ValueError, message));
        }
        count += shape[axis];
        pieces.push((around(&shape, axis, first.dtype().bytes()), bytes_of(args, tensor)?));
    }
    result[axis] = count;
    let mut bytes = Vec::with_capacity(pieces.iter().map(|(_, b)| b.len()).sum());
    for outer in 0..pieces.first().map_or(0, |(a, _)| a.outer) {
        for (around, piece) in &pieces {
            let length = around.count * around.inner;
            bytes.extend_from_slice(piece.get(outer * length..(outer + 1) * length).unwrap_or_default());
        }
    }
    let joined = Tensor::from_bytes(&bytes, &result, first.dtype())?;
    Ok(device::to_device(&joined, first.device())?.into())
}

/// `(value)`: whether there is one, as a bool without dimensions. A value that is not there has no device, so the answer is brought to the
/// first, where kernels look for it.
fn has(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let there = !args.view(0, "value")?.is_none();
    Ok(Tensor::from_bytes(&[u8::from(there)], &[], DataType::bool())?.into())
}
