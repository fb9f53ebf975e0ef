//! PTX as a back end, for targets of two kinds: `cuda` names the device as `arch`, `nvptx` as `mcpu`.

use relaxide_ir::{Ref, Target, target::TargetKind};
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::Launch;

use super::ptx;
use crate::backend::{Backend, DeviceCode, Profile, check_options};
use crate::{CodegenError, NativeTarget};

/// Targets of the kind `cuda`.
pub(crate) static CUDA: Ptx = Ptx(TargetKind::Cuda);

/// Targets of the kind `nvptx`.
pub(crate) static NVPTX: Ptx = Ptx(TargetKind::Nvptx);

/// PTX, for devices whose driver compiles it.
pub(crate) struct Ptx(TargetKind);

/// The device, and limits that describe it; schedules keep far below them.
const OPTIONS: &[&str] = &[
    "arch",
    "mcpu",
    "mtriple",
    "max_num_threads",
    "thread_warp_size",
    "max_shared_memory_per_block",
    "max_threads_per_block",
    "registers_per_block",
    "l2_cache_size_bytes",
];

impl Backend for Ptx {
    fn kind(&self) -> TargetKind {
        self.0
    }

    fn profile(&self) -> Profile {
        Profile { keep_loops: true, is_loadable: true, has_lines: false, is_device: true }
    }

    fn check(&self, target: &Target) -> Result<(), CodegenError> {
        check_options(target, OPTIONS)?;
        NativeTarget::of_cuda(target).map(drop)
    }

    fn text(&self, kernels: &[Ref<PrimFunc>], target: &Target, form: &str) -> Option<Result<String, CodegenError>> {
        let launches = || crate::devices::launches(kernels);
        let native = || NativeTarget::of_cuda(target);
        match form {
            "" | "ptx" => Some(launches().and_then(|launches| ptx::text(&launches, &native()?))),
            "ll" => Some(launches().and_then(|launches| ptx::llvm_text(&launches, &native()?))),
            _ => None,
        }
    }

    fn device_code(&self, launches: &[Launch], target: &Target) -> Result<DeviceCode, CodegenError> {
        let payload = ptx::payload(launches, &NativeTarget::of_cuda(target)?)?;
        Ok(DeviceCode { kind: "cuda", bytes: payload.write() })
    }
}
