//! Kernels over the threads of a device: the interpreter and OpenCL's driver for processors compute what the blocks say.
//!
//! Where the machine has no driver of OpenCL, the interpreter alone runs, and the tests say so.

mod devices;

use devices::{F32, Kind, named};
use relaxide_ffi::{DataType, Device, Ref};
use relaxide_ir::{Buffer, PrimExpr, Var, prim};
use relaxide_runtime::device::device_exists;
use relaxide_tir::testing::Sample;
use relaxide_tir::{ForKind, Stmt, lower, te};

const OPENCL: Kind = Kind { device: Device::new(Device::OPENCL, 0), target: "opencl", changed: |_, code| code };

/// Whether there is a device; says so if not.
fn has_device() -> bool {
    relaxide_runtime::register();
    if !device_exists(OPENCL.device) {
        eprintln!("only interpreted: there is no driver of OpenCL; `scripts/setup test-tools` installs one");
        return false;
    }
    true
}

#[test]
fn random_kernels_compute_the_same_over_threads() {
    OPENCL.random_kernels(has_device());
}

#[test]
fn threads_of_a_block_work_together() {
    OPENCL.threads_together(has_device());
}

#[test]
fn an_index_outside_of_its_extent_is_an_error_and_the_device_goes_on() {
    OPENCL.index_outside(has_device());
}

#[test]
fn what_no_thread_does_is_refused() {
    let (a, i) = (Buffer::new("A", F32, [4]), Var::dim("i"));
    let one = prim::constant(F32, 1.0);
    let store = Stmt::serial(i.clone(), 4, Stmt::store(&a, [PrimExpr::from(&i)], one.clone()));
    let func = named(&relaxide_tir::PrimFunc::over_buffers(std::slice::from_ref(&a), &[], store.clone()), "f");
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
        kernels.push(OPENCL.lowered(&sample.func).1);
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
    let library = OPENCL.library(&kernels);
    for (name, sample) in &samples {
        let expected = sample.interpret(&sample.func).unwrap();
        let found = OPENCL.run(&library, name, sample).unwrap();
        assert!(sample.difference(&found, &expected).is_none(), "{name}: {found:?} for {expected:?}");
    }
}
