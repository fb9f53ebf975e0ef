"""RNN, GRU and LSTM give what ONNX Runtime gives: directions, layouts, activations, limits, peepholes, lengths."""

import itertools

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxide as tvm

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, INPUTS, HIDDEN = 6, 3, 5, 4
RNG = np.random.default_rng(7)


def numbers(*shape):
    return (RNG.standard_normal(shape) * 0.5).astype("float32")


def cases():
    for op, direction in itertools.product(GATES, ("forward", "reverse", "bidirectional")):
        yield op, {"direction": direction}, ()
        yield op, {"direction": direction}, ("B", "lengths", "h")
    for op in GATES:
        yield op, {"clip": 0.2}, ("B",)
        yield op, {}, ("short",)
    yield "LSTM", {"direction": "bidirectional"}, ("B", "lengths", "h", "c", "P")
    yield "LSTM", {"input_forget": 1}, ("B",)
    yield "LSTM", {"activations": ["HardSigmoid", "Softsign", "ScaledTanh"], "activation_alpha": [0.3, 1.2], "activation_beta": [0.4, 0.9]}, ("B",)
    yield "GRU", {"linear_before_reset": 1, "direction": "bidirectional"}, ("B", "h")
    yield "GRU", {"activations": ["Sigmoid", "LeakyRelu"], "activation_alpha": [0.1]}, ("B",)
    yield "RNN", {"activations": ["Relu"]}, ("B", "h")
    yield "RNN", {"activations": ["Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}, ("B",)


def build(op, attrs, given):
    directions = 2 if attrs.get("direction") == "bidirectional" else 1
    steps = 2 if "short" in given else STEPS
    gates = GATES[op] * HIDDEN
    weights = {"W": numbers(directions, gates, INPUTS), "R": numbers(directions, gates, HIDDEN)}
    if "B" in given:
        weights["B"] = numbers(directions, 2 * gates)
    if "P" in given:
        weights["P"] = numbers(directions, 3 * HIDDEN)
    feed = {"X": numbers(steps, BATCH, INPUTS)}
    if "lengths" in given:
        feed["lengths"] = np.array([steps, 2, 4], "int32")
    for state in ("h", "c"):
        if state in given:
            feed[state] = numbers(directions, BATCH, HIDDEN)
    names = ["X", "W", "R", "B", "lengths", "h"] + (["c", "P"] if op == "LSTM" else [])
    inputs = [name if name in feed or name in weights else "" for name in names]
    outputs = ["Y", "Yh"] + (["Yc"] if op == "LSTM" else [])
    first = steps if "short" in given else "steps"
    shapes = {"X": [first, "batch", INPUTS], "lengths": ["batch"]}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), shapes.get(n, [directions, "batch", HIDDEN]))
        for n, x in feed.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, outputs, hidden_size=HIDDEN, **attrs)],
        "g",
        infos,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(x, n) for n, x in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8), feed


@pytest.mark.parametrize("op,attrs,given", list(cases()), ids=str)
def test_agrees_with_onnx_runtime(op, attrs, given):
    model, feed = build(op, attrs, given)
    wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)
    machine = tvm.relax.VirtualMachine(tvm.compile(tvm.relax.frontend.onnx.from_onnx(model), target="llvm"), tvm.cpu())
    got = machine["main"](*[tvm.runtime.tensor(x) for x in feed.values()])
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g.numpy(), w, rtol=1e-5, atol=1e-5)
