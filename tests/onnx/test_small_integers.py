"""Weights of less than a byte, which stay so small in the file of a compiled model."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxide as tvm

ROWS, COLUMNS, BLOCK = 512, 515, 16


def model_of(data, scale):
    """A product with weights that are scaled in blocks of rows."""
    nodes = [
        helper.make_node("DequantizeLinear", ["data", "scale"], ["weight"], axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "weight"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", ROWS])
    weights = [numpy_helper.from_array(data, "data"), numpy_helper.from_array(scale, "scale")]
    graph = helper.make_graph(nodes, "g", [x], [helper.make_empty_tensor_value_info("y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_they_are_stored_as_they_are(kind, tmp_path):
    rng = np.random.default_rng(4)
    data = rng.integers(*((0, 16) if kind == "uint4" else (-8, 8)), (ROWS, COLUMNS)).astype(getattr(ml_dtypes, kind))
    scale = rng.random((ROWS // BLOCK, COLUMNS), "float32")
    # As of weights that are too large to be scaled by the compiler.
    with tvm.transform.PassContext(config={"relax.FoldConstant.max_work": 1000}):
        built = tvm.compile(tvm.relax.frontend.onnx.from_onnx(model_of(data, scale)), target="llvm")
    file = tmp_path / "model.so"
    built.export_library(str(file))
    assert file.stat().st_size < ROWS * COLUMNS, "half of a byte each, and the kernels"
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(file)), tvm.cpu())
    x = rng.random((3, ROWS), "float32")
    wanted = x @ (data.astype("float32") * np.repeat(scale, BLOCK, axis=0))
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-2)
