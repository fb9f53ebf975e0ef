//! The features of processors that LLVM 22 knows, from its own lists.
//!
//! As with processors, LLVM's C interface cannot be asked; a feature that it does not know gets a warning and no effect.

/// Instruction sets of x86-64.
pub(super) const X86_64: &str = "\
    64bit adx aes amx-avx512 amx-bf16 amx-complex amx-fp16 amx-fp8 amx-int8 amx-movrs amx-tf32 amx-tile avx avx10.1 \
    avx10.1-512 avx10.2 avx10.2-512 avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f avx512fp16 \
    avx512ifma avx512vbmi avx512vbmi2 avx512vl avx512vnni avx512vp2intersect avx512vpopcntdq avxifma avxneconvert \
    avxvnni avxvnniint16 avxvnniint8 bmi bmi2 ccmp cf cldemote clflushopt clwb clzero cmov cmpccxadd crc32 cx16 cx8 \
    egpr enqcmd ermsb evex512 f16c fma fma4 fsgsbase fsrm fxsr gfni hreset invpcid kl lwp lzcnt mmx movbe movdir64b \
    movdiri movrs mwaitx ndd nf pclmul pconfig pku popcnt ppx prefetchi prfchw ptwrite push2pop2 raoint rdpid rdpru \
    rdrnd rdseed rtm sahf serialize seses sgx sha sha512 shstk sm3 sm4 sse sse-unaligned-mem sse2 sse3 sse4.1 sse4.2 \
    sse4a ssse3 tbm tsxldtrk uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl x87 xop xsave xsavec xsaveopt \
    xsaves zu";

/// What else can be said of a processor of x86-64: how code is arranged for it, which registers are left alone.
pub(super) const X86_64_TUNING: &str = "\
    16bit-mode 32bit-mode 64bit-mode allow-light-256-bit branch-hint branchfusion false-deps-getmant \
    false-deps-lzcnt-tzcnt false-deps-mulc false-deps-mullq false-deps-perm false-deps-popcnt false-deps-range \
    fast-11bytenop fast-15bytenop fast-7bytenop fast-bextr fast-dpwssd fast-gather fast-hops fast-imm16 fast-lzcnt \
    fast-movbe fast-scalar-fsqrt fast-scalar-shift-masks fast-shld-rotate fast-variable-crosslane-shuffle \
    fast-variable-perlane-shuffle fast-vector-fsqrt fast-vector-shift-masks faster-shift-than-shuffle \
    harden-sls-ijmp harden-sls-ret idivl-to-divb idivq-to-divl inline-asm-use-gpr32 lea-sp lea-uses-ag lvi-cfi \
    lvi-load-hardening macrofusion no-bypass-delay no-bypass-delay-blend no-bypass-delay-mov no-bypass-delay-shuffle \
    nopl pad-short-functions prefer-128-bit prefer-256-bit prefer-legacy-setcc prefer-mask-registers \
    prefer-movmsk-over-vtest prefer-no-gather prefer-no-scatter retpoline retpoline-external-thunk \
    retpoline-indirect-branches retpoline-indirect-calls sbb-dep-breaking slow-3ops-lea slow-incdec slow-lea \
    slow-pmaddwd slow-pmulld slow-pmullq slow-shld slow-two-mem-ops slow-unaligned-mem-16 slow-unaligned-mem-32 \
    soft-float tagged-globals tuning-fast-imm-vector-shift use-glm-div-sqrt-costs use-slm-arith-costs vzeroupper x32";

/// Instruction sets of AArch64.
pub(super) const AARCH64: &str = "\
    aes altnzcv am amvs bf16 brbe bti btie ccdp ccidx ccpp chk clrbhb cmh cmpbr complxnum cpa crc crypto cssc d128 \
    dit dotprod ecv el2vmsa el3 ete f16f32dot f16f32mm f16mm f32mm f64mm f8f16mm f8f32mm faminmax fgt flagm fmv \
    fp-armv8 fp16fml fp8 fp8dot2 fp8dot4 fp8fma fpac fprcvt fptoint fullfp16 gcie gcs hbc hcx i8mm ite jsconv lor \
    ls64 lscp lse lse128 lse2 lsfe lsui lut mec mops mops-go mpam mpamv2 mte mtetc neon nmi nv occmo pan pan-rwv \
    pauth pauth-lr pcdphint perfmon poe2 pops predres prfm-slc-target rand ras rasv2 rcpc rcpc-immo rcpc3 rdm rme sb \
    sel2 sha2 sha3 sm4 sme sme-b16b16 sme-f16f16 sme-f64f64 sme-f8f16 sme-f8f32 sme-fa64 sme-i16i64 sme-lutv2 \
    sme-mop4 sme-tmop sme2 sme2p1 sme2p2 sme2p3 spe spe-eef specres2 specrestrict ssbs ssve-aes ssve-bitperm \
    ssve-fexpa ssve-fp8dot2 ssve-fp8dot4 ssve-fp8fma sve sve-aes sve-aes2 sve-b16b16 sve-b16mm sve-bfscale \
    sve-bitperm sve-f16f32mm sve-sha3 sve-sm4 sve2 sve2-aes sve2-bitperm sve2-sha3 sve2-sm4 sve2p1 sve2p2 sve2p3 tev \
    the tlb-rmi tlbid tlbiw tracev8.4 trbe uaops v8.1a v8.2a v8.3a v8.4a v8.5a v8.6a v8.7a v8.8a v8.9a v8a v8r v9.1a \
    v9.2a v9.3a v9.4a v9.5a v9.6a v9.7a v9a vh wfxt xs";

/// What else can be said of a processor of AArch64: how code is arranged for it, which registers are left alone.
pub(super) const AARCH64_TUNING: &str = "\
    CONTEXTIDREL2 a320 a35 a510 a520 a520ae a53 a55 a57 a64fx a65 a710 a715 a72 a720 a720ae a73 a75 a76 a77 a78 \
    a78ae a78c addr-lsl-slow-14 aggressive-fma aggressive-interleaving all alternate-sextload-cvt-f32-pattern \
    alu-lsl-fast ampere1 ampere1a ampere1b ampere1c apple-a10 apple-a11 apple-a12 apple-a13 apple-a14 apple-a15 \
    apple-a16 apple-a17 apple-a7 apple-m4 apple-m5 arith-bcc-fusion arith-cbz-fusion ascend-store-address \
    avoid-ldapur balance-fp-ops c1-nano c1-premium c1-pro c1-ultra call-saved-x10 call-saved-x11 call-saved-x12 \
    call-saved-x13 call-saved-x14 call-saved-x15 call-saved-x18 call-saved-x8 call-saved-x9 carmel cmp-bcc-fusion \
    cortex-a725 cortex-r82 cortex-r82ae cortex-x1 cortex-x2 cortex-x3 cortex-x4 cortex-x925 disable-fast-inc-vl \
    disable-latency-sched-heuristic disable-ldp disable-maximize-scalable-bandwidth disable-stp \
    disable-unpredicated-ld-st-lower enable-select-opt execute-only exynos-cheap-as-move exynosm3 exynosm4 falkor \
    fix-cortex-a53-835769 force-32bit-jump-tables fujitsu-monaka fuse-address fuse-addsub-2reg-const1 fuse-adrp-add \
    fuse-aes fuse-arith-logic fuse-crypto-eor fuse-csel fuse-cset fuse-literals harden-sls-blr harden-sls-nocomdat \
    harden-sls-retbr kryo ldp-aligned-only max-interleave-factor-4 neoverse512tvb neoversee1 neoversen1 neoversen2 \
    neoversen3 neoversev1 neoversev2 neoversev3 neoversev3AE no-bti-at-return-twice no-neg-immediates no-sve-fp-ld1r \
    no-zcz-fpr64 olympus oryon-1 outline-atomics predictable-select-expensive reserve-lr-for-ra reserve-x1 \
    reserve-x10 reserve-x11 reserve-x12 reserve-x13 reserve-x14 reserve-x15 reserve-x18 reserve-x2 reserve-x20 \
    reserve-x21 reserve-x22 reserve-x23 reserve-x24 reserve-x25 reserve-x26 reserve-x27 reserve-x28 reserve-x3 \
    reserve-x4 reserve-x5 reserve-x6 reserve-x7 reserve-x9 saphira slow-misaligned-128store slow-paired-128 \
    slow-strqro-store store-pair-suppress stp-aligned-only strict-align tagged-globals thunderx thunderx2t99 \
    thunderx3t110 thunderxt81 thunderxt83 thunderxt88 tpidr-el1 tpidr-el2 tpidr-el3 tpidrro-el0 tsv110 \
    use-experimental-zeroing-pseudos use-fixed-over-scalable-if-equal-cost use-postra-scheduler \
    use-reciprocal-square-root use-wzr-to-vec-move zcm-fpr128 zcm-fpr32 zcm-fpr64 zcm-gpr32 zcm-gpr64 \
    zcz-fp-workaround zcz-fpr128 zcz-gpr32 zcz-gpr64";

/// Instruction sets of WebAssembly.
pub(super) const WASM32: &str = "\
    atomics bulk-memory bulk-memory-opt call-indirect-overlong exception-handling extended-const fp16 gc multimemory \
    multivalue mutable-globals nontrapping-fptoint reference-types relaxed-simd sign-ext simd128 tail-call \
    wide-arithmetic";
