"""A network of PyTorch from end to end: exported, imported, its weights apart, its kernels tuned, run."""

import tempfile

import numpy as np
import torch
import tvm
from torch.export import export
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program

# Schedules that are measured: none, so that the program is quick. With some, TVM needs the package `xgboost`.
TOTAL_TRIALS, MAX_TRIALS_PER_TASK = 0, 4


class Block(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)) + x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = torch.nn.Sequential(Block(8), Block(8))
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(torch.flatten(torch.nn.functional.adaptive_avg_pool2d(x, 1), 1))


torch.manual_seed(1)
net = Net().eval()
example = torch.randn(1, 3, 16, 16)
with torch.no_grad():
    exported = export(net, (example,))
    mod = from_exported_program(exported, keep_params_as_input=True)
mod, params = relax.frontend.detach_params(mod)
print(len(params["main"]))

target, dev = tvm.target.Target({"kind": "llvm", "num-cores": 2}), tvm.cpu(0)
with tempfile.TemporaryDirectory() as folder:
    mod = relax.get_pipeline(
        "static_shape_tuning", target=target, work_dir=folder, total_trials=TOTAL_TRIALS, max_trials_per_task=MAX_TRIALS_PER_TASK
    )(mod)
with target:
    # For a GPU this binds threads; kernels for the CPU are left as they are.
    mod = tvm.s_tir.transform.DefaultGPUSchedule()(mod)
vm = relax.VirtualMachine(tvm.compile(mod, target=target), dev)
weights = [tvm.runtime.tensor(param, dev) for param in params["main"]]
result = vm["main"](tvm.runtime.tensor(example.numpy(), dev), *weights)[0].numpy()
with torch.no_grad():
    np.testing.assert_allclose(result, net(example).numpy(), rtol=1e-4, atol=1e-5)
print(np.round(result, 3))
