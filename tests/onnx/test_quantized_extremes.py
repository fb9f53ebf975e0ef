"""Quantized operators where numbers are none, or scales are so large that a side would be infinite: as ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from relaxide.onnx_backend import RelaxideBackend

KINDS = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "float32": TensorProto.FLOAT}


def both(op, feeds, constants, dtype, domain=""):
    """What Relaxide and ONNX Runtime give for one node; inputs in order of `constants`, where `None` stands for the next feed."""
    given = iter(feeds)
    names, weights, infos, inputs = [], [], [], []
    for at, constant in enumerate(constants):
        names.append(f"i{at}")
        if constant is None:
            array = next(given)
            inputs.append(array)
            infos.append(helper.make_tensor_value_info(f"i{at}", KINDS[str(array.dtype)], array.shape))
        else:
            weights.append(numpy_helper.from_array(np.asarray(constant), f"i{at}"))
    node = helper.make_node(op, names, ["y"], domain=domain)
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", KINDS[dtype], None)], weights)
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    wanted = session.run(None, {info.name: array for info, array in zip(infos, inputs)})[0]
    return RelaxideBackend.prepare(onnx.load_from_string(model.SerializeToString())).run(inputs)[0], wanted


@pytest.mark.parametrize("dtype, zero", [("uint8", 128), ("uint8", 0), ("int8", -3)])
def test_what_is_no_number_is_the_least_integer(dtype, zero):
    x = np.array([np.nan, 1.0, -np.inf, np.inf, -2.5, 0.0] * 4, "float32")
    got, wanted = both("QuantizeLinear", [x], [None, np.float32(0.1), np.array(zero, dtype)], dtype)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("seed", range(20))
def test_products_are_scaled_once(dtype, seed):
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    zeros = [np.array(rng.integers(limits.min, limits.max + 1), dtype) for _ in range(3)]
    a, b = (rng.integers(limits.min, limits.max + 1, 64).astype(dtype) for _ in range(2))
    a[::8], b[::5] = zeros[0], zeros[1]
    # The right side alone would be infinite, the product is of the result's size.
    size = np.float32(10.0 ** rng.integers(-3, 38))
    scales = np.float32(rng.uniform(0.5, 1) / 100), np.float32(rng.uniform(2, 3)) * size, size * np.float32(0.8)
    constants = [None, scales[0], zeros[0], None, scales[1], zeros[1], scales[2], zeros[2]]
    got, wanted = both("QLinearMul", [a, b], constants, dtype, "com.microsoft")
    difference = np.abs(got.astype(int) - wanted.astype(int))
    assert difference.max() <= 1 and (difference == 0).mean() > 0.95
