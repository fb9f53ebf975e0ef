"""Parts of a graph for a backend: patterns that it has, and those of two that are known; nothing of the backends is needed to part a graph."""

import numpy as np
import tvm
import tvm.relax.backend.contrib.example_npu
from tvm import relax
from tvm.relax.backend.contrib.tensorrt import partition_for_tensorrt
from tvm.relax.backend.pattern_registry import get_patterns_with_prefix
from tvm.relax.transform import FuseOpsByPattern, MergeCompositeFunctions
from tvm.script import relax as R


@tvm.script.ir_module
class ConvReLU:
    @R.function
    def main(
        data: R.Tensor((1, 3, 16, 16), "float32"), weight: R.Tensor((4, 3, 3, 3), "float32")
    ) -> R.Tensor((1, 4, 14, 14), "float32"):
        with R.dataflow():
            conv = relax.op.nn.conv2d(data, weight)
            out = relax.op.nn.relu(conv)
            R.output(out)
        return out


def parts(module):
    """For each function beside the main one, the backend that it is for."""
    return sorted(func.attrs["Codegen"] for var, func in module.functions.items() if var.name_hint != "main")


npu = FuseOpsByPattern(get_patterns_with_prefix("example_npu"), bind_constants=False, annotate_codegen=True)(ConvReLU)
npu = MergeCompositeFunctions()(npu)
print("example_npu.conv2d_relu_fused" in npu.script(), parts(npu))

weight = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype("float32")
bound = relax.transform.BindParams("main", {"weight": weight})(ConvReLU)
parted = partition_for_tensorrt(bound)
print([name in parted.script() for name in ("tensorrt.nn.conv2d", "tensorrt.nn.relu")], parts(parted))
