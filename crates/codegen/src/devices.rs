//! Kernels of several targets: the host's as one artifact, those of each kind of device as a module that rides along.
//!
//! A kernel for a device has been split by the pass [`SPLIT_HOST_DEVICE`]: its host's half is one of the host's kernels, and its functions
//! are those of its kind.

use indexmap::IndexMap;
use relaxide_ir::{Ref, Target};
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::{DEVICE_TYPE, Launch, SPLIT_HOST_DEVICE};

use crate::backend::{Artifact, DeviceCode, backend};
use crate::{CodegenError, CompileSettings};

/// What kernels of several targets became.
#[derive(Debug)]
pub struct Emitted {
    /// The host's.
    pub host: Artifact,
    /// The devices', one module for each kind, and one more for what only large tensors need.
    pub devices: Vec<DeviceCode>,
}

/// The target of what calls kernels: that itself, unless it is a device's.
pub fn host_of(target: &Target) -> Target {
    let is_device = backend(target).is_ok_and(|backend| backend.profile().is_device);
    match (&target.host, is_device) {
        (Some(host), true) => Target::clone(host),
        (None, true) => Target::default(),
        _ => target.clone(),
    }
}

/// The functions of devices among kernels in their parts; an error where the kernels are not split.
pub(crate) fn launches(kernels: &[Ref<PrimFunc>]) -> Result<Vec<Launch>, CodegenError> {
    let launches: Vec<Launch> = kernels.iter().filter_map(|kernel| Launch::of(kernel)).collect();
    match (kernels.first(), launches.is_empty()) {
        (Some(kernel), true) => Err(not_split(kernel)),
        _ => Ok(launches),
    }
}

fn not_split(kernel: &PrimFunc) -> CodegenError {
    CodegenError::Malformed {
        kernel: kernel.global_symbol().unwrap_or("?").to_string(),
        what: format!(
            "it is for a device, and not split into functions of host and device: run `{}`",
            SPLIT_HOST_DEVICE.name
        ),
        statement: None,
    }
}

/// Makes lowered kernels, each for its target; those of the host are for `host`.
pub fn emit(
    kernels: &[(Ref<PrimFunc>, Target)],
    host: &Target,
    settings: CompileSettings<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Emitted, CodegenError> {
    let mut of_host = Vec::with_capacity(kernels.len());
    // Drivers load modules when one of their functions is called: what is for large tensors only is hardly ever loaded.
    let mut of_devices: IndexMap<(&'static str, bool), (Target, Vec<Launch>)> = IndexMap::new();
    for (kernel, target) in kernels {
        if let Some(launch) = Launch::of(kernel) {
            let key = (target.kind.name(), launch.is_wide);
            let entry = of_devices.entry(key).or_insert_with(|| (target.clone(), Vec::new()));
            entry.1.push(launch);
            continue;
        }
        if backend(target)?.profile().is_device && kernel.attrs.get(DEVICE_TYPE).is_none() {
            return Err(not_split(kernel));
        }
        of_host.push(kernel.clone());
    }
    let devices = of_devices.values().map(|(target, launches)| backend(target)?.device_code(launches, target));
    let devices = devices.collect::<Result<Vec<_>, _>>()?;
    let host = backend(host)?.emit(&of_host, host, settings, progress)?;
    if let (Artifact::Source(_) | Artifact::Functions(_), Some(device)) = (&host, devices.first()) {
        return Err(CodegenError::DeviceOfC(device.kind.to_string()));
    }
    Ok(Emitted { host, devices })
}
