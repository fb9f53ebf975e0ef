"""Loops that overlap with themselves, beside TVM's: each side executes what its own pass has made, and both give what the program says.

How the loops look is not compared: TVM makes one buffer longer where versions have a dimension of their own here, and unrolls what stands
in front of a loop and behind it.
"""

import numpy as np
import pytest
from against_tvm import tvm

import relaxide

DOUBLE = """
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((9, 4), "float32"), C: T.Buffer((9, 4), "float32")):
        for i in range({extent}):
            B = T.alloc_buffer((4,), "float32", scope="local")
            with T.attr(B.data, "double_buffer_scope", 1):
                for j in range(4):
                    B[j] = A[i, j] * T.float32(2)
            for j in range(4):
                C[i, j] = B[3 - j] + T.float32(1)
"""

PIPELINE = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((9, 4), "float32"), C: T.Buffer((9, 4), "float32")):
        for i in T.serial(0, {extent}, annotations={{"software_pipeline_stage": {stages}, "software_pipeline_order": {order}}}):
            with T.sblock():
                T.reads(A[i, 0:4])
                T.writes(C[i, 0:4])
                B = T.sblock_alloc_buffer((4,), "float32")
                D = T.sblock_alloc_buffer((4,), "float32")
                with T.sblock():
                    T.reads(A[i, 0:4])
                    T.writes(B[0:4])
                    for j in range(4):
                        B[j] = A[i, j] * T.float32(2)
                with T.sblock():
                    T.reads(B[0:4])
                    T.writes(D[0:4])
                    for j in range(4):
                        D[j] = B[3 - j] + T.float32(1)
                with T.sblock():
                    T.reads(B[0:4], D[0:4])
                    T.writes(C[i, 0:4])
                    for j in range(4):
                        C[i, j] = D[j] * B[j]
"""


def executed(library, module, extent):
    """What a module computes of some rows; those behind them stay."""
    a, c = np.arange(36, dtype="float32").reshape(9, 4), np.zeros((9, 4), "float32")
    tensors = [library.runtime.tensor(x) for x in (a, c)]
    library.compile(module, target="llvm")["main"](*tensors)
    return tensors[1].numpy()[:extent]


def rows(extent):
    return np.arange(36, dtype="float32").reshape(9, 4)[:extent]


def check(text, name, extent, expected, libraries=(relaxide, tvm)):
    for library in libraries:
        made = getattr(library.s_tir.transform, name)()(library.script.from_source(text))
        assert "software_pipeline" not in made.script() and "double_buffer_scope" not in made.script()
        np.testing.assert_array_equal(executed(library, made, extent), expected)


@pytest.mark.parametrize("extent", [2, 3, 9])
def test_double_buffers(extent):
    expected = 2 * rows(extent)[:, ::-1] + 1
    check(DOUBLE.format(extent=extent), "InjectDoubleBuffer", extent, expected)


@pytest.mark.parametrize("extent", [3, 9])
@pytest.mark.parametrize(
    ("stages", "order"),
    [([0, 0, 0], [0, 1, 2]), ([0, 1, 1], [0, 1, 2]), ([0, 1, 2], [0, 1, 2]), ([0, 0, 1], [1, 2, 0]), ([0, 2, 3], [2, 0, 1])],
)
def test_software_pipelines(stages, order, extent):
    doubled = 2 * rows(extent)
    text = PIPELINE.format(stages=stages, order=order, extent=extent)
    # Of a loop that is shorter than its stages are apart, TVM makes a program that it does not compile itself.
    libraries = (relaxide, tvm) if extent >= max(stages) + 1 else (relaxide,)
    check(text, "InjectSoftwarePipeline", extent, (doubled[:, ::-1] + 1) * doubled, libraries)


@pytest.mark.parametrize(
    ("stages", "order", "why"),
    [
        ([0, 1], [0, 1], "2 stages and 2 places for 3 statements"),
        ([0, 0, 0], [0, 0, 1], "each number once"),
        ([1, 0, 1], [0, 1, 2], "before statement 0 has written it"),
        ([0, 0, 0], [1, 0, 2], "before statement 0 has written it"),
    ],
)
def test_what_is_no_pipeline_is_refused(stages, order, why):
    text = PIPELINE.format(stages=stages, order=order, extent=9)
    with pytest.raises(ValueError, match=why):
        relaxide.s_tir.transform.InjectSoftwarePipeline()(relaxide.script.from_source(text))
    with pytest.raises(Exception, match=".*"):
        tvm.s_tir.transform.InjectSoftwarePipeline()(tvm.script.from_source(text))
