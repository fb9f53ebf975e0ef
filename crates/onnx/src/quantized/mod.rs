//! Quantized operators: numbers as small integers, with a scale and the integer that stands for zero.
//!
//! Products of integers are summed up exactly, in 32 bits; only what goes into them and what comes out is scaled. Operators
//! whose results are no sums (`QLinearSigmoid` …) are computed on real numbers.

pub mod dequantized;
pub mod elementwise;
pub mod exact;
pub mod integer;
pub mod linear;
pub mod requantized;
pub mod words;
