"""A model of another package: imported, its weights apart, run."""

import numpy as np
import onnx
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

draw = np.random.default_rng(1)
weights = {"w": draw.standard_normal((3, 2, 3, 3)).astype("float32"), "b": draw.standard_normal(3).astype("float32")}
graph = helper.make_graph(
    [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["y"]),
    ],
    "net",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 8, 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3])],
    [numpy_helper.from_array(value, name) for name, value in weights.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
onnx.checker.check_model(model)

x = tvm.runtime.tensor(draw.standard_normal((1, 2, 8, 8)).astype("float32"))
whole = from_onnx(model)
vm = relax.VirtualMachine(tvm.compile(whole, target="llvm"), tvm.cpu())
print(np.round(vm["main"](x).numpy(), 3))

bare, params = relax.frontend.detach_params(from_onnx(model, keep_params_in_input=True))
print([list(map(int, param.shape)) for param in params["main"]])
vm = relax.VirtualMachine(tvm.compile(bare, target="llvm"), tvm.cpu())
print(np.round(vm["main"](x, *params["main"]).numpy(), 3))
