//! Tags: devices and machines by name, with what a target says of them. The rows are those of TVM 0.27, and `wasm`.

/// Machines of one kind that have the same attributes.
pub(super) struct Tags {
    /// The kind of target.
    pub kind: &'static str,
    /// Its attributes, as a dictionary of JSON.
    pub attributes: &'static str,
    /// The machines.
    pub names: &'static [&'static str],
}

const fn tags(kind: &'static str, attributes: &'static str, names: &'static [&'static str]) -> Tags {
    Tags { kind, attributes, names }
}

#[rustfmt::skip] // a table
pub(super) const TAGS: &[Tags] = &[
    // What every browser and Node have had since 2023; relaxed vectors came later, and may round otherwise.
    tags(
        "llvm",
        r#"{"mtriple": "wasm32-unknown-unknown", "mattr": ["+simd128", "+nontrapping-fptoint", "+sign-ext", "+bulk-memory"]}"#,
        &[
            "wasm",
        ],
    ),
    tags(
        "llvm",
        r#"{"mtriple": "wasm32-unknown-unknown", "mattr": ["+simd128", "+relaxed-simd", "+nontrapping-fptoint", "+sign-ext", "+bulk-memory"]}"#,
        &[
            "wasm/relaxed-simd",
        ],
    ),
    tags(
        "metal",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m1"}, "thread_warp_size": 32, "max_threads_per_block": 1024}"#,
        &[
            "apple/m1-gpu",
        ],
    ),
    tags(
        "metal",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m1"}, "thread_warp_size": 32}"#,
        &[
            "apple/m1-gpu-restricted",
        ],
    ),
    tags(
        "metal",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mtriple": "arm64-apple-macos", "mcpu": "apple-m2"}, "thread_warp_size": 32, "max_threads_per_block": 1024}"#,
        &[
            "apple/m2-gpu",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a15", "mtriple": "armv7a-linux-gnueabihf", "mattr": ["+neon", "+vfp4", "+thumb2"], "model": "beagleai", "device": "arm_cpu"}"#,
        &[
            "arm/beagleai",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mtriple": "arm64-linux-android", "mattr": ["+neon"], "model": "kirin970", "device": "arm_cpu"}"#,
        &[
            "arm/mate10",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mtriple": "arm64-linux-android", "mattr": ["+neon"], "model": "snapdragon835", "device": "arm_cpu"}"#,
        &[
            "arm/pixel2",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mtriple": "armv7a-linux-eabi", "mattr": ["+neon"], "model": "pynq", "device": "arm_cpu"}"#,
        &[
            "arm/pynq",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mtriple": "armv7l-linux-gnueabihf", "mattr": ["+neon"], "model": "bcm2837", "device": "arm_cpu"}"#,
        &[
            "arm/rasp3b",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a72", "mtriple": "armv8l-linux-gnueabihf", "mattr": ["+neon"], "model": "bcm2711", "device": "arm_cpu"}"#,
        &[
            "arm/rasp4b",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "model": "bcm2711", "device": "arm_cpu"}"#,
        &[
            "arm/rasp4b64",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "model": "rk3399", "device": "arm_cpu"}"#,
        &[
            "arm/rk3399",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mcpu": "cortex-a7", "mtriple": "armv7a-linux-gnueabihf", "mattr": ["+neon", "+vfp4", "+thumb2"], "model": "stm32mp1", "device": "arm_cpu"}"#,
        &[
            "arm/stm32mp1",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mcpu": "thunderxt88", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon", "+crc", "+lse"], "model": "thunderx", "device": "arm_cpu"}"#,
        &[
            "arm/thunderx",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"], "model": "ultra96", "device": "arm_cpu"}"#,
        &[
            "arm/ultra96",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 24, "mcpu": "cascadelake"}"#,
        &[
            "aws/cpu/c5.12xlarge",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 36, "mcpu": "skylake-avx512"}"#,
        &[
            "aws/cpu/c5.18xlarge",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 48, "mcpu": "cascadelake"}"#,
        &[
            "aws/cpu/c5.24xlarge",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 4, "mcpu": "skylake-avx512"}"#,
        &[
            "aws/cpu/c5.2xlarge",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 8, "mcpu": "skylake-avx512"}"#,
        &[
            "aws/cpu/c5.4xlarge",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 18, "mcpu": "skylake-avx512"}"#,
        &[
            "aws/cpu/c5.9xlarge",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 1, "mcpu": "skylake-avx512"}"#,
        &[
            "aws/cpu/c5.large",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["x86", "cpu"], "num-cores": 2, "mcpu": "skylake-avx512"}"#,
        &[
            "aws/cpu/c5.xlarge",
        ],
    ),
    tags(
        "trn",
        r#"{"num-cores": 2, "max_psum_size_per_partition": 16384, "max_sbuf_size_per_partition": 196608, "partition_size": 128}"#,
        &[
            "aws/trn1/trn1.2xlarge",
        ],
    ),
    tags(
        "trn",
        r#"{"num-cores": 32, "max_psum_size_per_partition": 16384, "max_sbuf_size_per_partition": 196608, "partition_size": 128}"#,
        &[
            "aws/trn1/trn1.32xlarge",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 32768, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_21"}"#,
        &[
            "nvidia/geforce-410m", "nvidia/geforce-610m", "nvidia/geforce-705m", "nvidia/geforce-710m",
            "nvidia/geforce-800m", "nvidia/geforce-820m", "nvidia/geforce-gt-415m", "nvidia/geforce-gt-420m",
            "nvidia/geforce-gt-430", "nvidia/geforce-gt-435m", "nvidia/geforce-gt-440", "nvidia/geforce-gt-445m",
            "nvidia/geforce-gt-520", "nvidia/geforce-gt-520m", "nvidia/geforce-gt-520mx", "nvidia/geforce-gt-525m",
            "nvidia/geforce-gt-540m", "nvidia/geforce-gt-550m", "nvidia/geforce-gt-555m", "nvidia/geforce-gt-610",
            "nvidia/geforce-gt-620", "nvidia/geforce-gt-620m", "nvidia/geforce-gt-625m", "nvidia/geforce-gt-630",
            "nvidia/geforce-gt-630m", "nvidia/geforce-gt-635m", "nvidia/geforce-gt-640-gddr3",
            "nvidia/geforce-gt-720m", "nvidia/geforce-gt-730-ddr3,128bit", "nvidia/geforce-gts-450",
            "nvidia/geforce-gtx-460", "nvidia/geforce-gtx-460m", "nvidia/geforce-gtx-470m",
            "nvidia/geforce-gtx-485m", "nvidia/geforce-gtx-550-ti", "nvidia/geforce-gtx-560-ti",
            "nvidia/geforce-gtx-560m", "nvidia/geforce-gtx-570m", "nvidia/geforce-gtx-580m",
            "nvidia/geforce-gtx-670m", "nvidia/geforce-gtx-675m", "nvidia/nvidia-nvs-310", "nvidia/nvidia-nvs-315",
            "nvidia/nvs-4200m", "nvidia/nvs-5200m", "nvidia/nvs-5400m",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024}"#,
        &[
            "nvidia/geforce-830m", "nvidia/geforce-840m", "nvidia/geforce-930m", "nvidia/geforce-940m",
            "nvidia/geforce-gtx-750", "nvidia/geforce-gtx-750-ti", "nvidia/geforce-gtx-850m",
            "nvidia/geforce-gtx-860m-sm-50", "nvidia/geforce-gtx-950m", "nvidia/geforce-gtx-960m",
            "nvidia/nvidia-nvs-810", "nvidia/quadro-k1200", "nvidia/quadro-k2200", "nvidia/quadro-k620",
            "nvidia/quadro-k620m", "nvidia/quadro-m1000m", "nvidia/quadro-m1200", "nvidia/quadro-m2000m",
            "nvidia/quadro-m3000m", "nvidia/quadro-m4000m", "nvidia/quadro-m5000m", "nvidia/quadro-m500m",
            "nvidia/quadro-m520", "nvidia/quadro-m600m",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_52"}"#,
        &[
            "nvidia/geforce-910m", "nvidia/geforce-gtx-950", "nvidia/geforce-gtx-960", "nvidia/geforce-gtx-965m",
            "nvidia/geforce-gtx-970", "nvidia/geforce-gtx-970m", "nvidia/geforce-gtx-980",
            "nvidia/geforce-gtx-980-ti", "nvidia/geforce-gtx-980m", "nvidia/geforce-gtx-titan-x",
            "nvidia/quadro-m2000", "nvidia/quadro-m2200", "nvidia/quadro-m4000", "nvidia/quadro-m5000",
            "nvidia/quadro-m5500m", "nvidia/quadro-m6000", "nvidia/quadro-m6000-24gb", "nvidia/quadro-m620",
            "nvidia/tesla-m40", "nvidia/tesla-m60",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_35"}"#,
        &[
            "nvidia/geforce-920m", "nvidia/geforce-gt-640-gddr5", "nvidia/geforce-gt-705", "nvidia/geforce-gt-720",
            "nvidia/geforce-gt-730", "nvidia/geforce-gtx-780", "nvidia/geforce-gtx-780-ti",
            "nvidia/geforce-gtx-titan", "nvidia/geforce-gtx-titan-black", "nvidia/geforce-gtx-titan-z",
            "nvidia/quadro-k510m", "nvidia/quadro-k5200", "nvidia/quadro-k6000", "nvidia/quadro-k610m",
            "nvidia/tesla-k20", "nvidia/tesla-k40",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_30"}"#,
        &[
            "nvidia/geforce-gt-640m", "nvidia/geforce-gt-640m-le", "nvidia/geforce-gt-645m",
            "nvidia/geforce-gt-650m", "nvidia/geforce-gt-730m", "nvidia/geforce-gt-735m", "nvidia/geforce-gt-740",
            "nvidia/geforce-gt-740m", "nvidia/geforce-gt-745m", "nvidia/geforce-gt-750m", "nvidia/geforce-gt-755m",
            "nvidia/geforce-gtx-650", "nvidia/geforce-gtx-650-ti", "nvidia/geforce-gtx-650-ti-boost",
            "nvidia/geforce-gtx-660", "nvidia/geforce-gtx-660-ti", "nvidia/geforce-gtx-660m",
            "nvidia/geforce-gtx-670", "nvidia/geforce-gtx-670mx", "nvidia/geforce-gtx-675mx",
            "nvidia/geforce-gtx-680", "nvidia/geforce-gtx-680m", "nvidia/geforce-gtx-680mx",
            "nvidia/geforce-gtx-690", "nvidia/geforce-gtx-760", "nvidia/geforce-gtx-760m", "nvidia/geforce-gtx-765m",
            "nvidia/geforce-gtx-770", "nvidia/geforce-gtx-770m", "nvidia/geforce-gtx-780m",
            "nvidia/geforce-gtx-860m-sm-30", "nvidia/geforce-gtx-870m", "nvidia/geforce-gtx-880m",
            "nvidia/nvidia-nvs-510", "nvidia/quadro-410", "nvidia/quadro-k1100m", "nvidia/quadro-k2000",
            "nvidia/quadro-k2000d", "nvidia/quadro-k2100m", "nvidia/quadro-k2200m", "nvidia/quadro-k3100m",
            "nvidia/quadro-k4000", "nvidia/quadro-k4100m", "nvidia/quadro-k420", "nvidia/quadro-k4200",
            "nvidia/quadro-k4200m", "nvidia/quadro-k5000", "nvidia/quadro-k500m", "nvidia/quadro-k5100m",
            "nvidia/quadro-k5200m", "nvidia/quadro-k600", "nvidia/quadro-k6000m", "nvidia/tesla-k10",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_61"}"#,
        &[
            "nvidia/geforce-gtx-1050", "nvidia/geforce-gtx-1060", "nvidia/geforce-gtx-1070",
            "nvidia/geforce-gtx-1070-ti", "nvidia/geforce-gtx-1080", "nvidia/geforce-gtx-1080-ti",
            "nvidia/nvidia-titan-x", "nvidia/nvidia-titan-xp", "nvidia/p520", "nvidia/p620", "nvidia/quadro-p1000",
            "nvidia/quadro-p2000", "nvidia/quadro-p2200", "nvidia/quadro-p3000", "nvidia/quadro-p3200",
            "nvidia/quadro-p400", "nvidia/quadro-p4000", "nvidia/quadro-p4200", "nvidia/quadro-p500",
            "nvidia/quadro-p5000", "nvidia/quadro-p5200", "nvidia/quadro-p600", "nvidia/quadro-p6000",
            "nvidia/quadro-p620", "nvidia/tesla-p4", "nvidia/tesla-p40",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 32768, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_20"}"#,
        &[
            "nvidia/geforce-gtx-465", "nvidia/geforce-gtx-470", "nvidia/geforce-gtx-480", "nvidia/geforce-gtx-480m",
            "nvidia/geforce-gtx-570", "nvidia/geforce-gtx-580", "nvidia/geforce-gtx-590", "nvidia/quadro-plex-7000",
            "nvidia/tesla-c2050", "nvidia/tesla-c2070", "nvidia/tesla-c2075",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_75"}"#,
        &[
            "nvidia/geforce-rtx-2060", "nvidia/geforce-rtx-2070", "nvidia/geforce-rtx-2080",
            "nvidia/geforce-rtx-2080-ti", "nvidia/nvidia-t4", "nvidia/nvidia-titan-rtx", "nvidia/quadro-rtx-4000",
            "nvidia/quadro-rtx-5000", "nvidia/quadro-rtx-6000", "nvidia/quadro-rtx-8000", "nvidia/rtx-3000",
            "nvidia/rtx-4000", "nvidia/rtx-5000", "nvidia/t1000", "nvidia/t2000",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_86"}"#,
        &[
            "nvidia/geforce-rtx-3060", "nvidia/geforce-rtx-3070", "nvidia/geforce-rtx-3070-ti",
            "nvidia/geforce-rtx-3080", "nvidia/geforce-rtx-3080-ti", "nvidia/geforce-rtx-3090",
            "nvidia/geforce-rtx-3090-ti", "nvidia/nvidia-a10", "nvidia/nvidia-a10g", "nvidia/nvidia-a16",
            "nvidia/nvidia-a2", "nvidia/nvidia-a40", "nvidia/rtx-a6000",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 75497472, "max_threads_per_block": 1024, "arch": "sm_89"}"#,
        &[
            "nvidia/geforce-rtx-4090",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 33554432, "max_threads_per_block": 1024, "arch": "sm_120"}"#,
        &[
            "nvidia/geforce-rtx-5060-ti",
        ],
    ),
    tags(
        "cuda",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 8, "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a78"}, "registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_87"}"#,
        &[
            "nvidia/jetson-agx-orin-32gb",
        ],
    ),
    tags(
        "cuda",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 12, "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a78"}, "registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_87"}"#,
        &[
            "nvidia/jetson-agx-orin-64gb",
        ],
    ),
    tags(
        "cuda",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 14, "mtriple": "aarch64-linux-gnu", "mcpu": "neoverse-v3ae"}, "registers_per_block": 65536, "max_shared_memory_per_block": 232448, "l2_cache_size_bytes": 33554432, "max_threads_per_block": 1024, "arch": "sm_110a"}"#,
        &[
            "nvidia/jetson-agx-thor",
        ],
    ),
    tags(
        "cuda",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 8, "mtriple": "aarch64-linux-gnu", "mcpu": "carmel"}, "registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_72"}"#,
        &[
            "nvidia/jetson-agx-xavier",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 32768, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_53"}"#,
        &[
            "nvidia/jetson-nano", "nvidia/jetson-tx1", "nvidia/tegra-x1",
        ],
    ),
    tags(
        "cuda",
        r#"{"host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 6, "mtriple": "aarch64-linux-gnu", "mcpu": "carmel"}, "registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_87"}"#,
        &[
            "nvidia/jetson-orin-nano",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 32768, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_62"}"#,
        &[
            "nvidia/jetson-tx2",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 41943040, "max_threads_per_block": 1024, "arch": "sm_80"}"#,
        &[
            "nvidia/nvidia-a100",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_80"}"#,
        &[
            "nvidia/nvidia-a30",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 52428800, "max_threads_per_block": 1024, "arch": "sm_100a"}"#,
        &[
            "nvidia/nvidia-b100",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "l2_cache_size_bytes": 52428800, "max_threads_per_block": 1024, "arch": "sm_90a"}"#,
        &[
            "nvidia/nvidia-h100",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_70"}"#,
        &[
            "nvidia/nvidia-titan-v", "nvidia/nvidia-v100", "nvidia/quadro-gv100",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_60"}"#,
        &[
            "nvidia/quadro-gp100", "nvidia/tesla-p100",
        ],
    ),
    tags(
        "cuda",
        r#"{"registers_per_block": 65536, "max_shared_memory_per_block": 49152, "max_threads_per_block": 1024, "arch": "sm_37"}"#,
        &[
            "nvidia/tesla-k80",
        ],
    ),
    tags(
        "opencl",
        r#"{"keys": ["adreno", "opencl", "gpu"], "device": "adreno"}"#,
        &[
            "qcom/adreno-opencl",
        ],
    ),
    tags(
        "opencl",
        r#"{"keys": ["adreno", "opencl", "gpu", "clml"], "device": "adreno"}"#,
        &[
            "qcom/adreno-opencl-clml",
        ],
    ),
    tags(
        "opencl",
        r#"{"keys": ["adreno", "opencl", "gpu", "texture"], "device": "adreno"}"#,
        &[
            "qcom/adreno-opencl-texture",
        ],
    ),
    tags(
        "vulkan",
        r#"{"keys": ["adreno", "vulkan", "gpu"], "device": "adreno"}"#,
        &[
            "qcom/adreno-vulkan",
        ],
    ),
    tags(
        "vulkan",
        r#"{"keys": ["adreno", "vulkan", "gpu", "texture"], "device": "adreno"}"#,
        &[
            "qcom/adreno-vulkan-texture",
        ],
    ),
    tags(
        "hexagon",
        r#"{"vtcm-capacity": 262144, "num-cores": 4, "mcpu": "hexagonv65", "mtriple": "hexagon", "mattr": ["+hvxv65", "+hvx-length128b"]}"#,
        &[
            "qcom/hexagon-v65",
        ],
    ),
    tags(
        "hexagon",
        r#"{"vtcm-capacity": 262144, "num-cores": 4, "mcpu": "hexagonv66", "mtriple": "hexagon", "mattr": ["+hvxv66", "+hvx-length128b"]}"#,
        &[
            "qcom/hexagon-v66",
        ],
    ),
    tags(
        "hexagon",
        r#"{"vtcm-capacity": 4194304, "num-cores": 4, "llvm-options": ["-force-hvx-float"], "mcpu": "hexagonv68", "mtriple": "hexagon", "mattr": ["+hvxv68", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]}"#,
        &[
            "qcom/hexagon-v68",
        ],
    ),
    tags(
        "hexagon",
        r#"{"vtcm-capacity": 8388608, "num-cores": 4, "mcpu": "hexagonv69", "mtriple": "hexagon", "mattr": ["+hvxv69", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]}"#,
        &[
            "qcom/hexagon-v69",
        ],
    ),
    tags(
        "hexagon",
        r#"{"vtcm-capacity": 8388608, "num-cores": 4, "mcpu": "hexagonv73", "mtriple": "hexagon", "mattr": ["+hvxv73", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]}"#,
        &[
            "qcom/hexagon-v73",
        ],
    ),
    tags(
        "hexagon",
        r#"{"vtcm-capacity": 8388608, "num-cores": 4, "mcpu": "hexagonv75", "mtriple": "hexagon", "mattr": ["+hvxv75", "+hvx-length128b", "+hvx-qfloat", "-hvx-ieee-fp"]}"#,
        &[
            "qcom/hexagon-v75",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["arm_cpu", "cpu"], "host": {"kind": "llvm", "keys": ["arm_cpu", "cpu"], "num-cores": 4, "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}, "num-cores": 4, "mcpu": "cortex-a72", "mtriple": "aarch64-linux-gnu", "mattr": ["+neon"]}"#,
        &[
            "raspberry-pi/4b-aarch64",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["riscv_cpu", "cpu"], "num-cores": 8, "mabi": "lp64d", "mfloat-abi": "hard", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "spacemit-x60", "device": "riscv_cpu"}"#,
        &[
            "riscv/licheepi3a",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["riscv_cpu", "cpu"], "mabi": "ilp32", "mtriple": "riscv32-unknown-linux-gnu", "mcpu": "sifive-e31", "model": "sifive-e31", "device": "riscv_cpu"}"#,
        &[
            "riscv/sifive-e31",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["riscv_cpu", "cpu"], "mabi": "ilp32", "mtriple": "riscv32-unknown-linux-gnu", "mcpu": "sifive-e76", "model": "sifive-e76", "device": "riscv_cpu"}"#,
        &[
            "riscv/sifive-e76",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["riscv_cpu", "cpu"], "mabi": "lp64d", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "sifive-u54", "model": "sifive-u54", "device": "riscv_cpu"}"#,
        &[
            "riscv/sifive-u54",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["riscv_cpu", "cpu"], "mabi": "lp64d", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "sifive-u74", "model": "sifive-u74", "device": "riscv_cpu"}"#,
        &[
            "riscv/sifive-u74",
        ],
    ),
    tags(
        "llvm",
        r#"{"keys": ["riscv_cpu", "cpu"], "num-cores": 8, "mabi": "lp64d", "mfloat-abi": "hard", "mtriple": "riscv64-unknown-linux-gnu", "mcpu": "spacemit-x100", "device": "riscv_cpu"}"#,
        &[
            "riscv/spacemit-k3",
        ],
    ),
];
