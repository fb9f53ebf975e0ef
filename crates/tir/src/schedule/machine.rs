//! What schedule rules know of the processor: vector width, registers, caches.
//!
//! Everything that a rule sizes (lanes, register tiles, cache blocks, when threads pay) comes from here, so that a wider
//! machine needs a row and no new rule.

use std::thread::available_parallelism;

use relaxide_ffi::Device;
use relaxide_ir::target::{TargetKind, processors};
use relaxide_ir::{DataType, Target};

use super::caches::Caches;
use crate::lower::DeviceLimits;

/// Bytes of a line of the cache, which come at once. No vector is longer.
pub(super) const LINE: i64 = 64;

/// Bytes of the largest access of a thread of NVIDIA's devices.
const ACCESS: i64 = 16;

/// The first generation of NVIDIA's devices that multiplies all the types of [`warp`](crate::warp).
const WITH_TENSOR_CORES: u32 = 80;

/// Bytes of the second-level cache beyond which kernels do not count on more.
const MOST_OF_L2: i64 = 512 << 10;

/// Cores of a machine of which nothing is known.
const CORES: i64 = 4;

/// Whether a target is the processor that this runs on: a kind for processors like it that is not portable, and no name of another.
fn is_host(target: &Target) -> bool {
    let info = target.kind.info();
    let is_named = !target.mtriple().is_empty() || !target.mcpu().is_empty();
    info.device_type == Device::CPU && !info.is_portable && !is_named
}

/// Elements in a line of the cache.
pub fn elements_in_line(dtype: DataType) -> i64 {
    LINE * 8 / i64::from(dtype.bits).max(8)
}

/// The processor, as far as loop nests depend on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Bytes in a vector register.
    pub vector_bytes: i64,
    /// Vector registers.
    pub vector_registers: i64,
    /// Whether results must not depend on the processor: nothing of it then decides in which order terms are added.
    pub deterministic: bool,
    /// Whether multiply and add are one instruction.
    pub fma: bool,
    /// First-level data cache in bytes.
    pub l1: i64,
    /// Second-level cache in bytes, a core's own.
    pub l2: i64,
    /// Cores that share the work of a kernel.
    pub cores: i64,
    /// Simple operations below which threads cost more than they save; none where there is but one thread.
    pub parallel_threshold: Option<i64>,
    /// What a block of threads may use, if it is a device, whose threads the loops are for.
    pub device: Option<DeviceLimits>,
    /// Threads of a device's block where they do not work together, if it is to be others than usual.
    pub block: Option<i64>,
    /// Whether the threads of a warp multiply small matrices together ([`warp`](crate::warp)).
    pub tensor_cores: bool,
    /// Bytes that a thread of a device loads or stores at once; nothing where that is an element.
    pub access_bytes: Option<i64>,
    /// Whether the threads of a warp can give each other values.
    pub shuffles: bool,
}

impl Machine {
    /// The machine that a target names, if anything is known of its sort: processors and GPUs. Of others (signal processors, accelerators)
    /// there is what the target says, and no more.
    pub fn known(target: &Target) -> Option<Machine> {
        let is_known = target.is_gpu() || target.kind.info().device_type == Device::CPU;
        is_known.then(|| Machine::of(target))
    }

    /// The machine that a target names; the host's own where it names none, and the least that processors have where nothing is known.
    pub fn of(target: &Target) -> Machine {
        if target.is_gpu() {
            return Machine::device(target);
        }
        let features = Features::of(target);
        let (vector_bytes, vector_registers) = match features.level {
            Level::Avx512 => (64, 32),
            Level::Avx2 => (32, 16),
            Level::Sse => (16, 16),
            Level::Neon => (16, 32),
            // Processors have 16 and more, but engines keep some, products wait in others (no multiply-add), and LLVM, which knows no
            // limit here, reads a tile's operands ahead: tiles that would fill 16 spill (`docs/performance/webassembly.md`).
            Level::WebAssembly => (16, 12),
        };
        let is_host = is_host(target);
        let deterministic = target.is_deterministic();
        let caches = match () {
            // What fits into a cache decides in which order terms are added, too.
            () if deterministic => Caches::USUAL,
            () if is_host => Caches::of_host(),
            () => Caches::of_processor(target.mcpu()),
        };
        let host_cores = || available_parallelism().ok().filter(|_| is_host).map(|cores| cores.get() as i64);
        Machine {
            vector_bytes,
            vector_registers,
            deterministic,
            fma: features.fma,
            l1: caches.l1,
            l2: caches.l2,
            cores: target.num_cores().or_else(host_cores).unwrap_or(CORES),
            parallel_threshold: Some(32 << 10),
            device: None,
            block: None,
            tensor_cores: false,
            access_bytes: None,
            shuffles: false,
        }
    }

    /// A device: a thread computes with no vectors, and threads cost nothing.
    fn device(target: &Target) -> Machine {
        let is_nvidia = matches!(target.kind, TargetKind::Cuda | TargetKind::Nvptx);
        Machine {
            vector_bytes: 1,
            vector_registers: 16,
            deterministic: false,
            fma: true,
            l1: 32 << 10,
            l2: 512 << 10,
            cores: CORES,
            parallel_threshold: Some(0),
            device: Some(DeviceLimits::of(target)),
            block: None,
            tensor_cores: generation(target).is_some_and(|number| number >= WITH_TENSOR_CORES),
            access_bytes: is_nvidia.then_some(ACCESS),
            shuffles: is_nvidia,
        }
    }

    /// The same machine for loops inside a task, which has one thread.
    pub fn one_thread(&self) -> Machine {
        Machine { parallel_threshold: None, ..self.clone() }
    }

    /// The largest power of two that fits the first-level cache, in bytes.
    pub fn l1_block(&self) -> i64 {
        1 << self.l1.max(1).ilog2()
    }

    /// Bytes of the second-level cache that kernels count on: with more, convolutions were slower (`docs/performance/convolutions.md`).
    pub fn l2_share(&self) -> i64 {
        self.l2.min(MOST_OF_L2)
    }

    /// The largest power of two that fits half of that, in bytes.
    pub fn l2_block(&self) -> i64 {
        1 << (self.l2_share() / 2).max(1).ilog2()
    }

    /// Lanes of a full vector of an element type; bool counts as a byte.
    pub fn lanes(&self, dtype: DataType) -> i64 {
        lanes(self.vector_bytes, dtype)
    }

    /// Lanes of a vector of partial sums, and what decides between rules that add terms in different orders.
    pub fn sum_lanes(&self, dtype: DataType) -> i64 {
        lanes(if self.deterministic { LINE } else { self.vector_bytes }, dtype)
    }
}

/// Elements of a type in a vector of so many bytes.
fn lanes(bytes: i64, dtype: DataType) -> i64 {
    (bytes / ((i64::from(dtype.bits) + 7) / 8).max(1)).max(1)
}

/// The number of NVIDIA's generation of devices (`sm_80`) that a target names.
fn generation(target: &Target) -> Option<u32> {
    let name = match target.kind {
        TargetKind::Cuda => target.text("arch"),
        TargetKind::Nvptx => target.mcpu(),
        _ => return None,
    };
    let digits = name.strip_prefix("sm_")?;
    digits.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
}

enum Level {
    Sse,
    Avx2,
    Avx512,
    Neon,
    WebAssembly,
}

struct Features {
    level: Level,
    fma: bool,
}

impl Features {
    fn of(target: &Target) -> Features {
        if target.mtriple().starts_with("aarch64") || target.mtriple().starts_with("arm64") {
            return Features { level: Level::Neon, fma: true };
        }
        if target.mtriple().starts_with("wasm32") {
            return Features { level: Level::WebAssembly, fma: false };
        }
        // C runs anywhere, and its text does not depend on where it was written.
        if target.kind.info().is_portable {
            return Features { level: Level::Sse, fma: false };
        }
        let mut features = if is_host(target) { Features::host() } else { Features::of_cpu(target.mcpu()) };
        for change in target.mattr().split(',') {
            match change.trim() {
                "+avx512f" => features.level = Level::Avx512,
                "+avx2" if !matches!(features.level, Level::Avx512) => features.level = Level::Avx2,
                "-avx512f" if matches!(features.level, Level::Avx512) => features.level = Level::Avx2,
                "-avx2" => features.level = Level::Sse,
                "+fma" => features.fma = true,
                "-fma" => features.fma = false,
                _ => {}
            }
        }
        features
    }

    /// Those of a processor of x86-64 by its name; a name that LLVM does not know is taken for the baseline.
    fn of_cpu(name: &str) -> Features {
        let features = processors::features_of(processors::X86_64, name).unwrap_or_default();
        let has = |feature| features.split(',').any(|own| own == feature);
        let level = match () {
            () if has("avx512f") => Level::Avx512,
            () if has("avx2") => Level::Avx2,
            () => Level::Sse,
        };
        Features { level, fma: has("fma") }
    }

    #[cfg(target_arch = "x86_64")]
    fn host() -> Features {
        let level = if std::is_x86_feature_detected!("avx512f") {
            Level::Avx512
        } else if std::is_x86_feature_detected!("avx2") {
            Level::Avx2
        } else {
            Level::Sse
        };
        Features { level, fma: std::is_x86_feature_detected!("fma") }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn host() -> Features {
        Features { level: Level::Neon, fma: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_override_the_named_processor() {
        let target = Target::llvm("x86-64-v3").with("mattr", "+avx512f");
        assert_eq!(Machine::of(&target).lanes(DataType::float(32)), 16);
        let target = Target::llvm("znver3").with("mattr", "-fma");
        assert!(!Machine::of(&target).fma);
        assert_eq!(Machine::of(&target).lanes(DataType::float(32)), 8);
    }

    #[test]
    fn every_processor_with_long_vectors_is_known() {
        let lanes = |name: &str| Machine::of(&Target::llvm(name)).lanes(DataType::float(32));
        for name in ["graniterapids", "tigerlake", "cooperlake", "emeraldrapids", "znver5"] {
            assert_eq!(lanes(name), 16, "{name}");
        }
        for name in ["core-avx2", "arrowlake", "znver2", "sierraforest"] {
            assert_eq!(lanes(name), 8, "{name}");
        }
        assert_eq!((lanes("nehalem"), lanes("ivybridge"), lanes("x86-64")), (4, 4, 4));
    }

    #[test]
    fn what_is_no_processor_like_this_one_is_not_taken_for_it() {
        let least = Machine { cores: CORES, ..Machine::of(&Target::llvm("x86-64")) };
        for text in ["hexagon", "ext_dev", "trn"] {
            let target: Target = text.parse().unwrap();
            assert_eq!((Machine::known(&target), Machine::of(&target)), (None, least.clone()), "{text}");
        }
        for text in ["llvm", "c", "cuda", "wasm", "cuda_host"] {
            assert!(Machine::known(&text.parse().unwrap()).is_some(), "{text}");
        }
    }

    #[test]
    fn webassembly_has_short_vectors_and_few_registers() {
        let machine = Machine::of(&"wasm".parse().unwrap());
        assert_eq!((machine.lanes(DataType::float(32)), machine.vector_registers), (4, 12));
    }
}
