"""Measuring on this machine, in processes of its own."""

import time

from ..builder import get_local_builder
from ..utils import get_global_func_with_default_on_worker
from .config import EvaluatorConfig
from .runner import PyRunner, RunnerFuture, RunnerResult
from .utils import alloc_argument_common, run_evaluator_common


class LocalRunnerFuture(RunnerFuture):
    """A measurement that has ended, with its seconds or its error."""

    def __init__(self, res=None, error_message=None):
        RunnerFuture.__init__(self, lambda: True, lambda: RunnerResult(self.res, self.error_message))
        self.res, self.error_message = res, error_message


def default_alloc_argument(device, args_info, alloc_repeat):
    """Arguments of random numbers."""
    return alloc_argument_common(_fill, device, args_info, alloc_repeat)


def _fill(tensor):
    import numpy

    dtype = numpy.dtype(str(tensor.dtype)) if not str(tensor.dtype).startswith(("bfloat", "float8", "float4")) else None
    if dtype is None:
        return
    random = numpy.random.default_rng(0)
    values = random.random(tensor.shape) * (1 if dtype.kind == "f" else 16)
    tensor.copyfrom(values.astype(dtype))


def default_run_evaluator(rt_mod, device, evaluator_config, repeated_args):
    """The seconds of the runs."""
    return run_evaluator_common(rt_mod, device, evaluator_config, repeated_args)


def default_cleanup():
    """There is nothing to clean up."""


def _measure(f_alloc, f_run, f_cleanup, config, repeat, path, device_type, args_info):
    from ....runtime import device as make_device
    from ....runtime import load_module

    alloc = get_global_func_with_default_on_worker(f_alloc, default_alloc_argument)
    run = get_global_func_with_default_on_worker(f_run, default_run_evaluator)
    cleanup = get_global_func_with_default_on_worker(f_cleanup, default_cleanup)
    try:
        device = make_device(device_type, 0)
        return [float(sec) for sec in run(load_module(path), device, EvaluatorConfig(*config), alloc(device, args_info, repeat))]
    finally:
        cleanup()


def _check_names(*names):
    for name in names:
        get_global_func_with_default_on_worker(name, None)


class LocalRunner(PyRunner):
    """Measures on this machine, in a process that is ended when it takes too long.

    Parameters
    ----------
    timeout_sec : float
        After so many seconds a measurement is given up.
    evaluator_config : EvaluatorConfig, optional
        How often kernels are run.
    cooldown_sec : float
        How long to wait behind each measurement.
    alloc_repeat : int
        How many lists of arguments are made.
    f_alloc_argument, f_run_evaluator, f_cleanup : callable or str, optional
        What replaces the default functions of this module.
    initializer : callable, optional
        Called in the process first.
    """

    def __init__(
        self,
        timeout_sec=30,
        evaluator_config=None,
        cooldown_sec=0.0,
        alloc_repeat=1,
        f_alloc_argument=None,
        f_run_evaluator=None,
        f_cleanup=None,
        initializer=None,
    ):
        from ....support.popen_pool import PopenPoolExecutor

        self.timeout_sec, self.cooldown_sec, self.alloc_repeat = timeout_sec, cooldown_sec, alloc_repeat
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self._functions = (f_alloc_argument, f_run_evaluator, f_cleanup)
        self._initializer = initializer
        if any(name is not None for name in self._functions):
            with PopenPoolExecutor(max_workers=1, timeout=60, initializer=initializer) as pool:
                pool.submit(_check_names, *self._functions).result()

    def run(self, runner_inputs):
        """Measure each, one after the other."""
        from ....support.popen_pool import PopenPoolExecutor

        futures = []
        with PopenPoolExecutor(max_workers=1, timeout=self.timeout_sec, initializer=self._initializer) as pool:
            for one in runner_inputs:
                job = pool.submit(
                    _measure,
                    *self._functions,
                    tuple(self.evaluator_config),
                    self.alloc_repeat,
                    str(one.artifact_path),
                    str(one.device_type),
                    [info.as_json() for info in one.args_info],
                )
                try:
                    futures.append(LocalRunnerFuture(res=job.result()))
                except TimeoutError:
                    futures.append(LocalRunnerFuture(error_message=f"LocalRunner: Timeout, killed after {self.timeout_sec} seconds\n"))
                except Exception as error:  # whatever a kernel does is told as its result
                    futures.append(LocalRunnerFuture(error_message=f"LocalRunner: An exception occurred\n{error}"))
                time.sleep(self.cooldown_sec)
        return futures


__all__ = [
    "LocalRunner",
    "LocalRunnerFuture",
    "default_alloc_argument",
    "default_cleanup",
    "default_run_evaluator",
    "get_local_builder",
]
