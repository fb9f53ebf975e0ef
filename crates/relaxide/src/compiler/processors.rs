//! Kernels for each of the processors that a library is for.
//!
//! What the passes make of a program does not depend on the processor, only on the kind of target: bytecode, memory plan and the layouts
//! of weights are the program's, once. The kernels are scheduled, lowered and translated for each, and linked under names of their own
//! (`relaxide_runtime::processor::variants`).

use relaxide_codegen::{
    Artifact, CodegenError, CompiledLib, DeviceCode, Emitted, ForProcessor, Share, backend, check_target, host_of,
    in_order,
};
use relaxide_ir::IRModule;
use relaxide_runtime::processor::variants::{self, Variant};
use relaxide_tir::schedule::KernelNote;

use super::signature::Signature;
use crate::compiler::compile::translate;
use crate::compiler::kernels::{TargetedKernel, lower_kernels};
use crate::{CompileOptions, Error};

/// The processors that a program is compiled for, the least first; none where it is for the options' one target.
pub(crate) struct Processors(Vec<ForProcessor>);

/// What became of a program's kernels.
pub(crate) struct CompiledKernels {
    /// Those for the first processor, as they were lowered.
    pub functions: Vec<TargetedKernel>,
    /// How the loops of all came about; kernels for other processors than the first have their names' [`variants::suffix`].
    pub notes: Vec<KernelNote>,
    /// The host's code.
    pub translated: Artifact,
    /// The devices' modules.
    pub devices: Vec<DeviceCode>,
}

impl Processors {
    /// Those that options ask for; their target becomes the first.
    pub fn of(options: &mut CompileOptions<'_>) -> Result<Processors, Error> {
        if options.also.is_empty() {
            return Ok(Processors(Vec::new()));
        }
        let own = std::iter::once(&options.target).chain(&options.also).cloned();
        let order = in_order(&own.collect::<Vec<_>>())?;
        if let [first, others @ ..] = order.as_slice() {
            options.target = first.target.clone();
            options.also = others.iter().map(|other| other.target.clone()).collect();
        }
        Ok(Processors(order))
    }

    /// Says in a signature which processors the host's code is for.
    pub fn enter(&self, options: &CompileOptions<'_>, signature: &mut Signature) -> Result<(), Error> {
        let host = host_of(&options.target);
        check_target(&host)?;
        if let Some(processor) = backend(&host)?.processor(&host)? {
            // Of a device the program's own target says more.
            if host.kind == options.target.kind {
                signature.target = Some(processor.named.to_string());
            }
            signature.processor = Some(processor.needed);
        }
        for ForProcessor { name, target } in &self.0 {
            if let Some(processor) = backend(target)?.processor(target)? {
                signature.processors.push(Variant { name: name.clone(), needed: processor.needed });
            }
        }
        Ok(())
    }

    /// Schedules, lowers and translates kernels for each.
    pub fn make(&self, kernels: &IRModule, options: &mut CompileOptions<'_>) -> Result<CompiledKernels, Error> {
        let others: Vec<String> = self.0.iter().skip(1).map(|own| variants::suffix(&own.name)).collect();
        let Some((first, rest)) = self.0.split_first() else {
            let (functions, notes) = lower_kernels(kernels, options, "", &others)?;
            let Emitted { host: translated, devices } = translate(&functions, options, Share::Whole)?;
            return Ok(CompiledKernels { functions, notes, translated, devices });
        };
        let (functions, mut notes) = lower_kernels(kernels, options, "", &others)?;
        let Emitted { host, devices } = translate(&functions, options, Share::First)?;
        let mut parts = vec![(first.name.clone(), native(host)?)];
        for ForProcessor { name, target } in rest {
            let base = std::mem::replace(&mut options.target, target.clone());
            let made = for_another(kernels, options, name, &others);
            options.target = base;
            let (own, of_own) = made?;
            parts.push((name.clone(), own));
            notes.extend(of_own);
        }
        let translated = Artifact::Library(Box::new(CompiledLib::join(parts)?));
        Ok(CompiledKernels { functions, notes, translated, devices })
    }
}

/// The name of what native code is made for, the processor's included: what decisions are kept by.
pub(crate) fn target_name(options: &CompileOptions<'_>) -> Result<String, Error> {
    let host = host_of(&options.target);
    let processor = backend(&host)?.processor(&host)?;
    Ok(processor.map_or_else(|| host.to_string(), |processor| processor.named.to_string()))
}

/// The kernels for another processor than the first, which the options name.
fn for_another(
    kernels: &IRModule,
    options: &mut CompileOptions<'_>,
    name: &str,
    others: &[String],
) -> Result<(CompiledLib, Vec<KernelNote>), Error> {
    let suffix = variants::suffix(name);
    let (functions, mut notes) = lower_kernels(kernels, options, &suffix, others)?;
    notes.iter_mut().for_each(|note| note.kernel.push_str(&suffix));
    // Functions of devices are the same for every host.
    let Emitted { host, .. } = translate(&functions, options, Share::Other(name))?;
    Ok((native(host)?, notes))
}

/// The native code of kernels, which targets of several processors give.
fn native(artifact: Artifact) -> Result<CompiledLib, Error> {
    match artifact {
        Artifact::Library(library) => Ok(*library),
        Artifact::Source(_) | Artifact::Functions(_) => {
            Err(CodegenError::Processors { why: "its kernels are no native code".into() }.into())
        }
    }
}
