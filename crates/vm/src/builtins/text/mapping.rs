//! Maps from keys to numbers, as models of ONNX return and take them.

use half::f16;
use relaxide_ffi::{Any, AnyView, Array, DataType, Dict, Error, ErrorKind, Map, Tensor};

use super::{Args, Builtin, Table, integers};

pub(super) const TABLE: &[Builtin] =
    &[Builtin::plain("relaxide.vm.zip_map", zip_map), Builtin::placed("relaxide.vm.map_values", map_values)];

/// The keys of a map: a tensor of integers, or a list of texts.
fn keys(args: &Args<'_, '_>, index: usize) -> Result<Vec<Any>, Error> {
    if args.view(index, "keys")?.as_tensor().is_some() {
        return Ok(integers(args, &args.get(index, "keys")?, "keys")?.into_iter().map(Any::from).collect());
    }
    let table = Table::of(args, index)?;
    Ok((0..table.len()).filter_map(|place| table.get(place)).collect())
}

/// `(scores, keys)`: a map for each row of scores, in an array.
fn zip_map(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let scores: Tensor = args.get(0, "scores")?;
    let keys = keys(args, 1)?;
    let bytes = relaxide_runtime::device::on_host(&scores)?.to_bytes()?;
    let values: Vec<f64> = match (scores.dtype().code, scores.dtype().bits) {
        (DataType::FLOAT, 64) => bytes.as_chunks().0.iter().map(|word| f64::from_le_bytes(*word)).collect(),
        (DataType::FLOAT, 32) => bytes.as_chunks().0.iter().map(|word| f64::from(f32::from_le_bytes(*word))).collect(),
        (DataType::FLOAT, 16) => bytes.as_chunks().0.iter().map(|word| f16::from_le_bytes(*word).to_f64()).collect(),
        _ => {
            let dtype = scores.dtype();
            return Err(args.error(ErrorKind::TypeError, format_args!("scores of {dtype} are not mapped")));
        }
    };
    let columns = scores.shape().last().copied().unwrap_or(1);
    if i64::try_from(keys.len()).ok() != Some(columns) {
        let message = format_args!("there are {} keys for {columns} scores of a row", keys.len());
        return Err(args.error(ErrorKind::ValueError, message));
    }
    if keys.is_empty() {
        return Err(args.error(ErrorKind::ValueError, format_args!("there are no keys")));
    }
    let rows = values.chunks_exact(keys.len());
    let maps = rows.map(|row| keys.iter().cloned().zip(row.iter().copied()).collect::<Map>().into());
    Ok(Array::from_vec(maps.collect()).into())
}

/// `(map, keys, dtype)`: the values of keys in one row; zero where the map has none.
fn map_values(args: &Args<'_, '_>) -> Result<Any, Error> {
    args.expect_len(3, 3)?;
    let view = args.view(0, "map")?;
    let map: Map = match view.to::<Map>() {
        Ok(map) => map,
        Err(_) => view.to::<Dict>().map(|dict| dict.to_map()).map_err(|_| no_map(args, view))?,
    };
    let keys = keys(args, 1)?;
    let dtype: DataType = args.get(2, "dtype")?;
    let mut bytes = Vec::with_capacity(keys.len() * dtype.bytes());
    for key in &keys {
        let value = map.get(key.clone());
        let number = value.map_or(Some(0.0), |value| value.as_float().or(value.as_int().map(|n| n as f64)));
        let number = number.ok_or_else(|| {
            args.error(ErrorKind::TypeError, format_args!("the value of {key:?} is no number but {value:?}"))
        })?;
        match (dtype.code, dtype.bits) {
            (DataType::FLOAT, 32) => bytes.extend_from_slice(&(number as f32).to_le_bytes()),
            (DataType::FLOAT, 64) => bytes.extend_from_slice(&number.to_le_bytes()),
            (DataType::INT, 64) => {
                let whole = value.and_then(|value| value.as_int()).unwrap_or(number as i64);
                bytes.extend_from_slice(&whole.to_le_bytes());
            }
            _ => return Err(args.error(ErrorKind::TypeError, format_args!("values of {dtype} are not taken"))),
        }
    }
    Tensor::from_bytes(&bytes, &[1, keys.len() as i64], dtype).map(Any::from)
}

fn no_map(args: &Args<'_, '_>, view: AnyView<'_>) -> Error {
    args.error(ErrorKind::TypeError, format_args!("the argument is {}, not a map", view.type_key()))
}
