"""Which products cuBLAS takes. The library itself is not called here: a program is divided, for a backend that calls it."""

import math

from ...transform import FuseOpsByPattern
from ..pattern_registry import get_patterns_with_prefix, register_patterns
from ..patterns import make_matmul_dequantize_pattern, make_matmul_multiply_pattern, make_matmul_pattern
from ..utils import has_leaking_intermediate_variables

_DTYPES = ("float16", "float32", "bfloat16", "int8")


def _number(dim):
    value = dim if isinstance(dim, int) else getattr(dim, "value", None)
    return value if isinstance(value, int) else None


def _check(context):
    """Whether the library takes a product that was matched: types, known inner lengths, batches that agree, a bias of one row."""
    if has_leaking_intermediate_variables(context):
        return False
    parts = context.annotated_expr
    left, right = parts["lhs"].ty, parts["rhs"].ty
    if left.dtype != right.dtype or str(left.dtype) not in (*_DTYPES, "float8_e4m3fn"):
        return False
    if "scale" in parts and "zp" in parts:
        scalars = parts["scale"].ty.ndim == 0 and parts["zp"].ty.ndim == 0
        if not scalars or float(parts["zp"].data.numpy()) != 0:
            return False
    rows, columns = list(left.shape.values), list(right.shape.values)
    inner = _number(rows[-1])
    if inner is None:
        return False
    if str(left.dtype) == "int8" and (inner % 4 or (_number(columns[-1]) or 1) % 4 or "bias" in parts):
        return False
    if "bias" in parts and any(_number(dim) != 1 for dim in list(parts["bias"].ty.shape.values)[:-1]):
        return False
    batches = [[_number(dim) for dim in dims[:-2]] for dims in (rows, columns)]
    if any(dim is None for dims in batches for dim in dims):
        return True
    return math.prod(batches[0]) == math.prod(batches[1]) or math.prod(batches[1]) == 1


def _register():
    made = []
    for transposed, suffix in ((False, ""), (True, "_transposed")):
        for ending, options in (
            ("", {}),
            ("_bias", {"with_bias": True}),
            ("_bias_relu", {"with_bias": True, "activation": "relax.nn.relu"}),
            ("_bias_gelu", {"with_bias": True, "activation": "relax.nn.gelu"}),
        ):
            made.append((f"cublas.matmul{suffix}{ending}", *make_matmul_pattern(transposed_rhs=transposed, **options), _check))
    made.append(("cublas.matmul_transposed_dequantize", *make_matmul_dequantize_pattern(transposed_rhs=True), _check))
    made.append(("cublas.matmul_transposed_multiply", *make_matmul_multiply_pattern(transposed_rhs=True), _check))
    register_patterns(made)


_register()


def partition_for_cublas(mod, bind_constants=False):
    """The module with each group that cuBLAS takes as a function with the attribute ``Codegen = "cublas"``.

    With ``bind_constants``, constants are kept inside of those functions.
    """
    return FuseOpsByPattern(get_patterns_with_prefix("cublas"), bind_constants=bind_constants, annotate_codegen=True)(mod)


__all__ = ["partition_for_cublas"]
