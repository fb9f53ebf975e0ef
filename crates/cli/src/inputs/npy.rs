//! NumPy's .npy and .npz files, in and out. An .npz is a ZIP archive of .npy files.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use npyz::{NpyFile, TypeStr, WriterBuilder};
use relaxide::ffi::{DataType, Tensor};
use relaxide::runtime::file;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;

use super::element;
use crate::error::CliError;

/// Calls a macro with the Rust type of a dtype that NumPy's files have.
macro_rules! for_numpy {
    ($dtype:expr, $go:ident) => {
        match $dtype.to_string().as_str() {
            "float32" => $go!(f32),
            "float64" => $go!(f64),
            "float16" => $go!(half::f16),
            "int8" => $go!(i8),
            "int16" => $go!(i16),
            "int32" => $go!(i32),
            "int64" => $go!(i64),
            "uint8" => $go!(u8),
            "uint16" => $go!(u16),
            "uint32" => $go!(u32),
            "uint64" => $go!(u64),
            other => Err(element::no_numbers(other)),
        }
    };
}

/// Reads an .npy file.
pub fn read(path: &Path) -> Result<Tensor, CliError> {
    let file = File::open(path).map_err(CliError::file(path))?;
    array(BufReader::new(file), path)
}

/// Reads an .npz file: its arrays by name.
pub fn read_archive(path: &Path) -> Result<Vec<(String, Tensor)>, CliError> {
    let broken = |error: ZipError| CliError::file(path)(error.into());
    let file = File::open(path).map_err(CliError::file(path))?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(broken)?;
    let mut arrays = Vec::new();
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(broken)?;
        let name = entry.name().map_err(broken)?.trim_end_matches(".npy").to_string();
        arrays.push((name, array(entry, path)?));
    }
    Ok(arrays)
}

fn array(reader: impl Read, path: &Path) -> Result<Tensor, CliError> {
    let file = NpyFile::new(reader).map_err(CliError::file(path))?;
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
    if dtype.is_bool() {
        let data: Vec<bool> = file.into_vec().map_err(CliError::file(path))?;
        return element::tensor(dtype, &shape, data.into_iter().map(u8::from));
    }
    macro_rules! go {
        ($ty:ty) => {{
            let data: Vec<$ty> = file.into_vec().map_err(CliError::file(path))?;
            element::tensor::<$ty>(dtype, &shape, data.into_iter())
        }};
    }
    for_numpy!(dtype, go)
}

fn dtype_of(ty: &TypeStr, path: &Path) -> Result<DataType, CliError> {
    let text = ty.to_string();
    let kind = match text.as_bytes().get(1) {
        Some(b'f') => "float",
        Some(b'i') => "int",
        Some(b'u') => "uint",
        Some(b'b') => return Ok(DataType::bool()),
        _ => "",
    };
    let bytes: Option<u32> = text.get(2..).and_then(|n| n.parse().ok());
    bytes.and_then(|n| format!("{kind}{}", n * 8).parse().ok()).ok_or_else(|| {
        CliError::usage(
            format!("{} holds elements of type {text}", path.display()),
            "save an array of floats, integers or bools",
        )
    })
}

/// Writes an .npy file.
pub fn write(path: &Path, tensor: &Tensor) -> Result<(), CliError> {
    file::write_whole(path, 0o644, |out| write_array(out, path, tensor).map_err(Failed::Said))
        .map_err(|failed| failed.said(path))
}

/// Writes an .npz file of arrays by name.
pub fn write_archive(path: &Path, tensors: &[(String, Tensor)]) -> Result<(), CliError> {
    file::write_whole(path, 0o644, |out| write_arrays(out, path, tensors).map_err(Failed::Said))
        .map_err(|failed| failed.said(path))
}

/// Why a file was not written.
enum Failed {
    /// The error is complete.
    Said(CliError),
    /// The file's place is at fault.
    Place(std::io::Error),
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Failed::Place(error)
    }
}

impl Failed {
    fn said(self, path: &Path) -> CliError {
        match self {
            Failed::Said(error) => error,
            Failed::Place(error) => CliError::file(path)(error),
        }
    }
}

fn write_arrays(out: &mut dyn Write, path: &Path, tensors: &[(String, Tensor)]) -> Result<(), CliError> {
    let broken = |error: ZipError| CliError::file(path)(error.into());
    let mut archive = zip::ZipWriter::new_stream(out);
    for (name, tensor) in tensors {
        // As `numpy.savez` stores them: not compressed.
        let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored).large_file(true);
        archive.start_file(format!("{name}.npy"), options).map_err(broken)?;
        write_array(&mut archive, path, tensor)?;
    }
    archive.finish().map_err(broken).map(drop)
}

fn write_array(out: impl Write, path: &Path, tensor: &Tensor) -> Result<(), CliError> {
    let shape: Vec<u64> = tensor.shape().iter().map(|d| *d as u64).collect();
    macro_rules! go {
        ($ty:ty) => {
            write_elements(out, path, &shape, element::values::<$ty>(tensor)?.into_iter())
        };
    }
    if tensor.dtype().is_bool() {
        let truths = element::values::<u8>(tensor)?.into_iter().map(|byte| byte != 0);
        return write_elements(out, path, &shape, truths);
    }
    for_numpy!(tensor.dtype(), go)
}

fn write_elements<T: npyz::Serialize + npyz::AutoSerialize>(
    out: impl Write,
    path: &Path,
    shape: &[u64],
    elements: impl Iterator<Item = T>,
) -> Result<(), CliError> {
    let options = npyz::WriteOptions::new().default_dtype().shape(shape).writer(out);
    let mut writer = options.begin_nd().map_err(CliError::file(path))?;
    writer.extend(elements).map_err(CliError::file(path))?;
    writer.finish().map_err(CliError::file(path))
}
