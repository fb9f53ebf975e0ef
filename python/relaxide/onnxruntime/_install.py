"""Relaxide in ONNX Runtime's place, for packages that import it by its name."""

import importlib
import sys
from importlib.machinery import PathFinder

_MODULES = ("", ".capi", ".capi._pybind_state", ".capi.onnxruntime_pybind11_state", ".capi.onnxruntime_inference_collection")


def install():
    """Make ``import onnxruntime`` mean this package, in this process and from now on.

    A program that has imported ONNX Runtime before keeps what it has, so call this first: at the top of a program, in
    ``sitecustomize.py`` for all programs of an environment, or run the program by ``python -m relaxide.onnxruntime``.
    """
    present = sys.modules.get("onnxruntime")
    here = __package__
    if present is not None and present.__name__ != here:
        raise ImportError("onnxruntime has been imported already: call relaxide.onnxruntime.install() before that")
    for part in _MODULES:
        sys.modules[f"onnxruntime{part}"] = importlib.import_module(f"{here}{part}")
    # Tools in Python of the package itself, where it lies beside: `onnxruntime.quantization` and the like.
    package, beside = sys.modules[here], PathFinder.find_spec("onnxruntime")
    for folder in (beside.submodule_search_locations or []) if beside else []:
        if folder not in package.__path__:
            package.__path__.append(folder)


__all__ = ["install"]
