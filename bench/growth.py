#!/usr/bin/env python3
"""How the cost of compiling grows: one thing is doubled at a time, and the exponent of time and memory printed.

Each row is a family of models with one number that grows. A model is imported and compiled in a process of its own, which says
its processor time and its peak memory; what an empty model costs is taken off. The exponent is the slope between the last two
sizes on logarithmic scales: 1 is linear, 2 quadratic. Where the model itself grows faster than its number (layer i of a DenseNet
block reads i tensors), the scale is how much there is to do: the tensors that all nodes read.

usage: bench/growth.py [--rows WORD] [--limit SECONDS] [--json]
"""

import argparse
import json
import math
import resource
import subprocess
import sys
import time

# Below this, in seconds and in bytes, differences are noise.
LEAST_TIME, LEAST_MEMORY = 0.05, 8 << 20


def families():
    """Rows: name, what makes a model of a size, the sizes, and how much a size has to do, if that is not the size."""
    import numpy as np
    from onnx import TensorProto as T
    from onnx import helper as h
    from onnx import numpy_helper as nh

    info = h.make_tensor_value_info

    def model(nodes, inputs, outputs, weights=(), opset=18):
        initializers = [nh.from_array(np.asarray(array), name) for name, array in weights]
        made = h.make_model(h.make_graph(nodes, "g", inputs, outputs, initializers), opset_imports=[h.make_opsetid("", opset)])
        made.ir_version = 9
        return made

    def floats(name, shape):
        return info(name, T.FLOAT, shape)

    def concat(axis, shape):
        def make(n):
            names = [f"x{i}" for i in range(n)]
            node = h.make_node("Concat", names, ["y"], axis=axis)
            return model([node], [floats(name, shape) for name in names], [floats("y", None)])

        return make

    def concat_named(n):
        names = [f"x{i}" for i in range(n)]
        inputs = [floats(name, [f"n{i}", 4]) for i, name in enumerate(names)]
        return model([h.make_node("Concat", names, ["y"], axis=0)], inputs, [floats("y", None)])

    def flattened_named(n):
        nodes, names = [], []
        for i in range(n):
            nodes.append(h.make_node("Flatten", [f"x{i}"], [f"f{i}"], axis=1))
            names.append(f"f{i}")
        nodes.append(h.make_node("Concat", names, ["y"], axis=1))
        return model(nodes, [floats(f"x{i}", ["b", f"n{i}", 3]) for i in range(n)], [floats("y", None)])

    def embeddings(n):
        nodes, names, inputs, weights = [], [], [], []
        for i in range(n):
            inputs.append(info(f"i{i}", T.INT64, ["b"]))
            weights.append((f"t{i}", np.ones((50, 8), "f4")))
            nodes.append(h.make_node("Gather", [f"t{i}", f"i{i}"], [f"e{i}"]))
            names.append(f"e{i}")
        nodes.append(h.make_node("Concat", names, ["y"], axis=1))
        return model(nodes, inputs, [floats("y", None)], weights)

    def dense_block(n):
        nodes, names = [], ["x0"]
        weights = []
        for i in range(n):
            nodes.append(h.make_node("Concat", list(names), [f"c{i}"], axis=1))
            weights.append((f"w{i}", np.ones((4, 8 + 4 * i, 1, 1), "f4")))
            nodes.append(h.make_node("Conv", [f"c{i}", f"w{i}"], [f"v{i}"]))
            nodes.append(h.make_node("Relu", [f"v{i}"], [f"x{i + 1}"]))
            names.append(f"x{i + 1}")
        nodes.append(h.make_node("Concat", names, ["y"], axis=1))
        return model(nodes, [floats("x0", [1, 8, 7, 7])], [floats("y", None)], weights)

    def slices_named(start, end, step):
        def make(n):
            nodes, x = [], "x"
            weights = [("start", np.array([start])), ("end", np.array([end])), ("axis", np.array([0])), ("step", np.array([step]))]
            for i in range(n):
                nodes.append(h.make_node("Slice", [x, "start", "end", "axis", "step"], [f"s{i}"]))
                x = f"s{i}"
            return model(nodes, [floats("x", ["n", 4])], [floats(x, None)], weights)

        return make

    def places(n):
        nodes, names, weights = [], [], [("zero", np.array([0]))]
        for i in range(n):
            weights += [(f"a{i}", np.array([i])), (f"b{i}", np.array([i + 1]))]
            nodes.append(h.make_node("Slice", ["x", f"a{i}", f"b{i}", "zero"], [f"s{i}"]))
            names.append(f"s{i}")
        nodes.append(h.make_node("Concat", names[::-1], ["y"], axis=0))
        return model(nodes, [floats("x", ["n", 4])], [floats("y", None)], weights)

    def outputs(n):
        nodes, outs, x = [], [], "x"
        for i in range(n):
            nodes.append(h.make_node("Tanh" if i % 2 else "Neg", [x], [f"y{i}"]))
            x = f"y{i}"
            outs.append(floats(x, [8, 16]))
        return model(nodes, [floats("x", [8, 16])], outs)

    def skips(n):
        nodes, x = [], "x"
        for i in range(n):
            nodes += [h.make_node("Tanh", [x], [f"t{i}"]), h.make_node("Add", [f"t{i}", "x"], [f"a{i}"])]
            x = f"a{i}"
        return model(nodes, [floats("x", [8, 16])], [floats(x, None)])

    def chain(op):
        def make(n):
            nodes, x = [], "x"
            for i in range(n):
                nodes.append(h.make_node(op, [x], [f"t{i}"]))
                x = f"t{i}"
            return model(nodes, [floats("x", ["n", 33])], [floats(x, None)])

        return make

    def split(n):
        outs = [f"y{i}" for i in range(n)]
        node = h.make_node("Split", ["x"], outs, axis=0, num_outputs=n)
        return model([node], [floats("x", [n, 4])], [floats(name, None) for name in outs])

    def unrolled(n):
        weights = [("w", np.full((8, 8), 0.1, "f4")), ("u", np.full((8, 8), 0.1, "f4"))]
        nodes, state = [], "h0"
        inputs = [floats("h0", [1, 8])] + [floats(f"x{i}", [1, 8]) for i in range(n)]
        for i in range(n):
            nodes += [
                h.make_node("MatMul", [f"x{i}", "w"], [f"p{i}"]),
                h.make_node("MatMul", [state, "u"], [f"q{i}"]),
                h.make_node("Add", [f"p{i}", f"q{i}"], [f"s{i}"]),
                h.make_node("Tanh", [f"s{i}"], [f"h{i + 1}"]),
            ]
            state = f"h{i + 1}"
        nodes.append(h.make_node("Concat", [f"h{i + 1}" for i in range(n)], ["y"], axis=0))
        return model(nodes, inputs, [floats("y", None)], weights)

    def loops(n):
        body = h.make_graph(
            [h.make_node("Add", ["v", "one"], ["o"]), h.make_node("Identity", ["c"], ["d"])], "b",
            [info("i", T.INT64, []), info("c", T.BOOL, []), floats("v", [4])], [info("d", T.BOOL, []), floats("o", [4])],
            [nh.from_array(np.float32(1), "one")],
        )
        nodes, x = [], "x"
        for i in range(n):
            nodes.append(h.make_node("Loop", ["n", "", x], [f"y{i}"], body=body))
            x = f"y{i}"
        return model(nodes, [info("n", T.INT64, []), floats("x", [4])], [floats(x, [4])])

    def branches(n):
        nodes, x = [], "x"
        for i in range(n):
            side = lambda op: h.make_graph([h.make_node(op, [x], [f"o{i}"])], "b", [], [floats(f"o{i}", [4])])
            nodes.append(h.make_node("If", ["c"], [f"y{i}"], then_branch=side("Neg"), else_branch=side("Abs")))
            x = f"y{i}"
        return model(nodes, [info("c", T.BOOL, []), floats("x", [4])], [floats(x, [4])])

    def constant_products(n):
        weights = [("w0", np.eye(192, dtype="f4"))]
        nodes, w = [], "w0"
        for i in range(n):
            weights.append((f"v{i}", np.eye(192, dtype="f4")))
            nodes.append(h.make_node("MatMul", [w, f"v{i}"], [f"p{i}"]))
            w = f"p{i}"
        nodes.append(h.make_node("MatMul", ["x", w], ["y"]))
        return model(nodes, [floats("x", ["n", 192])], [floats("y", None)], weights)

    def initializers(n):
        nodes, x = [], "x"
        weights = [(f"w{i}", np.full(4, 1.0 + i, "f4")) for i in range(n)]
        for i in range(n):
            nodes.append(h.make_node("Add", [x, f"w{i}"], [f"t{i}"]))
            x = f"t{i}"
        return model(nodes, [floats("x", ["n", 4])], [floats(x, None)], weights)

    def layers(n):
        weights = [(f"w{i}", np.full((16, 16), 0.01, "f4")) for i in range(n)]
        nodes, x = [], "x"
        for i in range(n):
            nodes += [h.make_node("MatMul", [x, f"w{i}"], [f"p{i}"]), h.make_node("Relu", [f"p{i}"], [f"t{i}"])]
            x = f"t{i}"
        return model(nodes, [floats("x", ["n", 16])], [floats(x, None)], weights)

    def wide_sum(n):
        return model([h.make_node("Sum", [f"x{i}" for i in range(n)], ["y"])],
                     [floats(f"x{i}", [8, 16]) for i in range(n)], [floats("y", None)])

    def reshapes(n):
        nodes, x, weights = [], "x", [("a", np.array([-1, 8])), ("b", np.array([-1, 4]))]
        for i in range(n):
            nodes.append(h.make_node("Reshape", [x, "a" if i % 2 else "b"], [f"r{i}"]))
            x = f"r{i}"
        return model(nodes, [floats("x", ["n", 8])], [floats(x, None)], weights)

    def transposes(n):
        nodes, x = [], "x"
        for i in range(n):
            nodes.append(h.make_node("Transpose", [x], [f"r{i}"], perm=[1, 0, 2] if i % 2 else [0, 2, 1]))
            x = f"r{i}"
        return model(nodes, [floats("x", ["a", "b", "c"])], [floats(x, None)])

    def pads(n):
        nodes, x, weights = [], "x", [("p", np.array([0, 1, 0, 1]))]
        for i in range(n):
            nodes.append(h.make_node("Pad", [x, "p"], [f"r{i}"]))
            x = f"r{i}"
        return model(nodes, [floats("x", ["n", 8])], [floats(x, None)], weights)

    def wheres(n):
        nodes, x = [], "x"
        for i in range(n):
            nodes.append(h.make_node("Where", ["c", x, f"z{i}"], [f"r{i}"]))
            x = f"r{i}"
        return model(nodes, [info("c", T.BOOL, [8]), floats("x", [8])] + [floats(f"z{i}", [8]) for i in range(n)], [floats(x, None)])

    def gathers(n):
        nodes = [h.make_node("Gather", [f"y{i}" if i else "x", "i"], [f"y{i + 1}"]) for i in range(n)]
        return model(nodes, [floats("x", ["n", 4]), info("i", T.INT64, ["n"])], [floats(f"y{n}", None)])

    def computed_lengths(n):
        nodes = [h.make_node("Shape", ["x"], ["s"]), h.make_node("Gather", ["s", "first"], ["n0"])]
        for i in range(n):
            nodes += [
                h.make_node("Div", [f"n{i}", "two"], [f"h{i}"]),
                h.make_node("Unsqueeze", [f"h{i}", "zero"], [f"u{i}"]),
                h.make_node("Slice", ["x", "zero", f"u{i}", "zero"], [f"y{i}"]),
                h.make_node("Add", [f"n{i}", "one"], [f"n{i + 1}"]),
            ]
        nodes.append(h.make_node("Concat", [f"y{i}" for i in range(n)], ["y"], axis=0))
        weights = [("first", np.array(0)), ("two", np.array(2)), ("one", np.array(1)), ("zero", np.array([0]))]
        return model(nodes, [floats("x", ["n", 4])], [floats("y", None)], weights)

    return [
        ("Concat of N along the last axis", concat(1, [8, 6]), [32, 64, 128]),
        ("Concat of N columns of one", concat(1, [8, 1]), [200, 400, 800]),
        ("Concat of N named lengths", concat_named, [25, 50, 100]),
        ("Concat of N flattened named lengths", flattened_named, [12, 25, 50]),
        ("Concat of N rows", concat(0, [1, 4]), [200, 400, 800]),
        ("N embeddings joined", embeddings, [26, 52, 104]),
        ("DenseNet block of N layers", dense_block, [12, 24, 48], lambda n: n * (n + 7) // 2),
        ("N slices x[1:] of a named length", slices_named(1, 2**31, 1), [16, 32, 64]),
        ("N slices x[1:-1] of a named length", slices_named(1, -1, 1), [16, 32, 64]),
        ("N slices x[-2:-9:-2] of a named length", slices_named(-2, -9, -2), [16, 32, 64]),
        ("N places of a sequence, joined", places, [50, 100, 200]),
        ("N gathers in a row", gathers, [50, 100, 200]),
        ("Concat of N computed lengths", computed_lengths, [25, 50, 100]),
        ("chain whose N values are outputs", outputs, [400, 800, 1600]),
        ("N skips to the input", skips, [400, 800, 1600]),
        ("N Softmax in a row", chain("Softmax"), [64, 128, 256]),
        ("N Tanh in a row", chain("Tanh"), [400, 800, 1600]),
        ("Split into N", split, [400, 800, 1600]),
        ("RNN unrolled N times", unrolled, [100, 200, 400]),
        ("N equal loops", loops, [800, 1600, 3200]),
        ("N branches", branches, [800, 1600, 3200]),
        ("N products of constants", constant_products, [16, 32, 64]),
        ("N initializers", initializers, [1000, 2000, 4000]),
        ("N layers", layers, [200, 400, 800]),
        ("Sum of N inputs", wide_sum, [100, 200, 400]),
        ("N reshapes of a named length", reshapes, [100, 200, 400]),
        ("N transposes of named lengths", transposes, [50, 100, 200]),
        ("N pads of a named length", pads, [8, 16, 32]),
        ("N choices in a row", wheres, [50, 100, 200]),
    ]


def child(row, size):
    """Compiles one model, and prints processor seconds, peak bytes and kernels."""
    from relaxide import compile as compile_model
    from relaxide.relax.frontend.onnx import from_onnx

    make = lambda: {row[0]: row[1] for row in families()}[row](size)
    model = make() if size else None
    if model is None:
        from onnx import TensorProto, helper

        value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])
        model = helper.make_model(helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [value("x")], [value("y")]))
    before = time.process_time()
    compile_model(from_onnx(model), target="llvm")
    print(json.dumps([time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))


def measured(row, size, limit):
    try:
        done = subprocess.run([sys.executable, __file__, "--child", row, str(size)], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        raise SystemExit(f"{row}, {size}: {done.stderr[-600:]}")
    return json.loads(done.stdout.splitlines()[-1])


def exponent(small, large, ratio, least):
    if small < least or large < least:
        return None
    return math.log(large / small) / math.log(ratio)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="", help="only rows whose name has this word")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one compilation may take")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", nargs=2, metavar=("ROW", "SIZE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options.child[0], int(options.child[1]))
    base = measured("N layers", 0, options.limit)
    rows = []
    for name, _, sizes, *work in families():
        if options.rows.lower() not in name.lower():
            continue
        taken = [measured(name, size, options.limit) for size in sizes]
        spent = [None if t is None else (max(t[0] - base[0], 0.0), max(t[1] - base[1], 0)) for t in taken]
        last, before = spent[-1], spent[-2]
        of = work[0] if work else lambda n: n
        ratio = of(sizes[-1]) / of(sizes[-2])
        time_exponent = last and before and exponent(before[0], last[0], ratio, LEAST_TIME)
        memory_exponent = last and before and exponent(before[1], last[1], ratio, LEAST_MEMORY)
        rows.append({"row": name, "sizes": sizes, "seconds": [s and s[0] for s in spent],
                     "bytes": [s and s[1] for s in spent], "time": time_exponent, "memory": memory_exponent})
        if not options.json:
            times = "  ".join("never" if s is None else f"{s[0]:.2f}" for s in spent)
            show = lambda e: "-" if e is None else f"{e:.2f}"
            print(f"{name:40} {'/'.join(map(str, sizes)):>15}  {times:>22} s   time {show(time_exponent):>5}  memory {show(memory_exponent):>5}", flush=True)
    if options.json:
        print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
