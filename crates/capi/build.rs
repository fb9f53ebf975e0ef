//! Names the library for the dynamic linker, and binds its calls of its own C functions to itself.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // WebAssembly has no dynamic linker.
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        return;
    }
    // Where another library with these names is in the process already, TVM's own for example, the dynamic linker would
    // lead our calls there.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Programs that are linked with the library by its path look for it by its name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librelaxide_runtime.so");
}
