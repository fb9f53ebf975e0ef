"""Which products and convolutions CUTLASS takes. The library itself is not called here: a program is divided, for a backend that is."""

from ...transform import FuseOpsByPattern
from ..pattern_registry import get_patterns_with_prefix, register_patterns
from ..patterns import make_attention_pattern, make_conv2d_pattern, make_matmul_pattern, make_residual_block_pattern
from ..utils import has_leaking_intermediate_variables

_ACTIVATIONS = ((None, ""), ("relax.nn.relu", "_relu"), ("relax.nn.gelu", "_gelu"), ("relax.nn.silu", "_silu"))


def _same(context, one, other):
    """Whether two operands are of one type that tensor cores take, and nothing inside of the match is used outside."""
    if has_leaking_intermediate_variables(context):
        return False
    left, right = context.annotated_expr[one].ty, context.annotated_expr[other].ty
    return left.dtype == right.dtype and str(left.dtype) in ("float16", "float32")


def _check_matmul(context):
    """A product whose lengths, but the first of each side, are known."""
    if not _same(context, "lhs", "rhs"):
        return False
    known = [hasattr(dim, "value") for ty in ("lhs", "rhs") for dim in list(context.annotated_expr[ty].ty.shape.values)[-1:]]
    return all(known)


def _check_conv2d(context):
    """A convolution of images with channels last and in one group."""
    attrs = context.annotated_expr["root"].attrs
    layouts = str(attrs["data_layout"]) == "NHWC" and str(attrs["kernel_layout"]) == "OHWI"
    return _same(context, "input", "weight") and layouts and int(attrs["groups"]) == 1


def _register():
    made = []
    for with_bias, bias in ((False, ""), (True, "_bias")):
        for activation, ending in _ACTIVATIONS:
            made.append((f"cutlass.conv2d{bias}{ending}", *make_conv2d_pattern(with_bias, activation), _check_conv2d))
            for transposed, word in ((False, ""), (True, "_transposed")):
                pattern = make_matmul_pattern(with_bias, activation, transposed)
                made.append((f"cutlass.matmul{word}{bias}{ending}", *pattern, _check_matmul))
    for ending, activation in (("", None), ("_relu", "relax.nn.relu")):
        inner = make_conv2d_pattern(with_bias=True)
        pattern = make_residual_block_pattern(inner, activation=activation)
        made.append((f"cutlass.conv2d_bias_residual_add{ending}", *pattern, _check_conv2d))
    made.append(("cutlass.attention", *make_attention_pattern()))
    register_patterns(made)


_register()


def partition_for_cutlass(mod, annotate_codegen=True, use_flash_mqa=True):
    """The module with each group that CUTLASS takes as a function; with ``annotate_codegen`` those have ``Codegen = "cutlass"``.

    ``use_flash_mqa`` is about heads that share keys, which are not divided off here.
    """
    patterns = get_patterns_with_prefix("cutlass")
    return FuseOpsByPattern(patterns, bind_constants=False, annotate_codegen=annotate_codegen)(mod)


__all__ = ["partition_for_cutlass"]
