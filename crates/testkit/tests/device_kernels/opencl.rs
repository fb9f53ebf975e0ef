//! Kernels over the threads of a device: the interpreter and OpenCL's driver for processors compute what the blocks say.
//!
//! Where the machine has no driver of OpenCL, the interpreter alone runs, and the tests say so.

use crate::devices::{DeviceKind, F32, bound, named};
use relaxide_ffi::{DataType, Device};
use relaxide_ir::{Buffer, PrimExpr, Var, prim};
use relaxide_runtime::device::device_exists;
use relaxide_tir::testing::Sample;
use relaxide_tir::{Stmt, lower, te};

pub const OPENCL: DeviceKind =
    DeviceKind { device: Device::new(Device::OPENCL, 0), target: "opencl", changed: |_, code| code };

/// Whether there is a device; says so if not.
pub fn has_device() -> bool {
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
fn vectors_that_a_program_writes() {
    OPENCL.vectors_of_a_program(has_device());
}

#[test]
fn an_index_outside_of_its_extent_is_an_error_and_the_device_goes_on() {
    OPENCL.index_outside(has_device());
}

/// A row turned around by memory that a launch could size, by two virtual threads of each thread.
#[test]
fn virtual_threads_are_copies_in_a_thread() {
    let (a, b) = (Buffer::new("A", F32, [16]), Buffer::new("B", F32, [16]));
    let s = Buffer::scoped("s", F32, [16], "shared.dyn");
    let [block, thread, both] = ["block", "thread", "both"].map(Var::dim);
    let at = || PrimExpr::from(&both) * 8 + PrimExpr::from(&thread);
    let there = Stmt::store(&s, [at()], prim::load(&a, [at()]));
    let back = Stmt::store(&b, [at()], prim::load(&s, [prim::sub(15, at())]));
    let body = Stmt::seq([bound(&both, 2, "vthread.x", there), Stmt::barrier(), bound(&both, 2, "vthread.x", back)]);
    let body = bound(&block, 1, "blockIdx.x", bound(&thread, 8, "threadIdx.x", Stmt::seq([Stmt::alloc(&s), body])));
    let func = relaxide_tir::PrimFunc::over_buffers(&[a, b], &[], body);
    let floats: Vec<f32> = (0..16).map(|x| x as f32).collect();
    let inputs = vec![relaxide_ffi::Tensor::from_slice(&floats, &[16]).unwrap()];
    let trial = OPENCL.trial("turned", Sample { func, inputs, outputs: vec![(vec![16], F32)], scalars: vec![] });
    let split = lower::split_device(&trial.lowered, Device::OPENCL).unwrap();
    assert_eq!(split.launches[0].shared_bytes, 64);
    if has_device() {
        OPENCL.agrees(&[trial]);
    }
}

/// Says that this process is one that a test has started, with a cache.
const CHILD: &str = "RELAXIDE_TEST_WITH_CACHE";

/// A second start takes what the first has compiled: here what was put in its place, which is how one sees it.
#[test]
fn what_a_driver_has_compiled_is_kept_for_other_processes() {
    use relaxide_runtime::cache::VARIABLE;
    if !has_device() {
        return;
    }
    let factor = |factor: f64| {
        let x = te::placeholder("x", [4], F32);
        let scaled = te::compute("scaled", [4], |i| x.at(i) * prim::constant(F32, factor));
        named(&te::create_prim_func(&[x, scaled]).unwrap(), "scaled")
    };
    let run = |by: f64| {
        let func = factor(by);
        let inputs = vec![relaxide_ffi::Tensor::from_slice(&[1.0_f32; 4], &[4]).unwrap()];
        let sample = Sample { func: func.clone(), inputs, outputs: vec![(vec![4], F32)], scalars: vec![] };
        let found = OPENCL.run(&OPENCL.library(&[OPENCL.lowered(&func).1]), "scaled", &sample).unwrap();
        match found[0][0] {
            relaxide_tir::interp::Scalar::Float(value) => value,
            ref other => panic!("{other:?}"),
        }
    };
    if std::env::var_os(CHILD).is_some() {
        println!("factors {} {}", run(2.0), run(3.0));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let child = || {
        let test = "opencl::what_a_driver_has_compiled_is_kept_for_other_processes";
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let done = command.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env(VARIABLE, folder.path()).output();
        let said = String::from_utf8_lossy(&done.unwrap().stdout).into_owned();
        said.lines().find(|line| line.contains("factors")).unwrap_or_else(|| panic!("{said}")).trim().to_string()
    };
    assert!(child().ends_with("factors 2 3"));
    let mut entries: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    assert_eq!(entries.len(), 2, "{entries:?}");
    let bytes = [&entries[0], &entries[1]].map(|path| std::fs::read(path).unwrap());
    let key_of = |bytes: &[u8]| 16 + u64::from_le_bytes(bytes[8..16].try_into().unwrap()) as usize;
    let [first, second] = [&bytes[0], &bytes[1]].map(|bytes| bytes.split_at(key_of(bytes)));
    std::fs::write(&entries[0], [first.0, second.1].concat()).unwrap();
    std::fs::write(&entries[1], [second.0, first.1].concat()).unwrap();
    assert!(child().ends_with("factors 3 2"));
    // A binary that is none is made anew.
    for (path, bytes) in entries.iter().zip(&bytes) {
        std::fs::write(path, &bytes[..key_of(bytes) + 4]).unwrap();
    }
    assert!(child().ends_with("factors 2 3"));
    assert!(child().ends_with("factors 2 3"));
}

#[test]
fn what_no_thread_does_is_refused() {
    let (a, i) = (Buffer::new("A", F32, [4]), Var::dim("i"));
    let store = || Stmt::store(&a, [PrimExpr::from(&i)], prim::constant(F32, 1.0));
    let split = |body: Stmt| {
        let func = named(&relaxide_tir::PrimFunc::over_buffers(std::slice::from_ref(&a), &[], body), "f");
        lower::split_device(&func, Device::OPENCL)
    };
    // Virtual threads are none of the device's.
    for body in [Stmt::serial(i.clone(), 4, store()), bound(&i, 4, "vthread.x", store())] {
        let error = split(body).unwrap_err().to_string();
        assert!(error.contains("outside of any thread"), "{error}");
    }
    // A kernel that binds its loops itself keeps them.
    assert_eq!(split(bound(&i, 4, "threadIdx.x", store())).unwrap().launches[0].tags, ["threadIdx.x"]);
}

/// Numbers of four and two bits, there and back, with sums that wrap and floats that are too large.
#[test]
fn elements_of_less_than_a_byte_share_bytes_on_the_device_too() {
    let types = [DataType::int(4), DataType::uint(4), DataType::int(2), DataType::uint(2)];
    let mut trials = Vec::new();
    for (at, from) in types.into_iter().enumerate() {
        let to = types[(at + 1) % types.len()];
        let (a, x) = (te::placeholder("A", [8], from), te::placeholder("X", [8], F32));
        let narrowed = te::compute("narrowed", [8], |i| prim::cast(to, x.at(i)) + prim::cast(to, a.at(i)));
        let back = te::compute("back", [8], |i| prim::cast(F32, narrowed.at(i)));
        let widened = te::compute("widened", [8], |i| prim::cast(F32, a.at(i)) * x.at(i));
        let name = format!("packed{at}");
        let func = te::create_prim_func(&[a, x, narrowed, back, widened]).unwrap();
        let bytes: Vec<u8> = (0..from.bytes_of(8).unwrap()).map(|i| (i * 91 + 37) as u8).collect();
        let inputs = vec![
            relaxide_ffi::Tensor::from_bytes(&bytes, &[8], from).unwrap(),
            relaxide_ffi::Tensor::from_slice(&[0.4_f32, -1.6, 100.0, -100.0, 2.5, f32::NAN, 3.0, -0.2], &[8]).unwrap(),
        ];
        let sample =
            Sample { func, inputs, outputs: vec![(vec![8], to), (vec![8], F32), (vec![8], F32)], scalars: vec![] };
        trials.push(OPENCL.trial(&name, sample));
    }
    for trial in &trials {
        for launch in lower::split_device(&trial.lowered, Device::OPENCL).unwrap().launches {
            let text = lower::decompose_packed(&launch.func).to_string();
            assert!(!text.contains("int4") && !text.contains("int2"), "{text}");
        }
    }
    if has_device() {
        OPENCL.agrees(&trials);
    }
}

/// Every code of every family of floats of eight bits and of four, and numbers of single and double precision that become such.
#[test]
fn floats_of_a_byte_and_less_are_rounded_on_the_device_too() {
    const COUNT: i64 = 512;
    let names = [
        "float8_e3m4",
        "float8_e4m3",
        "float8_e4m3b11fnuz",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn",
    ];
    let numbers: Vec<f64> = (0..COUNT)
        .map(|i| match i {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => 0.0,
            4 => -0.0,
            _ => {
                2f64.powi((i * 13 % 43) as i32 - 24)
                    * (1.0 + (i * 7919 % 64) as f64 / 64.0)
                    * [1.0, -1.0][(i % 2) as usize]
            }
        })
        .collect();
    let single: Vec<f32> = numbers.iter().map(|x| *x as f32).collect();
    let mut trials = Vec::new();
    for name in names {
        let small: DataType = name.parse().unwrap();
        let f64_ = DataType::float(64);
        let (a, x, d) = (
            te::placeholder("A", [COUNT], small),
            te::placeholder("X", [COUNT], F32),
            te::placeholder("D", [COUNT], f64_),
        );
        let cast = |name: &str, to, from: &te::Tensor| te::compute(name, [COUNT], |i| prim::cast(to, from.at(i)));
        let outs = [cast("wide", F32, &a), cast("narrow", small, &x), cast("of_double", small, &d)];
        let sum = te::compute("sum", [COUNT], |i| a.at(i) + prim::cast(small, x.at(i)));
        let func = te::create_prim_func(&[&[a.clone(), x, d][..], &outs, &[sum]].concat()).unwrap();
        let bytes: Vec<u8> = (0..small.bytes_of(COUNT as usize).unwrap()).map(|i| i as u8).collect();
        let inputs = vec![
            relaxide_ffi::Tensor::from_bytes(&bytes, &[COUNT], small).unwrap(),
            relaxide_ffi::Tensor::from_slice(&single, &[COUNT]).unwrap(),
            relaxide_ffi::Tensor::from_slice(&numbers, &[COUNT]).unwrap(),
        ];
        let outputs = [F32, small, small, small].map(|dtype| (vec![COUNT], dtype)).to_vec();
        trials.push(OPENCL.trial(name, Sample { func, inputs, outputs, scalars: vec![] }));
    }
    if has_device() {
        OPENCL.agrees(&trials);
    }
}
