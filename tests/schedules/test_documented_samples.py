"""Kernels in the forms of TVM's documents of TensorIR, and their changes, compute the same under TVM and under Relaxide."""

import numpy as np
import pytest
from documented import CHANGES, KERNELS, in_full, in_short, with_axes_in_a_row, with_values_of_python

import relaxide
from relaxide import s_tir

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from beside_tvm import assert_same_program, reread  # noqa: E402
from tvm import s_tir as their_s_tir  # noqa: E402

CASES = [pytest.param(*case, id=name) for name, case in KERNELS.items()]


def arguments(shapes):
    random = np.random.default_rng(11)
    return [random.random(shape, "float32") - np.float32(0.5) for shape in shapes]


def run(package, built, arrays):
    tensors = [package.runtime.tensor(array) for array in arrays]
    built["main"](*tensors)
    return tensors[-1].numpy()


def ours(module, arrays):
    return run(relaxide, relaxide.tirx.build(module, target="llvm"), arrays)


def theirs(module, arrays):
    return run(tvm, tvm.tirx.build(module, target="llvm"), arrays)


def in_numpy(arrays):
    left, right, _ = arrays
    return left + right if left.ndim == 1 else np.maximum(left @ right, 0)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def agree(module, their_module, shapes):
    """Both modules compute the same, mean the same, and are read by the other side from their print."""
    arrays = arguments(shapes)
    expected = in_numpy(arrays)
    for found in (ours(module, arrays), theirs(their_module, arrays)):
        close(found, expected)
    assert_same_program(module, their_module)
    read = relaxide.script.from_source(their_module.script())
    assert_same_program(read, their_module)
    close(ours(read, arrays), expected)
    close(theirs(reread(module), arrays), expected)


@pytest.mark.parametrize(("function", "shapes"), CASES)
def test_a_kernel_in_every_form(function, shapes):
    agree(function(relaxide), function(tvm), shapes)


@pytest.mark.parametrize("name", [name for name in KERNELS if "any_shape" in name])
def test_a_kernel_of_any_shape_takes_several(name):
    function, _ = KERNELS[name]
    built = relaxide.compile(function(relaxide), target="llvm"), tvm.compile(function(tvm), target="llvm")
    for rows, columns, depth in ((4, 4, 4), (33, 17, 40), (1, 64, 3)):
        arrays = arguments([(rows, depth), (depth, columns), (rows, columns)])
        for package, library in zip((relaxide, tvm), built):
            close(run(package, library, arrays), in_numpy(arrays))


@pytest.mark.parametrize("package", [relaxide, tvm], ids=["relaxide", "tvm"])
def test_the_short_forms_mean_the_long_one(package):
    full = in_full(package)
    for other in (in_short, with_axes_in_a_row, with_values_of_python):
        package.ir.assert_structural_equal(other(package), full)


@pytest.mark.parametrize(("kernel", "steps"), CHANGES, ids=[steps.__name__ for _, steps in CHANGES])
def test_a_changed_kernel_at_every_stop(kernel, steps):
    function, shapes = KERNELS[kernel]
    schedules = s_tir.Schedule(function(relaxide)), their_s_tir.Schedule(function(tvm))
    stops = 0
    for _ in zip(*map(steps, schedules), strict=True):
        mine, other = schedules
        agree(mine.mod, other.mod, shapes)
        assert str(mine.trace) == str(other.trace)
        stops += 1
    assert stops > 1


@pytest.mark.parametrize("package", [relaxide, tvm], ids=["relaxide", "tvm"])
def test_a_built_kernel_is_called_and_timed(package):
    arrays = arguments(KERNELS["in_full"][1])
    built = package.tirx.build(in_full(package), target="llvm")
    tensors = [package.runtime.tensor(array) for array in arrays]
    built(*tensors)
    close(tensors[-1].numpy(), in_numpy(arrays))
    assert built.time_evaluator("main", package.cpu(), number=2)(*tensors).mean > 0
