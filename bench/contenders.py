"""What runs a network for ``models.py``: each takes a network, its file, its arguments and a number of threads, and returns what runs it once.

A runner returns a function of nothing that gives the results as arrays of NumPy, or raises where it cannot run the network.
"""

import os

import numpy as np

import avx2


def relaxide(network, path, feed, threads, **options):
    os.environ["RELAXIDE_NUM_THREADS"] = str(threads)
    import tempfile

    import onnx

    import relaxide as tvm

    model = onnx.load(path)
    with tempfile.TemporaryDirectory() as directory:
        library = os.path.join(directory, "model.so")
        tvm.compile(tvm.relax.frontend.onnx.from_onnx(model), target={"kind": "llvm", **avx2.options(), **options}).export_library(library)
        vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
    weights = {weight.name for weight in model.graph.initializer}
    args = [tvm.runtime.tensor(feed[input.name]) for input in model.graph.input if input.name not in weights]
    main = vm["main"]
    return lambda: main(*args)


def deterministic(network, path, feed, threads):
    """Relaxide with the same bits on every processor."""
    return relaxide(network, path, feed, threads, deterministic=True)


def onnxruntime(network, path, feed, threads):
    avx2.prefer_copy()
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)


def openvino(network, path, feed, threads):
    import openvino

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = openvino.Core().compile_model(str(path), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda: [request.infer(feed, share_inputs=True)[output] for output in compiled.outputs]


def tract(network, path, feed, threads):
    if threads > 1:
        raise NotImplementedError("tract computes on one thread")
    import tract

    kinds = {"float32": "f32", "int64": "i64", "int32": "i32"}
    model = tract.onnx().load(str(path))
    names = [model.input_name(at) for at in range(model.input_count())]
    for at, name in enumerate(names):
        model.set_input_fact(at, ",".join([*map(str, feed[name].shape), kinds[str(feed[name].dtype)]]))
    runnable = model.into_model().into_runnable()
    args = [feed[name] for name in names]
    return lambda: [output.to_numpy() for output in runnable.run(args)]


def torch(network, path, feed, threads):
    if network.module is None:
        raise NotImplementedError("the network is no module of PyTorch")
    import torch

    torch.set_num_threads(threads)
    module, args = network.module()
    compiled = torch.compile(module)

    def run():
        with torch.inference_mode():
            return [compiled(*args).numpy()]

    return run


def tvm(network, path, feed, threads):
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import onnx
    import tvm
    from tvm.relax.frontend.onnx import from_onnx

    # TVM's importer needs fixed shapes for networks that resize.
    module = from_onnx(onnx.load(path), shape_dict={name: list(array.shape) for name, array in feed.items()})
    vm = tvm.relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    main, args = vm["main"], [tvm.runtime.tensor(array) for array in feed.values()]
    return lambda: main(*args)


RUNNERS = {"relaxide": relaxide, "deterministic": deterministic, "onnxruntime": onnxruntime, "openvino": openvino, "tract": tract, "torch": torch, "tvm": tvm}


def first_result(result):
    """The first result as an array, of whatever a runner returns."""
    while not hasattr(result, "numpy") and not isinstance(result, np.ndarray):
        result = result[0]
    return result if isinstance(result, np.ndarray) else np.asarray(result.numpy())
