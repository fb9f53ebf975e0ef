//! NumPy's .npy files in and out.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;

use npyz::{NpyFile, TypeStr, WriterBuilder};
use relaxide::ffi::{DataType, Tensor};

use crate::error::CliError;

/// Calls a macro for the element type that a dtype stands for.
macro_rules! for_dtype {
    ($dtype:expr, $go:ident, $($args:tt)*) => {
        match $dtype.to_string().as_str() {
            "float32" => $go!(f32, $($args)*),
            "float64" => $go!(f64, $($args)*),
            "int8" => $go!(i8, $($args)*),
            "int16" => $go!(i16, $($args)*),
            "int32" => $go!(i32, $($args)*),
            "int64" => $go!(i64, $($args)*),
            "uint8" => $go!(u8, $($args)*),
            "uint16" => $go!(u16, $($args)*),
            "uint32" => $go!(u32, $($args)*),
            "uint64" => $go!(u64, $($args)*),
            other => Err(CliError::usage(
                format!("{other} tensors cannot be read from or written to .npy files here"),
                "use a 32- or 64-bit float or an integer type",
            )),
        }
    };
}

/// Reads a tensor.
pub fn read(path: &Path) -> Result<Tensor, CliError> {
    let fail = || CliError::file(path);
    let file = NpyFile::new(BufReader::new(File::open(path).map_err(fail())?)).map_err(fail())?;
    let shape: Vec<i64> = file.shape().iter().map(|d| *d as i64).collect();
    if file.order() != npyz::Order::C && shape.len() > 1 {
        return Err(CliError::usage(
            format!("{} is stored in Fortran order", path.display()),
            "save numpy.ascontiguousarray(array) instead",
        ));
    }
    let npyz::DType::Plain(ty) = file.dtype() else {
        return Err(CliError::usage(format!("{} holds records", path.display()), "save one plain array"));
    };
    let dtype = dtype_of(&ty, path)?;
    macro_rules! go {
        ($t:ty, $file:expr, $shape:expr) => {{
            let data: Vec<$t> = $file.into_vec().map_err(fail())?;
            Ok(Tensor::from_slice::<$t>(&data, $shape)?)
        }};
    }
    for_dtype!(dtype, go, file, &shape)
}

fn dtype_of(ty: &TypeStr, path: &Path) -> Result<DataType, CliError> {
    let text = ty.to_string();
    let kind = match text.as_bytes().get(1) {
        Some(b'f') => "float",
        Some(b'i') => "int",
        Some(b'u') => "uint",
        _ => "",
    };
    let bytes: Option<u32> = text.get(2..).and_then(|n| n.parse().ok());
    bytes.and_then(|n| format!("{kind}{}", n * 8).parse().ok()).ok_or_else(|| {
        CliError::usage(
            format!("{} holds elements of type {text}", path.display()),
            "save an array of floats or integers",
        )
    })
}

/// Writes a tensor.
pub fn write(path: &Path, tensor: &Tensor) -> Result<(), CliError> {
    let fail = || CliError::file(path);
    let shape: Vec<u64> = tensor.shape().iter().map(|d| *d as u64).collect();
    macro_rules! go {
        ($t:ty, $tensor:expr) => {{
            let out = BufWriter::new(File::create(path).map_err(fail())?);
            let mut writer =
                npyz::WriteOptions::new().default_dtype().shape(&shape).writer(out).begin_nd().map_err(fail())?;
            writer.extend($tensor.to_vec::<$t>()?).map_err(fail())?;
            writer.finish().map_err(fail())
        }};
    }
    for_dtype!(tensor.dtype(), go, tensor)
}

/// The elements as floating-point numbers.
pub fn to_f64(tensor: &Tensor) -> Result<Vec<f64>, CliError> {
    macro_rules! go {
        ($t:ty, $tensor:expr) => {
            Ok($tensor.to_vec::<$t>()?.into_iter().map(|v| v as f64).collect())
        };
    }
    for_dtype!(tensor.dtype(), go, tensor)
}

/// A tensor of given elements, converted; integers get the numbers scaled to 0 … 100.
pub fn from_f64(dtype: DataType, shape: &[i64], values: impl Iterator<Item = f64>) -> Result<Tensor, CliError> {
    let scale = if dtype.is_float() { 1.0 } else { 100.0 };
    macro_rules! go {
        ($t:ty, $values:expr) => {{
            let data: Vec<$t> = $values.map(|v| (v * scale) as $t).collect();
            Ok(Tensor::from_slice::<$t>(&data, shape)?)
        }};
    }
    for_dtype!(dtype, go, values)
}
