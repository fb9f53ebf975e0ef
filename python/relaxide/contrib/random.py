"""Tensors of random numbers for kernels, drawn by NumPy when the kernel runs.

The functions that kernels call, ``tvm.contrib.random.*``, are those of this process: a library that calls them runs where this module was
imported.
"""

import threading

import numpy as np

from .. import te
from ..runtime import register_global_func
from ..tirx import call_packed

_own = threading.local()


def _generator():
    if not hasattr(_own, "generator"):
        _own.generator = np.random.default_rng()
    return _own.generator


@register_global_func("tvm.contrib.random.seed", override=True)
def _seed(seed):
    _own.generator = np.random.default_rng(seed)


@register_global_func("tvm.contrib.random.randint", override=True)
def _randint(low, high, out):
    out.copyfrom(_generator().integers(low, high, out.shape).astype(str(out.dtype)))


@register_global_func("tvm.contrib.random.uniform", override=True)
def _uniform(low, high, out):
    out.copyfrom(_generator().uniform(low, high, out.shape).astype(str(out.dtype)))


@register_global_func("tvm.contrib.random.normal", override=True)
def _normal(loc, scale, out):
    out.copyfrom(_generator().normal(loc, scale, out.shape).astype(str(out.dtype)))


@register_global_func("tvm.contrib.random.random_fill", override=True)
def _fill(out):
    dtype = str(out.dtype)
    drawn = _generator().integers(0, 2 if dtype == "bool" else 10, out.shape) if "float" not in dtype else _generator().random(out.shape)
    out.copyfrom(drawn.astype(dtype))


def _drawn(name, first, second, size, dtype):
    def call(_, outs):
        return call_packed(f"tvm.contrib.random.{name}", first, second, outs[0])

    return te.extern(size, [], call, dtype=dtype, name=name)


def randint(low, high, size, dtype="int32"):
    """A tensor of shape ``size`` with whole numbers from ``low`` to below ``high``."""
    if "int" not in dtype:
        raise ValueError(f"randint makes integers, not {dtype}")
    return _drawn("randint", int(low), int(high), size, dtype)


def uniform(low, high, size):
    """A tensor of shape ``size``, float32, with numbers from ``low`` to below ``high``, all equally likely."""
    return _drawn("uniform", float(low), float(high), size, "float32")


def normal(loc, scale, size):
    """A tensor of shape ``size``, float32, of normally distributed numbers with mean ``loc`` and standard deviation ``scale``."""
    return _drawn("normal", float(loc), float(scale), size, "float32")


__all__ = ["normal", "randint", "uniform"]
