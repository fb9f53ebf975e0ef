//! The processors that LLVM 22 knows, from its own lists, and what kernels may use of each.
//!
//! LLVM's C interface cannot be asked whether it knows a name, nor which features a name has; given one that it does not
//! know, it prints a warning and compiles for a processor of twenty years ago. So both are kept here. Features that
//! kernels never use (of systems, keys, caches) are left out; the runtime's `processor` has those that count.

/// Processors with the same features.
#[derive(Debug)]
pub struct Processors {
    /// LLVM's names of what kernels may use, with commas between.
    pub features: &'static str,
    /// LLVM's names of the processors.
    pub names: &'static [&'static str],
}

/// The features of a processor; none if it is not in the table.
pub fn features_of(table: &'static [Processors], cpu: &str) -> Option<&'static str> {
    table.iter().find(|processors| processors.names.contains(&cpu)).map(|processors| processors.features)
}

/// The names in a table.
pub fn names(table: &'static [Processors]) -> impl Iterator<Item = &'static str> + Clone {
    table.iter().flat_map(|processors| processors.names.iter().copied())
}

/// Processors of x86-64.
pub const X86_64: &[Processors] = &[
    Processors { features: "", names: &["athlon-fx", "athlon64", "generic", "k8", "opteron", "x86-64"] },
    Processors { features: "sse3", names: &["athlon64-sse3", "k8-sse3", "nocona", "opteron-sse3"] },
    Processors { features: "sse3,ssse3", names: &["core2", "core_2_duo_ssse3"] },
    Processors { features: "sse3,ssse3,movbe", names: &["atom", "bonnell"] },
    Processors { features: "sse3,ssse3,sse4.1", names: &["core_2_duo_sse4_1", "penryn"] },
    Processors { features: "sse3,sse4a,popcnt,lzcnt", names: &["amdfam10", "barcelona"] },
    Processors { features: "sse3,ssse3,sse4a,popcnt,lzcnt", names: &["btver1"] },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt",
        names: &["core_i7_sse4_2", "corei7", "nehalem", "x86-64-v2"],
    },
    Processors { features: "sse3,ssse3,sse4.1,sse4.2,popcnt,pclmul", names: &["core_aes_pclmulqdq", "westmere"] },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,movbe,pclmul",
        names: &["atom_sse4_2", "silvermont", "slm"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,avx,pclmul",
        names: &["core_2nd_gen_avx", "corei7-avx", "sandybridge"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,avx,f16c,pclmul",
        names: &["core-avx-i", "core_3rd_gen_avx", "ivybridge"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,movbe,aes,pclmul,sha",
        names: &["atom_sse4_2_movbe", "goldmont", "goldmont-plus", "goldmont_plus"],
    },
    Processors { features: "sse3,ssse3,sse4.1,sse4.2,popcnt,movbe,aes,pclmul,sha,gfni", names: &["tremont"] },
    Processors { features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,xop,avx,aes,pclmul", names: &["bdver1"] },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,movbe,bmi,avx,f16c,aes,pclmul",
        names: &["btver2"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma",
        names: &["x86-64-v3"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,pclmul",
        names: &["core-avx2", "core_4th_gen_avx", "core_4th_gen_avx_tsx", "haswell"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,bmi,tbm,xop,avx,f16c,fma,aes,pclmul",
        names: &["bdver2", "bdver3"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,pclmul",
        names: &["broadwell", "core_5th_gen_avx", "core_5th_gen_avx_tsx"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul",
        names: &["skylake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,movbe,bmi,bmi2,tbm,xop,avx,avx2,f16c,fma,aes,pclmul",
        names: &["bdver4"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,avx512f,avx512cd",
        names: &["knl", "mic_avx512"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,avx512f,avx512cd,avx512dq,avx512bw,avx512vl",
        names: &["x86-64-v4"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha",
        names: &["znver1", "znver2"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,avx512f,avx512cd,avx512vpopcntdq",
        names: &["knm"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,vaes,vpclmulqdq",
        names: &["znver3"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avxvnni",
        names: &["alderlake", "gracemont", "meteorlake", "raptorlake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,avx512f,avx512cd,avx512dq,avx512bw,avx512vl",
        names: &["skx", "skylake-avx512", "skylake_avx512"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512vnni",
        names: &["cascadelake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512vnni,avx512bf16",
        names: &["cooperlake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avxvnni,avxifma,avxneconvert,avxvnniint8",
        names: &["arrowlake", "grandridge", "sierraforest"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi",
        names: &["cannonlake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avxvnni,avxifma,avxneconvert,avxvnniint8,avxvnniint16,sha512,sm3,sm4",
        names: &["arrowlake-s", "arrowlake_s", "clearwaterforest", "lunarlake", "pantherlake", "wildcatlake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq",
        names: &["icelake-client", "icelake-server", "icelake_client", "icelake_server", "rocketlake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512vp2intersect",
        names: &["tigerlake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16",
        names: &["znver4"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,sse4a,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16,avx512vp2intersect,avxvnni",
        names: &["znver5"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16,avx512fp16,avxvnni,amx-tile,amx-int8,amx-bf16",
        names: &["emeraldrapids", "sapphirerapids"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16,avx512fp16,avxvnni,amx-tile,amx-int8,amx-bf16,amx-fp16",
        names: &["graniterapids"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16,avx512fp16,avxvnni,amx-tile,amx-int8,amx-bf16,amx-fp16,amx-complex",
        names: &["graniterapids-d", "graniterapids_d"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16,avx512fp16,avxvnni,avxifma,avxneconvert,avxvnniint8,avxvnniint16,avx10.2,egpr,sha512,sm3,sm4",
        names: &["novalake"],
    },
    Processors {
        features: "sse3,ssse3,sse4.1,sse4.2,popcnt,lzcnt,movbe,bmi,bmi2,avx,avx2,f16c,fma,adx,aes,pclmul,sha,gfni,vaes,vpclmulqdq,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512ifma,avx512vbmi,avx512vbmi2,avx512vnni,avx512bitalg,avx512vpopcntdq,avx512bf16,avx512fp16,avxvnni,avxifma,avxneconvert,avxvnniint8,avxvnniint16,avx10.2,amx-tile,amx-int8,amx-bf16,amx-fp16,amx-complex,egpr,sha512,sm3,sm4",
        names: &["diamondrapids"],
    },
];

/// Processors of AArch64.
pub const AARCH64: &[Processors] = &[
    Processors { features: "", names: &["generic"] },
    Processors { features: "aes,sha2", names: &["apple-a7", "apple-a8", "apple-a9", "cyclone"] },
    Processors {
        features: "crc,aes,sha2",
        names: &[
            "cortex-a34",
            "cortex-a35",
            "cortex-a53",
            "cortex-a57",
            "cortex-a72",
            "cortex-a73",
            "exynos-m3",
            "kryo",
            "thunderx",
            "thunderxt81",
            "thunderxt83",
            "thunderxt88",
        ],
    },
    Processors { features: "crc,rdm,aes,sha2", names: &["apple-a10", "falkor"] },
    Processors { features: "crc,lse,rdm,aes,sha2", names: &["thunderx2t99", "thunderx3t110"] },
    Processors {
        features: "crc,lse,rdm,fullfp16,aes,sha2",
        names: &["apple-a11", "apple-a12", "apple-s4", "apple-s5", "carmel"],
    },
    Processors { features: "crc,lse,rdm,fullfp16,fp16fml,dotprod", names: &["cortex-r82", "cortex-r82ae"] },
    Processors { features: "crc,lse,rdm,dotprod,aes,sha2", names: &["saphira"] },
    Processors { features: "crc,lse,rdm,fullfp16,sve,aes,sha2", names: &["a64fx"] },
    Processors {
        features: "crc,lse,rdm,fullfp16,dotprod,aes,sha2",
        names: &[
            "cortex-a55",
            "cortex-a65",
            "cortex-a65ae",
            "cortex-a75",
            "cortex-a76",
            "cortex-a76ae",
            "cortex-a77",
            "cortex-a78",
            "cortex-a78ae",
            "cortex-a78c",
            "cortex-x1",
            "cortex-x1c",
            "exynos-m4",
            "exynos-m5",
            "neoverse-e1",
            "neoverse-n1",
        ],
    },
    Processors {
        features: "crc,lse,rdm,fullfp16,fp16fml,dotprod,aes,sha2",
        names: &["apple-a13", "apple-a14", "apple-m1", "apple-s6", "apple-s7", "apple-s8", "tsv110"],
    },
    Processors {
        features: "crc,lse,rdm,fullfp16,dotprod,bf16,i8mm,aes,sha2",
        names: &["ampere1", "ampere1a", "ampere1b"],
    },
    Processors {
        features: "crc,lse,rdm,fullfp16,fp16fml,dotprod,bf16,i8mm,aes,sha2",
        names: &[
            "apple-a15",
            "apple-a16",
            "apple-a17",
            "apple-a18",
            "apple-a19",
            "apple-m2",
            "apple-m3",
            "apple-m4",
            "apple-m5",
            "apple-s10",
            "apple-s9",
            "oryon-1",
        ],
    },
    Processors {
        features: "crc,lse,rdm,fullfp16,fp16fml,dotprod,bf16,i8mm,sve,sve2",
        names: &[
            "c1-nano",
            "c1-premium",
            "c1-pro",
            "c1-ultra",
            "cobalt-100",
            "cortex-a320",
            "cortex-a510",
            "cortex-a520",
            "cortex-a520ae",
            "cortex-a710",
            "cortex-a715",
            "cortex-a720",
            "cortex-a720ae",
            "cortex-a725",
            "cortex-x2",
            "cortex-x3",
            "cortex-x4",
            "cortex-x925",
            "neoverse-n2",
            "neoverse-n3",
            "neoverse-v2",
            "neoverse-v3",
            "neoverse-v3ae",
        ],
    },
    Processors {
        features: "crc,lse,rdm,fullfp16,fp16fml,dotprod,bf16,i8mm,sve,aes,sha2",
        names: &["neoverse-512tvb", "neoverse-v1"],
    },
    Processors {
        features: "crc,lse,rdm,fullfp16,fp16fml,dotprod,bf16,i8mm,sve,sve2,aes,sha2",
        names: &["ampere1c", "fujitsu-monaka", "gb10", "grace", "olympus"],
    },
];

/// NVIDIA's devices by their compute capability; those with an `a` behind run on that one alone.
pub const NVPTX64: &[&str] = &[
    "sm_50", "sm_52", "sm_53", "sm_60", "sm_61", "sm_62", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87",
    "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_103a", "sm_120", "sm_120a",
];

/// Processors of WebAssembly.
pub const WASM32: &[&str] = &["bleeding-edge", "generic", "lime1", "mvp"];
