//! Compiles an ONNX model to one file, and runs that file.
//!
//! ```console
//! $ cargo run --release --example compile_and_run -- model.onnx model.so
//! ```

use relaxide::{CompileOptions, VirtualMachine, ffi::Tensor};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [model, library] = paths.as_slice() else { return Err("usage: compile_and_run MODEL.onnx LIBRARY.so".into()) };
    let module = relaxide::from_onnx_file(model.as_ref(), &[])?;
    relaxide::compile(&module, &mut CompileOptions::default())?.export_library(library.as_ref())?;

    let machine = VirtualMachine::of(&relaxide::load_module(library.as_ref())?)?;
    let image = Tensor::from_slice(&[0.5f32; 2 * 3 * 32 * 32], &[2, 3, 32, 32])?;
    let classes = machine.invoke("main", &[(&image).into()])?.to::<Tensor>()?;
    println!("{:?} {:?}", classes.shape(), classes.to_vec::<f32>()?);
    Ok(())
}
