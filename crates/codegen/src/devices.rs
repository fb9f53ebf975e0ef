//! Kernels of several targets: the host's as one artifact, those of each kind of device as a module that rides along.
//!
//! A kernel for a device is split ([`split_device`]): its host's half joins the kernels of the host, and its functions those of its kind.

use indexmap::IndexMap;
use relaxide_ir::{Ref, Target};
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::{DeviceLimits, Launch, Split, split_device};

use crate::backend::{Artifact, DeviceCode, backend};
use crate::{CodegenError, CompileSettings};

/// What kernels of several targets became.
#[derive(Debug)]
pub struct Emitted {
    /// The host's.
    pub host: Artifact,
    /// The devices', one module for each kind.
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

/// A lowered kernel for a device in its parts.
pub(crate) fn split(kernel: &PrimFunc, target: &Target) -> Result<Split, CodegenError> {
    let split = split_device(kernel, target.device_type()).and_then(|split| {
        let limits = DeviceLimits::of(target);
        split.launches.iter().try_for_each(|launch| limits.check(launch)).map(|()| split)
    });
    split.map_err(|error| CodegenError::Malformed {
        kernel: kernel.global_symbol().unwrap_or("?").to_string(),
        what: error.to_string(),
        statement: None,
    })
}

/// Makes lowered kernels, each for its target; those of the host are for `host`.
pub fn emit(
    kernels: &[(Ref<PrimFunc>, Target)],
    host: &Target,
    settings: CompileSettings<'_>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Emitted, CodegenError> {
    let mut of_host = Vec::with_capacity(kernels.len());
    let mut of_devices: IndexMap<&'static str, (Target, Vec<Launch>)> = IndexMap::new();
    for (kernel, target) in kernels {
        if !backend(target)?.profile().is_device {
            of_host.push(kernel.clone());
            continue;
        }
        let Split { host, launches } = split(kernel, target)?;
        of_host.push(Ref::new(host));
        let entry = of_devices.entry(target.kind.name()).or_insert_with(|| (target.clone(), Vec::new()));
        entry.1.extend(launches);
    }
    let devices = of_devices.values().map(|(target, launches)| backend(target)?.device_code(launches, target));
    let devices = devices.collect::<Result<Vec<_>, _>>()?;
    let host = backend(host)?.emit(&of_host, host, settings, progress)?;
    if let (Artifact::Source(_) | Artifact::Functions(_), Some(device)) = (&host, devices.first()) {
        return Err(CodegenError::DeviceOfC(device.kind.to_string()));
    }
    Ok(Emitted { host, devices })
}
