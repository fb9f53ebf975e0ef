//! From functions of a device to OpenCL C.
//!
//! The host's half of a kernel is native code; each function of the device becomes one text, which the driver compiles when it is first
//! called on a device. Texts are kept as TVM keeps them: a module of the kind `opencl` among the library's imports, with a table of
//! parameters and thread axes beside the code.
//!
//! ```text
//! Launch ── kernel ──▶ // Function: f_kernel
//!                      <types and functions that it uses>
//!                      __kernel void f_kernel(__global const float *restrict A, __global float *restrict B, int64_t n)
//! ```
//!
//! Statements and expressions are those of [C](crate::compile_to_c), with a few words of OpenCL's behind the names of C ([`prelude`]): integers
//! wrap around, floats of sixteen bits are computed in 32, halves are rounded to even. What OpenCL leaves to the driver stays its own:
//! divisions and functions are as exact as it makes them.
//!
//! Memory that the threads of a block share is `__local`, at the beginning of the function, and barriers are for both kinds of memory.
//!
//! Vectors are loops over their elements, as in C. Leaves out: images, vectors of loads and stores.

mod backend;
mod kernel;
mod prelude;

pub(crate) use backend::OpenCl;
