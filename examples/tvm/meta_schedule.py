"""Kernels whose schedules are searched for: what there is to tune, records of what was measured, the best of them put in."""

import logging
import tempfile
import time
from pathlib import Path

import numpy as np
import tvm
from tvm import relax
from tvm.ir.utils import derived_object
from tvm.relax.frontend import nn
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
from tvm.s_tir.meta_schedule.database import JSONDatabase, OrderedUnionDatabase
from tvm.s_tir.meta_schedule.relax_integration import extract_tasks, tune_relax
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult

logging.disable(logging.WARNING)


@derived_object
class Builder(PyBuilder):
    """Compiles in this process; those that are there start others."""

    def build(self, build_inputs):
        results = []
        for number, one in enumerate(build_inputs):
            path = str(Path(tempfile.mkdtemp(dir=scratch)) / f"{number}.so")
            tvm.compile(one.mod, target=one.target).export_library(path)
            results.append(BuilderResult(path, None))
        return results


@derived_object
class Measured(PyRunnerFuture):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def done(self):
        return True

    def result(self):
        return RunnerResult([self.seconds], None)


@derived_object
class Runner(PyRunner):
    """Runs once in this process."""

    def run(self, runner_inputs):
        futures = []
        for one in runner_inputs:
            args = [tvm.runtime.tensor(np.ones([int(n) for n in arg.shape], str(arg.dtype))) for arg in one.args_info]
            kernel = tvm.runtime.load_module(str(one.artifact_path))["main"]
            begin = time.perf_counter()
            kernel(*args)
            futures.append(Measured(time.perf_counter() - begin))
        return futures


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(32, 16)
        self.second = nn.Linear(16, 8, bias=False)

    def forward(self, x):
        return self.second(nn.relu(self.first(x)))


origin, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor((1, 32), "float32")}})
target = tvm.target.Target({"kind": "llvm", "num-cores": 2})
with target:
    lowered = relax.get_pipeline("zero")(origin)
tasks = extract_tasks(lowered, target)
print(sorted((len(task.dispatched), task.weight) for task in tasks))

draw = np.random.default_rng(1)
x = tvm.runtime.tensor(draw.standard_normal((1, 32)).astype("float32"))
weights = [tvm.runtime.tensor(draw.standard_normal(param.shape).astype("float32")) for _, param in params]


def run(module):
    vm = relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
    print(np.round(vm["forward"](x, *weights).numpy(), 3))


run(lowered)
with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as scratch:
    how = {"builder": Builder(), "runner": Runner(), "cost_model": "random", "strategy": "replay-trace", "seed": 1}
    database = tune_relax(lowered, {}, target, folder, max_trials_global=2, num_trials_per_iter=2, op_names=["fused_matmul"], **how)
    print(sorted(path.name for path in Path(folder).glob("database_*.json")), len(database) > 0)
    with target:
        run(relax.transform.MetaScheduleApplyDatabase(work_dir=folder)(lowered))
    with target, OrderedUnionDatabase(JSONDatabase(work_dir=scratch), JSONDatabase(work_dir=folder)):
        tuned = relax.transform.MetaScheduleApplyDatabase()(lowered)
    print("tirx.is_scheduled" in tuned.script())
    run(tuned)
