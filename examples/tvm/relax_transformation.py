"""Passes over graphs: those that are there, and one of one's own."""

import numpy as np
import tvm
from tvm import IRModule, relax
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.relax.frontend import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 6)
        self.second = nn.Linear(6, 4)

    def forward(self, x):
        return self.second(nn.relu(self.first(x)))


origin, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 8), "float32")}})
lowered = relax.transform.LegalizeOps()(origin)
fused = tvm.ir.transform.Sequential(
    [relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps(), relax.transform.FuseTIR()]
)(lowered)


@mutator
class SmoothActivations(PyExprMutator):
    def visit_call_(self, call):
        if call.op.name == "relax.nn.relu":
            return relax.op.nn.gelu(call.args[0])
        return super().visit_call_(call)


@tvm.transform.module_pass(opt_level=0, name="ReluToGelu")
class ReluToGelu:
    def transform_module(self, mod: IRModule, _ctx: tvm.transform.PassContext) -> IRModule:
        rewriter = SmoothActivations(mod)
        for var, func in mod.functions_items():
            if isinstance(func, relax.Function):
                rewriter.builder_.update_func(var, rewriter.visit_expr(func))
        return rewriter.builder_.get()


smooth = ReluToGelu()(origin)
draw = np.random.default_rng(1)
x = tvm.runtime.tensor(draw.standard_normal((2, 8)).astype("float32"))
weights = [tvm.runtime.tensor(draw.standard_normal(param.shape).astype("float32")) for _, param in params]
for module in (origin, fused, smooth):
    vm = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    print(np.round(vm["forward"](x, *weights).numpy(), 3))
