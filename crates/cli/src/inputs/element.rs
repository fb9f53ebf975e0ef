//! Elements of tensors as numbers, for every type that the command line reads, writes or makes up.

use half::{bf16, f16};
use relaxide::ffi::{DataType, ErrorKind, Tensor};

use crate::error::CliError;

/// An element type.
pub trait Element: Copy + 'static {
    /// The number.
    fn to_number(self) -> f64;
    /// The nearest element.
    fn of_number(number: f64) -> Self;
    /// Its bytes in memory.
    fn write(self, out: &mut Vec<u8>);
    /// From its bytes in memory.
    fn read(bytes: &[u8]) -> Option<Self>;
}

macro_rules! elements {
    ($($ty:ty: $to:expr, $of:expr;)*) => {$(
        impl Element for $ty {
            fn to_number(self) -> f64 {
                let to: fn($ty) -> f64 = $to;
                to(self)
            }
            fn of_number(number: f64) -> Self {
                let of: fn(f64) -> $ty = $of;
                of(number)
            }
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$ty>::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}
elements! {
    f64: |v| v, |n| n;
    f32: f64::from, |n| n as f32;
    f16: f64::from, f16::from_f64;
    bf16: f64::from, bf16::from_f64;
    i8: f64::from, |n| n as i8;
    i16: f64::from, |n| n as i16;
    i32: f64::from, |n| n as i32;
    i64: |v| v as f64, |n| n as i64;
    u8: f64::from, |n| n as u8;
    u16: f64::from, |n| n as u16;
    u32: f64::from, |n| n as u32;
    u64: |v| v as f64, |n| n as u64;
}

/// Calls a macro with the Rust type of a dtype. Bools are bytes of 0 and 1.
macro_rules! for_dtype {
    ($dtype:expr, $go:ident) => {
        match $dtype.to_string().as_str() {
            "float32" => $go!(f32),
            "float64" => $go!(f64),
            "float16" => $go!(half::f16),
            "bfloat16" => $go!(half::bf16),
            "int8" => $go!(i8),
            "int16" => $go!(i16),
            "int32" => $go!(i32),
            "int64" => $go!(i64),
            "uint8" | "bool" => $go!(u8),
            "uint16" => $go!(u16),
            "uint32" => $go!(u32),
            "uint64" => $go!(u64),
            other => Err(no_numbers(other)),
        }
    };
}

/// The error of an element type that the command line has no numbers for.
pub fn no_numbers(dtype: &str) -> CliError {
    CliError::usage(
        format!("tensors of {dtype} cannot be read, written or made up here"),
        "use floats of 16 bits and more, integers of 8 bits and more, or bool; Python takes all types",
    )
}

/// The elements of a tensor.
pub fn values<T: Element>(tensor: &Tensor) -> Result<Vec<T>, CliError> {
    let bytes = tensor.to_bytes()?;
    Ok(bytes.chunks_exact(size_of::<T>()).filter_map(T::read).collect())
}

/// A tensor of elements.
pub fn tensor<T: Element>(
    dtype: DataType,
    shape: &[i64],
    elements: impl Iterator<Item = T>,
) -> Result<Tensor, CliError> {
    let count = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
    let size = count.and_then(|count| dtype.bytes_of(count)).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    // Growing beyond what there is would end the process.
    bytes.try_reserve_exact(size).map_err(|_| {
        let message = format!("cannot allocate {size} bytes for a tensor of shape {shape:?}: out of memory");
        relaxide::ffi::Error::new(ErrorKind::MemoryError, message)
    })?;
    elements.for_each(|element| element.write(&mut bytes));
    Ok(Tensor::from_bytes(&bytes, shape, dtype)?)
}

/// The elements as numbers.
pub fn numbers(tensor: &Tensor) -> Result<Vec<f64>, CliError> {
    macro_rules! go {
        ($ty:ty) => {
            Ok(values::<$ty>(tensor)?.into_iter().map(Element::to_number).collect())
        };
    }
    for_dtype!(tensor.dtype(), go)
}

/// A tensor of numbers, converted to its element type.
pub fn from_numbers(dtype: DataType, shape: &[i64], numbers: impl Iterator<Item = f64>) -> Result<Tensor, CliError> {
    let truth = dtype.is_bool();
    let numbers = numbers.map(|n| if truth { f64::from(u8::from(n != 0.0)) } else { n });
    macro_rules! go {
        ($ty:ty) => {
            tensor::<$ty>(dtype, shape, numbers.map(<$ty as Element>::of_number))
        };
    }
    for_dtype!(dtype, go)
}

/// Between what random numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Range {
    /// That of an input of which nothing is said: floats from 0 to 1, integers from 0 to 99, or below what the program allows.
    pub fn of(dtype: DataType, below: Option<i64>) -> Range {
        let high = if dtype.is_float() { 1.0 } else { below.map_or(99.0, |below| (below - 1) as f64) };
        Range { low: 0.0, high }
    }
}

/// Random tensors, the same for a seed on every machine.
pub struct Random(fastrand::Rng);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Random {
        Random(fastrand::Rng::with_seed(seed))
    }

    /// A random integer below a limit, which is not zero.
    pub fn below(&mut self, limit: u32) -> u32 {
        self.0.u32(..limit)
    }

    /// A tensor of random numbers: bools, floats from the range's low end to its high end, integers with both ends.
    pub fn tensor(&mut self, dtype: DataType, shape: &[i64], range: Range) -> Result<Tensor, CliError> {
        let too_large = || {
            CliError::usage(
                format!("a tensor of shape {shape:?} has more elements than fit memory"),
                "give smaller dimensions",
            )
        };
        let count = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
        let count = count.filter(|n| *n < 1 << 36).ok_or_else(too_large)?;
        let Range { low, high } = range;
        let number = |random: f64| match () {
            () if dtype.is_bool() => (random * 2.0).floor(),
            () if dtype.is_float() => low + random * (high - low),
            () => low + (random * (high - low + 1.0)).floor(),
        };
        from_numbers(dtype, shape, (0..count).map(|_| number(self.0.f64())))
    }
}
