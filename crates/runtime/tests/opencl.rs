//! OpenCL devices. Where the machine has no driver, the tests say so and check that it is an error.
#![cfg(feature = "opencl")]

use std::path::Path;

use relaxide_ffi::{AnyView, DataType, Device, Error, Function, Module, Tensor, get_global};
use relaxide_runtime::device::{copy_into, copy_tensor, device_api, device_exists, empty_tensor, on_host, view_at};
use relaxide_runtime::load_module;

const DEVICE: Device = Device::new(Device::OPENCL, 0);

/// Whether there is a device; if not, it is an error that says what to do, and nothing else.
fn has_device() -> bool {
    relaxide_runtime::register();
    if device_exists(DEVICE) {
        return true;
    }
    let why = device_api(DEVICE).unwrap().why_none().unwrap();
    assert!(why.contains("install"), "{why}");
    let error = empty_tensor(&[4], DataType::float(32), DEVICE).unwrap_err();
    assert!(error.message().contains("opencl:0"), "{error}");
    eprintln!("skipped: {why}");
    false
}

fn floats(count: usize) -> Tensor {
    Tensor::from_slice(&(0..count).map(|i| i as f32).collect::<Vec<_>>(), &[count as i64]).unwrap()
}

fn call(function: &Function, args: &[AnyView<'_>]) -> Result<(), Error> {
    function.call(args).map(drop)
}

#[test]
fn elements_come_back_and_views_lie_in_their_buffer() {
    if !has_device() {
        return;
    }
    let here = floats(1000);
    let there = copy_tensor(&here, DEVICE).unwrap();
    assert!(there.as_bytes().is_err());
    let view = view_at(&there, &[10], DataType::float(32), 400).unwrap();
    assert_eq!(on_host(&view).unwrap().to_vec::<f32>().unwrap(), (100..110).map(|i| i as f32).collect::<Vec<_>>());
    let second = copy_tensor(&view, DEVICE).unwrap();
    copy_into(&floats(10), &view).unwrap();
    assert_eq!(on_host(&second).unwrap().to_vec::<f32>().unwrap()[0], 100.0);
    let all: Vec<f32> = on_host(&there).unwrap().to_vec().unwrap();
    assert_eq!((all[99], all[100], all[109], all[110]), (99.0, 0.0, 9.0, 110.0));
    let empty = copy_tensor(&floats(0), DEVICE).unwrap();
    assert_eq!(on_host(&empty).unwrap().numel(), 0);
    let absent = empty_tensor(&[4], DataType::float(32), Device::new(Device::OPENCL, 999)).unwrap_err();
    assert!(absent.message().contains("opencl:999"), "{absent}");
}

/// A library that TVM compiled, with its host code and its kernel as source.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn a_library_of_tvms_runs() {
    if !has_device() {
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/opencl/add.so");
    let library: Module = load_module(&path).unwrap();
    let add = library.get_function("add", true).unwrap();
    let (a, b) = (copy_tensor(&floats(64), DEVICE).unwrap(), copy_tensor(&floats(64), DEVICE).unwrap());
    for scale in [1.0_f64, 5.0] {
        call(&add, &[(&a).into(), (&b).into(), scale.into()]).unwrap();
        let found: Vec<f32> = on_host(&b).unwrap().to_vec().unwrap();
        let expected: Vec<f32> = (0..64).map(|i| 2.0 * i as f32 + scale as f32).collect();
        assert_eq!(found, expected);
    }
    // A tensor of the host is on the wrong device.
    let error = call(&add, &[(&floats(64)).into(), (&b).into(), 1.0_f64.into()]).unwrap_err();
    assert!(error.message().contains("device_type"), "{error}");
    let kernels = library.imports().into_iter().find(|module| module.kind() == "opencl");
    let source = kernels.unwrap().body().inspect_source("cl").unwrap();
    assert!(source.contains("__kernel void add_kernel"), "{source}");
}

/// The bytes of a module with one kernel of a buffer and an integer, over one axis of blocks.
fn module(source: &str, tag: &str) -> Vec<u8> {
    let number = |out: &mut Vec<u8>, value: usize| out.extend((value as u64).to_le_bytes());
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, text: &str| {
        number(out, text.len());
        out.extend(text.as_bytes());
    };
    text(&mut out, "cl");
    number(&mut out, 1);
    text(&mut out, "fill");
    text(&mut out, "fill");
    number(&mut out, 2);
    out.extend([3, 64, 1, 0, 0, 32, 1, 0]);
    number(&mut out, 1);
    text(&mut out, tag);
    number(&mut out, 2);
    out.extend([0; 8]);
    text(&mut out, &format!("// Function: fill\n{source}"));
    out
}

fn load(bytes: &[u8]) -> Result<Module, Error> {
    let loader = get_global("ffi.Module.load_from_bytes.opencl").unwrap();
    AnyView::with_bytes(bytes, |bytes| loader.call(&[bytes]))?.to()
}

const FILL: &str = "__kernel void fill(__global int* restrict out, int value) { out[get_group_id(0)] = value; }";

#[test]
fn faults_of_kernels_are_errors() {
    if !has_device() {
        return;
    }
    let out = copy_tensor(&Tensor::from_slice(&[0_i32; 8], &[8]).unwrap(), DEVICE).unwrap();
    let place = relaxide_ffi::Any::from_ptr(out.dl_tensor().data);
    let fill = load(&module(FILL, "blockIdx.x")).unwrap().get_function("fill", true).unwrap();
    call(&fill, &[place.as_view(), 7_i64.into(), 5_i64.into()]).unwrap();
    assert_eq!(on_host(&out).unwrap().to_vec::<i32>().unwrap(), [7, 7, 7, 7, 7, 0, 0, 0]);

    let message = |result: Result<(), Error>| result.unwrap_err().message().to_owned();
    assert!(message(call(&fill, &[place.as_view(), 7_i64.into()])).contains("3 arguments are expected"));
    let nowhere = relaxide_ffi::Any::from_ptr(std::ptr::without_provenance_mut(0x1234));
    let said = message(call(&fill, &[nowhere.as_view(), 7_i64.into(), 5_i64.into()]));
    assert!(said.contains("0x1234 is no memory of opencl:0"), "{said}");
    let said = message(call(&fill, &[place.as_view(), place.as_view(), 5_i64.into()]));
    assert!(said.contains("an integer is expected"), "{said}");

    // What the driver's compiler refuses is told with its log, and the process goes on.
    let broken = load(&module("__kernel void fill(__global int* out, int value) { out[0] = nothing; }", "blockIdx.x"));
    let broken = broken.unwrap().get_function("fill", true).unwrap();
    let said = message(call(&broken, &[place.as_view(), 7_i64.into(), 5_i64.into()]));
    assert!(said.contains("cannot build the kernel fill") && said.contains("nothing"), "{said}");
    let tagged = load(&module(FILL, "tirx.use_dyn_shared_memory")).unwrap().get_function("fill", true).unwrap();
    let said = message(call(&tagged, &[place.as_view(), 7_i64.into(), 5_i64.into()]));
    assert!(said.contains("is nothing that OpenCL has"), "{said}");
    assert!(load(b"cl").unwrap_err().message().contains("malformed"));
    call(&fill, &[place.as_view(), 9_i64.into(), 8_i64.into()]).unwrap();
    assert_eq!(on_host(&out).unwrap().to_vec::<i32>().unwrap(), [9; 8]);
}
