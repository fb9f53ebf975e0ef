"""Computes in Python: axes as long as others say, what is said of a compute, and scalars among the arguments."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import te


def run(kernel, *arrays, out):
    """What a kernel stores in its last argument."""
    result = tvm.runtime.tensor(np.zeros(out, "float32"))
    tvm.compile(kernel, target="llvm")(*(tvm.runtime.tensor(a) if isinstance(a, np.ndarray) else a for a in arrays), result)
    return result.numpy()


def test_a_reduction_is_as_long_as_another_axis_says():
    x = te.placeholder((8, 8), name="x")

    def row(i):
        k = te.reduce_axis((0, i), "k")
        return te.sum(x[i, k], axis=k)

    kernel = te.create_prim_func([x, te.compute((8,), row, name="y")])
    assert len(kernel.params) == 2
    value = np.random.default_rng(0).random((8, 8), "float32")
    np.testing.assert_allclose(run(kernel, value, out=8), np.tril(value, -1).sum(1), rtol=1e-5)


def test_results_of_a_reduction_start_at_a_value_of_their_place():
    x, first = te.placeholder((4, 8), name="x"), te.placeholder((4,), name="first")
    k = te.reduce_axis((0, 8), "k")
    started = lambda i: te.comm_reducer(lambda a, b: a + b, lambda dtype: first[i])(x[i, k], axis=k)  # noqa: E731
    kernel = te.create_prim_func([x, first, te.compute((4,), started, name="y")])
    value, start = np.random.default_rng(1).random((4, 8), "float32"), np.arange(4, dtype="float32")
    np.testing.assert_allclose(run(kernel, value, start, out=4), value.sum(1) + start, rtol=1e-5)


def test_what_is_said_of_a_compute():
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    with te.tag_scope(tag="sums"):
        c = te.compute((4,), lambda i: a[i] + b[i], attrs={"hint": 3, "layout_free_placeholders": [b]})
    assert (c.op.tag, c.op.attrs["hint"], len(c.op.body)) == ("sums", 3, 1)
    kernel = te.create_prim_func([a, b, c])
    assert [int(place) for place in kernel.attrs["layout_free_buffers"]] == [1]
    block = kernel.body.block.body.body.block
    assert dict(block.annotations) == {"hint": 3}


def test_scalars_are_parameters_where_they_are_given():
    n = te.var("n", "int64")
    a = te.placeholder((n,), name="a")
    rows = te.var("rows", "int64")
    kernel = te.create_prim_func([a, rows, te.compute((rows,), lambda i: a[i] * 2.0, name="b")])
    assert [param.name for param in kernel.params][1] == "rows"
    with pytest.raises(TypeError, match="tensors and variables"):
        te.create_prim_func([a, rows + 1])


def test_an_axis_begins_where_its_loop_does():
    text = """
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        for k in range(3, 8):
            with T.sblock("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]
"""
    value = np.random.default_rng(2).random((8, 8), "float32")
    kernel = tvm.script.from_source(text)
    np.testing.assert_allclose(run(kernel, value, out=8), value[:, 3:].sum(1), rtol=1e-5)


def test_buffers_lie_one_behind_another_in_a_pool():
    from relaxide.script import tirx as T
    from relaxide.script.ir_builder import IRBuilder
    from relaxide.script.ir_builder import tirx as build
    from relaxide.tirx.cuda.tile_primitive.tma_utils import SwizzleMode, mma_shared_layout

    with IRBuilder() as builder:
        with build.prim_func():
            build.func_name("main")
            pool = T.SMEMPool()
            a = pool.alloc((3,), "uint8")
            b = pool.alloc((4,), "float32", align=16)
            c = pool.alloc_tcgen05_mma_AB((64, 64), "float16")
            pool.commit()
    assert [int(buffer.elem_offset) for buffer in (a, b, c)] == [0, 4, 512]
    tvm.ir.assert_structural_equal(c.layout, mma_shared_layout("float16", SwizzleMode.SWIZZLE_128B_ATOM, (64, 64)))
    assert str(pool.max_offset) in builder.get().script()
    with pytest.raises(ValueError, match="inside of an element"):
        pool.move_base_to(2)
        pool.alloc((1,), "float32")
