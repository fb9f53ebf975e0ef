//! A module of PTX from functions of a device.

use inkwell::context::Context;
use inkwell::targets::FileType;
use relaxide_runtime::device::payload::{Info, Payload};
use relaxide_tir::lower::Launch;

use crate::c::identifier;
use crate::compile::{optimize, parse, refused, write};
use crate::llvm::{ModuleText, write_device_function};
use crate::{CodegenError, NativeTarget};

/// What LLVM does to functions of a device: its usual passes, for no schedule has chosen and unrolled their loops. Pointers get their address
/// spaces first: only then are their alignments seen, without which neighbours are not loaded together.
const PASSES: &str = "function(infer-address-spaces),default<O2>";

/// The module as its loader reads it.
pub(super) fn payload(launches: &[Launch], native: &NativeTarget) -> Result<Payload, CodegenError> {
    let (text, kernels) = written(launches, native)?;
    Ok(Payload { format: "ptx".into(), kernels, code: compiled(&text, native)? })
}

/// The functions as PTX.
pub(super) fn text(launches: &[Launch], native: &NativeTarget) -> Result<String, CodegenError> {
    let (text, _) = written(launches, native)?;
    Ok(String::from_utf8_lossy(&compiled(&text, native)?).into_owned())
}

/// The functions in LLVM's text form, before LLVM's passes.
pub(super) fn llvm_text(launches: &[Launch], native: &NativeTarget) -> Result<String, CodegenError> {
    written(launches, native).map(|(text, _)| text)
}

type Written = (String, Vec<(String, Info)>);

fn written(launches: &[Launch], native: &NativeTarget) -> Result<Written, CodegenError> {
    let (mut module, mut kernels) = (ModuleText::new(native.architecture), Vec::new());
    for launch in launches {
        let name = identifier(&launch.name);
        let types = write_device_function(launch, &name, native, &mut module)?;
        kernels.push((launch.name.clone(), Info { name, types, tags: launch.tags.clone() }));
    }
    let layout = native.machine()?.get_target_data().get_data_layout();
    Ok((module.finish(&native.triple, &layout.as_str().to_string_lossy()), kernels))
}

fn compiled(text: &str, native: &NativeTarget) -> Result<Vec<u8>, CodegenError> {
    let (machine, context) = (native.machine()?, Context::create());
    let module = parse(&context, text).map_err(|error| refused(&error))?;
    // LLVM ends the process where its code generator meets what it does not know; its verifier says so instead.
    module.verify().map_err(|error| refused(&error))?;
    optimize(&module, &machine, PASSES)?;
    let mut code = write(&module, &machine, FileType::Assembly)?;
    while code.last() == Some(&0) {
        code.pop();
    }
    Ok(code)
}
