//! Kernels over the threads of a device: the interpreter and OpenCL's driver for processors compute what the blocks say.
//!
//! Where the machine has no driver of OpenCL, the interpreter alone runs, and the tests say so.

use std::collections::HashMap;

use relaxide_codegen::{CompileSettings, Emitted, emit, export_library};
use relaxide_ffi::{Any, AnyView, DataType, Device, Module, Ref, Saved, get_global};
use relaxide_ir::{Buffer, PrimExpr, Target, Var, prim};
use relaxide_runtime::device::{copy_tensor, device_exists, empty_tensor, on_host};
use relaxide_tir::interp::Scalar;
use relaxide_tir::testing::{Options, Random, Sample, elements, sample_from};
use relaxide_tir::{ForKind, PrimFunc, Stmt, lower, schedule, te};

const DEVICE: Device = Device::new(Device::OPENCL, 0);
const F32: DataType = DataType::float(32);

fn target() -> Target {
    "opencl".parse().unwrap()
}

/// Whether there is a device; says so if not.
fn has_device() -> bool {
    relaxide_runtime::register();
    if !device_exists(DEVICE) {
        eprintln!("only interpreted: there is no driver of OpenCL; `scripts/setup test-tools` installs one");
        return false;
    }
    true
}

fn named(func: &PrimFunc, name: &str) -> PrimFunc {
    PrimFunc { attrs: func.attrs.clone().with("global_symbol", name), ..func.clone() }
}

fn lowered(func: &PrimFunc) -> (PrimFunc, PrimFunc) {
    let scheduled = schedule::apply(func, &target()).unwrap().func;
    let options = lower::LowerOptions { keep_loops: true, ..Default::default() };
    let lowered = lower::lower_with(&scheduled, options).unwrap();
    (scheduled, lowered)
}

/// A library of kernels for devices, with the module of their functions below it, as a program has it.
fn library(kernels: &[PrimFunc]) -> Module {
    let kernels: Vec<_> = kernels.iter().map(|kernel| (Ref::new(kernel.clone()), target())).collect();
    let Emitted { host, devices } =
        emit(&kernels, &Target::default(), CompileSettings::default(), &mut |_, _| {}).unwrap();
    let relaxide_codegen::Artifact::Library(host) = host else { panic!("a library") };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kernels.so");
    export_library(&Saved::default(), &host, &path).unwrap();
    let library = relaxide_runtime::load_module(&path).unwrap();
    for device in devices {
        let loader = get_global(&format!("ffi.Module.load_from_bytes.{}", device.kind)).unwrap();
        let module: Module = AnyView::lend_bytes(&device.bytes, |bytes| loader.call(&[bytes])).unwrap().to().unwrap();
        library.import(module).unwrap();
    }
    library
}

fn run(library: &Module, name: &str, sample: &Sample) -> Result<Vec<Vec<Scalar>>, relaxide_ffi::Error> {
    let inputs = sample.inputs.iter().map(|tensor| copy_tensor(tensor, DEVICE)).collect::<Result<Vec<_>, _>>()?;
    let outputs = sample.outputs.iter().map(|(shape, dtype)| empty_tensor(shape, *dtype, DEVICE));
    let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    let args = inputs.iter().chain(&outputs).map(Any::from).chain(sample.scalars.iter().map(|value| Any::from(*value)));
    let args: Vec<Any> = args.collect();
    let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
    library.get_function(name, true).unwrap().call(&views)?;
    elements(&outputs.iter().map(on_host).collect::<Result<Vec<_>, _>>()?)
}

#[test]
fn random_kernels_compute_the_same_over_threads() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 1000 } else { 24 };
    let mut kernels = Vec::new();
    let mut cases = HashMap::new();
    for seed in 0..count {
        let sample = sample_from(&mut Random::new(seed), Options::default()).unwrap();
        let name = format!("kernel{seed}");
        let (scheduled, lowered) = lowered(&named(&sample.func, &name));
        let expected = sample.interpret(&sample.func).unwrap();
        for func in [&scheduled, &lowered] {
            let found = sample.interpret(func).unwrap_or_else(|error| panic!("{error}\n{func}"));
            assert!(sample.difference(&found, &expected).is_none(), "{}\n{func}", sample.func);
        }
        kernels.push(lowered.clone());
        cases.insert(name, (sample, expected, lowered));
    }
    if !has_device() {
        return;
    }
    let library = library(&kernels);
    for (name, (sample, expected, lowered)) in &cases {
        let found = run(&library, name, sample).unwrap_or_else(|error| panic!("{error}\n{lowered}"));
        if let Some((output, at)) = sample.difference(&found, expected) {
            panic!("{:?} for {:?} at {at}\n{lowered}", found[output][at], expected[output][at]);
        }
    }
}

/// Rows of a table by numbers that are data.
fn rows() -> PrimFunc {
    let (table, at) = (te::placeholder("table", [4, 3], F32), te::placeholder("at", [5], DataType::int(64)));
    let out = te::compute("out", [5, 3], |i| table.at(&[at.at(&i[..1]), i[1].clone()]));
    named(&te::create_prim_func(&[table, at, out]).unwrap(), "rows")
}

#[test]
fn an_index_outside_of_its_extent_is_an_error_and_the_device_goes_on() {
    let (_, lowered) = lowered(&rows());
    let split = lower::split_device(&lowered, Device::OPENCL).unwrap();
    assert_eq!(split.launches.len(), 1);
    assert_eq!(split.launches[0].tags, ["blockIdx.x", "threadIdx.x"]);
    assert!(split.launches[0].fault.is_some(), "{}", split.launches[0].func);
    if !has_device() {
        return;
    }
    let library = library(&[lowered]);
    let floats: Vec<f32> = (0..12).map(|x| x as f32).collect();
    let sample = |at: [i64; 5]| Sample {
        func: rows(),
        inputs: vec![
            relaxide_ffi::Tensor::from_slice(&floats, &[4, 3]).unwrap(),
            relaxide_ffi::Tensor::from_slice(&at, &[5]).unwrap(),
        ],
        outputs: vec![(vec![5, 3], F32)],
        scalars: vec![],
    };
    for (at, wrong) in [([0, 3, 7, 1, 2], Some(7)), ([3, 2, 1, 0, 3], None), ([0, 0, -1, 0, 0], Some(-1))] {
        let sample = sample(at);
        match (run(&library, "rows", &sample), wrong) {
            (Ok(found), None) => {
                let expected = sample.interpret(&sample.func).unwrap();
                assert!(sample.difference(&found, &expected).is_none());
            }
            (Err(error), Some(index)) => {
                assert_eq!(error.kind(), "IndexError");
                let message = error.message();
                assert!(
                    message.contains(&format!("rows: index {index} of ")) && message.contains("extent 4"),
                    "{message}"
                );
            }
            (found, _) => panic!("{found:?} for {at:?}"),
        }
    }
    // Tensors of the host are on the wrong device.
    let here = relaxide_ffi::Tensor::from_slice(&floats, &[4, 3]).unwrap();
    let at = relaxide_ffi::Tensor::from_slice(&[0_i64; 5], &[5]).unwrap();
    let out = relaxide_ffi::Tensor::from_slice(&[0.0_f32; 15], &[5, 3]).unwrap();
    let error = library.get_function("rows", true).unwrap().call(&[(&here).into(), (&at).into(), (&out).into()]);
    let error = error.unwrap_err();
    assert!(error.message().contains("device_type") && error.message().contains("expected opencl"), "{error}");
}

#[test]
fn what_no_thread_does_is_refused() {
    let (a, i) = (Buffer::new("A", F32, [4]), Var::dim("i"));
    let one = prim::constant(F32, 1.0);
    let store = Stmt::serial(i.clone(), 4, Stmt::store(&a, [PrimExpr::from(&i)], one.clone()));
    let func = named(&PrimFunc::over_buffers(std::slice::from_ref(&a), &[], store.clone()), "f");
    let error = lower::split_device(&func, Device::OPENCL).unwrap_err().to_string();
    assert!(error.contains("outside of any thread"), "{error}");
    let Stmt::For(loop_) = &store else { panic!("a loop") };
    let bound = |tag: &str| relaxide_tir::For {
        kind: ForKind::ThreadBinding,
        thread_tag: tag.into(),
        ..relaxide_tir::For::clone(loop_)
    };
    let func = named(&func.with_body(Ref::new(bound("vthread.x")).into()), "f");
    let error = lower::split_device(&func, Device::OPENCL).unwrap_err().to_string();
    assert!(error.contains("`vthread.x`"), "{error}");
    // A kernel that binds its loops itself keeps them.
    let func = named(&func.with_body(Ref::new(bound("threadIdx.x")).into()), "f");
    let split = lower::split_device(&func, Device::OPENCL).unwrap();
    assert_eq!(split.launches[0].tags, ["threadIdx.x"]);
}

/// Numbers of four and two bits, there and back, with sums that wrap and floats that are too large.
#[test]
fn elements_of_less_than_a_byte_share_bytes_on_the_device_too() {
    let types = [DataType::int(4), DataType::uint(4), DataType::int(2), DataType::uint(2)];
    let mut kernels = Vec::new();
    let mut samples = Vec::new();
    for (at, from) in types.into_iter().enumerate() {
        let to = types[(at + 1) % types.len()];
        let (a, x) = (te::placeholder("A", [8], from), te::placeholder("X", [8], F32));
        let narrowed = te::compute("narrowed", [8], |i| prim::cast(to, x.at(i)) + prim::cast(to, a.at(i)));
        let back = te::compute("back", [8], |i| prim::cast(F32, narrowed.at(i)));
        let widened = te::compute("widened", [8], |i| prim::cast(F32, a.at(i)) * x.at(i));
        let name = format!("packed{at}");
        let func = named(&te::create_prim_func(&[a, x, narrowed, back, widened]).unwrap(), &name);
        let bytes: Vec<u8> = (0..from.bytes_of(8).unwrap()).map(|i| (i * 91 + 37) as u8).collect();
        let inputs = vec![
            relaxide_ffi::Tensor::from_bytes(&bytes, &[8], from).unwrap(),
            relaxide_ffi::Tensor::from_slice(&[0.4_f32, -1.6, 100.0, -100.0, 2.5, f32::NAN, 3.0, -0.2], &[8]).unwrap(),
        ];
        let sample =
            Sample { func, inputs, outputs: vec![(vec![8], to), (vec![8], F32), (vec![8], F32)], scalars: vec![] };
        kernels.push(lowered(&sample.func).1);
        samples.push((name, sample));
    }
    for kernel in &kernels {
        for launch in lower::split_device(kernel, Device::OPENCL).unwrap().launches {
            let text = lower::open_packed(&launch.func).to_string();
            assert!(!text.contains("int4") && !text.contains("int2"), "{text}");
        }
    }
    if !has_device() {
        return;
    }
    let library = library(&kernels);
    for (name, sample) in &samples {
        let expected = sample.interpret(&sample.func).unwrap();
        let found = run(&library, name, sample).unwrap();
        assert!(sample.difference(&found, &expected).is_none(), "{name}: {found:?} for {expected:?}");
    }
}
