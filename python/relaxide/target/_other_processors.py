"""Processors that no kernels are compiled for here, and what they can do: RISC-V and 32-bit Arm.

The lists are those of LLVM 22, whose C interface cannot be asked. They answer questions (:mod:`relaxide.target.codegen`);
a compilation for such a target is refused. What LLVM knows of a processor beside its instructions is left out.
"""

import re

#: Processors of RISC-V.
RISCV = (
    ("andes-a25 andes-a45 andes-n45", "32bit a c d f i m xandesperf zaamo zalrsc zca zicsr zifencei zmmul"),
    ("andes-ax25 andes-ax45 andes-nx45", "64bit a c d f i m xandesperf zaamo zalrsc zca zicsr zifencei zmmul"),
    (
        "andes-ax45mpv",
        "64bit a c d f i m v xandesperf zaamo zalrsc zca zicsr zifencei zmmul zve32f zve32x zve64d zve64f zve64x "
        "zvl128b zvl32b zvl64b",
    ),
    ("generic-rv32", "32bit i"),
    ("generic-rv64", "64bit i"),
    (
        "mips-p8700",
        "64bit a c d f i m xmipscbop xmipscmov xmipsexectl xmipslsp zaamo zalrsc zba zbb zca zicsr zifencei zmmul",
    ),
    ("rocket-rv32", "32bit i zicsr zifencei"),
    ("rocket-rv64", "64bit i zicsr zifencei"),
    ("rp2350-hazard3", "32bit a c i m zaamo zalrsc zba zbb zbkb zbs zca zcb zcmp zicsr zifencei zmmul"),
    ("sifive-e20 syntacore-scr1-max syntacore-scr3-rv32", "32bit c i m zca zicsr zifencei zmmul"),
    ("sifive-e21 sifive-e31", "32bit a c i m zaamo zalrsc zca zicsr zifencei zmmul"),
    ("sifive-e24 sifive-e34 sifive-e76", "32bit a c f i m zaamo zalrsc zca zicsr zifencei zmmul"),
    (
        "sifive-p450",
        "64bit a b c d f i m za64rs zaamo zalrsc zba zbb zbs zca zfhmin zic64b zicbom zicbop zicboz ziccamoa "
        "ziccif zicclsm ziccrse zicsr zifencei zihintntl zihintpause zihpm zkt zmmul",
    ),
    (
        "sifive-p470",
        "64bit a b c d f i m v xsifivecdiscarddlone xsifivecflushdlone za64rs zaamo zalrsc zba zbb zbs zca zfhmin "
        "zic64b zicbom zicbop zicboz ziccamoa ziccif zicclsm ziccrse zicsr zifencei zihintntl zihintpause zihpm "
        "zkt zmmul zvbb zvbc zve32f zve32x zve64d zve64f zve64x zvkb zvkg zvkn zvknc zvkned zvkng zvknhb zvks "
        "zvksc zvksed zvksg zvksh zvkt zvl128b zvl32b zvl64b",
    ),
    ("sifive-p550", "64bit a c d f i m zaamo zalrsc zba zbb zca zicsr zifencei zmmul"),
    (
        "sifive-p670",
        "64bit a b c d f i m v za64rs zaamo zalrsc zba zbb zbs zca zfhmin zic64b zicbom zicbop zicboz ziccamoa "
        "ziccif zicclsm ziccrse zicsr zifencei zihintntl zihintpause zihpm zkt zmmul zvbb zvbc zve32f zve32x "
        "zve64d zve64f zve64x zvkb zvkg zvkn zvknc zvkned zvkng zvknhb zvks zvksc zvksed zvksg zvksh zvkt zvl128b "
        "zvl32b zvl64b",
    ),
    (
        "sifive-p870",
        "64bit a b c d f i m supm v za64rs zaamo zalrsc zama16b zawrs zba zbb zbs zca zcb zcmop zfa zfbfmin zfh "
        "zfhmin zic64b zicbom zicbop zicboz ziccamoa ziccif zicclsm ziccrse zicntr zicond zicsr zifencei "
        "zihintntl zihintpause zihpm zimop zkr zkt zmmul zvbb zvbc zve32f zve32x zve64d zve64f zve64x zvfbfmin "
        "zvfbfwma zvfh zvfhmin zvkb zvkg zvkn zvknc zvkned zvkng zvknhb zvks zvksc zvksed zvksg zvksh zvkt "
        "zvl128b zvl32b zvl64b",
    ),
    ("sifive-s21 sifive-s51 syntacore-scr3-rv64", "64bit a c i m zaamo zalrsc zca zicsr zifencei zmmul"),
    (
        "sifive-s54 sifive-u54 sifive-u74 syntacore-scr4-rv64 syntacore-scr5-rv64",
        "64bit a c d f i m zaamo zalrsc zca zicsr zifencei zmmul",
    ),
    ("sifive-s76", "64bit a c d f i m zaamo zalrsc zca zicsr zifencei zihintpause zmmul"),
    (
        "sifive-x280",
        "64bit a c d f i m v zaamo zalrsc zba zbb zca zfh zfhmin zicsr zifencei zmmul zve32f zve32x zve64d zve64f "
        "zve64x zvfh zvfhmin zvl128b zvl256b zvl32b zvl512b zvl64b",
    ),
    (
        "sifive-x390",
        "64bit a b c d experimental-zicfilp experimental-zicfiss f i m v xsifivecdiscarddlone xsifivecflushdlone "
        "za64rs zaamo zalrsc zawrs zba zbb zbs zca zcb zcmop zfa zfbfmin zfh zfhmin zic64b zicbom zicbop zicboz "
        "ziccamoa ziccif ziccrse zicntr zicond zicsr zifencei zihintntl zihintpause zihpm zimop zkr zkt zmmul "
        "zvbb zve32f zve32x zve64d zve64f zve64x zvfbfmin zvfbfwma zvfh zvfhmin zvkb zvkt zvl1024b zvl128b "
        "zvl256b zvl32b zvl512b zvl64b",
    ),
    (
        "spacemit-x60",
        "64bit a b c d f i m ssccptr sscofpmf sscounterenw sstc sstvala sstvecd svade svbare svinval svnapot "
        "svpbmt v xsmtvdot za64rs zaamo zalrsc zba zbb zbc zbkc zbs zca zfh zfhmin zic64b zicbom zicbop zicboz "
        "ziccamoa ziccif zicclsm ziccrse zicntr zicond zicsr zifencei zihintpause zihpm zkt zmmul zve32f zve32x "
        "zve64d zve64f zve64x zvfh zvfhmin zvkt zvl128b zvl256b zvl32b zvl64b",
    ),
    ("syntacore-scr1-base", "32bit c i zca zicsr zifencei"),
    ("syntacore-scr4-rv32", "32bit c d f i m zca zicsr zifencei zmmul"),
    ("syntacore-scr5-rv32", "32bit a c d f i m zaamo zalrsc zca zicsr zifencei zmmul"),
    (
        "syntacore-scr7",
        "64bit a c d f i m v zaamo zalrsc zba zbb zbc zbkb zbkc zbkx zbs zca zicsr zifencei zkn zknd zkne zknh "
        "zmmul zve32f zve32x zve64d zve64f zve64x zvl128b zvl32b zvl64b",
    ),
    (
        "tt-ascalon-d8",
        "64bit a b c d f h i m sha shcounterenw shgatpa shtvala shvsatpa shvstvala shvstvecd smaia ssaia ssccptr "
        "sscofpmf sscounterenw ssnpm ssstateen ssstrict sstc sstvala sstvecd ssu64xl supm svade svbare svinval "
        "svnapot svpbmt v za64rs zaamo zalrsc zawrs zba zbb zbs zca zcb zcmop zfa zfbfmin zfh zfhmin zic64b "
        "zicbom zicbop zicboz ziccamoa ziccif zicclsm ziccrse zicntr zicond zicsr zifencei zihintntl zihintpause "
        "zihpm zimop zkt zmmul zvbb zvbc zve32f zve32x zve64d zve64f zve64x zvfbfmin zvfbfwma zvfh zvfhmin zvkb "
        "zvkg zvkn zvkned zvkng zvknhb zvkt zvl128b zvl256b zvl32b zvl64b",
    ),
    (
        "veyron-v1",
        "64bit a c d "
        "f i m xventanacondops zaamo zalrsc zba zbb zbc zbs zca zicbom zicbop zicboz zicntr "
        "zicsr zifencei zihintpause zihpm zmmul",
    ),
    (
        "xiangshan-kunminghu",
        "64bit a b c d f h i m sha shcounterenw shgatpa shtvala shvsatpa shvstvala shvstvecd smaia smcsrind "
        "smdbltrp smmpm smnpm smrnmi smstateen ssaia ssccptr sscofpmf sscounterenw sscsrind ssdbltrp ssnpm sspm "
        "ssstateen ssstrict sstc sstvala sstvecd ssu64xl supm svade svbare svinval svnapot svpbmt v za64rs zaamo "
        "zacas zalrsc zawrs zba zbb zbc zbkb zbkc zbkx zbs zca zcb zcmop zfa zfh zfhmin zic64b zicbom zicbop "
        "zicboz ziccamoa ziccif zicclsm ziccrse zicntr zicond zicsr zifencei zihintntl zihintpause zihpm zimop "
        "zkn zknd zkne zknh zks zksed zksh zkt zmmul zvbb zve32f zve32x zve64d zve64f zve64x zvfh zvfhmin zvkb "
        "zvkt zvl128b zvl32b zvl64b",
    ),
    (
        "xiangshan-nanhu",
        "64bit a c d f i m svinval zaamo zalrsc zba zbb zbc zbkb zbkc zbkx zbs zca zicbom zicboz zicsr zifencei "
        "zkn zknd zkne zknh zksed zksh zmmul",
    ),
)

#: Processors of 32-bit Arm.
ARM = (
    ("arm1020e arm1022e arm10e arm926ej-s arm946e-s arm966e-s arm968e-s arm9e iwmmxt xscale", "v4t v5t v5te"),
    ("arm1020t arm10tdmi", "v4t v5t"),
    ("arm1136j-s", "dsp v4t v5t v5te v6"),
    ("arm1136jf-s", "dsp fp64 v4t v5t v5te v6 vfp2 vfp2sp"),
    ("arm1156t2-s", "dsp thumb2 v4t v5t v5te v6 v6k v6m v6t2 v8m"),
    ("arm1156t2f-s", "dsp fp64 thumb2 v4t v5t v5te v6 v6k v6m v6t2 v8m vfp2 vfp2sp"),
    ("arm1176jz-s", "trustzone v4t v5t v5te v6 v6k"),
    ("arm1176jzf-s", "fp64 trustzone v4t v5t v5te v6 v6k vfp2 vfp2sp"),
    ("arm710t arm720t arm7tdmi arm7tdmi-s arm9 arm920 arm920t arm922t arm940t arm9tdmi ep9312", "v4t"),
    ("arm8 arm810 generic strongarm strongarm110 strongarm1100 strongarm1110", ""),
    (
        "cortex-a12 cortex-a15 cortex-a17 cortex-a7",
        "d32 dsp fp16 fp64 hwdiv hwdiv-arm mp neon thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m "
        "vfp2 vfp2sp vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp virtualization",
    ),
    (
        "cortex-a32 cortex-a35 cortex-a53 cortex-a57 cortex-a72 cortex-a73 cyclone exynos-m3 kryo",
        "aes crc crypto d32 dsp fp-armv8 fp-armv8d16 fp-armv8d16sp fp-armv8sp fp16 fp64 hwdiv hwdiv-arm mp neon "
        "sha2 thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8m vfp2 vfp2sp vfp3 vfp3d16 vfp3d16sp "
        "vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp virtualization",
    ),
    (
        "cortex-a5",
        "d32 dsp fp16 fp64 mp neon thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp vfp3 "
        "vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp",
    ),
    (
        "cortex-a510 cortex-a710 neoverse-n2",
        "bf16 crc d32 dotprod dsp fp-armv8 fp-armv8d16 fp-armv8d16sp fp-armv8sp fp16 fp16fml fp64 fullfp16 hwdiv "
        "hwdiv-arm i8mm mp neon ras sb thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8.1a v8.2a "
        "v8.3a v8.4a v8.5a v8m v9a vfp2 vfp2sp vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp "
        "virtualization",
    ),
    (
        "cortex-a55 cortex-a75 neoverse-n1",
        "aes crc crypto d32 dotprod dsp fp-armv8 fp-armv8d16 fp-armv8d16sp fp-armv8sp fp16 fp64 hwdiv hwdiv-arm "
        "mp neon ras sha2 thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8.1a v8.2a v8m vfp2 vfp2sp "
        "vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp virtualization",
    ),
    (
        "cortex-a76 cortex-a76ae cortex-a77 cortex-a78 cortex-a78ae cortex-a78c cortex-x1 cortex-x1c exynos-m4 "
        "exynos-m5",
        "aes crc crypto d32 dotprod dsp fp-armv8 fp-armv8d16 fp-armv8d16sp fp-armv8sp fp16 fp64 fullfp16 hwdiv "
        "hwdiv-arm mp neon ras sha2 thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8.1a v8.2a v8m "
        "vfp2 vfp2sp vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp virtualization",
    ),
    (
        "cortex-a8",
        "d32 dsp fp64 neon thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp vfp3 vfp3d16 "
        "vfp3d16sp vfp3sp",
    ),
    (
        "cortex-a9",
        "d32 dsp fp16 fp64 mp neon thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp vfp3 "
        "vfp3d16 vfp3d16sp vfp3sp",
    ),
    ("cortex-m0 cortex-m0plus cortex-m1 sc000", "v4t v5t v5te v6 v6m"),
    ("cortex-m23", "8msecext hwdiv v4t v5t v5te v6 v6m v7clrex v8m"),
    ("cortex-m3 sc300", "hwdiv thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m"),
    (
        "cortex-m33 cortex-m35p star-mc1",
        "8msecext dsp fp-armv8d16sp fp16 hwdiv thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m v8m.main vfp2sp "
        "vfp3d16sp vfp4d16sp",
    ),
    ("cortex-m4", "dsp fp16 hwdiv thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2sp vfp3d16sp vfp4d16sp"),
    (
        "cortex-m52 star-mc3",
        "8msecext dsp fp-armv8d16 fp-armv8d16sp fp16 fp64 fullfp16 hwdiv lob mve mve.fp mve1beat ras thumb2 v4t "
        "v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8.1m.main v8m v8m.main vfp2 vfp2sp vfp3d16 vfp3d16sp vfp4d16 "
        "vfp4d16sp",
    ),
    (
        "cortex-m55 cortex-m85",
        "8msecext dsp fp-armv8d16 fp-armv8d16sp fp16 fp64 fullfp16 hwdiv lob mve mve.fp ras thumb2 v4t v5t v5te "
        "v6 v6k v6m v6t2 v7 v7clrex v8.1m.main v8m v8m.main vfp2 vfp2sp vfp3d16 vfp3d16sp vfp4d16 vfp4d16sp",
    ),
    (
        "cortex-m7",
        "dsp fp-armv8d16 fp-armv8d16sp fp16 fp64 hwdiv thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 "
        "vfp2sp vfp3d16 vfp3d16sp vfp4d16 vfp4d16sp",
    ),
    ("cortex-r4", "dsp hwdiv thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m"),
    ("cortex-r4f", "dsp fp64 hwdiv thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp vfp3d16 vfp3d16sp"),
    (
        "cortex-r5",
        "dsp fp64 hwdiv hwdiv-arm thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp vfp3d16 "
        "vfp3d16sp",
    ),
    (
        "cortex-r52 cortex-r52plus",
        "crc d32 dsp fp-armv8 fp-armv8d16 fp-armv8d16sp fp-armv8sp fp16 fp64 hwdiv hwdiv-arm mp neon thumb2 v4t "
        "v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8m vfp2 vfp2sp vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 "
        "vfp4d16sp vfp4sp virtualization",
    ),
    (
        "cortex-r7 cortex-r8",
        "dsp fp16 fp64 hwdiv hwdiv-arm mp thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp vfp3d16 "
        "vfp3d16sp",
    ),
    (
        "krait",
        "d32 dsp fp16 fp64 hwdiv hwdiv-arm neon thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp "
        "vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp",
    ),
    ("mpcore", "fp64 v4t v5t v5te v6 v6k vfp2 vfp2sp"),
    ("mpcorenovfp", "v4t v5t v5te v6 v6k"),
    (
        "neoverse-v1",
        "aes bf16 crc crypto d32 dotprod dsp fp-armv8 fp-armv8d16 fp-armv8d16sp fp-armv8sp fp16 fp64 fullfp16 "
        "hwdiv hwdiv-arm i8mm mp neon ras sha2 thumb2 trustzone v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8.1a "
        "v8.2a v8.3a v8.4a v8m vfp2 vfp2sp vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp "
        "virtualization",
    ),
    (
        "swift",
        "d32 dsp fp16 fp64 hwdiv hwdiv-arm mp neon thumb2 v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8m vfp2 vfp2sp "
        "vfp3 vfp3d16 vfp3d16sp vfp3sp vfp4 vfp4d16 vfp4d16sp vfp4sp",
    ),
)
#: What an extension of RISC-V is made of, as far as vectors and floats are concerned.
_RISCV_PARTS = {
    "v": ("d", "zve64d", "zvl128b"),
    "d": ("f",),
    "f": ("zicsr",),
    "zve64d": ("d", "zve64f"),
    "zve64f": ("zve32f", "zve64x"),
    "zve64x": ("zve32x", "zvl64b"),
    "zve32f": ("f", "zve32x"),
    "zve32x": ("zicsr", "zvl32b"),
}


def family(triple):
    """``"riscv"`` or ``"arm"``, where a triple is of such a processor; else None."""
    architecture = triple.split("-")[0]
    if re.fullmatch(r"riscv(32|64)(be)?", architecture):
        return "riscv"
    return "arm" if re.fullmatch(r"(arm|thumb)(v[4-9].*|eb)?", architecture) else None


def processors(triple):
    """The processors of a triple's family, by LLVM's names."""
    table = RISCV if family(triple) == "riscv" else ARM
    return sorted(name for names, _ in table for name in names.split())


def features(triple, cpu, changes):
    """What a processor can do, with what ``mattr`` adds (``"+v"``) and takes away.

    Raises
    ------
    ValueError
        There is no processor of that name in the family.
    """
    kind = family(triple)
    if not cpu or cpu == "generic":
        cpu = ("generic-rv64" if "64" in triple.split("-")[0] else "generic-rv32") if kind == "riscv" else "generic"
    table = RISCV if kind == "riscv" else ARM
    found = next((has for names, has in table if cpu in names.split()), None)
    if found is None:
        raise ValueError(f"unknown processor `{cpu}` for {triple}; llvm_get_cpu_archlist() lists those that are known")
    has = set(found.split())
    for change in changes:
        if change.startswith("-"):
            has.discard(change[1:])
        else:
            _add(has, change.lstrip("+"))
    return has


def vector_bits(has):
    """The least width of vectors of RISC-V with these features; 128 where it has none."""
    lengths = [int(name[3:-1]) for name in has if re.fullmatch(r"zvl\d+b", name)]
    return max(lengths, default=0) if lengths and max(lengths) > 64 else 128


def _add(has, name):
    if name in has:
        return
    has.add(name)
    parts = list(_RISCV_PARTS.get(name, ()))
    length = re.fullmatch(r"zvl(\d+)b", name)
    if length and int(length[1]) > 32:
        parts.append(f"zvl{int(length[1]) // 2}b")
    for part in parts:
        _add(has, part)
