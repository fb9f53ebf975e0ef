//! Devices, memory, threads and module loading: what a deployed model stands on.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`device`] | the kinds of device, and moving tensors between them |
//! | `cuda` | devices behind CUDA's driver, with the feature of that name |
//! | `opencl` | devices behind OpenCL, with the feature of that name |
//! | `memory` | allocators, buffers, storage objects, with the feature of that name |
//! | [`threads`] | the parallel loops of kernels, and, with the feature of that name, the pool for them |
//! | [`stack`] | how much of its stack a thread has left |
//! | [`processor`] | what kernels need of a processor, and what this one has |
//! | [`file`] | writing files whole or not at all |
//! | [`fork`] | what a forked child needs of the process before it |
//! | [`timing`] | measuring functions |
//! | [`workspace`] | scratch memory of kernels |
//! | [`backend`] | the C functions that compiled code calls |
//! | [`weights`] | files of weights beside compiled models |
//! | [`library`] | compiled models in the program and, with the feature `loader`, in files; the module tree inside them |
//!
//! Unsafe code here is that of drivers: raw memory, threads that run compiled code, and shared libraries.
#![deny(missing_docs)]

pub mod backend;
pub mod cache;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
#[cfg(feature = "threads")]
mod environment;
pub mod file;
pub mod fork;
pub mod library;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "opencl")]
pub mod opencl;
pub mod processor;
mod register;
pub mod stack;
pub mod threads;
pub mod timing;
pub mod weights;
pub mod workspace;

pub use library::{SavedTree, ensure_symbols_global, load_module, save_module_tree, system_library};
pub use register::register;
pub use threads::{num_threads, set_num_threads};
