"""What a run of a small network takes through ONNX Runtime's Python interface, on Relaxide and on ONNX Runtime, one thread each.

Networks are so small that little is computed: what is timed is the way in and out, by the processor's time of the calling thread, which other
processes of the machine do not count in. The two take turns, and the least time of a run over all turns is reported.

usage: door.py [--rounds 15] [--runs 4000] [--json FILE]
"""

import argparse
import json
import time

import numpy as np
import onnxruntime
from onnx import helper as h
from onnx import numpy_helper as nh

import relaxide.onnxruntime as door


def mlp(features=16, hidden=32, classes=4):
    """A perceptron with one hidden layer and rows of any number."""
    draw = np.random.default_rng(0).standard_normal
    weights = [nh.from_array(draw(shape).astype("float32"), name) for name, shape in (("w", (features, hidden)), ("v", (hidden, classes)))]
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Relu", ["a"], ["r"]), h.make_node("MatMul", ["r", "v"], ["y"])]
    value = lambda name, width: h.make_tensor_value_info(name, 1, ["n", width])  # noqa: E731
    graph = h.make_graph(nodes, "g", [value("x", features)], [value("y", classes)], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString()


def sums(inputs=4):
    """As many inputs of as many rows, added, and their halves: several values in and out."""
    names = [f"x{i}" for i in range(inputs)]
    nodes = [h.make_node("Sum", names, ["y"]), h.make_node("Neg", ["y"], ["z"])]
    value = lambda name: h.make_tensor_value_info(name, 1, ["n", 8])  # noqa: E731
    graph = h.make_graph(nodes, "g", [value(name) for name in names], [value("y"), value("z")])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString()


def placed(shape, offset):
    """An array that begins so many bytes behind a multiple of 64."""
    size = int(np.prod(shape)) * 4
    memory = np.zeros(size + 128, "uint8")
    begin = -memory.ctypes.data % 64 + offset
    array = memory[begin : begin + size].view("float32").reshape(shape)
    array[:] = np.random.default_rng(1).standard_normal(shape)
    return array


CASES = {
    "mlp, one row": (mlp(), None, {"x": placed((1, 16), 0)}),
    "mlp, one row at an odd place": (mlp(), None, {"x": placed((1, 16), 16)}),
    "mlp, one row, output by name": (mlp(), ["y"], {"x": placed((1, 16), 0)}),
    "mlp, a list": (mlp(), None, {"x": placed((1, 16), 0).tolist()}),
    "four in, two out": (sums(), None, {f"x{i}": placed((2, 8), 16) for i in range(4)}),
    "64 KiB at an odd place": (sums(1), None, {"x0": placed((2048, 8), 16)}),
}


def session(ort, model):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def seconds(call, runs):
    begin = time.thread_time()
    for _ in range(runs):
        call()
    return (time.thread_time() - begin) / runs


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--json")
    asked = parser.parse_args()
    table = {}
    for name, (model, names, feed) in CASES.items():
        both = {ort: session(ort, model) for ort in (onnxruntime, door)}
        first, second = (one.run(names, feed) for one in both.values())
        for a, b in zip(first, second):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        least = dict.fromkeys(both, float("inf"))
        for _ in range(asked.rounds):
            for ort, one in both.items():
                least[ort] = min(least[ort], seconds(lambda one=one, names=names, feed=feed: one.run(names, feed), asked.runs))
        theirs, ours = (least[ort] * 1e6 for ort in (onnxruntime, door))
        table[name] = {"onnxruntime": theirs, "relaxide": ours}
        print(f"{name:32} {ours:7.2f} µs   ONNX Runtime {theirs:7.2f} µs", flush=True)
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(table, file, indent=1)


if __name__ == "__main__":
    main()
