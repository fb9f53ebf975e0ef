//! Kernels over the threads of a device: in the interpreter, under a driver of OpenCL where there is one, and under a driver in the place of
//! NVIDIA's.

mod cuda;
mod devices;
mod opencl;
mod operators;
