//! The kinds of targets: one row each, with the device that data lives on, options and defaults. The rows are those of TVM 0.27;
//! [`register_kind`] adds others, for back ends from outside.

use std::sync::{PoisonError, RwLock};

use relaxide_ffi::{Any, Device, Field, StructuralEqual, StructuralHash};

use super::TargetError;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Text.
    Text,
    /// Features that are added or removed, as `+avx2,-fma`.
    Features,
    /// A list of texts.
    Texts,
    /// A whole number.
    Int,
    /// A positive number.
    Positive,
    /// A number from 0 to 3.
    Level,
    /// True or false.
    Bool,
}

/// What an option is where it is not given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// Not said.
    Nothing,
    /// A number; 0 and 1 are also false and true.
    Int(i64),
    /// Text.
    Text(&'static str),
}

/// An option of a kind.
#[derive(Clone, Copy, Debug)]
pub struct TargetOption {
    /// The name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What it is where it is not given.
    pub default: Default,
}

/// What is said of a kind in one place.
#[derive(Clone, Copy, Debug)]
pub struct KindInfo {
    /// The name.
    pub name: &'static str,
    /// The type of device that data lives on, as DLPack numbers it.
    pub device_type: i32,
    /// What the kind is among: rules ask for them, as `gpu`.
    pub keys: &'static [&'static str],
    /// Whether its kernels are text that must not depend on the machine that they were made on.
    pub is_portable: bool,
    /// Its own options, in the order in which they are printed; [`COMMON`] come beside.
    pub options: &'static [TargetOption],
}

const fn option(name: &'static str, takes: Takes) -> TargetOption {
    TargetOption { name, takes, default: Default::Nothing }
}

const fn number(name: &'static str, default: i64) -> TargetOption {
    TargetOption { name, takes: Takes::Int, default: Default::Int(default) }
}

const fn flag(name: &'static str) -> TargetOption {
    TargetOption { name, takes: Takes::Bool, default: Default::Nothing }
}

const fn text(name: &'static str, default: &'static str) -> TargetOption {
    TargetOption { name, takes: Takes::Text, default: Default::Text(default) }
}

/// The options that every kind has beside its own.
pub const COMMON: &[TargetOption] = &[
    option("keys", Takes::Texts),
    option("tag", Takes::Text),
    option("device", Takes::Text),
    option("model", Takes::Text),
    option("libs", Takes::Texts),
    option("target_device_type", Takes::Int),
];

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal on $device:expr, $keys:expr, [$($option:expr),* $(,)?];)*) => {
        /// A kind of target: a language of kernels and the sort of device that they run on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum TargetKind {
            $($(#[$doc])* $kind,)*
            /// One that was registered.
            Registered(Registered),
        }

        /// The kinds that are known without registration.
        pub static KINDS: &[TargetKind] = &[$(TargetKind::$kind),*];

        impl TargetKind {
            /// What is said of it.
            pub fn info(self) -> &'static KindInfo {
                match self {
                    $(TargetKind::$kind => {
                        static INFO: KindInfo = KindInfo {
                            name: $name,
                            device_type: $device,
                            keys: &$keys,
                            is_portable: matches!(TargetKind::$kind, TargetKind::C),
                            options: &[$($option),*],
                        };
                        &INFO
                    })*
                    TargetKind::Registered(Registered(info)) => info,
                }
            }
        }
    };
}

kinds! {
    /// Native code through LLVM.
    Llvm = "llvm" on Device::CPU, ["cpu"], [
        option("mtriple", Takes::Text), option("mcpu", Takes::Text), option("mattr", Takes::Features),
        option("num-cores", Takes::Positive),
        TargetOption { name: "opt-level", takes: Takes::Level, default: Default::Int(3) },
        option("mfloat-abi", Takes::Text), option("mabi", Takes::Text), flag("fast-math"), flag("fast-math-nnan"),
        flag("fast-math-ninf"), flag("fast-math-nsz"), flag("fast-math-arcp"), flag("fast-math-contract"),
        flag("fast-math-reassoc"), option("cl-opt", Takes::Texts), option("jit", Takes::Text),
        option("vector-width", Takes::Positive), flag("deterministic"),
    ];
    /// C, for machines that there is no native code for.
    C = "c" on Device::CPU, ["cpu"], [
        option("mtriple", Takes::Text), option("mcpu", Takes::Text), option("mattr", Takes::Features),
        option("num-cores", Takes::Positive), option("march", Takes::Text),
        option("workspace-byte-alignment", Takes::Positive), option("constants-byte-alignment", Takes::Positive),
    ];
    /// CUDA C++.
    Cuda = "cuda" on Device::CUDA, ["cuda", "gpu"], [
        option("mcpu", Takes::Text), text("arch", "sm_50"), number("max_num_threads", 1024),
        number("thread_warp_size", 32), option("max_shared_memory_per_block", Takes::Positive),
        option("max_threads_per_block", Takes::Positive), option("registers_per_block", Takes::Positive),
        option("l2_cache_size_bytes", Takes::Positive),
    ];
    /// The host beside CUDA's devices.
    CudaHost = "cuda_host" on Device::CPU, ["cpu"], [];
    /// PTX through LLVM.
    Nvptx = "nvptx" on Device::CUDA, ["cuda", "gpu"], [
        text("mcpu", "sm_50"), text("mtriple", "nvptx64-nvidia-cuda"), number("max_num_threads", 1024),
        number("thread_warp_size", 32),
    ];
    /// OpenCL C.
    OpenCl = "opencl" on Device::OPENCL, ["opencl", "gpu"], [
        number("max_threads_per_block", 256), number("max_shared_memory_per_block", 16384),
        number("max_num_threads", 256), number("thread_warp_size", 1), number("texture_spatial_limit", 16384),
        number("texture_depth_limit", 2048), number("max_function_args", 128),
        number("image_base_address_alignment", 64),
    ];
    /// SPIR-V for Vulkan.
    Vulkan = "vulkan" on 7, ["vulkan", "gpu"], [
        option("mattr", Takes::Features), number("max_num_threads", 256), number("max_threads_per_block", 256),
        number("thread_warp_size", 1),
        TargetOption { name: "supports_float32", takes: Takes::Bool, default: Default::Int(1) },
        TargetOption { name: "supports_int32", takes: Takes::Bool, default: Default::Int(1) },
        flag("supports_float16"), flag("supports_float64"), flag("supports_int8"), flag("supports_int16"),
        flag("supports_int64"), flag("supports_8bit_buffer"), flag("supports_16bit_buffer"),
        flag("supports_storage_buffer_storage_class"), flag("supports_push_descriptor"),
        flag("supports_dedicated_allocation"), flag("supports_integer_dot_product"),
        flag("supports_cooperative_matrix"), option("supported_subgroup_operations", Takes::Int),
        option("max_block_size_x", Takes::Positive), option("max_block_size_y", Takes::Positive),
        option("max_block_size_z", Takes::Positive), option("max_push_constants_size", Takes::Positive),
        option("max_uniform_buffer_range", Takes::Positive), option("max_storage_buffer_range", Takes::Positive),
        option("max_per_stage_descriptor_storage_buffer", Takes::Positive),
        option("max_shared_memory_per_block", Takes::Positive), option("device_type", Takes::Text),
        option("device_name", Takes::Text), option("driver_name", Takes::Text), option("driver_version", Takes::Int),
        option("vulkan_api_version", Takes::Int), option("max_spirv_version", Takes::Int),
    ];
    /// Metal's language.
    Metal = "metal" on 8, ["metal", "gpu"], [
        number("max_num_threads", 256), number("max_threads_per_block", 256),
        number("max_shared_memory_per_block", 32768), number("thread_warp_size", 16),
        number("max_function_args", 31),
    ];
    /// WGSL for browsers.
    WebGpu = "webgpu" on 15, ["webgpu", "gpu"], [
        number("max_num_threads", 256), number("max_shared_memory_per_block", 32768),
        TargetOption { name: "supports_subgroups", takes: Takes::Bool, default: Default::Int(0) },
        number("thread_warp_size", 1),
    ];
    /// Code for AMD's GPUs through LLVM.
    Rocm = "rocm" on 10, ["rocm", "gpu"], [
        text("mcpu", "gfx900"), text("mtriple", "amdgcn-amd-amdhsa-hcc"), option("mattr", Takes::Features),
        number("max_num_threads", 256), number("max_threads_per_block", 256),
        number("max_shared_memory_per_block", 65536), number("thread_warp_size", 64),
    ];
    /// Qualcomm's signal processors.
    Hexagon = "hexagon" on 16, ["hexagon", "cpu"], [
        option("mtriple", Takes::Text), option("mcpu", Takes::Text), option("mattr", Takes::Features),
        option("llvm-options", Takes::Texts), option("num-cores", Takes::Positive),
        option("vtcm-capacity", Takes::Positive),
    ];
    /// AWS's accelerators.
    Trn = "trn" on 18, [], [
        option("partition_size", Takes::Positive), option("max_sbuf_size_per_partition", Takes::Positive),
        option("max_psum_size_per_partition", Takes::Positive), option("num-cores", Takes::Positive),
    ];
    /// A device of somebody's own.
    ExtDev = "ext_dev" on 12, [], [];
    /// Several targets as one.
    Composite = "composite" on Device::CPU, [], [option("devices", Takes::Texts)];
    /// For tests of targets.
    Test = "test" on Device::CPU, [], [];
}

/// A kind that was registered, which [`register_kind`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Registered(&'static KindInfo);

/// Names are given once.
impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for Registered {}

impl std::hash::Hash for Registered {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// Kinds that were registered.
static REGISTERED: RwLock<Vec<TargetKind>> = RwLock::new(Vec::new());

/// All kinds, those that were registered last.
pub(super) fn kinds() -> Vec<TargetKind> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    KINDS.iter().chain(registered.iter()).copied().collect()
}

/// Adds a kind of target for as long as the process lives; an error where there is one of that name. Kernels are made for it once a
/// back end of the kind is registered, too.
pub fn register_kind(info: KindInfo) -> Result<TargetKind, TargetError> {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let is_known = KINDS.iter().chain(registered.iter()).any(|kind| kind.name() == info.name);
    if is_known || !is_word(info.name) {
        return Err(TargetError::RefusedKind { kind: info.name.to_string() });
    }
    let kind = TargetKind::Registered(Registered(Box::leak(Box::new(info))));
    registered.push(kind);
    Ok(kind)
}

/// Whether a name can stand at the beginning of a target's text.
fn is_word(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

impl TargetKind {
    /// The kind of a name.
    pub fn named(name: &str) -> Option<TargetKind> {
        // An old name of processors' targets.
        let name = if name == "cpu" { "llvm" } else { name };
        kinds().into_iter().find(|kind| kind.name() == name)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The type of device that data lives on, as DLPack numbers it.
    pub fn device_type(self) -> i32 {
        self.info().device_type
    }

    /// Whether its kernels run over the threads of a GPU.
    pub fn is_gpu(self) -> bool {
        self.info().keys.contains(&"gpu")
    }

    /// An option of it, own or common.
    pub fn option(self, name: &str) -> Option<&'static TargetOption> {
        self.info().options.iter().chain(COMMON).find(|option| option.name == name)
    }
}

impl std::fmt::Display for TargetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl Field for TargetKind {
    fn to_any(&self) -> Any {
        Any::from(self.name())
    }

    fn s_equal(&self, other: &Self, eq: &mut StructuralEqual) -> bool {
        self == other || eq.fail(format_args!("target kind {self} differs from {other}"))
    }

    fn s_hash(&self, h: &mut StructuralHash) {
        self.name().to_string().s_hash(h);
    }
}
