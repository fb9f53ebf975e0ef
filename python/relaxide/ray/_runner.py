"""Measurements of a tuner on the machines of a cluster."""

import os
import tempfile

from ..s_tir.meta_schedule.runner.config import EvaluatorConfig
from ..s_tir.meta_schedule.runner.local_runner import _measure
from ..s_tir.meta_schedule.runner.runner import PyRunner, RunnerFuture, RunnerResult
from ._files import _ray


def _trial(library, name, functions, config, repeat, device_type, args_info):
    """Measures a library that came as bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(library)
        return _measure(*functions, config, repeat, path, device_type, args_info)


class _Future(RunnerFuture):
    def __init__(self, reference, timeout_sec):
        RunnerFuture.__init__(self, self.done, self.result)
        self.reference, self.timeout_sec = reference, timeout_sec

    def done(self):
        """Whether it has ended."""
        return bool(_ray().wait([self.reference], timeout=0)[0])

    def result(self):
        """The seconds, or why there are none."""
        ray = _ray()
        try:
            return RunnerResult(ray.get(self.reference, timeout=self.timeout_sec), None)
        except ray.exceptions.GetTimeoutError:
            ray.cancel(self.reference, force=True)
            return RunnerResult(None, f"RayRunner: Timeout, killed after {self.timeout_sec} seconds\n")
        except Exception as error:  # whatever a kernel does is told as its result
            return RunnerResult(None, f"RayRunner: An exception occurred\n{error}")


class RayRunner(PyRunner):
    """Measures in processes of a Ray cluster, each alone with ``num_cpus`` processors, again elsewhere where a machine is lost.

    ``resources`` are those of Ray that say which machines are alike (``{"board": 1}``): seconds of different ones are not to be compared.
    The other parameters are as :class:`~relaxide.s_tir.meta_schedule.runner.LocalRunner` has them.
    """

    def __init__(self, timeout_sec=30, evaluator_config=None, alloc_repeat=1, f_alloc_argument=None, f_run_evaluator=None, f_cleanup=None, num_cpus=1, resources=None):
        self.timeout_sec, self.alloc_repeat = timeout_sec, alloc_repeat
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self._functions = (f_alloc_argument, f_run_evaluator, f_cleanup)
        # A kernel that ends its process is a bad kernel, not a lost machine.
        self._trial = _ray().remote(num_cpus=num_cpus, resources=resources, max_retries=1, max_calls=1)(_trial)

    def run(self, runner_inputs):
        """Begin each measurement."""
        futures = []
        for one in runner_inputs:
            with open(one.artifact_path, "rb") as file:
                library = file.read()
            args_info = [info.as_json() for info in one.args_info]
            name = os.path.basename(str(one.artifact_path))
            reference = self._trial.remote(library, name, self._functions, tuple(self.evaluator_config), self.alloc_repeat, str(one.device_type), args_info)
            futures.append(_Future(reference, self.timeout_sec))
        return futures
