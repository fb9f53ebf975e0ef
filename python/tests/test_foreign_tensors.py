"""Tensors of other libraries begin at any element: kernels compute with them, or say why they do not."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.ffi import from_dlpack
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 24), "float32"), w: R.Tensor((24, 40), "float32")) -> R.Tensor(("n", 40), "float32"):
        y = R.tanh(R.add(x, x))
        return R.matmul(y, w)

    @T.prim_func
    def scale(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
        for i in range(8):
            for j in T.vectorized(8):
                B[i * 8 + j] = A[i * 8 + j] * T.float32(3)


@pytest.fixture(scope="module")
def compiled():
    return tvm.compile(Module, target="llvm")


def begins_at(offset, array):
    """A copy of an array whose first element lies so many bytes behind a multiple of 64."""
    memory = np.zeros(array.nbytes + 128, "uint8")
    start = -memory.ctypes.data % 64 + offset
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    assert copy.ctypes.data % 64 == offset % 64
    return copy


@pytest.mark.parametrize("offset", [0, 4, 20, 36, 60])
def test_a_model_computes_with_what_begins_at_any_element(compiled, offset):
    random = np.random.default_rng(offset)
    x, w = random.standard_normal((7, 24), "float32"), random.standard_normal((24, 40), "float32")
    vm = relax.VirtualMachine(compiled, tvm.cpu())
    result = vm["main"](from_dlpack(begins_at(offset, x)), from_dlpack(begins_at(64 - offset, w)))
    np.testing.assert_allclose(np.from_dlpack(result), np.tanh(x + x) @ w, rtol=1e-4, atol=1e-5)
    # Rows behind the first begin wherever they begin.
    rows = from_dlpack(begins_at(offset, x)[3:])
    result = vm["main"](rows, from_dlpack(w))
    np.testing.assert_allclose(np.from_dlpack(result), np.tanh(x + x)[3:] @ w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("offset", [4, 12, 60])
def test_a_kernel_computes_with_what_begins_at_any_element(compiled, offset):
    values = np.arange(64, dtype="float32")
    source, target = begins_at(offset, values), begins_at(64 - offset, np.zeros(64, "float32"))
    compiled["scale"](from_dlpack(source), from_dlpack(target))
    np.testing.assert_array_equal(target, values * 3)


def test_what_begins_between_elements_is_refused(compiled):
    values = begins_at(0, np.zeros(64, "float32"))
    vm = relax.VirtualMachine(compiled, tvm.cpu())
    between = begins_at(2, np.zeros((7, 24), "float32"))
    with pytest.raises(ValueError, match=r"(?s)Misaligned Tensor data on argument #0.*expected data alignment=4"):
        compiled["scale"](from_dlpack(begins_at(1, values)), from_dlpack(values))
    with pytest.raises(ValueError, match="Misaligned Tensor data on argument #0"):
        vm["main"](from_dlpack(between), from_dlpack(np.zeros((24, 40), "float32")))


def test_kernels_refuse_what_has_gaps_and_programs_are_given_it_compact(compiled):
    every_other = np.zeros(128, "float32")[::2]
    with pytest.raises(ValueError, match=r"Mismatched A\.strides on argument #0"):
        compiled["scale"](from_dlpack(every_other), from_dlpack(np.zeros(64, "float32")))
    vm = relax.VirtualMachine(compiled, tvm.cpu())
    rng = np.random.default_rng(0)
    transposed, weight = rng.standard_normal((24, 7)).astype("float32").T, rng.standard_normal((24, 40)).astype("float32")
    whole = vm["main"](tvm.runtime.tensor(np.ascontiguousarray(transposed)), tvm.runtime.tensor(weight))
    np.testing.assert_array_equal(vm["main"](from_dlpack(transposed), from_dlpack(weight)).numpy(), whole.numpy())


def test_the_runtime_takes_over_only_what_its_allocator_would_give():
    with pytest.raises(ValueError, match="aligned to 64 bytes"):
        tvm.runtime.from_dlpack(begins_at(4, np.zeros(8, "float32")))


def test_a_tensor_is_on_the_processor_that_it_was_made_for():
    values = np.arange(6, dtype="float32").reshape(2, 3)
    for device in (tvm.cpu(0), tvm.cpu(1), tvm.cpu(7)):
        empty = tvm.runtime.empty((2, 3), "float32", device)
        assert empty.device == device and not empty.numpy().any()
        made = tvm.runtime.tensor(values, device=device)
        assert made.device == device
        np.testing.assert_array_equal(made.copyto(tvm.cpu(2)).numpy(), values)
        assert made.copyto(tvm.cpu(2)).device == tvm.cpu(2)
