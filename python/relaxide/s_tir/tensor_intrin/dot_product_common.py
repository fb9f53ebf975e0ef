"""Four bytes by four, added to a number: an instruction of several vendors' GPUs, ``__dp4a`` in CUDA."""

from ...script import from_source
from .._tensor_intrin import TensorIntrin

_KERNEL = """
@T.prim_func(s_tir=True)
def {name}(
    A: T.Buffer((4,), "{byte}", offset_factor=1, align=4, scope="shared"),
    B: T.Buffer((4,), "{byte}", offset_factor=1, align=4, scope="shared"),
    C: T.Buffer((1,), "{word}", offset_factor=1, align=4, scope="local"),
):
    with T.sblock("root"):
        T.reads(C[0], A[0:4], B[0:4])
        T.writes(C[0])
{body}
"""

_LOOP = """
        for i in range(4):
            with T.sblock("update"):
                vi = T.axis.remap("R", [i])
                C[0] = C[0] + T.cast(A[vi], "{word}") * T.cast(B[vi], "{word}")
"""

_CALL = """
        C[0] = T.call_pure_extern(
            "{word}", "__dp4a", T.reinterpret("{word}", A[T.Ramp(0, 1, 4)]), T.reinterpret("{word}", B[T.Ramp(0, 1, 4)]), C[0]
        )
"""


def _register(name, byte, word):
    def kernel(kind, body):
        return from_source(_KERNEL.format(name=f"{name}_{kind}", byte=byte, word=word, body=body.format(word=word)))

    TensorIntrin.register(name, kernel("desc", _LOOP), kernel("impl", _CALL), override=True)
    return name


#: Of bytes with a sign.
DP4A_S8S8S32_INTRIN = _register("dp4a_s8s8s32", "int8", "int32")
#: Of bytes without one.
DP4A_U8U8U32_INTRIN = _register("dp4a_u8u8u32", "uint8", "uint32")

__all__ = ["DP4A_S8S8S32_INTRIN", "DP4A_U8U8U32_INTRIN"]
