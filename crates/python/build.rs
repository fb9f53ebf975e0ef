//! Binds the extension module's calls of its own C functions to itself.

fn main() {
    // Where another library with these names is in the process already, TVM's own for example, the dynamic linker would
    // lead our calls there.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
