"""ONNX Runtime's interface on Relaxide: change one import, and a program runs on compiled models.

::

    import relaxide.onnxruntime as onnxruntime

    session = onnxruntime.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": x})

A model is compiled when a session is made for the first time, and kept for the next (``_cache``). Packages that import
``onnxruntime`` themselves run unchanged after :func:`install`, or by ``python -m relaxide.onnxruntime program.py``.

Not here: training, quantization tools, libraries of custom operators, and execution providers but the processor's; what is
asked for and cannot be done raises :class:`NotImplemented` and says what to do.
"""

from .._core import __version__ as _relaxide_version
from . import capi
from ._binding import IOBinding
from ._errors import *  # noqa: F403
from ._errors import __all__ as _ERRORS
from ._install import install
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._session import PROVIDERS, InferenceSession, ModelMetadata, NodeArg, get_available_providers
from ._values import OrtAllocatorType, OrtDevice, OrtMemoryInfo, OrtMemType, OrtValue

#: The version of ONNX Runtime whose interface this is.
__version__ = "1.32.0"

#: Some programs ask for the binding by this name.
SessionIOBinding = IOBinding


def get_all_providers():
    """Where sessions could run in any build: here, the same."""
    return list(PROVIDERS)


def get_device():
    """The kind of device that sessions run on."""
    return "CPU"


def get_build_info():
    """What this is."""
    return f"Relaxide {_relaxide_version}"


def get_version_string():
    """The version of ONNX Runtime whose interface this is."""
    return __version__


def set_default_logger_severity(severity):
    """Kept for its name: nothing is logged."""


def set_default_logger_verbosity(verbosity):
    """Kept for its name: nothing is logged."""


def disable_telemetry_events():
    """Kept for its name: nothing is reported to anybody."""


def enable_telemetry_events():
    """Kept for its name: nothing is reported to anybody."""


def set_seed(seed):
    """Say where random operators of models without a seed begin."""
    raise NotImplemented("random operators draw anew in every process; give them a `seed` in the model")  # noqa: F405


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Kept for its name: there is nothing to load."""


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtValue",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "capi",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "install",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
    *_ERRORS,
]
