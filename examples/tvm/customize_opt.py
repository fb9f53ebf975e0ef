"""A pipeline of one's own: a pass that finds its pattern among those that are registered, then what every program gets."""

import numpy as np
import tvm
from tvm import IRModule, relax
from tvm.relax.backend.pattern_registry import register_patterns
from tvm.relax.dpl import is_op, wildcard
from tvm.relax.frontend import nn

data, weight = wildcard(), wildcard()
product = is_op("relax.matmul")(data, is_op("relax.permute_dims")(weight))
register_patterns([("demo.dense_relu", is_op("relax.nn.relu")(product))])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 6, bias=False)
        self.second = nn.Linear(6, 4, bias=False)

    def forward(self, x):
        return self.second(nn.relu(self.first(x)))


mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 8), "float32")}})


@tvm.transform.module_pass(opt_level=0, name="DemoDispatch")
class DemoDispatch:
    def transform_module(self, mod: IRModule, _ctx: tvm.transform.PassContext) -> IRModule:
        patterns = [relax.backend.get_pattern("demo.dense_relu")]
        return relax.transform.FuseOpsByPattern(patterns, annotate_codegen=False)(mod)


parted = DemoDispatch()(mod)
print([func.attrs["Composite"] for var, func in parted.functions.items() if var.name_hint != "forward"])

draw = np.random.default_rng(1)
args = [tvm.runtime.tensor(draw.random((1, 8), "float32"))]
args += [tvm.runtime.tensor(draw.random(param.shape, "float32")) for _, param in params]
optimized = tvm.ir.transform.Sequential([DemoDispatch(), relax.get_pipeline("zero")])(mod)
for module in (mod, optimized):
    vm = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    print(np.round(vm["forward"](*args).numpy(), 3))
