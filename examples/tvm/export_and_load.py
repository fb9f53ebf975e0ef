"""A compiled model as a file: written, loaded, run."""

import tempfile
from pathlib import Path

import numpy as np
import tvm
from tvm import relax
from tvm.relax.frontend import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4)

    def forward(self, x):
        return nn.relu(self.layer(x))


mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 8), "float32")}})
target = tvm.target.Target("llvm")
with target:
    built = relax.get_pipeline()(mod)
executable = tvm.compile(built, target=target)
draw = np.random.default_rng(1)
with tempfile.TemporaryDirectory() as folder:
    library, weights = Path(folder) / "net.so", Path(folder) / "weights.npz"
    executable.export_library(str(library))
    np.savez(weights, **{f"p_{at}": draw.random(param.shape, "float32") for at, (_, param) in enumerate(params)})

    loaded = tvm.runtime.load_module(str(library))
    vm = relax.VirtualMachine(loaded, tvm.cpu(0))
    arrays = np.load(weights)
    x = tvm.runtime.tensor(draw.random((1, 8), "float32"))
    print(np.round(vm["forward"](x, *(tvm.runtime.tensor(arrays[f"p_{at}"]) for at in range(len(params)))).numpy(), 3))
    print("forward" in loaded["stats"]())
