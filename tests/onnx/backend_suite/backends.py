"""What the suite can be run with. Each backend makes a function of a model: lists of inputs in, list of outputs out.

A backend is imported where it is first used, in a process of its own.
"""

import importlib.util

import numpy as np


def relaxide(model):
    from relaxide.onnx_backend import RelaxideBackend

    return RelaxideBackend.prepare(model).run


def opencl(model):
    from relaxide.onnx_backend import RelaxideBackend

    return RelaxideBackend.prepare(model, "OPENCL").run


def onnxruntime(model):
    import onnxruntime as ort
    from onnx import helper

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [info.name for info in session.get_inputs()]

    def value_of(value):
        # Elements that numpy lacks go in as bytes with their type.
        if isinstance(value, np.ndarray) and value.dtype.kind == "V" or getattr(value, "dtype", None) is not None and (
            value.dtype.name.startswith(("bfloat", "float8", "float4", "int4", "uint4", "int2", "uint2"))
        ):
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            plain = value.view("uint16" if value.dtype.itemsize == 2 else "uint8")
            return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(plain), kind)
        return value

    def result_of(value, info):
        array = value.numpy() if hasattr(value, "numpy") else value
        return array

    def run(inputs):
        # Inputs that a session drops, because nothing uses them, are left out.
        declared = [info.name for info in model.graph.input]
        weights = {tensor.name for tensor in model.graph.initializer}
        given = dict(zip([name for name in declared if name not in weights], inputs))
        feeds = {name: value_of(given[name]) for name in names if given.get(name) is not None}
        outputs = session.run(None, feeds)
        return [_typed(output, info.type) for output, info in zip(outputs, model.graph.output)]

    return run


def _typed(output, declared):
    """An array of bytes under the type of the model, where numpy itself lacks it."""
    from onnx import helper

    if not isinstance(output, np.ndarray) or not declared.HasField("tensor_type"):
        return output
    dtype = helper.tensor_dtype_to_np_dtype(declared.tensor_type.elem_type)
    if dtype != output.dtype and dtype.kind == "V" and dtype.itemsize == output.dtype.itemsize:
        return output.view(dtype)
    return output


def tvm(model):
    import tvm as apache
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(model, keep_params_in_input=False)
    executable = apache.compile(module, target="llvm")
    machine = relax.VirtualMachine(executable, apache.cpu())

    def flat(value):
        if isinstance(value, (list, tuple)):
            return [flat(part) for part in value]
        return apache.runtime.tensor(np.asarray(value))

    def back(value):
        return value.numpy() if hasattr(value, "numpy") else [back(part) for part in value]

    def run(inputs):
        result = back(machine["main"](*(flat(value) for value in inputs)))
        return [result] if len(model.graph.output) == 1 else result

    return run


def openvino(model):
    import io

    import openvino as ov

    core = ov.Core()
    compiled = core.compile_model(core.read_model(io.BytesIO(model.SerializeToString())), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    weights = {tensor.name for tensor in model.graph.initializer}
    declared = [info.name for info in model.graph.input if info.name not in weights]
    taken = {name for port in compiled.inputs for name in port.get_names()}

    def run(inputs):
        given = {name: np.asarray(value) for name, value in zip(declared, inputs) if name in taken}
        results = compiled(given)
        return [results[i] for i in range(len(compiled.outputs))]

    return run


def tract(model):
    import tempfile

    import tract as peer

    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(model.SerializeToString())
        file.flush()
        runnable = peer.onnx().load(file.name).into_model().into_runnable()

    def run(inputs):
        return [result.to_numpy() for result in runnable.run([np.ascontiguousarray(value) for value in inputs])]

    return run


def reference(model):
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(model)
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [info.name for info in model.graph.input if info.name not in weights]
    return lambda inputs: evaluator.run(None, dict(zip(names, inputs)))


BACKENDS = {f.__name__: f for f in (relaxide, opencl, onnxruntime, openvino, tract, tvm, reference)}


def backend(name):
    """The backend of a name; what is not installed is an error here, not a failure of every case."""
    module = {"reference": "onnx.reference", "opencl": "relaxide"}.get(name, name)
    if importlib.util.find_spec(module) is None:
        raise SystemExit(f"the package `{module}` is not installed here")
    return BACKENDS[name]
