//! The table of kernel passes.
//!
//! [`PASSES`] is read by everything that runs a pass by its name: the command line, Python (`tirx.transform`,
//! `s_tir.transform`), the file tests, and [`lower`](super::lower) itself, whose order is a list of rows. A row is the constant
//! `PASS` of the pass's own file.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassInfo, PassResult, Refusal};
use relaxide_ir::{BaseFunc, Code, IRModule, workers};

use super::*;

/// Every pass over kernels, by its full name.
pub static PASSES: &[PassInfo] = &[
    annotate::TARGET,
    crate::schedule::PASS,
    single_definition::PASS,
    views::PASS,
    single_definition::SCHEDULABLE,
    canonical_loop::PASS,
    init_block::PASS,
    plan_allocations::PASS,
    opaque_blocks::PASS,
    compact_allocations::PASS,
    match_buffer::PASS,
    simplify::SCHEDULABLE,
    irregular_loop::PASS,
    blocks::PASS,
    bounds::PASS,
    flatten::PASS,
    promote_floats::BF16,
    narrow::PASS,
    force_narrow::PASS,
    loop_partition::PASS,
    vectorize::PASS,
    virtual_thread::PASS,
    double_buffer::PASS,
    software_pipeline::PASS,
    hoist::PASS,
    hoist_conditions::PASS,
    hoist_expression::PASS,
    unroll::PASS,
    split_pattern::PASS,
    simplify::PASS,
    no_op::PASS,
    unsafe_select::PASS,
    common_subexpr::PASS,
    promote_floats::FP8,
    verify_memory::PASS,
    annotate::ENTRY,
    drop_statements::UNDEF,
    drop_statements::ASSUME,
    drop_statements::ASSERT,
    float_storage::FP8,
    float_storage::BF16,
    unify_threads::PASS,
    thread_sync::PASS,
    thread_allreduce::PASS,
    merge_shared::PASS,
    use_assumptions::PASS,
    rewritten_weights::PASS,
    split_device::PASS,
    inline_kernels::PASS,
    lower_intrin::PASS,
    profile_intrinsics::PASS,
];

/// Why a pass of TVM is not here, and what to do instead.
pub fn absent(name: &str) -> Option<&'static str> {
    let short = name.rsplit('.').next().unwrap_or(name);
    ABSENT.iter().find(|(names, _)| names.contains(&short)).map(|(_, why)| *why)
}

/// Passes of TVM that have no row, and why.
const ABSENT: &[(&[&str], &str)] = &[
    (
        &["MakePackedAPI", "LowerTVMBuiltin", "PointerValueTypeRewrite"],
        "code generation does this itself: `compile` or `build` takes the kernel as it is",
    ),
    (
        &[
            "LowerCrossThreadReduction",
            "LiftThreadBinding",
            "ManifestSharedMemoryLocalStage",
            "LowerAutoCopy",
            "InjectPermutedLayout",
            "TransformMmaBufferLayout",
            "InferFragment",
            "LowerWarpMemory",
            "InjectPTXAsyncCopy",
            "InjectPTXLDG32",
            "LowerAsyncDMA",
            "LowerVtcmAlloc",
            "VerifyVTCMLimit",
            "DefaultGPUSchedule",
            "DecorateDeviceScope",
        ],
        "it is about memory that the threads of a device share: code generation sees to its barriers and limits, and kernels here have no other kinds of it",
    ),
];

/// The row of a pass: by its full name, by the name that TVM prints (`tirx.UnrollLoop`), by that of older versions
/// (`tir.transform.UnrollLoop`), or by its last part alone, where the first pass of that name is meant.
pub fn pass(name: &str) -> Option<&'static PassInfo> {
    let (space, short) = name.rsplit_once('.').unwrap_or(("", name));
    let space = space.strip_suffix(".transform").unwrap_or(space);
    let named = |pass: &&PassInfo| {
        let rest = pass.name.strip_suffix(short).and_then(|rest| rest.strip_suffix(".transform."));
        rest.is_some_and(|own| own == space || matches!(space, "" | "tir"))
    };
    PASSES.iter().find(named)
}

/// What a pass does with one kernel, of which it is told the name.
type KernelRun<'a> = &'a (dyn Fn(&str, &PrimFunc) -> Result<PrimFunc, Refusal> + Sync);

/// Runs a pass of one kernel on all kernels of a module, whose loops count by one then, on as many threads as there are cores. The first kernel in order that
/// is refused is told.
pub(crate) fn on_kernels(module: IRModule, name: &'static str, run: KernelRun) -> PassResult {
    let mut module = module_of_unit_steps(module, name)?;
    let kernels: Vec<(String, Ref<PrimFunc>)> =
        module.functions_of::<PrimFunc>().map(|(symbol, kernel)| (symbol.to_string(), kernel)).collect();
    let results = workers::map(&kernels, |_, (symbol, kernel)| run(symbol, kernel), |_| ());
    for (result, (symbol, _)) in results.into_iter().zip(&kernels) {
        let died = || Err(Refusal::new(Code::Kernel, "the thread that worked on it ended early"));
        let made = result.unwrap_or_else(died);
        let made = made.map_err(|why| PassError::new(name, why.within(&format!("kernel `{symbol}`"))))?;
        module.functions.insert(symbol.clone(), BaseFunc::from(Ref::new(made)));
    }
    Ok(module)
}

/// The row of a pass that looks at one kernel at a time and can be told nothing.
macro_rules! kernel_pass {
    ($name:literal, $doc:literal, $run:path) => {
        ::relaxide_ir::pass::PassInfo::new($name, $doc, |module, _, _| {
            $crate::lower::table::on_kernels(module, $name, &|_, func| Ok($run(func)?))
        })
    };
}

/// The row of a pass that looks at one kernel at a time, at the context and at its parameters.
macro_rules! kernel_pass_with {
    ($name:literal, $doc:literal, |$func:ident, $context:tt, $args:tt| $run:expr) => {
        ::relaxide_ir::pass::PassInfo::new($name, $doc, |module, $context, $args| {
            $crate::lower::table::on_kernels(module, $name, &|_, $func| {
                let run = || -> Result<$crate::PrimFunc, $crate::lower::LowerError> { $run };
                Ok(run()?)
            })
        })
    };
}

pub(super) use {kernel_pass, kernel_pass_with};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_found_by_each_of_its_names() {
        for row in PASSES {
            let (space, short) = row.name.split_once(".transform.").unwrap();
            assert!(matches!(space, "tirx" | "s_tir"), "{}", row.name);
            assert_eq!(pass(row.name).map(|p| p.name), Some(row.name));
            assert_eq!(pass(&format!("{space}.{short}")).map(|p| p.name), Some(row.name));
            for other in [short.to_string(), format!("tir.transform.{short}")] {
                assert!(pass(&other).is_some_and(|p| p.name.ends_with(short)), "{other}");
            }
            assert!(absent(row.name).is_none(), "{} is there and is not", row.name);
        }
        assert!(pass("relax.transform.UnrollLoop").is_none() && pass("tirx.transform.Loop").is_none());
        assert!(absent("tirx.transform.MakePackedAPI").is_some());
    }
}
