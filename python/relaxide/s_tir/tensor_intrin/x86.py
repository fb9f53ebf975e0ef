"""Products of bytes on x86-64: sixteen rows of four, in 512 bits."""

from .._tensor_intrin import TensorIntrin
from ._dot import register

_BYTES = ("uint8", "int8", "int32")

#: VNNI: one instruction, which does not saturate.
VNNI_DOT_16x4_INTRIN = register(
    "dot_16x4_vnni",
    16,
    4,
    _BYTES,
    'T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.vpdpbusd.512", {sums}, T.Broadcast({vector}, 16), {matrix})',
)

#: AVX-512BW: pairs of products are added in 16 bits, where they saturate, and then in 32.
AVX512_DOT_16x4_INTRIN = register(
    "dot_16x4_avx512",
    16,
    4,
    _BYTES,
    '{sums} + T.call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.pmaddw.d.512", T.call_llvm_pure_intrin("int16x32", '
    '"llvm.x86.avx512.pmaddubs.w.512", T.reinterpret("uint8x64", T.Broadcast({vector}, 16)), {of_matrix}), T.Broadcast(T.int16(1), 32))',
)

#: What either computes.
dot_product_16x4_u8i8i32_desc = TensorIntrin.get(VNNI_DOT_16x4_INTRIN).desc

__all__ = ["AVX512_DOT_16x4_INTRIN", "VNNI_DOT_16x4_INTRIN", "dot_product_16x4_u8i8i32_desc"]
