"""ONNX Runtime's interface on Relaxide: change one import, and a program runs on compiled models.

::

    import relaxide.onnxruntime as onnxruntime

    session = onnxruntime.InferenceSession("model.onnx")
    outputs = session.run(None, {"x": x})

A model is compiled when a session is made for the first time, and kept for the next (``_cache``). Packages that import
``onnxruntime`` themselves run unchanged after :func:`install`, or by ``python -m relaxide.onnxruntime program.py``.

Not here: training, libraries of custom operators, and execution providers but the processor's; what is asked for and cannot be
done raises :class:`NotImplemented` and says what to do (``_absent``). Where ONNX Runtime's own package lies beside, its tools that
are written in Python (``quantization``, ``tools``, ``transformers``) are found there and run on the sessions of this one; where it
does not, their import says what to install.
"""

from . import _absent, capi
from ._absent import *  # noqa: F403
from ._adapters import AdapterFormat, LoraAdapter
from ._binding import IOBinding
from ._devices import *  # noqa: F403
from ._devices import __all__ as _DEVICES
from ._errors import *  # noqa: F403
from ._errors import __all__ as _ERRORS
from ._install import install
from ._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from ._process import *  # noqa: F403
from ._process import __all__ as _PROCESS
from ._process import __version__
from ._providers import get_available_providers
from ._session import InferenceSession, ModelMetadata, NodeArg
from ._sparse import OrtSparseFormat, SparseTensor
from ._tools import explain
from ._values import OrtAllocatorType, OrtDevice, OrtMemoryInfo, OrtMemType, OrtValue

explain()

#: The same under its other name.
version = __version__

#: The name of the package in whose place this is, and for which CUDA it was built: none.
package_name, cuda_version = "onnxruntime", ""

#: What went wrong when the extension module was loaded: nothing.
import_capi_exception = None

#: Some programs ask for the binding by this name.
SessionIOBinding = IOBinding

__all__ = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
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
    "RunOptions",
    "SessionIOBinding",
    "SessionOptions",
    "SparseTensor",
    "capi",
    "get_available_providers",
    "install",
    *_absent.NAMES,
    *_DEVICES,
    *_ERRORS,
    *_PROCESS,
]
