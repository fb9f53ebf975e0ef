"""Lengths that are computed from lengths stay short, however often that is done."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from relaxide.onnxruntime import InferenceSession
from relaxide.relax.frontend.onnx import from_onnx

LARGEST = 2**31
SLICES = [(0, LARGEST, 2), (-1, -LARGEST, -1), (-2, -3, -2), (0, -LARGEST, -2), (1, -1, 1), (-3, -1, 1), (2, 7, 1), (5, 1, -1)]


def slices(count, start, end, step):
    """So many equal slices in a row of a named length."""
    weights = [numpy_helper.from_array(np.array([v]), k) for k, v in (("s", start), ("e", end), ("a", 0), ("t", step))]
    names = ["x"] + [f"y{i}" for i in range(count)]
    nodes = [helper.make_node("Slice", [a, "s", "e", "a", "t"], [b]) for a, b in zip(names, names[1:])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])]
    outputs = [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, [None])]
    graph = helper.make_graph(nodes, "slices", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("bounds", SLICES)
def test_text_grows_with_the_number_of_slices(bounds):
    sizes = [len(from_onnx(slices(count, *bounds)).script()) for count in (6, 12)]
    assert sizes[1] < 3 * sizes[0], sizes


@pytest.mark.parametrize("bounds", SLICES)
def test_slices_in_a_row_are_numpys(bounds):
    model = slices(3, *bounds).SerializeToString()
    ours = InferenceSession(model)
    for length in (0, 1, 2, 3, 5, 16, 31):
        x = np.arange(length, dtype="f4")
        wanted = x
        for _ in range(3):
            start, end, step = bounds
            # NumPy has no element before the first, where ONNX takes the first.
            wanted = wanted[max(start, -len(wanted)) if step < 0 and len(wanted) else start : end : step]
        (given,) = ours.run(None, {"x": x})
        assert np.array_equal(given, wanted), (length, given, wanted)


def test_names_of_lengths_keep_what_was_equal():
    """Two values with the same long length are added, and the length of the sum is known to fit."""
    bounds = {k: numpy_helper.from_array(np.array([v]), k) for k, v in (("s", 1), ("e", -1))}
    nodes, names = [], ["x"]
    for i in range(4):
        nodes.append(helper.make_node("Slice", [names[-1], "s", "e"], [f"y{i}"]))
        names.append(f"y{i}")
    again = [helper.make_node("Neg", ["x"], ["z"])]
    for i in range(4):
        again.append(helper.make_node("Slice", ["z" if not i else f"z{i - 1}", "s", "e"], [f"z{i}"]))
    nodes += [*again, helper.make_node("Add", ["y3", "z3"], ["sum"]), helper.make_node("MatMul", ["y3", "z3"], ["dot"])]
    info = helper.make_tensor_value_info
    outputs = [info("sum", TensorProto.FLOAT, [None]), info("dot", TensorProto.FLOAT, [])]
    graph = helper.make_graph(nodes, "twice", [info("x", TensorProto.FLOAT, ["n"])], outputs, list(bounds.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    x = np.arange(12, dtype="f4")
    wanted = onnxruntime.InferenceSession(model).run(None, {"x": x})
    for a, b in zip(wanted, InferenceSession(model).run(None, {"x": x})):
        assert np.array_equal(a, b)


def run_beside(nodes, inputs, outputs, weights, feeds):
    """Runs nodes here and by ONNX Runtime."""
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9).SerializeToString()
    peer = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ours = InferenceSession(model)
    for feed in feeds:
        for given, wanted in zip(ours.run(None, feed), peer.run(None, feed)):
            np.testing.assert_array_equal(given, wanted)


def test_gathers_in_a_row():
    """Each looks twice at its index, which may count from the end: written into one another, forty would be 2^40 indices."""
    info, count = helper.make_tensor_value_info, 40
    nodes = [helper.make_node("Gather", [f"y{k}" if k else "x", "i"], [f"y{k + 1}"]) for k in range(count)]
    inputs = [info("x", TensorProto.FLOAT, ["n", 3]), info("i", TensorProto.INT64, ["n"])]
    feeds = [
        {"x": np.random.default_rng(n).random((n, 3), "f4"), "i": np.random.default_rng(n).integers(-n, n, n)}
        for n in (1, 5, 16)
    ]
    run_beside(nodes, inputs, [info(f"y{count}", TensorProto.FLOAT, None)], {}, feeds)


@pytest.mark.parametrize("count, axis", [(14, 0), (30, 1), (40, -2)])
def test_tensors_of_computed_lengths_are_joined(count, axis):
    """Each begins at the sum of the lengths in front of it, which are no names."""
    info = helper.make_tensor_value_info
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "axis0"], ["n0"])]
    for k in range(count):
        nodes += [
            helper.make_node("Div", [f"n{k}", "two"], [f"h{k}"]),
            helper.make_node("Unsqueeze", [f"h{k}", "zero"], [f"u{k}"]),
            helper.make_node("Slice", ["x", "zero", f"u{k}", "along"], [f"y{k}"]),
            helper.make_node("Add", [f"n{k}", "one"], [f"n{k + 1}"]),
        ]
    nodes.append(helper.make_node("Concat", [f"y{k}" for k in range(count)], ["y"], axis=axis))
    shape = [3, 3]
    shape[axis] = "n"
    weights = {"axis0": np.array(axis % 2), "two": np.array(2), "one": np.array(1), "zero": np.array([0]), "along": np.array([axis])}
    sizes = [[n if d == "n" else d for d in shape] for n in (1, 4, 60)]
    feeds = [{"x": np.random.default_rng(0).random(size, "f4")} for size in sizes]
    run_beside(nodes, [info("x", TensorProto.FLOAT, shape)], [info("y", TensorProto.FLOAT, None)], weights, feeds)
