"""A kernel that was scheduled manually is compiled as it stands, and computes what it says."""

import numpy as np
import pytest
import sequences_of_regions  # noqa: F401  (enters more)
from kernels import KERNELS
from sequences import SEQUENCES

import relaxide
from relaxide import s_tir, tirx

RANDOM = np.random.default_rng(3)

SCALE = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((100,), "float32"), B: T.Buffer((100,), "float32")):
        for i in range(100):
            with T.sblock("B"):
                v = T.axis.spatial(100, i)
                B[v] = A[v] * T.float32(2)
"""


def schedule(kernel):
    return s_tir.Schedule(relaxide.script.from_source(KERNELS[kernel]), seed=1)


def run(module, *arrays):
    """Calls the compiled kernel ``main``; its last argument."""
    tensors = [relaxide.runtime.tensor(array) for array in arrays]
    relaxide.build(module)["main"](*tensors)
    return tensors[-1].numpy()


def test_a_tiled_product():
    sch = schedule("matmul")
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    (io, ii), (jo, ji) = sch.split(i, [None, 7]), sch.split(j, [None, 16])
    sch.reorder(io, jo, k, ii, ji)
    sch.parallel(sch.fuse(io, jo))
    sch.vectorize(ji)
    sch.unroll(ii)
    a, b = RANDOM.random((64, 48), "float32"), RANDOM.random((48, 40), "float32")
    found = run(sch.mod, a, b, np.zeros((64, 40), "float32"))
    np.testing.assert_allclose(found, np.maximum(a @ b, 0), rtol=1e-5)


def test_a_convolution_without_its_padding():
    sch = schedule("conv")
    sch.compute_inline("pad")
    n, o, h, w, c, kh, kw = sch.get_loops(sch.get_sblock("conv"))
    oo, oi = sch.split(o, [None, 8])
    sch.reorder(n, oo, h, w, c, kh, kw, oi)
    sch.vectorize(oi)
    sch.parallel(sch.fuse(n, oo, h))
    x, k = RANDOM.random((1, 8, 14, 14), "float32"), RANDOM.random((16, 8, 3, 3), "float32") - np.float32(0.5)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    expected = np.maximum(np.einsum("nchwij,ocij->nohw", windows, k), 0)
    found = run(sch.mod, x, k, np.zeros((1, 16, 14, 14), "float32"))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_dynamic_dimension_with_a_tail():
    sch = schedule("dynamic")
    i, j = sch.get_loops(sch.get_sblock("B"))
    outer, inner = sch.split(sch.fuse(i, j), [None, 256])
    sch.parallel(outer)
    sch.vectorize(sch.split(inner, [None, 8])[1])
    for rows in (1, 16, 37):
        a = RANDOM.random((rows, 16), "float32")
        np.testing.assert_array_equal(run(sch.mod, a, np.zeros_like(a)), a + 1)


REGIONS = [row for row in SEQUENCES if row[2].__module__ == "sequences_of_regions"]


@pytest.mark.parametrize(("kernel", "name", "steps"), REGIONS, ids=[f"{kernel}-{name}" for kernel, name, _ in REGIONS])
def test_steps_on_regions_keep_results(kernel, name, steps):
    sch = schedule(kernel)
    before = sch.mod
    steps(sch)
    arrays = [RANDOM.random([int(dim) for dim in buffer.shape], "float32") for buffer in before["main"].buffers]
    arrays[-1] = np.zeros_like(arrays[-1])
    after = run_where_parameters_are_laid_out_anew(sch.mod, arrays)
    np.testing.assert_allclose(after, run(before, *arrays), rtol=2e-2 if name == "another_type" else 1e-5, atol=1e-5)


def run_where_parameters_are_laid_out_anew(module, arrays):
    """Calls a kernel whose step ``panels`` took the columns of its second parameter apart."""
    shapes = [[int(dim) for dim in buffer.shape] for buffer in module["main"].buffers]
    given = [
        array if list(array.shape) == shape else array.reshape(-1, shape[0], shape[2]).swapaxes(0, 1)
        for array, shape in zip(arrays, shapes)
    ]
    return run(module, *(np.ascontiguousarray(array) for array in given))


def test_vectors_as_long_as_the_machine_has_them():
    sch = s_tir.Schedule(relaxide.script.from_source(SCALE))
    (i,) = sch.get_loops(sch.get_sblock("B"))
    _, inner = sch.split(i, [None, 4 * tirx.op.vscale()])
    sch.vectorize(inner)
    assert "T.vectorized(T.vscale() * 4)" in sch.mod.script()
    assert "factors=[None, 4 * T.vscale()]" in str(sch.trace)
    numbers = RANDOM.random(100, "float32")
    np.testing.assert_array_equal(run(sch.mod, numbers, np.zeros(100, "float32")), 2 * numbers)


def test_lanes_in_front_of_a_limit():
    for dtype, lanes in (("bool", "T.vscale() * 4"), ("bool", "8")):
        dtype += "xvscalex4" if "vscale" in lanes else "x8"
        mask = tirx.op.get_active_lane_mask(dtype, tirx.Var("i", "int64"), 5)
        assert str(mask) == f"T.Ramp(i, T.int64(1), {lanes}) < T.Broadcast(T.int64(5), {lanes})"
        assert str(mask.dtype) == dtype


def test_lanes_that_no_vector_has_are_refused():
    with pytest.raises(ValueError, match=r"between 1 and 32767 lanes, or a multiple of `T.vscale\(\)` from two on"):
        tirx.Ramp(0, 1, tirx.op.vscale())
