"""Compiles the programs of ``scripts.py``, for which it writes arguments, and networks with TVM.

usage: compile_with_tvm.py DIRECTORY [NAME MODEL.onnx INPUT=1,3,64,96]...
"""

import pathlib
import pickle
import sys

import describe
import numpy as np
import tvm


def scripts(directory):
    import scripts

    rng = np.random.default_rng(0)
    for name, (module, mode, arguments) in scripts.PROGRAMS.items():
        with open(directory / f"{name}.args", "wb") as file:
            pickle.dump([describe.make(arguments, rng) for _ in range(2)], file)
        module = tvm.relax.transform.LambdaLift()(module)
        export(tvm.relax.build(module, target="llvm", exec_mode=mode), directory / name)


def imported(directory, name, path, shape, **options):
    """A network at one shape, as a program. What its shapes decide is computed first, because TVM's importer wants to know it."""
    import onnx
    import onnxruntime
    import tvm.relax.frontend.onnx

    input_name, dims = shape.split("=")
    dims = [int(dim) for dim in dims.split(",")]
    model = onnx.load(path)
    for dim, extent in zip(model.graph.input[0].type.tensor_type.shape.dim, dims):
        dim.dim_value = extent
    session = onnxruntime.SessionOptions()
    session.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    session.optimized_model_filepath = str(directory / f"{name}.onnx")
    session.log_severity_level = 3
    onnxruntime.InferenceSession(model.SerializeToString(), session, providers=["CPUExecutionProvider"])
    model = onnx.load(session.optimized_model_filepath)
    return tvm.relax.frontend.onnx.from_onnx(model, shape_dict={input_name: dims}, **options)


def network(directory, name, path, shape):
    """A network, compiled. What its kernels do is the same whatever LLVM makes of them, and plain code takes it half of the time."""
    plain = tvm.target.Target({"kind": "llvm", "opt-level": 1})
    export(tvm.compile(imported(directory, name, path, shape), target=plain), directory / name)


def export(executable, path):
    executable.export_library(f"{path}.so")
    describe.describe(executable.mod, f"{path}.compiled")


if __name__ == "__main__":
    where = pathlib.Path(sys.argv[1])
    scripts(where)
    for one in range(2, len(sys.argv), 3):
        network(where, *sys.argv[one : one + 3])
