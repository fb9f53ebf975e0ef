//! Values, objects, functions and errors behind the tvm-ffi 0.1 C ABI.
