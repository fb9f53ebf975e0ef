//! Bytes as a random program with checked bounds: native code gives the interpreter's results, or an `IndexError` where an
//! index is wrong, and never a crash. A finding prints the program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_codegen::{compile, export_library};
use relaxide_ffi::{AnyView, Ref, SavedBytes};
use relaxide_ir::Target;
use relaxide_tir::interp::Scalar;
use relaxide_tir::testing::{Checked, Random, elements};

/// The outputs of the compiled program, or its error's kind and text.
fn execute(case: &Checked) -> Result<Vec<Vec<Scalar>>, (String, String)> {
    let compiled = compile(&[Ref::new(case.lowered.clone())], &Target::default()).unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    let path = folder.path().join("kernel.so");
    export_library(&SavedBytes::default(), &compiled, &path).unwrap_or_else(|e| panic!("{e}"));
    let module = relaxide_runtime::load_module(&path).unwrap_or_else(|e| panic!("{e}"));
    let kernel = module.get_function("kernel", false).expect("the kernel is there");
    let sample = &case.program.sample;
    let tensors = sample.tensors().expect("tensors are small");
    let scalars = sample.scalars.iter().map(|v| AnyView::from(*v));
    let args: Vec<AnyView<'_>> = tensors.iter().map(AnyView::from).chain(scalars).collect();
    match kernel.call(&args) {
        Ok(_) => Ok(elements(&tensors[sample.inputs.len()..]).expect("outputs are compact")),
        Err(error) => Err((error.kind().to_string(), error.message().to_string())),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let case = Checked::draw(&mut Random::from_bytes(bytes), "kernel").unwrap_or_else(|e| panic!("{e}"));
    if let Err(error) = case.judge(execute(&case)) {
        panic!("{error}\n{}", case.program.sample.func);
    }
});
