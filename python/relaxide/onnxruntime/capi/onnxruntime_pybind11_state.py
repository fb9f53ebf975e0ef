"""The exceptions, options and values, under the name of ONNX Runtime's extension module."""

from .._errors import *  # noqa: F403
from .._errors import __all__ as _ERRORS
from .._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._session import ModelMetadata, NodeArg, get_available_providers
from .._values import OrtAllocatorType, OrtDevice, OrtMemoryInfo, OrtMemType, OrtValue


__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "get_available_providers",
    *_ERRORS,
]
