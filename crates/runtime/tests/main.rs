//! The tests of this crate: one program, which is linked once and runs them beside each other.

mod c_library;
mod gguf;
mod module_tree;
mod opencl;
mod system_library;
mod weights;
