"""Kernels of intrinsics that add products of a vector with several rows: ``C[i] += sum(A[k] * B[i, k] for k)``."""

from ...script import from_source
from .._tensor_intrin import TensorIntrin

_HEAD = """
@T.prim_func(s_tir=True)
def {name}(
    A: T.Buffer(({terms},), "{a}", offset_factor=1{scope}),
    B: T.Buffer(({rows}, {terms}), "{b}", offset_factor=1{scope}),
    C: T.Buffer(({rows},), "{c}", offset_factor=1{scope}),
):
    with T.sblock("root"):
        T.reads(C[0:{rows}], A[0:{terms}], B[0:{rows}, 0:{terms}])
        T.writes(C[0:{rows}])
"""

_LOOPS = """
        for i, k in T.grid({rows}, {terms}):
            with T.sblock("update"):
                vi, vk = T.axis.remap("SR", [i, k])
                C[vi] = C[vi] + T.cast(A[vk], "{c}") * T.cast(B[vi, vk], "{c}")
"""

_CALL = """
        all_rows = T.decl_buffer(({numbers},), "{b}", data=B.data, elem_offset=B.elem_offset{scope})
        C[T.Ramp(0, 1, {rows})] = {value}
"""


def register(name, rows, terms, dtypes, value, scope="global"):
    """Make an intrinsic known: ``dtypes`` are those of ``A``, ``B`` and ``C``, and ``value`` is what its instructions make of them.

    In the text of ``value``, ``{vector}`` is ``A`` as one integer, ``{matrix}`` is ``B`` with an integer for each row, ``{of_matrix}`` its
    numbers one by one (``all_rows``), and ``{sums}`` is ``C``. The rows of ``B`` stand behind each other without gaps.
    """
    a, b, c = dtypes
    bits = {"int8": 8, "uint8": 8, "int16": 16}[a] * terms
    word = f"{'u' if c.startswith('u') else ''}int{bits}"
    parts = {
        "vector": f'T.reinterpret("{word}", A[T.Ramp(0, 1, {terms})])',
        "matrix": f'T.reinterpret("{word}x{rows}", all_rows[T.Ramp(0, 1, {rows * terms})])',
        "sums": f"C[T.Ramp(0, 1, {rows})]",
        "rows": rows,
        "of_matrix": f"all_rows[T.Ramp(0, 1, {rows * terms})]",
    }
    where = "" if scope == "global" else f', scope="{scope}"'
    given = {"numbers": rows * terms, "rows": rows, "terms": terms, "a": a, "b": b, "c": c, "scope": where, "value": value.format(**parts)}
    desc = (_HEAD + _LOOPS).format(name=f"{name}_desc", **given)
    impl = (_HEAD + _CALL).format(name=f"{name}_impl", **given)
    TensorIntrin.register(name, from_source(desc), from_source(impl), override=True)
    return name


__all__ = ["register"]
