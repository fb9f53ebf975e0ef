"""A program as a module: made by a front end or written, looked into, lowered, run."""

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.script import ir as I
from tvm.script import relax as R


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return nn.relu(self.layer(x))


from_module, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 8), "float32")}})


@I.ir_module
class Written:
    @R.function
    def main(
        x: R.Tensor((1, 8), "float32"), weight: R.Tensor((4, 8), "float32"), bias: R.Tensor((4,), "float32")
    ) -> R.Tensor((1, 4), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            turned = R.permute_dims(weight, axes=None)
            product = R.matmul(x, turned, out_dtype=None)
            result = R.nn.relu(R.add(product, bias))
            R.output(result)
        return result


(var,) = Written.get_global_vars()
print(var.name_hint, Written[var] == Written["main"])

lowered = relax.transform.LegalizeOps()(Written)
print(len(lowered.get_global_vars()))
draw = np.random.default_rng(1)
x = tvm.runtime.tensor(draw.standard_normal((1, 8)).astype("float32"))
weights = [tvm.runtime.tensor(draw.standard_normal(param.shape).astype("float32")) for _, param in params]
for module, name in ((from_module, "forward"), (Written, "main"), (relax.get_pipeline("zero")(lowered), "main")):
    vm = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    print(np.round(vm[name](x, *weights).numpy(), 3))
