"""Sums of padded images: vectors of several registers, whose masks are constants in some and not in others.

LLVM 22 read what such masks leave out (AVX2), so the widths are those whose registers are wholly in, wholly out and divided.
"""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

import relaxide as tvm  # noqa: E402
from relaxide.relax.frontend.onnx import from_onnx  # noqa: E402


def padded_sum(width, cut, dtype):
    """Nine images of `width - cut` in each direction, set into one of `width` at three places each way, and added."""
    nodes, names, weights = [], [], []
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    for i in range(9):
        top, left = (i // 3) * cut // 2, (i % 3) * cut // 2
        weights.append(numpy_helper.from_array(np.array([top, left, cut - top, cut - left]), f"p{i}"))
        nodes.append(helper.make_node("Pad", [f"x{i}", f"p{i}"], [f"q{i}"]))
        names.append(f"q{i}")
    for i in range(1, 9):
        nodes.append(helper.make_node("Add", [names[0] if i == 1 else f"s{i - 1}", names[i]], [f"s{i}"]))
    info = helper.make_tensor_value_info
    inputs = [info(f"x{i}", kind, [width - cut] * 2) for i in range(9)]
    graph = helper.make_graph(nodes, "g", inputs, [info("s8", kind, [width] * 2)], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
@pytest.mark.parametrize("width, cut", [(33, 12), (33, 24), (17, 10), (35, 4)])
def test_each_image_stays_where_it_was_put(width, cut, dtype):
    rng = np.random.default_rng(0)
    images = [rng.integers(-9, 9, (width - cut, width - cut)).astype(dtype) for _ in range(9)]
    expected = np.zeros((width, width), dtype)
    for i, image in enumerate(images):
        top, left = (i // 3) * cut // 2, (i % 3) * cut // 2
        expected[top : top + width - cut, left : left + width - cut] += image
    machine = tvm.relax.VirtualMachine(tvm.compile(from_onnx(padded_sum(width, cut, dtype)), target="llvm"), tvm.cpu())
    found = machine["main"](*(tvm.runtime.tensor(image) for image in images)).numpy()
    np.testing.assert_array_equal(found, expected)
