//! Runs a compiled program over the CPU and a device of handles: `over_handles MODEL.so INPUTS OUTPUTS`.
//!
//! The program's first device is the CPU, and its second one [`relaxide_testkit::device`], whose memory no kernel of the CPU reaches. INPUTS
//! are tensors in the form that parameters are saved in, named by their number and the index of the device that they are to lie on, `0@0`,
//! `1@1`, …; OUTPUTS become such a file, named `0`, `1`, …. What the run copied is printed: to the device, from it, and within it.

use std::error::Error;
use std::process::ExitCode;

use relaxide_ffi::{Any, AnyView, Array, Device, ErrorKind, Tensor};
use relaxide_runtime::device::{on_host, to_device};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_testkit::device;
use relaxide_vm::executable::params;
use relaxide_vm::{VirtualMachine, load_module};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, inputs, outputs] = args.as_slice() else {
        eprintln!("usage: over_handles MODEL.so INPUTS OUTPUTS");
        return ExitCode::from(2);
    };
    match run(model, inputs, outputs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(model: &str, inputs: &str, outputs: &str) -> Result<(), Box<dyn Error>> {
    let there = device::device(0);
    let program = device::program(&load_module(model)?)?;
    let devices = [(Device::cpu(0), AllocatorKind::Pooled), (there, AllocatorKind::Pooled)];
    let machine = VirtualMachine::new(&program, &devices)?;
    let placed = |(name, tensor): (String, Tensor)| -> Result<(usize, Tensor), Box<dyn Error>> {
        let (number, index) = name.split_once('@').ok_or("an input is named NUMBER@DEVICE")?;
        let (device, _) = devices.get(index.parse::<usize>()?).ok_or("there are devices 0 and 1")?;
        Ok((number.parse()?, to_device(&tensor, *device)?))
    };
    let given = params::load(&std::fs::read(inputs)?)?.into_iter().map(placed);
    let mut given = given.collect::<Result<Vec<_>, _>>()?;
    given.sort_by_key(|(number, _)| *number);
    let views: Vec<AnyView<'_>> = given.iter().map(|(_, tensor)| AnyView::from(tensor)).collect();
    let (result, counts) = device::copies(|| machine.invoke("main", &views));
    let mut found = Vec::new();
    flatten(&result?, &mut found)?;
    let named: Vec<(String, Tensor)> = found.into_iter().enumerate().map(|(at, t)| (at.to_string(), t)).collect();
    std::fs::write(outputs, params::save(&named)?)?;
    println!("{} {} {}", counts.in_, counts.out, counts.within);
    Ok(())
}

/// The tensors of a result on the host, tuples flattened.
fn flatten(value: &Any, found: &mut Vec<Tensor>) -> Result<(), relaxide_ffi::Error> {
    if let Some(tensor) = value.as_tensor() {
        found.push(on_host(tensor)?.clone());
        return Ok(());
    }
    let Ok(tuple) = value.to::<Array>() else {
        let message = format!("a result is a {}, and neither a tensor nor a tuple", value.type_key());
        return Err(relaxide_ffi::Error::new(ErrorKind::TypeError, message));
    };
    tuple.iter().try_for_each(|field| flatten(field, found))
}
