"""Resizing by filters that are widened (``antialias``) and by cubics over any lengths, beside ONNX Runtime: random sizes, methods and places."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from relaxide.onnx_backend import RelaxideBackend

PLACES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]


def model(rng):
    """A model of one Resize, and an input."""
    old, new = rng.integers(1, 40, 2), rng.integers(1, 40, 2)
    dims = [1, 2, "h", "w"] if rng.random() < 0.5 else [1, 2, *map(int, old)]
    mode = str(rng.choice(["linear", "cubic"]))
    attributes = {"mode": mode, "antialias": int(rng.random() < 0.8), "coordinate_transformation_mode": str(rng.choice(PLACES))}
    attributes["exclude_outside"] = int(mode == "cubic" and rng.random() < 0.3)
    if rng.random() < 0.5:
        inputs, extent = ["x", "", "", "e"], np.array([1, 2, *new], np.int64)
    else:
        inputs, extent = ["x", "", "e"], np.array([1, 1, *(new / old)], np.float32)
    node = helper.make_node("Resize", inputs, ["y"], **attributes)
    value = helper.make_tensor_value_info
    tensors = [value("x", TensorProto.FLOAT, dims)], [value("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(extent, "e")]
    graph = helper.make_graph([node], "graph", *tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), rng.standard_normal((1, 2, *old)).astype("float32")


@pytest.mark.parametrize("seed", range(60))
def test_results_are_those_of_onnx_runtime(seed):
    made, x = model(np.random.default_rng(seed))
    wanted = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    got = np.asarray(RelaxideBackend.prepare(made).run([x])[0])
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=2e-4)
