"""Programs built by ``with`` blocks: frames that stand for modules, functions, loops and blocks, and functions that write into them.

::

    with IRBuilder() as builder:
        with T.prim_func():
            A = T.arg("A", T.Buffer((16,), "float32"))
            with T.serial(16) as i:
                T.buffer_store(A, 1.0, [i])
    kernel = builder.get()

``ir`` holds the frames of modules, ``relax`` those of Relax functions, ``tirx`` those of kernels.
"""

import importlib

from . import ir
from .base import IRBuilder, IRBuilderFrame


def __getattr__(name):
    # They are made of modules that import this one.
    if name in ("relax", "tirx", "tir"):
        return importlib.import_module(f"{__name__}.{'tirx' if name == 'tir' else name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["IRBuilder", "IRBuilderFrame", "ir", "relax", "tirx"]
