"""The package's types at work: `mypy --strict` and `pyright` find nothing here."""

from typing import Any

import numpy as np
import relaxide as tvm
import relaxide.onnxruntime as ort
from numpy.typing import NDArray
from relaxide import relax
from relaxide.relax.frontend import onnx as frontend


def compiled(model: Any, lengths: dict[str, int]) -> relax.VMExecutable:
    mod = frontend.from_onnx(model, dims={"batch": lengths["batch"], "length": (1, None)})
    mod = tvm.transform.Sequential([relax.transform.FoldConstant(), relax.get_pipeline("zero")])(mod)
    with tvm.transform.PassContext(opt_level=3), tvm.Target("llvm") as target:
        return tvm.compile(mod, target)


def run(executable: relax.VMExecutable, x: NDArray[np.float32]) -> NDArray[Any]:
    executable.export_library("model.so")
    machine = relax.VirtualMachine(tvm.runtime.load_module("model.so"), tvm.cpu())
    timing = machine.time_evaluator("main", tvm.cpu(), number=3)(tvm.runtime.tensor(x))
    print(timing.mean, machine.output_names())
    out: tvm.Tensor = machine["main"](tvm.runtime.tensor(x))
    return out.copyto(tvm.cpu()).numpy()


def built() -> tvm.IRModule:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType(["n", 4], "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit(relax.op.add(x, relax.const(1.0)))
            out = builder.emit_output(relax.op.nn.relu(y))
        builder.emit_func_output(out)
    return builder.get()


@tvm.register_global_func("example.twice")
def twice(value: int) -> int:
    return 2 * value


def session(path: str, x: NDArray[np.float32]) -> list[Any]:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 2
    made = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return made.run(None, {made.get_inputs()[0].name: x})


four: int = twice(2)
