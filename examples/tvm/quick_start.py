"""A small network as a module: described, compiled, run."""

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn


class Digits(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 32)
        self.relu = nn.ReLU()
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        return self.out(self.relu(self.hidden(x)))


mod, param_spec = Digits().export_tvm(spec={"forward": {"x": nn.spec.Tensor((1, 64), "float32")}})
mod.script()
mod = relax.get_pipeline("zero")(mod)
executable = tvm.compile(mod, tvm.target.Target("llvm"))
device = tvm.cpu()
vm = relax.VirtualMachine(executable, device)

draw = np.random.default_rng(1)
image = tvm.runtime.tensor(draw.random((1, 64), "float32"), device=device)
params = [tvm.runtime.tensor(draw.random(param.shape, "float32"), device=device) for _, param in param_spec]
print(np.round(vm["forward"](image, *params).numpy(), 2))
