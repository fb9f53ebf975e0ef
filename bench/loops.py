"""Times loops of ONNX beside ONNX Runtime: Mamba's selective scan (Gu and Dao 2023, section 3.2), as a `Loop` and as a `Scan`.

    h = exp(dt * A) * h + (dt * x) * B;   y = sum(h * C) over the state + D * x        for each step

Both engines run in turns in one process; medians are printed, and results compared.

usage: loops.py [--steps 256] [--width 512] [--state 16] [--threads 1] [--rounds 15] [--named]
"""

import argparse
import os
import statistics
import time

import numpy as np
from onnx import TensorProto, helper, numpy_helper


def body_nodes():
    """A step: from the state `h` and this step's `x`, `dt`, `b`, `c` to the next state `h1` and `y`."""
    return [
        helper.make_node("Unsqueeze", ["dt", "last"], ["dt1"]),
        helper.make_node("Unsqueeze", ["x", "last"], ["x1"]),
        helper.make_node("Unsqueeze", ["b", "middle"], ["b1"]),
        helper.make_node("Unsqueeze", ["c", "middle"], ["c1"]),
        helper.make_node("Mul", ["dt1", "A"], ["da"]),
        helper.make_node("Exp", ["da"], ["decay"]),
        helper.make_node("Mul", ["decay", "h"], ["kept"]),
        helper.make_node("Mul", ["dt1", "x1"], ["dx"]),
        helper.make_node("Mul", ["dx", "b1"], ["new"]),
        helper.make_node("Add", ["kept", "new"], ["h1"]),
        helper.make_node("Mul", ["h1", "c1"], ["hc"]),
        helper.make_node("ReduceSum", ["hc", "last"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["x", "D"], ["skip"]),
        helper.make_node("Add", ["sum", "skip"], ["y"]),
    ]


def info(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def constants(width, state, rng):
    arrays = {
        "A": -np.exp(rng.standard_normal((width, state))).astype("f4"),
        "D": rng.standard_normal(width).astype("f4"),
        "last": np.array([-1], "i8"),
        "middle": np.array([1], "i8"),
    }
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def model(kind, steps, width, state, rng):
    """The scan over `steps`, a number or a name."""
    given = [("xs", [steps, 1, width]), ("dts", [steps, 1, width]), ("bs", [steps, 1, state]), ("cs", [steps, 1, state])]
    inputs = [info(name, shape) for name, shape in given]
    per_step = ["x", "dt", "b", "c"]
    if kind == "Scan":
        own = [info("h", [1, width, state]), *(info(name, shape[1:]) for name, (_, shape) in zip(per_step, given))]
        body = helper.make_graph(body_nodes(), "step", own, [info("h1", [1, width, state]), info("y", [1, width])])
        nodes = [helper.make_node("Scan", ["h0", *(name for name, _ in given)], ["hn", "ys"], body=body, num_scan_inputs=4)]
    else:
        own = [info("i", [], TensorProto.INT64), info("go", [], TensorProto.BOOL), info("h", [1, width, state])]
        read = [helper.make_node("Gather", [name, "i"], [step], axis=0) for step, (name, _) in zip(per_step, given)]
        go = helper.make_node("Identity", ["go"], ["go1"])
        results = [info("go1", [], TensorProto.BOOL), info("h1", [1, width, state]), info("y", [1, width])]
        body = helper.make_graph([go, *read, *body_nodes()], "step", own, results)
        nodes = [
            helper.make_node("Shape", ["xs"], ["count1"], start=0, end=1),
            helper.make_node("Squeeze", ["count1"], ["count"]),
            helper.make_node("Loop", ["count", "", "h0"], ["hn", "ys"], body=body),
        ]
    weights = [*constants(width, state, rng), numpy_helper.from_array(np.zeros((1, width, state), "f4"), "h0")]
    graph = helper.make_graph(nodes, "scan", inputs, [info("ys", [steps, 1, width])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in [("steps", 256), ("width", 512), ("state", 16), ("threads", 1), ("rounds", 15)]:
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--named", action="store_true", help="the number of steps is a symbolic dimension")
    arguments = parser.parse_args()
    os.environ["RELAXIDE_NUM_THREADS"] = str(arguments.threads)
    import onnxruntime

    import relaxide as tvm

    rng = np.random.default_rng(0)
    steps, width, state = arguments.steps, arguments.width, arguments.state
    feed = {
        "xs": rng.standard_normal((steps, 1, width)).astype("f4"),
        "dts": rng.random((steps, 1, width)).astype("f4") * np.float32(0.1),
        "bs": rng.standard_normal((steps, 1, state)).astype("f4"),
        "cs": rng.standard_normal((steps, 1, state)).astype("f4"),
    }
    for kind in ("Loop", "Scan"):
        made = model(kind, "steps" if arguments.named else steps, width, state, np.random.default_rng(1))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = arguments.threads
        session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        run = tvm.relax.VirtualMachine(tvm.compile(tvm.relax.frontend.onnx.from_onnx(made), target="llvm"), tvm.cpu())["main"]
        values = [tvm.runtime.tensor(value) for value in feed.values()]
        ours, theirs = run(*values).numpy(), session.run(None, feed)[0]
        difference = np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))
        calls = [lambda: run(*values), lambda: session.run(None, feed)]
        times = [[], []]
        for _ in range(arguments.rounds):
            for own, call in zip(times, calls):
                start = time.perf_counter()
                call()
                own.append(time.perf_counter() - start)
        mine, other = (statistics.median(own) * 1e3 for own in times)
        print(f"{kind}: {mine:.2f} ms, ONNX Runtime {other:.2f} ms: {other / mine:.1f} times its speed; results differ by {difference:.0e}")


if __name__ == "__main__":
    main()
