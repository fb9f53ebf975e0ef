//! Makes the program's C functions visible to the libraries that it loads.

fn main() {
    // Compiled models import functions of the runtime by name. Those that were linked to resolve everything at once
    // find them only among the program's dynamic symbols, and a program has none unless the linker is told so.
    println!("cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=TVM*");
    println!("cargo:rerun-if-changed=build.rs");
}
