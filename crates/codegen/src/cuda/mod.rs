//! From functions of a device to PTX, the text that NVIDIA's drivers compile.
//!
//! The host's half of a kernel is native code; the functions of the device become one module of LLVM's, by the same writer as native
//! code's, and LLVM makes PTX of it. Mathematical functions are those of native code: no library of the toolkit is needed. The text rides in
//! the library as TVM keeps it: a module of the kind `cuda` in the form `ptx`, with a table of parameters and thread axes.
//!
//! ```text
//! Launch ── llvm::device ──▶ define ptx_kernel void @f_kernel(ptr noalias %p0, …)
//!           LLVM, NVPTX  ──▶ .visible .entry f_kernel(.param .u64 .ptr .align 1 f_kernel_param_0, …)
//! ```
//!
//! Memory that the threads of a block share is a global of the module in the address space of such memory; LLVM follows its pointers there.
//!
//! Leaves out: tensor cores.

mod backend;
mod ptx;

pub(crate) use backend::{CUDA, NVPTX};
