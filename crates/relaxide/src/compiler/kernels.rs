//! Kernels on their way through the passes: scheduled and lowered, each for its target.
//!
//! The kernels of one target are a module, which goes through the passes of that target: the schedule rules, then [`lower::passes`], and of
//! devices [`SPLIT_HOST_DEVICE`]. Instruments of the compilation's context see them all.

use indexmap::IndexMap;
use relaxide_codegen::{CodegenError, backend, host_of};
use relaxide_ffi::Ref;
use relaxide_ir::Code;
use relaxide_ir::pass::{Pass, PassContext, PassError, Refusal};
use relaxide_ir::{Attrs, IRModule, Target};
use relaxide_tir::lower::{self, LowerOptions, SPLIT_HOST_DEVICE};
use relaxide_tir::schedule::{self, KernelNote, Notes, Overrides};
use relaxide_tir::tile::unlowered;
use relaxide_tir::{HOST_FUNC, PrimFunc};

use crate::compiler::compile::pass_context;
use crate::compiler::processors::target_name;
use crate::{CompileOptions, Error};

/// A lowered kernel and its target.
pub(crate) type TargetedKernel = (Ref<PrimFunc>, Target);

/// Schedules and lowers the kernels of a module, and says how their loops came about; both are in the module's order. Decisions that
/// are given are those for kernels with `suffix` behind their names; `others` are all that there are.
pub(crate) fn lower_kernels(
    module: &IRModule,
    options: &mut CompileOptions<'_>,
    suffix: &str,
    others: &[String],
) -> Result<(Vec<TargetedKernel>, Vec<KernelNote>), Error> {
    let overrides = match &options.schedule {
        Some(given) => given.clone(),
        None => Overrides::of_context(&options.context)?,
    };
    let names: Vec<String> = module.functions_of::<PrimFunc>().map(|(name, _)| name.to_string()).collect();
    let of_others = others.iter().flat_map(|suffix| names.iter().map(move |name| format!("{name}{suffix}")));
    let known: Vec<String> = names.iter().cloned().chain(of_others).collect();
    overrides.check_kernels(known.iter().map(String::as_str))?;
    let overrides = overrides.for_target(&target_name(options)?, suffix, &names);
    let (context, notes) = (kernel_context(options)?, Notes::default());
    let by_target = by_target(module, &options.target)?;
    let check_bounds = options.check_bounds || context.config.bool(lower::CHECK_BOUNDS_OPTION) == Some(true);
    let mut pipelines = Vec::new();
    for (target, _) in &by_target {
        let profile = backend(target)?.profile();
        let lowering = LowerOptions { check_bounds, keep_loops: profile.keep_loops };
        let schedule = schedule::pass(overrides.clone(), notes.clone());
        let mut passes: Vec<Pass> = [schedule].into_iter().chain(lower::passes(lowering)?).collect();
        if profile.is_device {
            passes.push(SPLIT_HOST_DEVICE.make(&Attrs::new())?);
        }
        pipelines.push(passes.into_iter().filter(|pass| context.enables(pass)).collect::<Vec<_>>());
    }
    let (total, mut done) = (pipelines.iter().map(Vec::len).sum(), 0);
    let mut lowered: IndexMap<String, TargetedKernel> = IndexMap::new();
    for ((target, mut kernels), passes) in by_target.into_iter().zip(pipelines) {
        let context = PassContext { target: target.clone(), ..context.clone() };
        for pass in passes {
            options.tell("kernels", done, total);
            kernels = pass.run(kernels, &context)?;
            done += 1;
        }
        let made = kernels.functions_of::<PrimFunc>();
        lowered.extend(made.map(|(name, kernel)| (name.to_string(), (kernel, target.clone()))));
    }
    options.tell("kernels", done, total);
    in_order(&names, lowered, notes.take())
}

/// The context of the passes over kernels: no instrument leaves out what the lowered form depends on, and it is an error to ask
/// for that by name.
fn kernel_context(options: &CompileOptions<'_>) -> Result<PassContext, PassError> {
    let mut context = pass_context(options);
    let lowering = || lower::PIPELINE.iter().filter(|step| step.is_needed).map(|step| step.pass.name);
    let needed = || lowering().chain([SPLIT_HOST_DEVICE.name]);
    if let Some(name) = needed().find(|name| context.disabled.iter().any(|disabled| disabled == name)) {
        let refusal = Refusal::new(Code::PassArguments, "cannot be left out: native code is made of what it gives");
        return Err(PassError::new(name, refusal.help("take it out of the passes that are disabled")));
    }
    context.required.extend(needed().map(str::to_string));
    Ok(context)
}

/// The kernels of a module, by what each is compiled for.
fn by_target(module: &IRModule, target: &Target) -> Result<Vec<(Target, IRModule)>, Error> {
    let mut groups: IndexMap<String, (Target, IRModule)> = IndexMap::new();
    for (name, kernel) in module.functions_of::<PrimFunc>() {
        if let Some(what) = unlowered(&kernel) {
            let message = format!(
                "no code is made of {what}: programs of tiles are read, printed and checked only; use loops and buffers by strides"
            );
            return Err(Error::Kernel { kernel: name.to_string(), message });
        }
        let own = target_of(name, &kernel, target)?;
        let (_, kernels) = groups.entry(own.to_string()).or_insert_with(|| (own, IRModule::new()));
        kernels.insert(name, kernel);
    }
    Ok(groups.into_values().collect())
}

/// Kernels and notes in the order of names.
fn in_order(
    names: &[String],
    mut lowered: IndexMap<String, TargetedKernel>,
    mut notes: Vec<KernelNote>,
) -> Result<(Vec<TargetedKernel>, Vec<KernelNote>), Error> {
    let place = |note: &KernelNote| names.iter().position(|name| *name == note.kernel);
    notes.sort_by_cached_key(place);
    let lost =
        |name: &String| Error::Kernel { kernel: name.clone(), message: "a pass over kernels has lost it".into() };
    // What passes have made beside them: the functions of devices.
    let is_new = |(name, _): &(&String, &TargetedKernel)| !names.contains(name);
    let made: Vec<TargetedKernel> = lowered.iter().filter(is_new).map(|(_, kernel)| kernel.clone()).collect();
    let take = |name| lowered.swap_remove(name).ok_or_else(|| lost(name));
    let mut kernels = names.iter().map(take).collect::<Result<Vec<_>, _>>()?;
    kernels.extend(made);
    Ok((kernels, notes))
}

/// What a kernel is compiled for: what it says itself, else what the program is compiled for. Native code of one program is for one
/// processor, as its parts are linked together: kernels of the program's kind are for the program's own target.
fn target_of(name: &str, kernel: &PrimFunc, target: &Target) -> Result<Target, Error> {
    let failed = |message: String| Error::Kernel { kernel: name.to_string(), message };
    let own = kernel.target().map_err(|error| failed(error.to_string()))?;
    let host = host_of(target);
    // What computes shapes is the host's, whatever device the tensors are on.
    if kernel.attrs.bool(HOST_FUNC) == Some(true) {
        return Ok(host);
    }
    let is_device = |target: &Target| backend(target).is_ok_and(|backend| backend.profile().is_device);
    match own {
        Some(own) if is_device(&own) => Ok(own),
        Some(own) if own.kind == host.kind => Ok(host),
        Some(own) if own.kind != target.kind => {
            let two = |own: Target| CodegenError::TwoHosts {
                kernel: name.to_string(),
                own: own.to_string(),
                target: target.to_string(),
            };
            backend(&own).map_err(|error| failed(error.to_string()))?;
            Err(two(own).into())
        }
        _ => Ok(target.clone()),
    }
}
