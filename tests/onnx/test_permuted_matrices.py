"""Products with a matrix whose axes were put in another order: read as it lies where rows are few, the same numbers in any case."""

import itertools

import numpy as np
import pytest
from onnx import TensorProto, helper

tvm = pytest.importorskip("relaxide")
from relaxide import relax  # noqa: E402

#: Where the axes of the matrix come from: `(batch, heads, inner, columns)`.
ORDERS = [(order, rows) for order, rows in zip(itertools.permutations(range(4)), itertools.cycle([1, 5, 16, 17]))]


@pytest.mark.parametrize("order, rows", ORDERS)
def test_the_order_of_a_matrix_changes_no_product(order, rows):
    permuted = (2, 3, 24, 37)
    lies = [0] * 4
    for place, axis in enumerate(order):
        lies[axis] = permuted[place]
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=order),
        helper.make_node("MatMul", ["x", "kt"], ["p"]),
        helper.make_node("Add", ["p", "bias"], ["y"]),
    ]
    shapes = {"x": (2, 3, rows, 24), "k": tuple(lies), "bias": (37,)}
    named = {"x": shapes["x"], "k": [f"d{axis}" if size == 37 else size for axis, size in enumerate(lies)], "bias": (37,)}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in named.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    rng = np.random.default_rng(rows)
    x, k, bias = (rng.standard_normal(shape).astype("float32") for shape in shapes.values())
    machine = relax.VirtualMachine(tvm.compile(relax.frontend.onnx.from_onnx(model), target="llvm"), tvm.cpu())
    got = machine["main"](*(tvm.runtime.tensor(value) for value in (x, k, bias))).numpy()
    np.testing.assert_allclose(got, x @ k.transpose(order) + bias, rtol=1e-4, atol=1e-4)
