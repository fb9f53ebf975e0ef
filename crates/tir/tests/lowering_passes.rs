//! Every pass of the table keeps what kernels compute, alone and behind others, and gives kernels that are well-formed.

use std::cell::RefCell;
use std::collections::BTreeMap;

use relaxide_ffi::DataType;
use relaxide_ir::pass::{PassContext, PassError, PassInfo};
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};
use relaxide_ir::{AttrValue, Attrs, IRModule};

use relaxide_tir::interp::{InterpError, Scalar};
use relaxide_tir::lower::{PASSES, pass};
use relaxide_tir::testing::{Options, ProgramOptions, Random, Sample, check_seeds, program, reschedule, sample_from};
use relaxide_tir::verify::verify;
use relaxide_tir::{IfThenElse, PrimFunc, Stmt, StmtMutator};

fn is_bf16(dtype: DataType) -> bool {
    dtype.element() == DataType::bfloat16()
}

fn is_fp8(dtype: DataType) -> bool {
    dtype.is_float() && dtype.bits == 8
}

/// What is tried: the passes of the table, with parameters where they need some.
pub(crate) fn rows() -> impl Iterator<Item = (&'static PassInfo, Attrs)> {
    PASSES.iter().map(|pass| {
        let args = match pass.name {
            "tirx.transform.NarrowDataType" => Attrs::new().with("target_bits", 32),
            "tirx.transform.BindTarget" => Attrs::new().with("target", "llvm"),
            "s_tir.transform.ThreadSync" => Attrs::new().with("storage_scope", "shared"),
            _ => Attrs::new(),
        };
        (pass, args)
    })
}

/// Passes that are meant to change what a kernel does: index arithmetic of fewer bits, fewer roundings, other parameters,
/// fewer checks.
pub(crate) const OTHER_RESULTS: [&str; 5] = [
    "tirx.transform.BF16ComputeLegalize",
    "tirx.transform.ForceNarrowIndexToInt32",
    "tirx.transform.BF16StorageLegalize",
    "tirx.transform.FP8StorageLegalize",
    "tirx.transform.SkipAssert",
];

/// A context in which every loop may be partitioned.
fn context() -> PassContext {
    let mut context = PassContext::default();
    let all = [("partition_const_loop".to_string(), AttrValue::Bool(true))];
    context.config.set("s_tir.LoopPartition", AttrValue::Map(all.into_iter().collect())).unwrap();
    context
}

pub(crate) fn run(pass: &PassInfo, args: &Attrs, func: &PrimFunc) -> Result<PrimFunc, PassError> {
    let mut module = IRModule::new();
    module.insert("kernel", relaxide_ffi::Ref::new(func.clone()));
    let module = pass.make(args)?.run(module, &context())?;
    let (_, made) = module.functions_of::<PrimFunc>().next().expect("a pass keeps kernels");
    Ok((*made).clone())
}

/// Whether two results agree, bit for bit.
pub(crate) fn agree(found: &[Vec<Scalar>], expected: &[Vec<Scalar>]) -> bool {
    let same = |a: &Scalar, b: &Scalar| match (*a, *b) {
        (Scalar::Float(a), Scalar::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (a, b) => a == b,
    };
    found.iter().zip(expected).all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)))
}

/// Runs passes one behind the other and looks at what each has made.
fn check(
    sample: &Sample,
    func: PrimFunc,
    passes: &[(&'static PassInfo, Attrs)],
    changed: &RefCell<BTreeMap<&'static str, usize>>,
) -> Result<(), String> {
    let story = |what: String| format!("{what}\n{}", sample.func);
    let expected = sample.interpret(&func).map_err(|e| story(e.to_string()))?;
    let mut func = func;
    for (pass, args) in passes {
        let before = func.to_string();
        func = run(pass, args, &func).map_err(|e| story(format!("{e}\n{before}")))?;
        let after = func.to_string();
        if after == before {
            continue;
        }
        *changed.borrow_mut().entry(pass.name).or_default() += 1;
        verify(&func).map_err(|e| story(format!("behind {}: {e}\n{before}\n{after}", pass.name)))?;
        let found =
            sample.interpret(&func).map_err(|e| story(format!("behind {}: {e}\n{before}\n{after}", pass.name)))?;
        if !agree(&found, &expected) {
            return Err(story(format!("behind {}: other results\n{before}\n{after}", pass.name)));
        }
    }
    Ok(())
}

fn draw(random: &mut Random) -> Result<(Sample, PrimFunc), String> {
    if random.one_in(2) {
        let program = program(random, ProgramOptions::default());
        let func = program.sample.func.clone();
        return Ok((program.sample, func));
    }
    let options = Options { transcendental: true, ..Options::default() };
    let sample = sample_from(random, options).map_err(|e| e.to_string())?;
    let seed = random.between(0, 1 << 30);
    let func = if random.one_in(2) { sample.func.clone() } else { reschedule(&sample.func, seed as u64) };
    Ok((sample, func))
}

pub(crate) fn count(usual: u64) -> u64 {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { usual * 40 } else { usual }
}

#[test]
fn each_pass_keeps_what_kernels_compute() {
    let changed = RefCell::default();
    check_seeds(count(60), &|random| {
        let (sample, func) = draw(random)?;
        for row in rows().filter(|(pass, _)| !OTHER_RESULTS.contains(&pass.name)) {
            check(&sample, func.clone(), &[row], &changed)?;
        }
        Ok(())
    });
    for wanted in [
        "s_tir.transform.LowerInitBlock",
        "s_tir.transform.ConvertBlocksToOpaque",
        "s_tir.transform.LowerOpaqueBlock",
        "tirx.transform.CommonSubexprElim",
    ] {
        assert!(changed.borrow().contains_key(wanted), "{wanted} changed nothing: {changed:?}");
    }
}

#[test]
fn passes_in_any_order_keep_what_kernels_compute() {
    let changed = RefCell::default();
    let rows: Vec<_> = rows().filter(|(pass, _)| !OTHER_RESULTS.contains(&pass.name)).collect();
    check_seeds(count(100), &|random| {
        let (sample, func) = draw(random)?;
        let passes: Vec<_> = (0..8).map(|_| rows[random.below(rows.len())].clone()).collect();
        check(&sample, func, &passes, &changed)
    });
    for wanted in ["tirx.transform.UnrollLoop", "tirx.transform.StorageRewrite"] {
        assert!(changed.borrow().contains_key(wanted), "{wanted} changed nothing: {changed:?}");
    }
}

/// Marks every condition as likely.
struct Likely;

fn likely(condition: &PrimExpr) -> PrimExpr {
    prim::call(condition.dtype(), "tirx.likely", vec![condition.clone()])
}

impl PrimMutator for Likely {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match self.remake_prim(e) {
            PrimExpr::Select(n) if n.condition.dtype().lanes == 1 => {
                prim::select(likely(&n.condition), &n.true_value, &n.false_value)
            }
            e => e,
        }
    }
}

impl StmtMutator for Likely {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match self.remake_stmt(stmt) {
            Stmt::If(n) => {
                let (then_case, else_case) = (n.then_case.clone(), n.else_case.clone());
                relaxide_ffi::Ref::new(IfThenElse { condition: likely(&n.condition), then_case, else_case }).into()
            }
            stmt => stmt,
        }
    }
}

#[test]
fn partitioned_loops_compute_the_same() {
    let changed = RefCell::default();
    let (blocks, partition) = (pass("LowerOpaqueBlock").unwrap(), pass("LoopPartition").unwrap());
    check_seeds(count(60), &|random| {
        let (sample, func) = draw(random)?;
        let func = run(blocks, &Attrs::new(), &func).map_err(|e| e.to_string())?;
        let func = func.with_body(Likely.mutate_stmt(&func.body));
        check(&sample, func, &[(partition, Attrs::new())], &changed)
    });
    assert!(!changed.borrow().is_empty());
}

#[test]
fn hand_written_order_of_blocks_keeps_what_scheduled_kernels_compute() {
    let changed = RefCell::default();
    let order = [
        "LowerInitBlock",
        "PlanAndUpdateBufferAllocationLocation",
        "ConvertBlocksToOpaque",
        "CompactBufferAllocation",
        "LowerMatchBuffer",
        "LowerOpaqueBlock",
        "FlattenBuffer",
        "StorageRewrite",
        "CommonSubexprElim",
    ];
    let passes: Vec<_> = order.iter().map(|name| (pass(name).unwrap(), Attrs::new())).collect();
    check_seeds(count(60), &|random| {
        let sample = sample_from(random, Options::default()).map_err(|e| e.to_string())?;
        let samples = random.between(1, 1000);
        let drawn =
            relaxide_tir::testing::schedule_from(random, &sample.func, samples, 12).map_err(|e| e.to_string())?;
        let func = drawn.func().ok_or("no kernel is left")?;
        // Whether copies of layouts read what nobody wrote is asked where schedules are tested.
        match sample.interpret(&func) {
            Err(InterpError::Unwritten { .. }) => Ok(()),
            _ => check(&sample, (*func).clone(), &passes, &changed),
        }
    });
    for wanted in ["s_tir.transform.PlanAndUpdateBufferAllocationLocation", "s_tir.transform.CompactBufferAllocation"] {
        assert!(changed.borrow().contains_key(wanted), "{wanted} changed nothing: {changed:?}");
    }
}

/// In a wider type nothing is computed where it was not, and sums of products are nearly what they were.
#[test]
fn what_is_computed_in_a_wider_type_is_rounded_less() {
    let promote = pass("BF16ComputeLegalize").unwrap();
    let changed = RefCell::new(0);
    check_seeds(200, &|random| {
        let sample = sample_from(random, Options::default()).map_err(|e| e.to_string())?;
        let expected = sample.interpret(&sample.func).map_err(|e| e.to_string())?;
        let made = run(promote, &Attrs::new(), &sample.func).map_err(|e| e.to_string())?;
        *changed.borrow_mut() += usize::from(made.to_string() != sample.func.to_string());
        verify(&made).map_err(|e| format!("{e}\n{made}"))?;
        let found = sample.interpret(&made).map_err(|e| format!("{e}\n{made}"))?;
        for ((found, expected), (_, dtype)) in found.iter().zip(&expected).zip(&sample.outputs) {
            for (found, expected) in found.iter().zip(expected) {
                let near = match (*found, *expected) {
                    (Scalar::Float(a), Scalar::Float(b)) => {
                        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 0.05 * (1.0 + b.abs())
                    }
                    (a, b) => a == b,
                };
                if !near && is_bf16(*dtype) {
                    return Err(format!("{found:?} for {expected:?}\n{}\n{made}", sample.func));
                }
            }
        }
        Ok(())
    });
    assert!(*changed.borrow() > 0, "no kernel was changed");
}

#[test]
fn memory_of_bits_holds_the_same_bits() {
    let storage = pass("BF16StorageLegalize").unwrap();
    check_seeds(count(60), &|random| {
        let (sample, func) = draw(random)?;
        let expected = sample.interpret(&func).map_err(|e| e.to_string())?;
        let made = run(storage, &Attrs::new(), &func).map_err(|e| e.to_string())?;
        verify(&made).map_err(|e| format!("{e}\n{made}"))?;
        let bits = |dtype: DataType| match is_bf16(dtype) || is_fp8(dtype) {
            true => DataType::uint(dtype.bits),
            false => dtype,
        };
        let view = |tensor: &relaxide_ffi::Tensor| {
            let bytes = tensor.to_bytes()?;
            relaxide_ffi::Tensor::from_bytes(&bytes, tensor.shape(), bits(tensor.dtype()))
        };
        let inputs =
            sample.inputs.iter().map(view).collect::<relaxide_ffi::Result<Vec<_>>>().map_err(|e| e.to_string())?;
        let outputs = sample.outputs.iter().map(|(shape, dtype)| (shape.clone(), bits(*dtype))).collect();
        let of_bits = Sample { inputs, outputs, ..sample.clone() };
        let found = of_bits.interpret(&made).map_err(|e| format!("{e}\n{func}\n{made}"))?;
        for ((found, expected), (_, dtype)) in found.iter().zip(&expected).zip(&sample.outputs) {
            let bytes = |list: &[Scalar], dtype| list.iter().flat_map(|s| s.to_bytes(dtype)).collect::<Vec<u8>>();
            if bytes(found, bits(*dtype)) != bytes(expected, *dtype) {
                return Err(format!("other bits\n{func}\n{made}"));
            }
        }
        Ok(())
    });
}

#[test]
fn forced_narrow_indices_compute_the_same_where_they_fit() {
    let force = pass("ForceNarrowIndexToInt32").unwrap();
    let changed = RefCell::default();
    check_seeds(count(30), &|random| {
        let options = Options { all_dtypes: false, ..Options::default() };
        let sample = sample_from(random, options).map_err(|e| e.to_string())?;
        // What does not fit is refused.
        match run(force, &Attrs::new(), &sample.func) {
            Err(error) if error.to_string().contains("does not fit 32 bits") => return Ok(()),
            _ if sample.func.buffers.iter().flatten().any(|b| b.dtype == DataType::int(64)) => return Ok(()),
            _ => {}
        }
        check(&sample, sample.func.clone(), &[(force, Attrs::new())], &changed)
    });
    assert!(!changed.borrow().is_empty());
}
