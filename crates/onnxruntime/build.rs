//! Names the library as ONNX Runtime's is named, and keeps what else is in it to itself.

fn main() {
    // Bindings that are linked with the library look for it by this name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libonnxruntime.so.1");
    // The C ABI of tvm-ffi is inside. Another library of the process may have it too, and neither is to call the other's.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    println!("cargo:rerun-if-changed=build.rs");
}
