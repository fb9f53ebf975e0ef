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
fn keys(args: &Args<'_, '_>, tensor: &Tensor) -> Result<Vec<i128>, Error> {
    let dtype = tensor.dtype();
    let host = device::on_host(tensor)?;
    let refuse = || args.error(ErrorKind::TypeError, format_args!("tensors of {dtype} are not supported"));
    if dtype.lanes != 1 {
        return Err(refuse());
    }
    let of_float = |value: f64| {
        if value.is_nan() {
            return i128::MAX;
        }
        let bits = (value + 0.0).to_bits() as i64;
        // Negative numbers have the opposite order of their bits.
        i128::from(if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits })
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
        _ if dtype.is_int() => words.map(|w| i128::from((w as i64) << shift >> shift)).collect(),
        _ if dtype.is_uint() || dtype.is_bool() => words.map(i128::from).collect(),
        _ => return Err(refuse()),
    })
}

/// `(tensor)`: a row for each dimension, a column for each element that is not zero.
fn nonzero(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let zero = 0;
    let found: Vec<usize> =
        keys(args, &tensor)?.iter().enumerate().filter(|(_, key)| **key != zero).map(|(i, _)| i).collect();
    let shape = if tensor.ndim() == 0 { &[1][..] } else { tensor.shape() };
    let mut indices = Vec::with_capacity(found.len() * shape.len());
    let mut stride: i64 = shape.iter().product();
    for size in shape {
        stride /= (*size).max(1);
        indices.extend(found.iter().map(|place| *place as i64 / stride.max(1) % (*size).max(1)));
    }
    there(Tensor::from_slice(&indices, &[shape.len() as i64, found.len() as i64])?, &tensor)
}

/// A result, where the tensor is that it was made of.
fn there(result: Tensor, of: &Tensor) -> Result<Any, Error> {
    device::to_device(&result, of.device()).map(Any::from)
}

/// A tensor as slices along an axis: what is compared, and what is given.
struct Slices {
    keys: Vec<Vec<i128>>,
    /// For each slice the places of its elements, in the result's order.
    places: Vec<Vec<usize>>,
}

fn slices(keys: &[i128], shape: &[i64], axis: Option<usize>) -> Slices {
    let Some(axis) = axis else {
        return Slices {
            keys: keys.iter().map(|k| vec![*k]).collect(),
            places: (0..keys.len()).map(|i| vec![i]).collect(),
        };
    };
    let inner: usize = shape.iter().skip(axis + 1).map(|d| *d as usize).product();
    let size = shape.get(axis).map_or(0, |d| *d as usize);
    let outer: usize = shape.iter().take(axis).map(|d| *d as usize).product();
    let of =
        |s: usize| (0..outer).flat_map(|o| (0..inner).map(move |i| (o * size + s) * inner + i)).collect::<Vec<_>>();
    let places: Vec<Vec<usize>> = (0..size).map(of).collect();
    let keys = places.iter().map(|p| p.iter().filter_map(|i| keys.get(*i).copied()).collect()).collect();
    Slices { keys, places }
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

fn once(keys: &[Vec<i128>], sorted: bool) -> Once {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|a, b| keys[*a].cmp(&keys[*b]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in order {
        match groups.last_mut() {
            Some(group) if keys[group[0]] == keys[i] => group.push(i),
            _ => groups.push(vec![i]),
        }
    }
    if !sorted {
        groups.sort_by_key(|group| group[0]);
    }
    let mut once = Once {
        first: Vec::with_capacity(groups.len()),
        inverse: vec![0; keys.len()],
        counts: Vec::with_capacity(groups.len()),
    };
    for (number, group) in groups.iter().enumerate() {
        once.first.push(group[0]);
        once.counts.push(group.len() as i64);
        group.iter().for_each(|i| once.inverse[*i] = number as i64);
    }
    once
}

/// `(tensor, sorted, return_index, return_inverse, return_counts[, axis])`: the elements, or a tuple of what is wanted.
fn unique(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(5, 6)?;
    let tensor: Tensor = args.get(0, "tensor")?;
    let flag = |i: usize, name: &str| args.get::<i64>(i, name).map(|v| v != 0);
    let sorted = flag(1, "sorted")?;
    let axis = if args.len() > 5 && tensor.ndim() > 0 { Some(axis_of(args, &tensor)?) } else { None };
    let Slices { keys, places } = slices(&keys(args, &tensor)?, tensor.shape(), axis);
    let once = once(&keys, sorted);

    let bytes = device::on_host(&tensor)?.to_bytes()?;
    let width = tensor.dtype().bytes();
    let mut shape: Vec<i64> = if axis.is_some() { tensor.shape().to_vec() } else { vec![0] };
    shape[axis.unwrap_or(0)] = once.first.len() as i64;
    let mut out = vec![0; once.first.len() * places.first().map_or(0, Vec::len) * width];
    let inner: usize = shape.iter().skip(axis.unwrap_or(0) + 1).map(|d| *d as usize).product();
    for (number, slice) in once.first.iter().enumerate() {
        for (k, place) in places[*slice].iter().enumerate() {
            let to = ((k / inner.max(1)) * once.first.len() + number) * inner + k % inner.max(1);
            out[to * width..][..width].copy_from_slice(&bytes[place * width..][..width]);
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
