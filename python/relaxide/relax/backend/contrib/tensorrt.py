"""What TensorRT takes of a program.

Parting a program needs no TensorRT; code for the parts is made by a function ``relax.ext.tensorrt``, which is TVM's and not here.
"""

from ....ir import IntImm
from ...dpl import is_op, wildcard
from ...expr import ShapeExpr
from ...transform import FuseOpsByPattern, MergeCompositeFunctions
from ..pattern_registry import get_patterns_with_prefix, register_patterns

#: Operators of Relax by how many arguments they have. A pattern has the operator's name behind `tensorrt.`, but for those below.
_OPERATORS = {
    1: "nn.relu sigmoid nn.silu tanh exp log sqrt abs negative sin cos atan ceil floor erf nn.softmax nn.batch_flatten expand_dims "
    "squeeze permute_dims layout_transform nn.max_pool2d nn.avg_pool2d nn.max_pool3d nn.avg_pool3d nn.adaptive_avg_pool2d sum prod max "
    "min mean concat split",
    2: "add subtract multiply divide power maximum minimum nn.conv1d nn.conv2d nn.conv3d nn.conv2d_transpose nn.conv3d_transpose matmul "
    "reshape",
    3: "nn.layer_norm clip",
    4: "strided_slice",
    5: "strided_slice",
}
_NAMES = {"permute_dims": "transpose", "concat": "concatenate", "matmul": "nn.batch_matmul"}
_COORDINATES = ("asymmetric", "align_corners", "half_pixel", "pytorch_half_pixel")
_ROUNDING = ("floor", "ceil", "round_prefer_ceil", "round_prefer_floor")


def _of_operators():
    for count, names in _OPERATORS.items():
        for name in names.split():
            pattern = is_op(f"relax.{name}")(*(wildcard() for _ in range(count)))
            yield f"tensorrt.{_NAMES.get(name, name)}", pattern, {}


def _is_resize_that_it_has(context):
    """Whether a resize is one of images in layout NCHW, of known size, by a method that TensorRT computes in the same way."""
    data, size, resize = (context.annotated_expr[name] for name in ("data", "size", "root"))
    while size in context.matched_bindings:
        size = context.matched_bindings[size]
    known = isinstance(size, ShapeExpr) and all(isinstance(dim, IntImm) and dim.value > 0 for dim in size.values)
    if not known or len(size.values) != 2 or data.ty.ndim != 4 or data.ty.shape is None:
        return False
    attrs = resize.attrs
    if data.ty.dtype not in ("float16", "float32") or resize.ty.dtype != data.ty.dtype or attrs["layout"] != "NCHW":
        return False
    if attrs["coordinate_transformation_mode"] not in _COORDINATES:
        return False
    nearest = attrs["method"] == "nearest_neighbor"
    return attrs["rounding_method"] in _ROUNDING if nearest else attrs["method"] in ("linear", "cubic")


def _resize():
    data, size = wildcard(), wildcard()
    root = is_op("relax.image.resize2d")(data, size)
    return "tensorrt.image.resize2d", root, {"data": data, "size": size, "root": root}, _is_resize_that_it_has


register_patterns([*_of_operators(), _resize()])


def partition_for_tensorrt(mod):
    """The module with what TensorRT takes in functions of their own, one for each part of a graph, marked for it.

    Bind weights first (``relax.transform.BindParams``), so that they are constants of the parts.
    """
    patterns = get_patterns_with_prefix("tensorrt")
    return MergeCompositeFunctions()(FuseOpsByPattern(patterns, bind_constants=True, annotate_codegen=False)(mod))


__all__ = ["partition_for_tensorrt"]
