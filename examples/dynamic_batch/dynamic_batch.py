"""One compiled file for every batch: compiles a network once and runs it on batches of several sizes.

usage: dynamic_batch.py [--build DIRECTORY]
"""

import argparse
import pathlib
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import relaxide as tvm

HERE = pathlib.Path(__file__).resolve().parent


def network(width=256, classes=10):
    """A small classifier of images of 32 × 32 with random weights. Its batch has a name and no size."""
    rng = np.random.default_rng(0)
    shapes = {"filters": (32, 3, 3, 3), "hidden": (32 * 16 * 16, width), "out": (width, classes)}
    weights = [
        numpy_helper.from_array((rng.standard_normal(s) / np.sqrt(np.prod(s[:-1]))).astype("float32"), name)
        for name, s in shapes.items()
    ]
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("Flatten", ["r"], ["f"]),
        helper.make_node("MatMul", ["f", "hidden"], ["h"]),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("MatMul", ["a", "out"], ["o"]),
        helper.make_node("Softmax", ["o"], ["classes"], axis=-1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 32, 32])
    result = helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["batch", classes])
    graph = helper.make_graph(nodes, "classifier", [image], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "dynamic_batch")
    args = parser.parse_args()
    args.build.mkdir(parents=True, exist_ok=True)
    onnx.save(network(), args.build / "classifier.onnx")
    path = args.build / "classifier.so"
    module = tvm.relax.frontend.onnx.from_onnx(args.build / "classifier.onnx")
    tvm.compile(module, target="llvm").export_library(str(path))
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    for batch in (1, 2, 7, 32, 64):
        images = tvm.runtime.tensor(np.random.default_rng(batch).random((batch, 3, 32, 32), "float32"))
        start = time.perf_counter()
        classes = machine["main"](images).numpy()
        print(f"batch of {batch:2}: {(time.perf_counter() - start) * 1e3:6.2f} ms, result of shape {classes.shape}")


if __name__ == "__main__":
    main()
