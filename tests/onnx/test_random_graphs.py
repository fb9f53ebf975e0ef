"""Random graphs give what ONNX Runtime gives (:mod:`random_graphs`, :mod:`random_graphs_more`). `RELAXIDE_DEEP` tries two thousand, and
three hundred on a device of OpenCL."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import pytest
import random_graphs
import random_graphs_more  # noqa: F401

onnxruntime = pytest.importorskip("onnxruntime")

SHARES = 8
EACH = 250 if os.environ.get("RELAXIDE_DEEP") else 4


def differs(wanted, given):
    """What is wrong with a result; `None` where nothing is."""
    wanted, given = np.asarray(wanted), np.asarray(given)
    if (wanted.dtype, wanted.shape) != (given.dtype, given.shape):
        return f"{given.dtype}{given.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind != "f":
        return None if np.array_equal(wanted, given) else f"{int((wanted != given).sum())} of {wanted.size} differ"
    finite = np.abs(wanted[np.isfinite(wanted)].astype("f8")).max(initial=1)
    near = 2e-2 if wanted.dtype.itemsize == 2 else 1e-4
    if np.allclose(wanted.astype("f8"), given.astype("f8"), rtol=near, atol=near * finite, equal_nan=True):
        return None
    return f"differs by {np.nanmax(np.abs(wanted.astype('f8') - given.astype('f8')))}"


def problem(seed, **options):
    """What is wrong with the graph of a seed; `None` where nothing is, or where ONNX Runtime refuses it."""
    from relaxide.onnxruntime import InferenceSession

    graph = random_graphs.Graph(seed, **options)
    model = graph.model().SerializeToString()
    try:
        wanted = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, graph.feeds)
    except Exception:
        return None
    given = InferenceSession(model).run(None, graph.feeds)
    found = (differs(a, b) for a, b in zip(wanted, given))
    return next((f"seed {seed}, output {place}: {why}" for place, why in enumerate(found) if why), None)


@pytest.mark.parametrize("share", range(SHARES))
def test_random_graphs(share):
    wrong = [problem(seed) for seed in range(share * EACH, (share + 1) * EACH)]
    assert not any(wrong), "\n".join(why for why in wrong if why)


def test_random_graphs_on_a_device_of_opencl():
    script = pathlib.Path(__file__).with_name("random_graphs_on_opencl.py")
    count = "300" if os.environ.get("RELAXIDE_DEEP") else "4"
    done = subprocess.run([sys.executable, str(script), "--count", count], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("there is no driver of OpenCL; `scripts/setup test-tools` installs one")
    assert done.returncode == 0, done.stdout + done.stderr


JOINED = """<ir_version: 9, opset_import: ["": 18]>
g (float[a, b, c] x, float[a, 2, c] y) => (float[?, ?, ?] m) { j = Concat <axis = 1> (x, y, y)
  m = Max (j, x) }"""
MULTIPLE = """<ir_version: 9, opset_import: ["": 18]>
g (float[a, a, c] x, float[a, c, d] w) => (float[?, ?, ?] m) { j = Concat <axis = 0> (w, w, w)
  m = MatMul (x, j) }"""


@pytest.mark.parametrize("text, shapes", [(JOINED, [(2, 1, 3), (2, 2, 3)]), (MULTIPLE, [(1, 1, 4), (1, 4, 2)])])
def test_a_length_beside_what_was_made_of_it_is_broadcast_where_it_is_1(text, shapes):
    from relaxide.onnxruntime import InferenceSession

    model = onnx.parser.parse_model(text).SerializeToString()
    feeds = {name: np.random.default_rng(0).random(shape, "f4") for name, shape in zip(["x", "y" if text is JOINED else "w"], shapes)}
    (wanted,) = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, feeds)
    (given,) = InferenceSession(model).run(None, feeds)
    np.testing.assert_allclose(given, wanted, rtol=1e-5)
