"""Products of matrices by the BLAS of NumPy, called from kernels.

The functions that kernels call, ``tvm.contrib.cblas.*``, are those of this process: a library that calls them runs where this module was
imported.
"""

import numpy as np

from .. import te
from ..runtime import register_global_func
from ..tirx import call_packed


def _product(a, b, c, transa=False, transb=False):
    a, b = a.numpy(), b.numpy()
    a = np.swapaxes(a, -1, -2) if transa else a
    b = np.swapaxes(b, -1, -2) if transb else b
    c.copyfrom(np.matmul(a, b).astype(str(c.dtype), copy=False))


for _name in ("matmul", "batch_matmul", "batch_matmul_iterative"):
    register_global_func(f"tvm.contrib.cblas.{_name}", _product, override=True)


def matmul(lhs, rhs, transa=False, transb=False, **kwargs):
    """The product of two matrices, each the other way round where ``transa`` or ``transb`` says so."""
    rows = lhs.shape[1] if transa else lhs.shape[0]
    columns = rhs.shape[0] if transb else rhs.shape[1]

    def call(ins, outs):
        return call_packed("tvm.contrib.cblas.matmul", ins[0], ins[1], outs[0], transa, transb)

    return te.extern((rows, columns), [lhs, rhs], call, name="C", **kwargs)


def batch_matmul(lhs, rhs, transa=False, transb=False, iterative=False, **kwargs):
    """The products of matrices in pairs, along a first dimension that is equal or one of one. ``iterative`` changes nothing."""
    count = rhs.shape[0] if getattr(lhs.shape[0], "value", lhs.shape[0]) == 1 else lhs.shape[0]
    rows = lhs.shape[2] if transa else lhs.shape[1]
    columns = rhs.shape[1] if transb else rhs.shape[2]
    name = "batch_matmul_iterative" if iterative else "batch_matmul"

    def call(ins, outs):
        return call_packed(f"tvm.contrib.cblas.{name}", ins[0], ins[1], outs[0], transa, transb)

    return te.extern((count, rows, columns), [lhs, rhs], call, name="C", **kwargs)


__all__ = ["batch_matmul", "matmul"]
