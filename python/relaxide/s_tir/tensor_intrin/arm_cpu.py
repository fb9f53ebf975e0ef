"""Products of bytes on AArch64: four rows of four, in 128 bits."""

from ._dot import register
from .dot_product_common import DP4A_S8S8S32_INTRIN

_REPEATED = 'T.reinterpret("int8x8", T.Broadcast({vector}, 2))'


def _pairs(begin):
    rows = f"all_rows[T.Ramp({begin}, 1, 8)]"
    products = f'T.call_llvm_pure_intrin("int16x8", "llvm.aarch64.neon.smull", {_REPEATED}, {rows})'
    return f'T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp", {products})'


def _dot(name, dtypes, instruction):
    byte, word = dtypes[0], dtypes[2]
    repeated = f'T.reinterpret("{byte}x16", T.Broadcast({{vector}}, 4))'
    call = f'T.call_llvm_pure_intrin("{word}x4", "llvm.aarch64.neon.{instruction}", {{sums}}, {repeated}, {{of_matrix}})'
    return register(name, 4, 4, dtypes, call)


#: Processors without dot products: products of 16 bits, added in pairs.
ARM_DOT_4x4_i8_NEON_INTRIN = register(
    "dot_4x4_i8i8s32_neon",
    4,
    4,
    ("int8", "int8", "int32"),
    f'{{sums}} + T.call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp", {_pairs(0)}, {_pairs(8)})',
)
#: Dot products (ARMv8.2) of bytes with a sign.
ARM_DOT_4x4_i8_SDOT_INTRIN = _dot("dot_4x4_i8i8s32_sdot", ("int8", "int8", "int32"), "sdot")
#: Those of bytes without one.
ARM_DOT_4x4_u8_UDOT_INTRIN = _dot("dot_4x4_u8u8u32_udot", ("uint8", "uint8", "uint32"), "udot")
#: The same into numbers with a sign.
ARM_DOT_4x4_u8_HDOT_INTRIN = _dot("dot_4x4_u8u8i32_hdot", ("uint8", "uint8", "int32"), "udot")

__all__ = ["ARM_DOT_4x4_i8_NEON_INTRIN", "ARM_DOT_4x4_i8_SDOT_INTRIN", "ARM_DOT_4x4_u8_HDOT_INTRIN", "ARM_DOT_4x4_u8_UDOT_INTRIN"]
__all__ += ["DP4A_S8S8S32_INTRIN"]
