"""Importers, and models written as modules."""

from . import common, onnx, torch
from .common import detach_params


def __getattr__(name):
    # It needs NumPy, which a program that only runs models does not load.
    if name == "nn":
        import importlib

        return importlib.import_module(".nn", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["common", "detach_params", "nn", "onnx", "torch"]
