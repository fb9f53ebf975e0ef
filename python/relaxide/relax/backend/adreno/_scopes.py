"""Memory scopes of tensors, and types that say them."""

from ....ir.global_info import VDevice
from ....tirx import IntImm
from ...type import TensorType, TupleType

GLOBAL = "global"


def scope_of(ty, target):
    """The scope in which a tensor may lie for those who read textures: a texture where it fits one, plain memory otherwise."""
    shape = getattr(ty, "shape", None)
    if shape is None or not all(isinstance(dim, (int, IntImm)) for dim in shape):
        return GLOBAL
    dims = [int(dim) for dim in shape]
    if len(dims) != 5 or dims[4] != 4:
        return GLOBAL
    longest, deepest = int(target.attrs.get("texture_spatial_limit", 16384)), int(target.attrs.get("texture_depth_limit", 2048))
    a, b, c, d = dims[:4]
    for scope, layers, rows, columns in (("-weight", 1, a, b * c * d), ("-nhwc", a, b, c * d), ("", a * b, c, d)):
        if layers < deepest and rows < longest and columns < longest:
            return f"global.texture{scope}"
    return GLOBAL


def with_device(ty, target, scope, devices):
    """A type whose tensors lie in a scope of a target; ``devices`` are those that the program has, by scope."""
    if isinstance(ty, TupleType):
        return TupleType([with_device(field, target, scope, devices) for field in ty.fields])
    if not isinstance(ty, TensorType):
        return ty
    if scope not in devices:
        devices[scope] = VDevice(target, 0, scope)
    shape = ty.shape
    return TensorType(shape, ty.dtype, devices[scope]) if shape is not None else TensorType(None, ty.dtype, devices[scope], ty.ndim)
