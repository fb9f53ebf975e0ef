//! OpenCL C as a back end.

use relaxide_ir::{Ref, Target, target::TargetKind};
use relaxide_runtime::device::payload::Payload;
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::Launch;

use super::kernel;
use crate::CodegenError;
use crate::backend::{Backend, DeviceCode, Profile, check_options};

/// OpenCL C, for devices whose driver compiles it.
pub(crate) struct OpenCl;

/// Limits that describe a device; schedules keep far below them.
const OPTIONS: &[&str] = &[
    "max_threads_per_block",
    "max_shared_memory_per_block",
    "max_num_threads",
    "thread_warp_size",
    "texture_spatial_limit",
    "texture_depth_limit",
    "max_function_args",
    "image_base_address_alignment",
];

impl Backend for OpenCl {
    fn kind(&self) -> TargetKind {
        TargetKind::OpenCl
    }

    fn profile(&self) -> Profile {
        Profile { keep_loops: true, is_loadable: true, has_lines: false, is_device: true }
    }

    fn check(&self, target: &Target) -> Result<(), CodegenError> {
        check_options(target, OPTIONS)
    }

    fn text(&self, kernels: &[Ref<PrimFunc>], _: &Target, form: &str) -> Option<Result<String, CodegenError>> {
        let of_all = || {
            let launches = crate::devices::launches(kernels)?;
            payload(&launches).map(|payload| String::from_utf8_lossy(&payload.code).into_owned())
        };
        matches!(form, "" | "cl").then(of_all)
    }

    fn device_code(&self, launches: &[Launch], _: &Target) -> Result<DeviceCode, CodegenError> {
        Ok(DeviceCode { kind: "opencl", bytes: payload(launches)?.write() })
    }
}

fn payload(launches: &[Launch]) -> Result<Payload, CodegenError> {
    let (mut kernels, mut code) = (Vec::new(), String::new());
    for launch in launches {
        let (info, text) = kernel::write(launch)?;
        // A line of that form introduces each function, from which a loader cuts the code.
        code.push_str(&format!("// Function: {}\n{text}", info.name));
        kernels.push((launch.name.clone(), info));
    }
    Ok(Payload { format: "cl".into(), kernels, code: code.into_bytes() })
}
