"""Sums of float16 are computed in 32 bits: they do not overflow where the mean or the norm that is made of them is small."""

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from relaxide.onnx_backend import RelaxideBackend

IMAGE, ROWS = (1, 2, 256, 256), (2, 65536)

CASES = {
    "y = GlobalAveragePool (x)": IMAGE,
    "y = GlobalLpPool <p = 2> (x)": (1, 2, 64, 64),
    "y = AveragePool <kernel_shape = [255, 255]> (x)": IMAGE,
    "y = AveragePool <kernel_shape = [250, 250], strides = [4, 4], ceil_mode = 1> (x)": IMAGE,
    "y = LpPool <kernel_shape = [64, 64], p = 2> (x)": (1, 2, 65, 65),
    "y = ReduceMean <axes = [1]> (x)": ROWS,
    "y = ReduceMean <axes = [1], keepdims = 0> (x)": ROWS,
    "y = ReduceL2 <axes = [1]> (x)": (2, 4096),
    "y = ReduceLogSum <axes = [1]> (x)": ROWS,
    "y = ReduceLogSumExp <axes = [1]> (x)": (2, 200000),
    "y = LpNormalization <p = 1> (x)": ROWS,
    "y = LpNormalization <p = 2> (x)": ROWS,
    "y = MeanVarianceNormalization (x)": IMAGE,
    "one = CastLike (a, x) two = CastLike (b, x) y = InstanceNormalization (x, one, two)": IMAGE,
    "y = LRN <size = 5> (x)": (1, 8, 4, 4),
}


@pytest.mark.parametrize("node", CASES)
def test_sums_do_not_overflow(node):
    x = np.random.default_rng(0).uniform(4, 12, CASES[node]).astype("float16")
    if node.startswith("y = LRN"):
        x *= np.float16(30)
    text = (
        f'<ir_version: 10, opset_import: ["": 17]> g (float16[{",".join(map(str, x.shape))}] x) => (float16 y) '
        f"<float[2] a = {{1, 1}}, float[2] b = {{2, 2}}> {{ {node} }}"
    ).replace("(float16 y)", "(float16[%s] y)" % ",".join(f"y{i}" for i in range(x.ndim - ("keepdims = 0" in node))))
    # The same in 32 bits, since ONNX Runtime has no float16 for all of them.
    wide = parser.parse_model(text.replace("float16", "float"))
    session = onnxruntime.InferenceSession(wide.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": x.astype("float32")})
    (got,) = RelaxideBackend.prepare(parser.parse_model(text)).run([x])
    assert got.dtype == np.float16
    np.testing.assert_allclose(got.astype("float32"), expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
