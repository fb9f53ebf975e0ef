"""Products on Hexagon: thirty-two rows, in 1024 bits. No code is made for it here; schedules use them."""

from ._dot import register

_BYTES = ("uint8", "uint8", "int32")
_MIXED = ("uint8", "int8", "int32")
_VTCM = "global.vtcm"


def _call(instruction, *args):
    given = ", ".join(args)
    return f'T.call_llvm_pure_intrin("int32x32", "llvm.hexagon.V6.{instruction}.acc.128B", {{sums}}, {given})'


_UNSIGNED = _call("vrmpyub", "{matrix}", "{vector}")
_SIGNED = _call("vrmpybusv", "T.Broadcast({vector}, 32)", "{matrix}")
_HALVES = _call("vdmpyhvsat", "T.Broadcast({vector}, 32)", "{matrix}")

#: Four bytes without a sign by four.
VRMPY_u8u8i32_INTRIN = register("dot_32x4_u8u8i32_vrmpy", 32, 4, _BYTES, _UNSIGNED)
#: Four bytes without a sign by four with one.
VRMPY_u8i8i32_INTRIN = register("dot_32x4_u8i8i32_vrmpy", 32, 4, _MIXED, _SIGNED)
#: Two numbers of 16 bits by two.
VDMPY_i16i16i32_INTRIN = register("dot_product_32x2_i16i16i32_vdmpy", 32, 2, ("int16", "int16", "int32"), _HALVES)
#: The same over memory beside the vector unit.
VRMPY_u8u8i32_VTCM_INTRIN = register("dot_32x4_u8u8i32_vtcm_vrmpy", 32, 4, _BYTES, _UNSIGNED, _VTCM)
VRMPY_u8i8i32_VTCM_INTRIN = register("dot_32x4_u8i8i32_vtcm_vrmpy", 32, 4, _MIXED, _SIGNED, _VTCM)

__all__ = ["VDMPY_i16i16i32_INTRIN", "VRMPY_u8i8i32_INTRIN", "VRMPY_u8i8i32_VTCM_INTRIN", "VRMPY_u8u8i32_INTRIN", "VRMPY_u8u8i32_VTCM_INTRIN"]
