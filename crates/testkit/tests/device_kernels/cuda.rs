//! Kernels for CUDA without a device: what becomes of them on the way to PTX runs on the processor, under a driver that has no device.
//!
//! The driver (`cuda/driver.c`) stands in the place of NVIDIA's, so that devices, memory, launches and faults are those of the runtime. Its
//! modules are libraries of the very functions that LLVM makes PTX of, compiled for the processor; threads run in turn from barrier to
//! barrier.

use std::path::Path;
use std::process::Command;

use crate::devices::{DeviceKind, F32, loaded, named};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target as Machine, TargetMachine};
use relaxide_codegen::{DeviceCode, backend};
use relaxide_ffi::{DataType, Device, Ref, Tensor};
use relaxide_ir::Target;
use relaxide_runtime::device::payload::Payload;
use relaxide_runtime::device::{Stream, copy_tensor, device_api, empty_tensor, on_host};
use relaxide_tir::{PrimFunc, te};

const CUDA: DeviceKind =
    DeviceKind { device: Device::new(Device::CUDA, 0), target: "cuda -arch=sm_80", changed: emulated };

/// Says that this process is one that the test has started, with the driver in its way.
const CHILD: &str = "RELAXIDE_TEST_WITH_DRIVER";

/// The functions of a device as a library for the processor, in the place of their PTX.
fn emulated(kernels: &[(Ref<PrimFunc>, Target)], code: DeviceCode) -> DeviceCode {
    let mut payload = Payload::read(&code.bytes).unwrap();
    assert_eq!((code.kind, payload.format.as_str()), ("cuda", "ptx"));
    let funcs: Vec<_> = kernels.iter().map(|(kernel, _)| kernel.clone()).collect();
    let text = backend(&kernels[0].1).unwrap().text(&funcs, &kernels[0].1, "ll").unwrap().unwrap();
    let mut text = text.lines().filter(|line| !line.starts_with("target ")).collect::<Vec<_>>().join("\n");
    text =
        text.replace("define ptx_kernel void", "define internal void").replace("@llvm.nvvm.read.ptx.sreg.", "@axis.");
    text.push_str("\n@thread_axes = global [6 x i32] zeroinitializer\n");
    for (at, axis) in ["ctaid.x", "ctaid.y", "ctaid.z", "tid.x", "tid.y", "tid.z"].into_iter().enumerate() {
        let declared = format!("declare i32 @axis.{axis}()");
        let place = format!("getelementptr ([6 x i32], ptr @thread_axes, i64 0, i64 {at})");
        let read = format!("define internal i32 @axis.{axis}() {{\n  %v = load i32, ptr {place}\n  ret i32 %v\n}}");
        text = text.replace(&declared, &read);
    }
    // Memory of a block is memory, for one block runs at a time.
    let as_memory = |line: &str| match line.split_once("= addrspacecast ptr ") {
        Some((value, of)) => {
            let of = of.trim_start_matches("addrspace(3) ").split(" to ptr").next().unwrap();
            format!("{value}= getelementptr i8, ptr {of}, i64 0")
        }
        None => line.replace("internal addrspace(3) global", "internal global").replace("ptr addrspace(3)", "ptr"),
    };
    text = text.lines().map(as_memory).collect::<Vec<_>>().join("\n");
    text = with_warps(&text);
    text = text.replace("declare void @llvm.nvvm.barrier0()", "").replace("@llvm.nvvm.barrier0", "@wait_for_block");
    text.push_str("\n@barrier_of_block = global ptr null\n");
    text.push_str("define internal void @wait_for_block() {\n  %f = load ptr, ptr @barrier_of_block\n  call void %f()\n  ret void\n}\n");
    for (_, info) in &payload.kernels {
        let mut body = String::new();
        let mut args = Vec::new();
        for (at, dtype) in info.types.iter().enumerate() {
            let ty = match (*dtype, dtype.bits) {
                (dtype, _) if dtype == DataType::handle() => "ptr".to_string(),
                (dtype, 32) if dtype.is_float() => "float".into(),
                (dtype, 64) if dtype.is_float() => "double".into(),
                (_, bits) => format!("i{bits}"),
            };
            body += &format!("  %s{at} = getelementptr ptr, ptr %args, i64 {at}\n  %p{at} = load ptr, ptr %s{at}\n");
            body += &format!("  %a{at} = load {ty}, ptr %p{at}\n");
            args.push(format!("{ty} %a{at}"));
        }
        let (name, args) = (&info.name, args.join(", "));
        text +=
            &format!("define void @{name}_emulated(ptr %args) {{\n{body}  call void @{name}({args})\n  ret void\n}}\n");
    }
    payload.format = "cubin".into();
    payload.code = library_of(&text);
    DeviceCode { kind: code.kind, bytes: payload.write() }
}

/// The text with calls of the driver in the place of what the threads of a warp do together.
fn with_warps(text: &str) -> String {
    let mut more = String::from("\n@warp_of_block = global ptr null\n");
    more.push_str(
        "define internal i32 @warp.round(float %x) {\n  %b = bitcast float %x to i32\n  %s = add i32 %b, 4096\n",
    );
    more.push_str("  %r = and i32 %s, -8192\n  ret i32 %r\n}\n");
    let is_of_warps =
        |line: &&str| ["mma", "ldmatrix", "shfl"].iter().any(|word| line.contains(&format!("@llvm.nvvm.{word}.")));
    for line in text.lines().filter(|line| line.starts_with("declare ")).filter(is_of_warps) {
        let (result, rest) = line.trim_start_matches("declare ").split_once(" @llvm.nvvm.").unwrap();
        let (name, params) = rest.trim_end_matches(')').split_once('(').unwrap();
        let params: Vec<&str> = params.split(", ").collect();
        let list: Vec<String> = params.iter().enumerate().map(|(at, ty)| format!("{ty} %a{at}")).collect();
        let stored: String = list
            .iter()
            .enumerate()
            .map(|(at, value)| {
                // What a thread has is in words of eight bytes.
                let place = format!("  %w{at} = getelementptr i64, ptr %words, i64 {at}\n");
                format!("{place}  store {value}, ptr %w{at}\n")
            })
            .collect();
        let length = name.len() + 1;
        more.push_str(&format!(
            "@name.{name} = internal constant [{length} x i8] c\"{name}\\00\"\n\
             define internal {result} @warp.{name}({}) {{\n  %words = alloca [16 x i64]\n  %out = alloca [4 x i32]\n{stored}  \
             %f = load ptr, ptr @warp_of_block\n  call void %f(ptr @name.{name}, ptr %words, ptr %out)\n  \
             %r = load {result}, ptr %out\n  ret {result} %r\n}}\n",
            list.join(", ")
        ));
    }
    let kept =
        text.lines().filter(|line| !line.starts_with("declare ") || !is_of_warps(line) && !line.contains("f2tf32"));
    let text = kept.collect::<Vec<_>>().join("\n");
    let text = text.replace("@llvm.nvvm.mma.", "@warp.mma.").replace("@llvm.nvvm.ldmatrix.", "@warp.ldmatrix.");
    let text = text.replace("@llvm.nvvm.shfl.", "@warp.shfl.");
    text.replace("@llvm.nvvm.f2tf32.rna", "@warp.round") + &more
}

fn library_of(text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    Machine::initialize_native(&InitializationConfig::default()).unwrap();
    let (triple, context) = (TargetMachine::get_default_triple(), Context::create());
    let machine = Machine::from_triple(&triple).unwrap().create_target_machine(
        &triple,
        "x86-64-v3",
        "",
        OptimizationLevel::Default,
        RelocMode::PIC,
        CodeModel::Default,
    );
    let text = std::ffi::CString::new(text).unwrap();
    let buffer = MemoryBuffer::create_from_memory_range(text.to_bytes(), "kernels");
    let module = context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{}", error.to_string_lossy()));
    let (object, library) = (folder.path().join("kernels.o"), folder.path().join("kernels.so"));
    machine.unwrap().write_to_file(&module, FileType::Object, &object).unwrap();
    compiled(&["-shared", "-o"], &library, &object, &["-lm"]);
    std::fs::read(library).unwrap()
}

fn compiled(options: &[&str], output: &Path, source: &Path, libraries: &[&str]) {
    let done = Command::new("cc").args(options).arg(output).arg(source).args(libraries).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Whether this is the process with the driver; if not, starts one that runs the same test.
fn with_driver(test: &str) -> bool {
    if std::env::var_os(CHILD).is_some() {
        relaxide_runtime::register();
        return true;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/device_kernels/cuda/driver.c");
    compiled(&["-shared", "-fPIC", "-Wall", "-Werror", "-o"], &folder.path().join("libcuda.so.1"), &source, &[]);
    let before = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("cuda::{test}"), "--nocapture"])
        .env(CHILD, "1")
        .env("LD_LIBRARY_PATH", format!("{}:{before}", folder.path().display()))
        .output()
        .unwrap();
    // A name that no test has is no failure to it.
    let has_run = String::from_utf8_lossy(&done.stdout).contains("1 passed");
    assert!(
        done.status.success() && has_run,
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    false
}

#[test]
fn random_kernels_compute_the_same_over_threads() {
    if with_driver("random_kernels_compute_the_same_over_threads") {
        CUDA.random_kernels(true);
    }
}

#[test]
fn threads_of_a_block_work_together() {
    if with_driver("threads_of_a_block_work_together") {
        CUDA.threads_together(true);
    }
}

#[test]
fn warps_multiply_matrices() {
    if with_driver("warps_multiply_matrices") {
        CUDA.warps_together();
    }
}

/// With `PTXAS=path` NVIDIA's assembler takes the kernels, and finds registers enough for them.
#[test]
fn the_assembler_takes_kernels_whose_threads_work_together() {
    let Some(assembler) = std::env::var_os("PTXAS") else {
        eprintln!("not assembled: `PTXAS` does not say where NVIDIA's assembler is");
        return;
    };
    for device in ["sm_80", "sm_90", "sm_100"] {
        let text = CUDA.text_of_teamwork(&format!("cuda -arch={device}"));
        assert!(
            text.contains("mma.sync.aligned.m16n8k16") && text.contains("ldmatrix") && text.contains("ld.global.v4")
        );
        assert!(text.contains("bar.sync") || text.contains("barrier.sync"), "{text}");
        assert!(
            text.contains("ld.shared.v4") && text.contains("st.shared"),
            "pointers of shared memory were not followed"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &text).unwrap();
        let done = Command::new(&assembler)
            .args(["-v", "-arch", device, "-o", "/dev/null"])
            .arg(file.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{said}");
        let spilled = said
            .lines()
            .find(|line| line.contains("spill") && !line.contains("0 bytes spill stores, 0 bytes spill loads"));
        assert!(spilled.is_none() && said.contains("0 bytes spill stores"), "{device}: {said}");
        eprintln!("{device}: {}", said.lines().filter(|line| line.contains("Used")).collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn vectors_that_a_program_writes() {
    if with_driver("vectors_that_a_program_writes") {
        CUDA.vectors_of_a_program(true);
    }
}

#[test]
fn an_index_outside_of_its_extent_is_an_error_and_the_device_goes_on() {
    if with_driver("an_index_outside_of_its_extent_is_an_error_and_the_device_goes_on") {
        CUDA.index_outside(true);
    }
}

/// Sines and cosines of any floats, without the math library that native code calls for large ones.
#[test]
fn angles_of_any_size_are_reduced_on_the_device() {
    if !with_driver("angles_of_any_size_are_reduced_on_the_device") {
        return;
    }
    let x = te::placeholder("x", [4096], F32);
    let one = |name: &'static str| {
        let x = x.clone();
        te::compute(name, [4096], move |i| relaxide_ir::prim::call(F32, format!("tirx.{name}"), vec![x.at(i)]))
    };
    let func = te::create_prim_func(&[x.clone(), one("sin"), one("cos")]).unwrap();
    let library = CUDA.library(&[CUDA.lowered(&named(&func, "angles")).1]);
    let values: Vec<f32> = (0..4096_u32).map(|i| f32::from_bits(0x3000_0000 + i * 325_000 % 0x4F80_0000)).collect();
    let there = copy_tensor(&Tensor::from_slice(&values, &[4096]).unwrap(), CUDA.device).unwrap();
    let results = [0, 1].map(|_| empty_tensor(&[4096], F32, CUDA.device).unwrap());
    let call = library.get_function("angles", true).unwrap();
    call.call(&[(&there).into(), (&results[0]).into(), (&results[1]).into()]).unwrap();
    let [sines, cosines] = results.map(|result| on_host(&result).unwrap().to_vec::<f32>().unwrap());
    for (at, x) in values.iter().enumerate() {
        let (sine, cosine) = f64::from(*x).sin_cos();
        assert!((f64::from(sines[at]) - sine).abs() < 2e-7, "sin {x}: {} for {sine}", sines[at]);
        assert!((f64::from(cosines[at]) - cosine).abs() < 2e-7, "cos {x}: {} for {cosine}", cosines[at]);
    }
}

/// How far a number is from another, in units of the last place of that.
fn in_last_places(found: f64, expected: f64, digits: i32) -> f64 {
    if found == expected || found.is_nan() && expected.is_nan() {
        return 0.0;
    }
    let exponent = expected.abs().max(f64::MIN_POSITIVE).log2().floor() as i32;
    (found - expected).abs() / 2f64.powf(f64::from((exponent - digits).max(-1074)))
}

type Reference = fn(f64) -> f64;

/// The error function: its series up to one, one less a continued fraction from there.
fn erf(x: f64) -> f64 {
    let (size, square) = (x.abs(), x * x);
    if x.is_nan() || size < 1e-150 {
        return x * std::f64::consts::FRAC_2_SQRT_PI;
    }
    let of_size = if size < 1.0 {
        let terms = (0..60).scan(size, |term, n| {
            let now = *term / f64::from(2 * n + 1);
            *term *= -square / f64::from(n + 1);
            Some(now)
        });
        terms.sum::<f64>() * std::f64::consts::FRAC_2_SQRT_PI
    } else {
        let fraction = (1..400).rev().fold(0.0, |fraction, n| f64::from(n) / 2.0 / (size + fraction));
        1.0 - (-square).exp() / std::f64::consts::PI.sqrt() / (size + fraction)
    };
    of_size.copysign(x)
}

/// Functions of doubles without a math library, held against the processor's.
#[test]
fn functions_of_doubles_are_computed_on_the_device() {
    if !with_driver("functions_of_doubles_are_computed_on_the_device") {
        return;
    }
    let sigmoid: Reference = |x| 1.0 / (1.0 + (-x).exp());
    // That of the standard library loses digits near one.
    let acosh: Reference = |x| match x - 1.0 {
        t if t.abs() < 1.0 => (t + (t * (t + 2.0)).sqrt()).ln_1p(),
        _ => x.acosh(),
    };
    let exp10: Reference = |x| 10f64.powf(x);
    // With the units that may be missing, and the largest argument that is tried beside the special ones.
    let functions: [(&'static str, Reference, f64, f64); 22] = [
        ("exp", f64::exp, 2.0, 750.0),
        ("exp2", f64::exp2, 2.0, 1080.0),
        ("exp10", exp10, 3.0, 326.0),
        ("expm1", f64::exp_m1, 5.0, 711.0),
        ("log", f64::ln, 3.0, 1e308),
        ("log2", f64::log2, 3.0, 1e308),
        ("log10", f64::log10, 3.0, 1e308),
        ("log1p", f64::ln_1p, 4.0, 1e308),
        ("sinh", f64::sinh, 8.0, 711.0),
        ("cosh", f64::cosh, 8.0, 711.0),
        ("tanh", f64::tanh, 8.0, 30.0),
        ("asinh", f64::asinh, 8.0, 1e300),
        ("acosh", acosh, 8.0, 1e300),
        ("atanh", |x| x.abs().atanh().copysign(x), 8.0, 1.0),
        ("sigmoid", sigmoid, 8.0, 700.0),
        ("sin", f64::sin, 2.0, 1e308),
        ("cos", f64::cos, 2.0, 1e308),
        ("tan", f64::tan, 4.0, 1e308),
        ("asin", f64::asin, 2.0, 1.0),
        ("acos", f64::acos, 2.0, 1.0),
        ("atan", f64::atan, 2.0, 1e308),
        ("erf", erf, 4.0, 7.0),
    ];
    let f64_ = DataType::float(64);
    let kernels = functions.map(|(name, ..)| {
        let x = te::placeholder("x", [4096], f64_);
        let y = te::compute("y", [4096], |i| relaxide_ir::prim::call(f64_, format!("tirx.{name}"), vec![x.at(i)]));
        CUDA.lowered(&named(&te::create_prim_func(&[x, y]).unwrap(), name)).1
    });
    let library = CUDA.library(&kernels);
    for (name, reference, most, largest) in functions {
        let special =
            [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.0, 5e-324, 1e-310, 1e-300, -1e-300];
        // They are spread evenly, over all magnitudes, and around one.
        let spread = (0..4096 - special.len()).map(|i| {
            let (at, sign) = (i as f64 / 4096.0, if i % 3 == 0 { -1.0 } else { 1.0 });
            let most = f64::log2(largest);
            match i / 3 % 3 {
                0 => sign * largest * at,
                1 => sign * 2f64.powf(most - 2.0 * (most + 60.0) * at),
                _ => sign * (0.5 + 1.5 * at),
            }
        });
        let values: Vec<f64> = special.into_iter().chain(spread).collect();
        let there = copy_tensor(&Tensor::from_slice(&values, &[4096]).unwrap(), CUDA.device).unwrap();
        let result = empty_tensor(&[4096], f64_, CUDA.device).unwrap();
        library.get_function(name, true).unwrap().call(&[(&there).into(), (&result).into()]).unwrap();
        let found = on_host(&result).unwrap().to_vec::<f64>().unwrap();
        let mut worst = (0.0, 0.0);
        for (x, found) in values.iter().zip(&found) {
            let expected = reference(*x);
            let off = in_last_places(*found, expected, 52);
            assert!(off <= most, "{name}({x:e}): {found:e} for {expected:e}, {off} units");
            worst = if off > worst.0 { (off, *x) } else { worst };
        }
        eprintln!("{name}: {} units at {:e}", worst.0, worst.1);
    }
}

#[test]
fn angles_and_lengths_of_points_are_computed_on_the_device() {
    if !with_driver("angles_and_lengths_of_points_are_computed_on_the_device") {
        return;
    }
    let (x, y) = (te::placeholder("x", [1024], F32), te::placeholder("y", [1024], F32));
    let of = |name: &'static str| {
        let (x, y) = (x.clone(), y.clone());
        te::compute(name, [1024], move |i| relaxide_ir::prim::call(F32, format!("tirx.{name}"), vec![y.at(i), x.at(i)]))
    };
    let func = te::create_prim_func(&[x.clone(), y.clone(), of("atan2"), of("hypot")]).unwrap();
    let library = CUDA.library(&[CUDA.lowered(&named(&func, "points")).1]);
    let some = [0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-40, 3e38, -2.5, 7e-20, -1e15];
    let pick = |i: usize| if i < 12 { some[i] } else { ((i * 37) as f32 - 500.0) * 0.37 };
    let values = [|i: usize| i % 32, |i: usize| i / 32].map(|at| (0..1024).map(|i| pick(at(i))).collect::<Vec<f32>>());
    let there = values
        .each_ref()
        .map(|values| copy_tensor(&Tensor::from_slice(values, &[1024]).unwrap(), CUDA.device).unwrap());
    let results = [0, 1].map(|_| empty_tensor(&[1024], F32, CUDA.device).unwrap());
    let args = [(&there[0]).into(), (&there[1]).into(), (&results[0]).into(), (&results[1]).into()];
    library.get_function("points", true).unwrap().call(&args).unwrap();
    let [angles, lengths] = results.map(|result| on_host(&result).unwrap().to_vec::<f32>().unwrap());
    for at in 0..1024 {
        let (x, y) = (values[0][at], values[1][at]);
        for (name, found, expected, most) in [
            ("atan2", angles[at], f64::from(y).atan2(f64::from(x)), 4.0),
            ("hypot", lengths[at], f64::from(y).hypot(f64::from(x)), 2.0),
        ] {
            let expected = if expected > f64::from(f32::MAX) { f64::INFINITY } else { expected };
            let off = if expected.abs() < 1e-37 { 0.0 } else { in_last_places(f64::from(found), expected, 23) };
            assert!(off <= most, "{name}({y:e}, {x:e}): {found:e} for {expected:e}");
            assert_eq!(found.is_sign_negative() && !found.is_nan(), expected.is_sign_negative() && !expected.is_nan());
        }
    }
}

#[test]
fn powers_and_angles_of_doubles_are_computed_on_the_device() {
    if !with_driver("powers_and_angles_of_doubles_are_computed_on_the_device") {
        return;
    }
    const COUNT: i64 = 64;
    let f64_ = DataType::float(64);
    let (x, y) = (te::placeholder("x", [COUNT * COUNT], f64_), te::placeholder("y", [COUNT * COUNT], f64_));
    let of = |name: &'static str| {
        let (x, y) = (x.clone(), y.clone());
        let body = move |i: &[relaxide_ir::PrimExpr]| {
            relaxide_ir::prim::call(f64_, format!("tirx.{name}"), vec![x.at(i), y.at(i)])
        };
        te::compute(name, [COUNT * COUNT], body)
    };
    let func =
        te::create_prim_func(&[x.clone(), y.clone(), of("pow"), of("atan2"), of("fmod"), of("nextafter")]).unwrap();
    let library = CUDA.library(&[CUDA.lowered(&named(&func, "doubles")).1]);
    let special = [0.0, 1.0, f64::INFINITY, f64::NAN, 0.5, 2.0, 3.0, 5e-324, 1e-310, 1e308, 1.0 + f64::EPSILON, 7e15];
    let pick = |at: i64| match at / 2 {
        n if n < special.len() as i64 => special[n as usize],
        n => 2f64.powf((n as f64 - 22.0) * 1.7) + n as f64 * 0.37,
    };
    let signed = |at: i64| if at % 2 == 1 { -pick(at) } else { pick(at) };
    let values = [|i: i64| i % COUNT, |i: i64| i / COUNT].map(|at| (0..COUNT * COUNT).map(|i| signed(at(i))).collect());
    let [xs, ys]: [Vec<f64>; 2] = values;
    let shape = [COUNT * COUNT];
    let there =
        [&xs, &ys].map(|values| copy_tensor(&Tensor::from_slice(values, &shape).unwrap(), CUDA.device).unwrap());
    let results = [0; 4].map(|_| empty_tensor(&shape, f64_, CUDA.device).unwrap());
    let args: Vec<relaxide_ffi::AnyView<'_>> = there.iter().chain(&results).map(|tensor| tensor.into()).collect();
    library.get_function("doubles", true).unwrap().call(&args).unwrap();
    let [powers, angles, remainders, next] = results.map(|result| on_host(&result).unwrap().to_vec::<f64>().unwrap());
    for (at, (x, y)) in xs.iter().zip(&ys).enumerate() {
        let beside = if x < y { x.next_up() } else { x.next_down() };
        let beside = if x == y { *y } else { beside };
        let beside = if y.is_nan() { *y } else { beside };
        for (name, found, expected, most) in [
            ("pow", powers[at], x.powf(*y), 2.0),
            ("atan2", angles[at], x.atan2(*y), 2.0),
            ("fmod", remainders[at], x % y, 0.0),
            ("nextafter", next[at], beside, 0.0),
        ] {
            let off = in_last_places(found, expected, 52);
            assert!(off <= most, "{name}({x:e}, {y:e}): {found:e} for {expected:e}, {off} units");
            assert!(
                expected.is_nan() || found.is_sign_negative() == expected.is_sign_negative(),
                "{name}({x:e}, {y:e})"
            );
        }
    }
}

#[test]
fn devices_copy_between_each_other_and_say_what_fails() {
    if !with_driver("devices_copy_between_each_other_and_say_what_fails") {
        return;
    }
    let (first, second) = (CUDA.device, Device::new(Device::CUDA, 1));
    let api = device_api(first).unwrap();
    assert!(api.exists(second) && !api.exists(Device::new(Device::CUDA, 2)));
    let here = Tensor::from_slice(&[1.5_f32, -2.0, 3.25], &[3]).unwrap();
    let back = copy_tensor(&copy_tensor(&here, first).unwrap(), second).unwrap();
    assert_eq!(on_host(&back).unwrap().to_vec::<f32>().unwrap(), [1.5, -2.0, 3.25]);
    let error = empty_tensor(&[1 << 40], F32, first).unwrap_err();
    assert_eq!(error.kind(), "MemoryError");
    assert!(error.message().contains("cuda:0") && error.message().contains("CUDA_ERROR_OUT_OF_MEMORY (2"), "{error}");
    let error = empty_tensor(&[1], F32, Device::new(Device::CUDA, 7)).unwrap_err();
    assert!(error.message().contains("cuda:7"), "{error}");
    let stream = api.create_stream(first).unwrap();
    api.set_stream(first, stream).unwrap();
    assert_eq!(api.current_stream(first), stream);
    api.order_streams(first, stream, Stream::DEFAULT).unwrap();
    api.synchronize(first, stream).unwrap();
    api.free_stream(first, stream).unwrap();
    assert_eq!(api.current_stream(first), Stream::DEFAULT);
    // Text that the driver refuses, with what it says.
    let payload = Payload {
        format: "ptx".into(),
        kernels: vec![(
            "f".into(),
            relaxide_runtime::device::payload::Info { name: "f".into(), types: vec![], tags: vec![] },
        )],
        code: b"nonsense".to_vec(),
    };
    let module = loaded(&DeviceCode { kind: "cuda", bytes: payload.write() }).unwrap();
    assert_eq!(module.body().inspect_source("").unwrap(), "nonsense");
    let error = module.get_function("f", false).unwrap().call(&[]).unwrap_err();
    assert!(error.message().contains("load a module of kernels") && error.message().contains("line 1"), "{error}");
    let payload = Payload { format: "cuda".into(), ..payload };
    let error = loaded(&DeviceCode { kind: "cuda", bytes: payload.write() }).err().unwrap();
    assert!(error.message().contains("compile it to PTX first"), "{error}");
}
