//! Processors that no kernels are compiled for here, and what they can do: RISC-V and 32-bit Arm.
//!
//! The lists are those of LLVM 22, whose C interface cannot be asked. They answer questions ([`Facts`](super::Facts)); a
//! compilation for such a target is refused. What LLVM knows of a processor beside its instructions is left out.

use relaxide_ir::target::processors::Processors;

/// Processors of RISC-V.
pub(super) const RISCV: &[Processors] = &[
    Processors {
        features: "32bit,a,c,d,f,i,m,xandesperf,zaamo,zalrsc,zca,zicsr,zifencei,zmmul",
        names: &["andes-a25", "andes-a45", "andes-n45"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,xandesperf,zaamo,zalrsc,zca,zicsr,zifencei,zmmul",
        names: &["andes-ax25", "andes-ax45", "andes-nx45"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,v,xandesperf,zaamo,zalrsc,zca,zicsr,zifencei,zmmul,zve32f,zve32x,zve64d,zve64f,zve64x,zvl128b,zvl32b,zvl64b",
        names: &["andes-ax45mpv"],
    },
    Processors { features: "32bit,i", names: &["generic-rv32"] },
    Processors { features: "64bit,i", names: &["generic-rv64"] },
    Processors {
        features: "64bit,a,c,d,f,i,m,xmipscbop,xmipscmov,xmipsexectl,xmipslsp,zaamo,zalrsc,zba,zbb,zca,zicsr,zifencei,zmmul",
        names: &["mips-p8700"],
    },
    Processors { features: "32bit,i,zicsr,zifencei", names: &["rocket-rv32"] },
    Processors { features: "64bit,i,zicsr,zifencei", names: &["rocket-rv64"] },
    Processors {
        features: "32bit,a,c,i,m,zaamo,zalrsc,zba,zbb,zbkb,zbs,zca,zcb,zcmp,zicsr,zifencei,zmmul",
        names: &["rp2350-hazard3"],
    },
    Processors {
        features: "32bit,c,i,m,zca,zicsr,zifencei,zmmul",
        names: &["sifive-e20", "syntacore-scr1-max", "syntacore-scr3-rv32"],
    },
    Processors {
        features: "32bit,a,c,i,m,zaamo,zalrsc,zca,zicsr,zifencei,zmmul",
        names: &["sifive-e21", "sifive-e31"],
    },
    Processors {
        features: "32bit,a,c,f,i,m,zaamo,zalrsc,zca,zicsr,zifencei,zmmul",
        names: &["sifive-e24", "sifive-e34", "sifive-e76"],
    },
    Processors {
        features: "64bit,a,b,c,d,f,i,m,za64rs,zaamo,zalrsc,zba,zbb,zbs,zca,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicsr,zifencei,zihintntl,zihintpause,zihpm,zkt,zmmul",
        names: &["sifive-p450"],
    },
    Processors {
        features: "64bit,a,b,c,d,f,i,m,v,xsifivecdiscarddlone,xsifivecflushdlone,za64rs,zaamo,zalrsc,zba,zbb,zbs,zca,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicsr,zifencei,zihintntl,zihintpause,zihpm,zkt,zmmul,zvbb,zvbc,zve32f,zve32x,zve64d,zve64f,zve64x,zvkb,zvkg,zvkn,zvknc,zvkned,zvkng,zvknhb,zvks,zvksc,zvksed,zvksg,zvksh,zvkt,zvl128b,zvl32b,zvl64b",
        names: &["sifive-p470"],
    },
    Processors { features: "64bit,a,c,d,f,i,m,zaamo,zalrsc,zba,zbb,zca,zicsr,zifencei,zmmul", names: &["sifive-p550"] },
    Processors {
        features: "64bit,a,b,c,d,f,i,m,v,za64rs,zaamo,zalrsc,zba,zbb,zbs,zca,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicsr,zifencei,zihintntl,zihintpause,zihpm,zkt,zmmul,zvbb,zvbc,zve32f,zve32x,zve64d,zve64f,zve64x,zvkb,zvkg,zvkn,zvknc,zvkned,zvkng,zvknhb,zvks,zvksc,zvksed,zvksg,zvksh,zvkt,zvl128b,zvl32b,zvl64b",
        names: &["sifive-p670"],
    },
    Processors {
        features: "64bit,a,b,c,d,f,i,m,supm,v,za64rs,zaamo,zalrsc,zama16b,zawrs,zba,zbb,zbs,zca,zcb,zcmop,zfa,zfbfmin,zfh,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicntr,zicond,zicsr,zifencei,zihintntl,zihintpause,zihpm,zimop,zkr,zkt,zmmul,zvbb,zvbc,zve32f,zve32x,zve64d,zve64f,zve64x,zvfbfmin,zvfbfwma,zvfh,zvfhmin,zvkb,zvkg,zvkn,zvknc,zvkned,zvkng,zvknhb,zvks,zvksc,zvksed,zvksg,zvksh,zvkt,zvl128b,zvl32b,zvl64b",
        names: &["sifive-p870"],
    },
    Processors {
        features: "64bit,a,c,i,m,zaamo,zalrsc,zca,zicsr,zifencei,zmmul",
        names: &["sifive-s21", "sifive-s51", "syntacore-scr3-rv64"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,zaamo,zalrsc,zca,zicsr,zifencei,zmmul",
        names: &["sifive-s54", "sifive-u54", "sifive-u74", "syntacore-scr4-rv64", "syntacore-scr5-rv64"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,zaamo,zalrsc,zca,zicsr,zifencei,zihintpause,zmmul",
        names: &["sifive-s76"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,v,zaamo,zalrsc,zba,zbb,zca,zfh,zfhmin,zicsr,zifencei,zmmul,zve32f,zve32x,zve64d,zve64f,zve64x,zvfh,zvfhmin,zvl128b,zvl256b,zvl32b,zvl512b,zvl64b",
        names: &["sifive-x280"],
    },
    Processors {
        features: "64bit,a,b,c,d,experimental-zicfilp,experimental-zicfiss,f,i,m,v,xsifivecdiscarddlone,xsifivecflushdlone,za64rs,zaamo,zalrsc,zawrs,zba,zbb,zbs,zca,zcb,zcmop,zfa,zfbfmin,zfh,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,ziccrse,zicntr,zicond,zicsr,zifencei,zihintntl,zihintpause,zihpm,zimop,zkr,zkt,zmmul,zvbb,zve32f,zve32x,zve64d,zve64f,zve64x,zvfbfmin,zvfbfwma,zvfh,zvfhmin,zvkb,zvkt,zvl1024b,zvl128b,zvl256b,zvl32b,zvl512b,zvl64b",
        names: &["sifive-x390"],
    },
    Processors {
        features: "64bit,a,b,c,d,f,i,m,ssccptr,sscofpmf,sscounterenw,sstc,sstvala,sstvecd,svade,svbare,svinval,svnapot,svpbmt,v,xsmtvdot,za64rs,zaamo,zalrsc,zba,zbb,zbc,zbkc,zbs,zca,zfh,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicntr,zicond,zicsr,zifencei,zihintpause,zihpm,zkt,zmmul,zve32f,zve32x,zve64d,zve64f,zve64x,zvfh,zvfhmin,zvkt,zvl128b,zvl256b,zvl32b,zvl64b",
        names: &["spacemit-x60"],
    },
    Processors { features: "32bit,c,i,zca,zicsr,zifencei", names: &["syntacore-scr1-base"] },
    Processors { features: "32bit,c,d,f,i,m,zca,zicsr,zifencei,zmmul", names: &["syntacore-scr4-rv32"] },
    Processors { features: "32bit,a,c,d,f,i,m,zaamo,zalrsc,zca,zicsr,zifencei,zmmul", names: &["syntacore-scr5-rv32"] },
    Processors {
        features: "64bit,a,c,d,f,i,m,v,zaamo,zalrsc,zba,zbb,zbc,zbkb,zbkc,zbkx,zbs,zca,zicsr,zifencei,zkn,zknd,zkne,zknh,zmmul,zve32f,zve32x,zve64d,zve64f,zve64x,zvl128b,zvl32b,zvl64b",
        names: &["syntacore-scr7"],
    },
    Processors {
        features: "64bit,a,b,c,d,f,h,i,m,sha,shcounterenw,shgatpa,shtvala,shvsatpa,shvstvala,shvstvecd,smaia,ssaia,ssccptr,sscofpmf,sscounterenw,ssnpm,ssstateen,ssstrict,sstc,sstvala,sstvecd,ssu64xl,supm,svade,svbare,svinval,svnapot,svpbmt,v,za64rs,zaamo,zalrsc,zawrs,zba,zbb,zbs,zca,zcb,zcmop,zfa,zfbfmin,zfh,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicntr,zicond,zicsr,zifencei,zihintntl,zihintpause,zihpm,zimop,zkt,zmmul,zvbb,zvbc,zve32f,zve32x,zve64d,zve64f,zve64x,zvfbfmin,zvfbfwma,zvfh,zvfhmin,zvkb,zvkg,zvkn,zvkned,zvkng,zvknhb,zvkt,zvl128b,zvl256b,zvl32b,zvl64b",
        names: &["tt-ascalon-d8"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,xventanacondops,zaamo,zalrsc,zba,zbb,zbc,zbs,zca,zicbom,zicbop,zicboz,zicntr,zicsr,zifencei,zihintpause,zihpm,zmmul",
        names: &["veyron-v1"],
    },
    Processors {
        features: "64bit,a,b,c,d,f,h,i,m,sha,shcounterenw,shgatpa,shtvala,shvsatpa,shvstvala,shvstvecd,smaia,smcsrind,smdbltrp,smmpm,smnpm,smrnmi,smstateen,ssaia,ssccptr,sscofpmf,sscounterenw,sscsrind,ssdbltrp,ssnpm,sspm,ssstateen,ssstrict,sstc,sstvala,sstvecd,ssu64xl,supm,svade,svbare,svinval,svnapot,svpbmt,v,za64rs,zaamo,zacas,zalrsc,zawrs,zba,zbb,zbc,zbkb,zbkc,zbkx,zbs,zca,zcb,zcmop,zfa,zfh,zfhmin,zic64b,zicbom,zicbop,zicboz,ziccamoa,ziccif,zicclsm,ziccrse,zicntr,zicond,zicsr,zifencei,zihintntl,zihintpause,zihpm,zimop,zkn,zknd,zkne,zknh,zks,zksed,zksh,zkt,zmmul,zvbb,zve32f,zve32x,zve64d,zve64f,zve64x,zvfh,zvfhmin,zvkb,zvkt,zvl128b,zvl32b,zvl64b",
        names: &["xiangshan-kunminghu"],
    },
    Processors {
        features: "64bit,a,c,d,f,i,m,svinval,zaamo,zalrsc,zba,zbb,zbc,zbkb,zbkc,zbkx,zbs,zca,zicbom,zicboz,zicsr,zifencei,zkn,zknd,zkne,zknh,zksed,zksh,zmmul",
        names: &["xiangshan-nanhu"],
    },
];

/// Processors of 32-bit Arm.
pub(super) const ARM: &[Processors] = &[
    Processors {
        features: "v4t,v5t,v5te",
        names: &[
            "arm1020e",
            "arm1022e",
            "arm10e",
            "arm926ej-s",
            "arm946e-s",
            "arm966e-s",
            "arm968e-s",
            "arm9e",
            "iwmmxt",
            "xscale",
        ],
    },
    Processors { features: "v4t,v5t", names: &["arm1020t", "arm10tdmi"] },
    Processors { features: "dsp,v4t,v5t,v5te,v6", names: &["arm1136j-s"] },
    Processors { features: "dsp,fp64,v4t,v5t,v5te,v6,vfp2,vfp2sp", names: &["arm1136jf-s"] },
    Processors { features: "dsp,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v8m", names: &["arm1156t2-s"] },
    Processors { features: "dsp,fp64,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v8m,vfp2,vfp2sp", names: &["arm1156t2f-s"] },
    Processors { features: "trustzone,v4t,v5t,v5te,v6,v6k", names: &["arm1176jz-s"] },
    Processors { features: "fp64,trustzone,v4t,v5t,v5te,v6,v6k,vfp2,vfp2sp", names: &["arm1176jzf-s"] },
    Processors {
        features: "v4t",
        names: &[
            "arm710t",
            "arm720t",
            "arm7tdmi",
            "arm7tdmi-s",
            "arm9",
            "arm920",
            "arm920t",
            "arm922t",
            "arm940t",
            "arm9tdmi",
            "ep9312",
        ],
    },
    Processors {
        features: "",
        names: &["arm8", "arm810", "generic", "strongarm", "strongarm110", "strongarm1100", "strongarm1110"],
    },
    Processors {
        features: "d32,dsp,fp16,fp64,hwdiv,hwdiv-arm,mp,neon,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &["cortex-a12", "cortex-a15", "cortex-a17", "cortex-a7"],
    },
    Processors {
        features: "aes,crc,crypto,d32,dsp,fp-armv8,fp-armv8d16,fp-armv8d16sp,fp-armv8sp,fp16,fp64,hwdiv,hwdiv-arm,mp,neon,sha2,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &[
            "cortex-a32",
            "cortex-a35",
            "cortex-a53",
            "cortex-a57",
            "cortex-a72",
            "cortex-a73",
            "cyclone",
            "exynos-m3",
            "kryo",
        ],
    },
    Processors {
        features: "d32,dsp,fp16,fp64,mp,neon,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp",
        names: &["cortex-a5"],
    },
    Processors {
        features: "bf16,crc,d32,dotprod,dsp,fp-armv8,fp-armv8d16,fp-armv8d16sp,fp-armv8sp,fp16,fp16fml,fp64,fullfp16,hwdiv,hwdiv-arm,i8mm,mp,neon,ras,sb,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8,v8.1a,v8.2a,v8.3a,v8.4a,v8.5a,v8m,v9a,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &["cortex-a510", "cortex-a710", "neoverse-n2"],
    },
    Processors {
        features: "aes,crc,crypto,d32,dotprod,dsp,fp-armv8,fp-armv8d16,fp-armv8d16sp,fp-armv8sp,fp16,fp64,hwdiv,hwdiv-arm,mp,neon,ras,sha2,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8,v8.1a,v8.2a,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &["cortex-a55", "cortex-a75", "neoverse-n1"],
    },
    Processors {
        features: "aes,crc,crypto,d32,dotprod,dsp,fp-armv8,fp-armv8d16,fp-armv8d16sp,fp-armv8sp,fp16,fp64,fullfp16,hwdiv,hwdiv-arm,mp,neon,ras,sha2,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8,v8.1a,v8.2a,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &[
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
        ],
    },
    Processors {
        features: "d32,dsp,fp64,neon,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp",
        names: &["cortex-a8"],
    },
    Processors {
        features: "d32,dsp,fp16,fp64,mp,neon,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp",
        names: &["cortex-a9"],
    },
    Processors { features: "v4t,v5t,v5te,v6,v6m", names: &["cortex-m0", "cortex-m0plus", "cortex-m1", "sc000"] },
    Processors { features: "8msecext,hwdiv,v4t,v5t,v5te,v6,v6m,v7clrex,v8m", names: &["cortex-m23"] },
    Processors { features: "hwdiv,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m", names: &["cortex-m3", "sc300"] },
    Processors {
        features: "8msecext,dsp,fp-armv8d16sp,fp16,hwdiv,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,v8m.main,vfp2sp,vfp3d16sp,vfp4d16sp",
        names: &["cortex-m33", "cortex-m35p", "star-mc1"],
    },
    Processors {
        features: "dsp,fp16,hwdiv,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2sp,vfp3d16sp,vfp4d16sp",
        names: &["cortex-m4"],
    },
    Processors {
        features: "8msecext,dsp,fp-armv8d16,fp-armv8d16sp,fp16,fp64,fullfp16,hwdiv,lob,mve,mve.fp,mve1beat,ras,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8.1m.main,v8m,v8m.main,vfp2,vfp2sp,vfp3d16,vfp3d16sp,vfp4d16,vfp4d16sp",
        names: &["cortex-m52", "star-mc3"],
    },
    Processors {
        features: "8msecext,dsp,fp-armv8d16,fp-armv8d16sp,fp16,fp64,fullfp16,hwdiv,lob,mve,mve.fp,ras,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8.1m.main,v8m,v8m.main,vfp2,vfp2sp,vfp3d16,vfp3d16sp,vfp4d16,vfp4d16sp",
        names: &["cortex-m55", "cortex-m85"],
    },
    Processors {
        features: "dsp,fp-armv8d16,fp-armv8d16sp,fp16,fp64,hwdiv,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3d16,vfp3d16sp,vfp4d16,vfp4d16sp",
        names: &["cortex-m7"],
    },
    Processors { features: "dsp,hwdiv,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m", names: &["cortex-r4"] },
    Processors {
        features: "dsp,fp64,hwdiv,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3d16,vfp3d16sp",
        names: &["cortex-r4f"],
    },
    Processors {
        features: "dsp,fp64,hwdiv,hwdiv-arm,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3d16,vfp3d16sp",
        names: &["cortex-r5"],
    },
    Processors {
        features: "crc,d32,dsp,fp-armv8,fp-armv8d16,fp-armv8d16sp,fp-armv8sp,fp16,fp64,hwdiv,hwdiv-arm,mp,neon,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &["cortex-r52", "cortex-r52plus"],
    },
    Processors {
        features: "dsp,fp16,fp64,hwdiv,hwdiv-arm,mp,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3d16,vfp3d16sp",
        names: &["cortex-r7", "cortex-r8"],
    },
    Processors {
        features: "d32,dsp,fp16,fp64,hwdiv,hwdiv-arm,neon,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp",
        names: &["krait"],
    },
    Processors { features: "fp64,v4t,v5t,v5te,v6,v6k,vfp2,vfp2sp", names: &["mpcore"] },
    Processors { features: "v4t,v5t,v5te,v6,v6k", names: &["mpcorenovfp"] },
    Processors {
        features: "aes,bf16,crc,crypto,d32,dotprod,dsp,fp-armv8,fp-armv8d16,fp-armv8d16sp,fp-armv8sp,fp16,fp64,fullfp16,hwdiv,hwdiv-arm,i8mm,mp,neon,ras,sha2,thumb2,trustzone,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8,v8.1a,v8.2a,v8.3a,v8.4a,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp,virtualization",
        names: &["neoverse-v1"],
    },
    Processors {
        features: "d32,dsp,fp16,fp64,hwdiv,hwdiv-arm,mp,neon,thumb2,v4t,v5t,v5te,v6,v6k,v6m,v6t2,v7,v7clrex,v8m,vfp2,vfp2sp,vfp3,vfp3d16,vfp3d16sp,vfp3sp,vfp4,vfp4d16,vfp4d16sp,vfp4sp",
        names: &["swift"],
    },
];
