"""Values, functions, objects and modules that cross between languages; the names are those of the package ``tvm_ffi``."""

from .._core import Function, Object, convert, convert_func
from . import _dtype, access_path, container, core, error, module, registry, serialization, stream, structural
from ._dtype import dtype
from ._tensor import Device, DLDeviceType, Shape, Tensor, device, from_dlpack
from .core import ObjectConvertible
from .container import Array, Dict, List, Map
from .error import register_error
from .module import Module, load_module, system_lib
from .registry import (
    get_global_func,
    get_global_func_metadata,
    init_ffi_api,
    list_global_func_names,
    register_global_func,
    register_object,
    remove_global_func,
)
from .stream import StreamContext, get_raw_stream, use_raw_stream
from .structural import (
    DefRegionKind,
    InplaceMode,
    StructuralKey,
    StructuralMutator,
    StructuralVisitor,
    VisitInterrupt,
    WalkOrder,
    WalkResult,
    get_first_structural_mismatch,
    structural_equal,
    structural_hash,
    structural_map,
    structural_mutate,
    structural_visit,
    structural_walk,
)

__all__ = [
    "Array",
    "DLDeviceType",
    "DefRegionKind",
    "Device",
    "Dict",
    "Function",
    "InplaceMode",
    "List",
    "Map",
    "Module",
    "Object",
    "ObjectConvertible",
    "Shape",
    "StreamContext",
    "StructuralKey",
    "StructuralMutator",
    "StructuralVisitor",
    "Tensor",
    "VisitInterrupt",
    "WalkOrder",
    "WalkResult",
    "access_path",
    "convert",
    "convert_func",
    "device",
    "dtype",
    "from_dlpack",
    "get_first_structural_mismatch",
    "get_global_func",
    "get_global_func_metadata",
    "get_raw_stream",
    "init_ffi_api",
    "load_module",
    "register_error",
    "register_global_func",
    "register_object",
    "remove_global_func",
    "serialization",
    "structural",
    "structural_equal",
    "structural_hash",
    "structural_map",
    "structural_mutate",
    "structural_visit",
    "structural_walk",
    "system_lib",
    "use_raw_stream",
]


def __getattr__(name):
    # Packages that few programs need, and that take their time to import.
    if name in ("cpp", "dataclasses", "libinfo"):
        from importlib import import_module

        return import_module(f".{name}", __name__)
    # Element types are attributes of the package: `ffi.float32`.
    if name in _dtype.NAMES:
        return dtype(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
