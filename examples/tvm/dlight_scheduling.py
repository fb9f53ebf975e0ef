"""Kernels that are scheduled by rules: those that are there, which of them takes which kernel, and one of one's own.

Threads of a GPU are bound for a GPU that need not be there; what runs is scheduled for the CPU.
"""

from collections import Counter

import numpy as np
import tvm
from tvm import relax, s_tir, tirx
from tvm.relax.frontend import nn
from tvm.s_tir import dlight as dl
from tvm.s_tir.dlight.analysis import normalize_prim_func
from tvm.s_tir.dlight.base.schedule_rule import ScheduleRule


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 64)
        self.norm = nn.LayerNorm(64)
        self.second = nn.Linear(64, 32)

    def forward(self, x):
        return self.second(self.norm(nn.relu(self.first(x))))


origin, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((32, 64), "float32")}})


def lowered(target):
    """The kernels of the network as nothing has scheduled them; a rule may change the module that it is given."""
    with target:
        return relax.get_pipeline("zero")(origin)


def scheduled(mod):
    return {
        var.name_hint
        for var, func in mod.functions_items()
        if isinstance(func, tirx.PrimFunc) and func.attrs and func.attrs.get("tirx.is_scheduled")
    }


gpu = tvm.target.Target("nvidia/geforce-rtx-3090-ti")
rules = [dl.gpu.Matmul(), dl.gpu.GEMV(), dl.gpu.Reduction(), dl.gpu.GeneralReduction(), dl.gpu.Fallback()]
with gpu:
    mod = dl.ApplyDefaultSchedule(*rules)(lowered(gpu))
print(len(scheduled(mod)), "blockIdx.x" in mod.script(), "threadIdx.x" in mod.script())

taken = {}
for name in ("Matmul", "GEMV", "LowBatchGEMV", "Reduction", "GeneralReduction", "Transpose", "RMSNorm", "Fallback"):
    with gpu:
        mod = dl.ApplyDefaultSchedule(getattr(dl.gpu, name)())(lowered(gpu))
    for kernel in scheduled(mod):
        taken.setdefault(kernel, name)
print(sorted(Counter(taken.values()).items()))


@ScheduleRule.from_callable("RowsInParallel")
def rows_in_parallel(func, target, tunable):
    """The rows of a kernel of one block, which reduces nothing, by the threads of the pool."""
    sch = s_tir.Schedule(func)
    blocks = normalize_prim_func(sch)
    if blocks is None or len(blocks) != 1 or not blocks[0].is_injective():
        return None
    outer, *_ = sch.get_loops(blocks[0].block_rv)
    sch.parallel(outer)
    return sch


cpu = tvm.target.Target("llvm")
with cpu:
    mod = dl.ApplyDefaultSchedule(dl.cpu.GEMV(), rows_in_parallel)(lowered(cpu))
print(len(scheduled(mod)), "T.parallel" in mod.script())

draw = np.random.default_rng(1)
x = tvm.runtime.tensor(draw.standard_normal((32, 64)).astype("float32"))
weights = [tvm.runtime.tensor(draw.standard_normal(param.shape).astype("float32")) for _, param in params]
for module in (origin, mod):
    vm = relax.VirtualMachine(tvm.compile(module, target=cpu), tvm.cpu())
    print(np.round(vm["forward"](x, *weights).numpy()[:2, :4], 2))
