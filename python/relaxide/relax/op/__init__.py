"""Relax operators as functions: each builds a checked call whose type is known.

The functions come from the compiler's registry: ``help(relax.op.nn.conv2d)`` shows what its definition says.
"""

import importlib

from ... import _core
from ._calls import assert_op, call_builtin_with_ctx, call_dps_packed, call_inplace_packed, call_packed, call_pure_packed
from ._gradients import register_gradient
from ._calls import call_py_func, call_tir, call_tir_inplace, call_tir_with_grad, hint_on_device, invoke_closure, invoke_pure_closure, make_closure
from ._calls import linear, masked_fill, relu6 as _relu6, to_vdevice, view as _view
from ._generate import make as _make
from ._generate import namespaces as _namespaces

globals().update(_namespaces())
nn.relu6 = _relu6  # noqa: F821
memory.view = _view  # noqa: F821
# As TVM has them: the operators for detection are members of `relax.op` too.
all_class_non_max_suppression = vision.all_class_non_max_suppression  # noqa: F821
get_valid_counts = vision.get_valid_counts  # noqa: F821
multibox_transform_loc = vision.multibox_transform_loc  # noqa: F821
non_max_suppression = vision.non_max_suppression  # noqa: F821
roi_align = vision.roi_align  # noqa: F821
roi_pool = vision.roi_pool  # noqa: F821

#: What programs call when they run, which is looked up where it is asked for.
_RUN_TIME = ("numpy_nonzero", "numpy_unique", "relax_assert_op", "relax_print", "relax_shape_to_tensor", "render_object")

__all__ = [name for name in _core.op_names() if "." not in name]


def __getattr__(name):
    if name in ("op_attrs", "run_time"):
        return importlib.import_module(f".{name}", __name__)
    if name in _RUN_TIME:
        return getattr(importlib.import_module(".run_time", __name__), name)
    function = None if name.startswith("__") else _make(name)
    if function is None:
        raise AttributeError(f"there is no operator {name!r} in relax.op")
    globals()[name] = function
    return function


def __dir__():
    return sorted({*__all__, *_namespaces_of()})


def _namespaces_of():
    return {name.partition(".")[0] for name in _core.op_names() if "." in name}
