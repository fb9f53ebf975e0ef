"""The exceptions, options and values, under the name of ONNX Runtime's extension module."""

from .._absent import *  # noqa: F403
from .._absent import __all__ as _ABSENT
from .._adapters import AdapterFormat, LoraAdapter
from .._binding import IOBinding as SessionIOBinding
from .._devices import *  # noqa: F403
from .._devices import __all__ as _DEVICES
from .._errors import *  # noqa: F403
from .._errors import __all__ as _ERRORS
from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._process import *  # noqa: F403
from .._process import __all__ as _PROCESS
from .._providers import get_available_providers
from .._session import InferenceSession, ModelMetadata, NodeArg
from .._sparse import OrtSparseFormat, SparseTensor
from .._values import OrtAllocatorType, OrtDevice, OrtMemoryInfo, OrtMemType, OrtValue, OrtValueVector


def get_default_session_options():
    """Options as they are when nobody changes them."""
    return SessionOptions()


__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "InferenceSession",
    "LoraAdapter",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtSparseFormat",
    "OrtValue",
    "OrtValueVector",
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "get_available_providers",
    "get_default_session_options",
    *_ABSENT,
    *_DEVICES,
    *_ERRORS,
    *_PROCESS,
]
