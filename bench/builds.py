"""Times two builds of the package on the networks of ``tests/models`` and on single operators, in turns.

For the cost of a change: a folder with the package as it was (its ``relaxide`` with the extension module inside) beside the one that
is installed. Each build lives in a process of its own on one thread. They take turns, in both orders; what counts is the processor
time of a run, so that a busy machine disturbs little, and of that the median and the least.

usage: builds.py --other FOLDER [--cases det,gather] [--rounds 25]
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "models"))

from network_cases import SHAPES  # noqa: E402
from turns import Contender, serve  # noqa: E402


def rows(named):
    """A Gather of rows and nothing else: 20,000 of 50,000 with 64 numbers."""
    import numpy as np
    from onnx import TensorProto as T
    from onnx import helper as h

    dims = [["n", 64], ["k"]] if named else [[50_000, 64], [20_000]]
    infos = [h.make_tensor_value_info("x", T.FLOAT, dims[0]), h.make_tensor_value_info("i", T.INT64, dims[1])]
    graph = h.make_graph([h.make_node("Gather", ["x", "i"], ["y"])], "g", infos, [h.make_tensor_value_info("y", T.FLOAT, None)])
    rng = np.random.default_rng(0)
    feeds = [rng.random((50_000, 64), np.float32), rng.integers(0, 50_000, 20_000)]
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), feeds


def relu(length):
    """A Relu of so many numbers."""
    import numpy as np
    from onnx import TensorProto as T
    from onnx import helper as h

    infos = [h.make_tensor_value_info("x", T.FLOAT, [length])]
    graph = h.make_graph([h.make_node("Relu", ["x"], ["y"])], "g", infos, [h.make_tensor_value_info("y", T.FLOAT, None)])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), [np.random.default_rng(0).random(length, np.float32)]


def pooling(kind):
    """A window of 3×3 over 64 channels, or the maximum of each row."""
    import numpy as np
    from onnx import TensorProto as T
    from onnx import helper as h

    shape = [1, 64, 112, 112] if kind == "MaxPool" else [4096, 256]
    infos = [h.make_tensor_value_info("x", T.FLOAT, shape)]
    attributes = {"kernel_shape": [3, 3], "strides": [2, 2]} if kind == "MaxPool" else {"axes": [1]}
    node = h.make_node(kind, ["x"], ["y"], **attributes)
    graph = h.make_graph([node], "g", infos, [h.make_tensor_value_info("y", T.FLOAT, None)])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), [np.random.default_rng(0).random(shape, np.float32)]


SINGLE = {
    "gather": lambda: rows(False),
    "gather_named": lambda: rows(True),
    "relu": lambda: relu(1 << 20),
    "maxpool": lambda: pooling("MaxPool"),
    "reducemax": lambda: pooling("ReduceMax"),
}


def prepare(case):
    os.environ["RELAXIDE_NUM_THREADS"] = "1"
    import onnx

    import relaxide as tvm

    if case in SINGLE:
        model, feeds = SINGLE[case]()
    else:
        import zoo

        network = zoo.MODELS[case]
        model, feeds = onnx.load(network.path), [network.make(SHAPES[case])]
    module = tvm.relax.frontend.onnx.from_onnx(model)
    with tempfile.TemporaryDirectory() as directory:
        library = os.path.join(directory, "model.so")
        tvm.compile(module, target="llvm").export_library(library)
        main = tvm.relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())["main"]
    args = [tvm.runtime.tensor(x) for x in feeds]

    def run(_):
        start = time.process_time()
        main(*args)
        return time.process_time() - start

    return run


def measure(case, folders, rounds):
    contenders = []
    for name, folder in folders.items():
        os.environ["PYTHONPATH"] = str(folder)
        contenders.append(Contender(name, [__file__, "--serve", case]))
    for contender in contenders:
        if contender.refused:
            return f"{case:14} {contender.name}: {contender.refused[:120]}"
    for turn in range(rounds + 3):
        for contender in contenders if turn % 2 else reversed(contenders):
            contender.run("warm" if turn < 3 else "run")
    for contender in contenders:
        contender.close()
    now, then = contenders
    least = [min(c.times["run"]) for c in contenders]
    medians = [now.median(), then.median()]
    return f"{case:14} {least[0]:9.3f} {least[1]:9.3f} {least[0] / least[1]:6.3f}   {medians[0]:9.3f} {medians[1]:9.3f} {medians[0] / medians[1]:6.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--other", type=pathlib.Path)
    parser.add_argument("--cases", default=",".join([*SHAPES, *SINGLE]))
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(lambda: prepare(arguments.serve), 1)
    if arguments.other is None:
        parser.error("--other FOLDER: where the package of the other build lies")
    folders = {"now": HERE.parent / "python", "other": arguments.other}
    print("processor time of a run in ms, one thread: this build, the other, part of it; least of the runs, then medians\n")
    for case in arguments.cases.split(","):
        print(measure(case, folders, arguments.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
