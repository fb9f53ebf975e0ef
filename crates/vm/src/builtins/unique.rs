//! Elements that are not zero, and each element once: results whose size depends on the data.
//!
//! Both work on the host, in NumPy's order. A tensor elsewhere is copied there, and the results back to where it is.

use half::{bf16, f16};
use relaxide_ffi::{Any, Array, DataType, Error, ErrorKind, Tensor};
use relaxide_runtime::device;

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] =
    &[Builtin::plain("relax.run.nonzero", nonzero), Builtin::plain("relax.run.unique", unique)];

/// The elements as numbers in the order of their values: NaN is one value, above all others, and both zeros are one.
fn keys(args: &Args<'_, '_>, tensor: &Tensor) -> Result<Vec<i64>, Error> {
    let dtype = tensor.dtype();
    let host = device::on_host(tensor)?;
    let refuse = || args.error(ErrorKind::TypeError, format_args!("tensors of {dtype} are not supported"));
    if dtype.lanes != 1 {
        return Err(refuse());
    }
    let of_float = |value: f64| {
        if value.is_nan() {
            return i64::MAX;
        }
        let bits = (value + 0.0).to_bits() as i64;
        // Negative numbers have the opposite order of their bits.
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    };
    if dtype.is_packed() {
        return Err(refuse());
    }
    let bytes = host.to_bytes()?;
    let width = dtype.bytes();
    let words = bytes.chunks_exact(width.max(1)).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let shift = 64 - 8 * width.min(8) as u32;
    Ok(match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 64) => words.map(|w| of_float(f64::from_bits(w))).collect(),
        (DataType::FLOAT, 32) => words.map(|w| of_float(f64::from(f32::from_bits(w as u32)))).collect(),
        (DataType::FLOAT, 16) => words.map(|w| of_float(f16::from_bits(w as u16).to_f64())).collect(),
        (DataType::BFLOAT, 16) => words.map(|w| of_float(bf16::from_bits(w as u16).to_f64())).collect(),
        _ if dtype.is_int() => words.map(|w| (w as i64) << shift >> shift).collect(),
        _ if dtype.is_uint() && dtype.bits == 64 => words.map(|w| (w as i64) ^ i64::MIN).collect(),
        _ if dtype.is_uint() || dtype.is_bool() => words.map(|w| w as i64).collect(),
        _ => return Err(refuse()),
    })
}

/// `(tensor)`: a row for each dimension, a column for each element that is not zero.
fn nonzero(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let found = found(args, &tensor)?;
    let shape = if tensor.ndim() == 0 { &[1][..] } else { tensor.shape() };
    let mut indices = Vec::with_capacity(found.len() * shape.len());
    let mut stride: i64 = shape.iter().product();
    for (axis, size) in shape.iter().enumerate() {
        stride /= (*size).max(1);
        match (axis, stride) {
            (0, 1) => indices.extend_from_slice(&found),
            (0, _) => indices.extend(found.iter().map(|place| place / stride.max(1))),
            (_, 1) => indices.extend(found.iter().map(|place| place % size.max(&1))),
            _ => indices.extend(found.iter().map(|place| place / stride.max(1) % size.max(&1))),
        }
    }
    there(Tensor::from_slice(&indices, &[shape.len() as i64, found.len() as i64])?, &tensor)
}

/// The places of elements that are not zero.
fn found(args: &Args<'_, '_>, tensor: &Tensor) -> Result<Vec<i64>, Error> {
    let dtype = tensor.dtype();
    let is_real = matches!((dtype.code, dtype.bits), (DataType::FLOAT, 16 | 32 | 64) | (DataType::BFLOAT, 16));
    let is_known = is_real || dtype.is_int() || dtype.is_uint() || dtype.is_bool();
    let refuse = || args.error(ErrorKind::TypeError, format_args!("tensors of {dtype} are not supported"));
    if !is_known || dtype.lanes != 1 || dtype.is_packed() {
        return Err(refuse());
    }
    let host = device::on_host(tensor)?;
    let bytes = host.to_bytes()?;
    // A zero may have a sign.
    let counted = if is_real { !(1 << (dtype.bits - 1)) } else { u64::MAX };
    match dtype.bytes() {
        1 => Ok(places_of::<1>(&bytes, counted)),
        2 => Ok(places_of::<2>(&bytes, counted)),
        4 => Ok(places_of::<4>(&bytes, counted)),
        8 => Ok(places_of::<8>(&bytes, counted)),
        _ => Err(refuse()),
    }
}

/// The places of words that have one of some bits. Which have is data that no processor foresees, so that each is written, and only those that
/// have one are counted.
fn places_of<const WIDTH: usize>(bytes: &[u8], counted: u64) -> Vec<i64> {
    let mut places = vec![0; bytes.len() / WIDTH];
    let mut count = 0;
    for (place, chunk) in bytes.chunks_exact(WIDTH).enumerate() {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(chunk);
        if let Some(next) = places.get_mut(count) {
            *next = place as i64;
        }
        count += usize::from(u64::from_le_bytes(word) & counted != 0);
    }
    places.truncate(count);
    places
}

/// A result, where the tensor is that it was made of.
fn there(result: Tensor, of: &Tensor) -> Result<Any, Error> {
    device::to_device(&result, of.device()).map(Any::from)
}

/// A tensor as slices along an axis, or its elements, where none is given.
struct Slices {
    count: usize,
    /// The elements of a slice: so many times so many neighbours.
    outer: usize,
    inner: usize,
}

impl Slices {
    fn of(shape: &[i64], axis: Option<usize>) -> Slices {
        let product = |dims: &[i64]| dims.iter().map(|d| *d as usize).product::<usize>();
        let Some(axis) = axis.filter(|axis| *axis < shape.len()) else {
            return Slices { count: product(shape), outer: 1, inner: 1 };
        };
        Slices { count: shape[axis] as usize, outer: product(&shape[..axis]), inner: product(&shape[axis + 1..]) }
    }

    /// How many elements a slice has.
    fn width(&self) -> usize {
        self.outer * self.inner
    }

    /// The places of a slice's elements in the tensor.
    fn places(&self, slice: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.width()).map(move |k| ((k / self.inner) * self.count + slice) * self.inner + k % self.inner)
    }

    /// The slices in order, equal ones in that of their places; and which of them differ from the one before.
    fn sorted(&self, keys: &[i64]) -> (Vec<usize>, Vec<bool>) {
        if self.width() == 1 {
            let mut pairs: Vec<(i64, usize)> = keys.iter().copied().zip(0..).collect();
            pairs.sort_unstable();
            let differs = (0..pairs.len()).map(|i| i == 0 || pairs[i].0 != pairs[i - 1].0).collect();
            return (pairs.into_iter().map(|(_, place)| place).collect(), differs);
        }
        let keys_of = |slice: usize| self.places(slice).map(|place| keys[place]);
        let mut order: Vec<usize> = (0..self.count).collect();
        order.sort_by(|a, b| keys_of(*a).cmp(keys_of(*b)));
        let differs = (0..order.len()).map(|i| i == 0 || !keys_of(order[i]).eq(keys_of(order[i - 1]))).collect();
        (order, differs)
    }
}

/// Each slice once.
struct Once {
    /// The first occurrence of each.
    first: Vec<usize>,
    /// For each slice its like among them.
    inverse: Vec<i64>,
    /// How often each occurs.
    counts: Vec<i64>,
}

fn once(slices: &Slices, keys: &[i64], sorted: bool) -> Once {
    let (order, differs) = slices.sorted(keys);
    let mut once = Once { first: Vec::new(), inverse: vec![0; order.len()], counts: Vec::new() };
    for (slice, differs) in order.into_iter().zip(differs) {
        if differs {
            once.first.push(slice);
            once.counts.push(0);
        }
        let number = once.first.len() - 1;
        once.counts[number] += 1;
        once.inverse[slice] = number as i64;
    }
    if sorted {
        return once;
    }
    // By their first occurrence instead.
    let mut order: Vec<usize> = (0..once.first.len()).collect();
    order.sort_unstable_by_key(|number| once.first[*number]);
    let mut numbers = vec![0; order.len()];
    order.iter().enumerate().for_each(|(new, old)| numbers[*old] = new as i64);
    once.inverse.iter_mut().for_each(|number| *number = numbers[*number as usize]);
    once.first = order.iter().map(|old| once.first[*old]).collect();
    once.counts = order.iter().map(|old| once.counts[*old]).collect();
    once
}

/// `(tensor, sorted, return_index, return_inverse, return_counts[, axis])`: the elements, or a tuple of what is wanted.
fn unique(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(5, 6)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let flag = |i: usize, name: &str| args.get::<i64>(i, name).map(|v| v != 0);
    let sorted = flag(1, "sorted")?;
    let axis = if args.len() > 5 && tensor.ndim() > 0 { Some(axis_of(args, &tensor)?) } else { None };
    let slices = Slices::of(tensor.shape(), axis);
    let once = once(&slices, &keys(args, &tensor)?, sorted);

    let bytes = device::on_host(&tensor)?.to_bytes()?;
    let width = tensor.dtype().bytes();
    let mut shape: Vec<i64> = if axis.is_some() { tensor.shape().to_vec() } else { vec![0] };
    shape[axis.unwrap_or(0)] = once.first.len() as i64;
    let mut out = vec![0; once.first.len() * slices.width() * width];
    let result = Slices { count: once.first.len(), ..slices };
    for (number, slice) in once.first.iter().enumerate() {
        for (from, to) in slices.places(*slice).zip(result.places(number)) {
            out[to * width..][..width].copy_from_slice(&bytes[from * width..][..width]);
        }
    }
    let values = Tensor::from_bytes(&out, &shape, tensor.dtype())?;
    let mut results = vec![there(values, &tensor)?];
    let list = |numbers: &[i64]| there(Tensor::from_slice(numbers, &[numbers.len() as i64])?, &tensor);
    if flag(2, "return_index")? {
        results.push(list(&once.first.iter().map(|i| *i as i64).collect::<Vec<_>>())?);
    }
    if flag(3, "return_inverse")? {
        results.push(list(&once.inverse)?);
    }
    if flag(4, "return_counts")? {
        results.push(list(&once.counts)?);
    }
    Ok(if results.len() == 1 { results.swap_remove(0) } else { Array::from_iter(results).into() })
}

fn axis_of(args: &Args<'_, '_>, tensor: &Tensor) -> Result<usize, Error> {
    let axis: i64 = args.get(5, "axis")?;
    let ndim = tensor.ndim() as i64;
    let from_front = if axis < 0 { axis + ndim } else { axis };
    match usize::try_from(from_front) {
        Ok(found) if from_front < ndim => Ok(found),
        _ => Err(args.error(ErrorKind::ValueError, format_args!("axis {axis} is not one of the axes of {tensor:?}"))),
    }
}
