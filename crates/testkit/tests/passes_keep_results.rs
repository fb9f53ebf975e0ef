//! A program gives the same results with a pass and without.
//!
//! The programs are the inputs of the file tests in `tests/filetests/passes`; each is compiled and called on numbers that
//! follow from its parameters' types, once as it is and once behind each pass that changes it. So it is split over two devices by
//! chance.

#[path = "passes_keep_results/devices.rs"]
mod devices;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use relaxide::{CompileOptions, Pipeline};
use relaxide_ffi::{Any, Array, DataType, Device, Module, Shape, Tensor};
use relaxide_ir::Code;
use relaxide_ir::pass::{Pass, PassContext};
use relaxide_ir::prim::{PrimExpr, VarMap, free_vars, substitute};
use relaxide_ir::{IRModule, Target, Type, VDevice};
use relaxide_relax::{Function, transform};
use relaxide_runtime::device::on_host;
use relaxide_runtime::memory::AllocatorKind;
use relaxide_script::{parse_module, print_module};
use relaxide_testkit::device;
use relaxide_testkit::filetest::discover;
use relaxide_vm::VirtualMachine;

/// Passes that keep what a program computes, and how far results may be off.
const PASSES: &[(&str, f64)] = &[
    ("CanonicalizeBindings", 0.0),
    ("EliminateCommonSubexpr", 0.0),
    ("DeadCodeElimination", 0.0),
    ("ConvertToDataflow", 0.0),
    ("ConvertToDataflow(min_size=1)", 0.0),
    ("ExpandTupleArguments", 0.0),
    ("RemoveUnusedParameters", 0.0),
    ("RemoveUnusedOutputs", 0.0),
    ("InlinePrivateFunctions", 0.0),
    ("Normalize", 0.0),
    ("NormalizeGlobalVar", 0.0),
    ("TopologicalSort(depth-first, from-inputs)", 0.0),
    ("TopologicalSort(breadth-first, from-outputs)", 0.0),
    ("RemoveRedundantReshape", 0.0),
    ("AdjustMatmulOrder", 1e-5),
    ("ExpandMatmulOfSum", 1e-5),
    ("ReorderPermuteDimsAfterConcat", 0.0),
    ("ReorderTakeAfterMatmul", 1e-5),
    ("CombineParallelMatmul", 1e-5),
    ("FuseTransposeMatmul", 1e-5),
    ("ReadPermutedMatrix", 1e-5),
    ("FoldRepeatToMatmul", 1e-5),
    ("KeepAppends", 0.0),
    ("WinogradConv2D", 1e-4),
    ("PropagateConstants", 0.0),
    ("PackWeights", 1e-5),
    ("DecomposeOps", 1e-5),
    ("DecomposeOps(fast=True)", 1e-5),
    ("FoldBatchnormToConv2D(keep_training=True)", 1e-5),
    ("FoldScaleToConv2D", 1e-5),
    ("DecomposeOpsForInference(scale_first=True)", 1e-5),
    ("LambdaLift", 0.0),
    ("AllocateWorkspace", 0.0),
    ("DispatchSampling", 0.0),
    ("DispatchSortScan", 0.0),
    ("SpecializePrimFuncBasedOnCallSite", 0.0),
    ("DataflowUseInplaceCalls", 0.0),
    ("DataflowUseInplaceCalls, EliminateCommonSubexpr", 0.0),
    ("ConvertLayout({relax.nn.conv2d: [NHWC, OHWI]})", 1e-5),
    ("ConvertLayout({relax.nn.conv2d: [NCHW4c, OIHW4o]})", 1e-5),
    ("FastMathTransform", 1e-5),
    ("AttachAttrLayoutFreeBuffers", 0.0),
    ("SplitLayoutRewritePreproc", 0.0),
    ("OptimizeLayoutTransform", 0.0),
    ("AlterOpImpl({relax.add: packed}, {relax.add: ['C -> C4c', 'C -> C4c', 'C -> C4c']})", 0.0),
    (
        "AlterOpImpl({relax.add: packed}, {relax.add: ['C -> C4c', 'C -> C4c', 'C -> C4c']}), OptimizeLayoutTransform",
        0.0,
    ),
    ("ToMixedPrecision(float16)", 3e-2),
    ("ToMixedPrecision(float32)", 3e-2),
    ("FuseOpsByPattern([[my.matmul_relu, 'nn.relu(matmul(*, *))'], [my.any, 'exp(*)']])", 1e-5),
    (
        "FuseOpsByPattern([[my.matmul, 'matmul(*, *)'], [my.relu, 'nn.relu(*)']]), MergeCompositeFunctions, LambdaLift",
        1e-5,
    ),
    ("LegalizeOps, AnnotateTIROpPattern, FoldConstant, FuseOps, FuseTIR", 1e-5),
    ("LegalizeOps(fast=True), AnnotateTIROpPattern, FoldConstant, FuseOps, FuseTIR", 1e-5),
];

/// One program in so many is tried on a pass that it is not about.
const SHARE: usize = 5;

/// Programs that cannot be called as they are: they need functions or devices that are not here, or are lowered
/// already.
const DO_NOT_RUN: &[&str] = &[
    "bind_kernel_targets",
    "bind_symbolic_vars_simplifies",
    "bytecode_scalars",
    "call_tir_rewrite_refuses",
    "dispatch_sort_scan_cuda",
    "fast_math_unknown",
    "fold_constant_outside",
    "fuse_ops_scopes",
    "lazy_transform_params_apart",
    "legalize_collectives",
    "legalize_shape_to_tensor",
    "lift_transform_params_refuses",
    "lift_transform_params_shared",
    "normalize_global_var_refuses",
    "plan_packed_calls",
    "realize_vdevice_crossings",
    "specialize_kernels",
    "specialize_kernels_refuses",
    "view_own_results_copies",
];

/// Programs over a device that is not here: they run where their kernels are the host's, which `LegalizeOps` says of none of them.
const NEED_A_DEVICE_ONCE_LEGALIZED: &[&str] = &["dispatch_sampling_cuda", "gpu_schedules_refuses"];

/// Programs with a softmax of scores of some hundreds, of which float16 has no fractions, or with numbers that are rounded to integers.
const NOT_IN_HALVES: &[&str] = &["fuse_ops_images", "fuse_ops_products"];

/// The value of every symbolic dimension: one for all, so that programs that check dimensions against each other run.
const DIM: i64 = 4;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests/passes");
    let paths = match discover(&root) {
        Ok(paths) => paths,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let trials = paths.into_iter().map(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || check(&path).map_err(Failed::from))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let input = text.split("# ----\n").next().unwrap_or_default();
    let module = parse_module(input, "program").map_err(|e| e.to_string())?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let ran = call(&module);
    let (args, expected) = match (ran, DO_NOT_RUN.contains(&name.as_str())) {
        (Ok(ran), false) => ran,
        (Err(_), true) => return Ok(()),
        (Ok(_), true) => return Err("it runs, but is listed as one that does not".into()),
        (Err(problem), false) => return Err(format!("it does not run: {problem}")),
    };
    let mut wrong = Vec::new();
    for (i, (passes, tolerance)) in PASSES.iter().enumerate() {
        let is_elsewhere = passes.starts_with("LegalizeOps,") && NEED_A_DEVICE_ONCE_LEGALIZED.contains(&name.as_str());
        let is_unlike = passes.starts_with("ToMixedPrecision") && NOT_IN_HALVES.contains(&name.as_str());
        if is_elsewhere || is_unlike || !is_chosen(&name, i, passes) {
            continue;
        }
        if let Err(problem) = compare(&module, passes, &args, &expected, *tolerance) {
            wrong.push(format!("{passes}: {problem}"));
        }
    }
    let seeds = if std::env::var_os("RELAXIDE_DEEP").is_some() { 24 } else { 2 };
    let first = name.len() as u32;
    for seed in first..first + seeds {
        if let Err(problem) = compare_split(&module, seed, &args, &expected) {
            wrong.push(format!("split over two devices, seed {seed}: {problem}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Arguments of `main` and what it returns for them.
fn call(module: &IRModule) -> Result<(Vec<Any>, Vec<f64>), String> {
    let main = module.get_as::<Function>("main").ok_or("there is no main")?;
    let args = main.params.iter().enumerate().map(|(i, p)| argument(i, &p.ty)).collect::<Option<Vec<_>>>();
    let args = args.ok_or("no arguments can be made up")?;
    let expected = results(module, &args)?;
    Ok((args, expected))
}

/// A deep run takes every pass on every program; others take those that the program is about and a share of the rest.
fn is_chosen(program: &str, index: usize, passes: &str) -> bool {
    let about = passes.to_lowercase().contains(&program.replace('_', ""));
    let share = program.len() % SHARE == index % SHARE;
    about || share || std::env::var_os("RELAXIDE_DEEP").is_some()
}

fn compare(module: &IRModule, passes: &str, args: &[Any], expected: &[f64], tolerance: f64) -> Result<(), String> {
    let sequence = Pass::sequential("passes", transform::parse_passes(passes).map_err(|e| e.to_string())?);
    let context = PassContext { instruments: vec![transform::verify()], ..PassContext::default() };
    // A refusal is no result to compare.
    let changed = match sequence.run(module.clone(), &context) {
        Ok(changed) => changed,
        Err(error) if error.refusal.code == Code::BrokenByPass => return Err(error.to_string()),
        Err(_) => return Ok(()),
    };
    if changed.functions == module.functions {
        return Ok(());
    }
    let found = results(&changed, args)?;
    // What half of a float cannot hold is infinite where that is computed with.
    let overflows = |a: f64, b: f64| passes.starts_with("ToMixedPrecision") && a.abs() > 65504.0 && b.is_infinite();
    agree(expected, &found, tolerance, overflows)
}

/// The program split over two devices: a second CPU, or one whose memory only its own kernels reach.
fn compare_split(module: &IRModule, seed: u32, args: &[Any], expected: &[f64]) -> Result<(), String> {
    // Some programs name devices of their own.
    if !module.vdevices.is_empty() {
        return Ok(());
    }
    let second = if seed.is_multiple_of(2) { Device::cpu(1) } else { Device::new(device::TYPE, 0) };
    let target = match second.device_type {
        device::TYPE => format!(r#"{{"kind": "llvm", "target_device_type": {}}}"#, device::TYPE),
        _ => "llvm".to_string(),
    };
    let target: Target = target.parse().map_err(|e| format!("{e:?}"))?;
    let vdevices = [
        VDevice::new("llvm".parse().map_err(|e| format!("{e:?}"))?, 0, "global"),
        VDevice::new(target, second.device_id.into(), "global"),
    ];
    let Ok(changed) = devices::split(module.clone(), vdevices, seed) else { return Ok(()) };
    // TVM's pipelines leave devices to their users; the default finds them itself.
    let context = PassContext::default();
    let realized = || make("RealizeVDevice")?.run(changed.clone(), &context).map_err(|e| e.to_string());
    let library = match seed / 2 % 3 {
        0 => match compiled(&changed, Pipeline::Default) {
            // What this pipeline refuses of the program as it is, it may refuse here.
            Err(_) if compiled(module, Pipeline::Default).is_err() => return Ok(()),
            library => library?,
        },
        1 => compiled(&realized()?, Pipeline::DefaultBuild)?,
        _ => {
            let passes = transform::pipeline("cpu_generic").ok_or("there is no such pipeline")?;
            match passes.run(realized()?, &context) {
                Err(_) if passes.run(module.clone(), &context).is_err() => return Ok(()),
                // Passes that have run find nothing more to do.
                lowered => compiled(&lowered.map_err(|e| e.to_string())?, Pipeline::DefaultBuild)?,
            }
        }
    };
    let program = device::program(&library).map_err(|e| e.to_string())?;
    let machine = machine(&program, &[Device::cpu(0), second])?;
    let found = numbers(&machine, args).and_then(|found| agree(expected, &found, 1e-5, |_, _| false));
    found.map_err(|problem| format!("{problem}\n{}", print_module(&changed)))
}

fn machine(program: &Module, devices: &[Device]) -> Result<VirtualMachine, String> {
    let devices: Vec<_> = devices.iter().map(|device| (*device, AllocatorKind::Pooled)).collect();
    VirtualMachine::new(program, &devices).map_err(|e| e.to_string())
}

fn agree(expected: &[f64], found: &[f64], tolerance: f64, overflows: impl Fn(f64, f64) -> bool) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{} numbers instead of {}", found.len(), expected.len()));
    }
    let off = |(a, b): (&f64, &f64)| {
        (a - b).abs() > tolerance * (1.0 + a.abs()) && !(a.is_nan() && b.is_nan()) && !overflows(*a, *b)
    };
    match expected.iter().zip(found).position(off) {
        Some(i) => Err(format!("number {i} is {} instead of {}", found[i], expected[i])),
        None => Ok(()),
    }
}

/// All numbers of the result of `main`.
fn results(module: &IRModule, args: &[Any]) -> Result<Vec<f64>, String> {
    machine(&compiled(module, Pipeline::DefaultBuild)?, &[Device::cpu(0)]).and_then(|machine| numbers(&machine, args))
}

fn make(pass: &str) -> Result<Pass, String> {
    transform::make_pass(pass, &relaxide_ir::Attrs::new()).map_err(|e| e.to_string())
}

fn compiled(module: &IRModule, pipeline: Pipeline) -> Result<Module, String> {
    let mut options = CompileOptions { pipeline, ..CompileOptions::default() };
    let module = make("LambdaLift")?.run(module.clone(), &PassContext::default()).map_err(|e| e.to_string())?;
    let executable = relaxide::compile(&module, &mut options).map_err(|e| e.to_string())?;
    executable.jit().map_err(|e| e.to_string())
}

fn numbers(machine: &VirtualMachine, args: &[Any]) -> Result<Vec<f64>, String> {
    let views: Vec<_> = args.iter().map(Any::as_view).collect();
    let result = machine.invoke("main", &views).map_err(|e| e.to_string())?;
    let mut numbers = Vec::new();
    flatten(&result, &mut numbers);
    Ok(numbers)
}

fn flatten(value: &Any, out: &mut Vec<f64>) {
    if let Ok(tensor) = value.to::<Tensor>() {
        let numbers = on_host(&tensor).ok().and_then(|tensor| relaxide_relax::constant::as_floats(&tensor));
        out.extend(numbers.unwrap_or_default());
    } else if let Ok(shape) = value.to::<Shape>() {
        out.extend(shape.as_slice().iter().map(|d| *d as f64));
    } else if let Ok(array) = value.to::<Array>() {
        array.iter().for_each(|item| flatten(item, out));
    } else if let Some(number) = value.as_int() {
        out.push(number as f64);
    }
}

/// A value of a type; `None` where there is none to make up.
fn argument(seed: usize, ty: &Type) -> Option<Any> {
    match ty {
        Type::Tensor(t) => {
            let dims: Vec<i64> = t.shape.as_ref()?.iter().map(dim).collect::<Option<_>>()?;
            tensor(seed, &dims, t.dtype).map(Any::from)
        }
        Type::Shape(s) => {
            let dims: Vec<i64> = s.values.as_ref()?.iter().map(dim).collect::<Option<_>>()?;
            Some(Any::from(Shape::new(&dims)))
        }
        Type::Tuple(t) => {
            let fields: Vec<Any> =
                t.fields.iter().enumerate().map(|(i, f)| argument(seed * 7 + i, f)).collect::<Option<_>>()?;
            Some(Any::from(Array::from_vec(fields)))
        }
        Type::Prim(_) => Some(Any::from(DIM)),
        _ => None,
    }
}

fn dim(e: &PrimExpr) -> Option<i64> {
    let values: VarMap = free_vars(e).into_iter().map(|v| (v, PrimExpr::from(DIM))).collect();
    relaxide_ir::arith::Analyzer::new().simplify(&substitute(e, &values)).as_int()
}

/// Small numbers, none of them zero where the type has fractions.
fn tensor(seed: usize, dims: &[i64], dtype: DataType) -> Option<Tensor> {
    let count = usize::try_from(dims.iter().product::<i64>()).ok()?;
    let number = |i: usize| ((i * 37 + seed * 11) % 23) as f32 / 23.0 + 0.1;
    match (dtype.code, dtype.bits) {
        (DataType::FLOAT, 32) => Tensor::from_slice(&(0..count).map(number).collect::<Vec<f32>>(), dims).ok(),
        (DataType::INT, 64) => Tensor::from_slice(&(0..count).map(|i| (i % 2) as i64).collect::<Vec<_>>(), dims).ok(),
        (DataType::INT, 32) => Tensor::from_slice(&(0..count).map(|i| (i % 2) as i32).collect::<Vec<_>>(), dims).ok(),
        (DataType::UINT | DataType::INT, 8) => {
            let bytes: Vec<u8> = (0..count).map(|i| (i * 37 + seed * 11) as u8).collect();
            Tensor::from_bytes(&bytes, dims, dtype).ok()
        }
        (DataType::BOOL, _) => Tensor::from_bytes(&vec![1; count], dims, dtype).ok(),
        _ => None,
    }
}
