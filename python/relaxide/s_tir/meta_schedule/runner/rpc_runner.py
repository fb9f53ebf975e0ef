"""Measuring on devices that a tracker knows."""

import concurrent.futures
import os
import time

from ..utils import get_global_func_with_default_on_worker
from .config import EvaluatorConfig, RPCConfig
from .local_runner import _fill
from .runner import PyRunner, RunnerFuture, RunnerResult
from .utils import alloc_argument_common, run_evaluator_common


class RPCRunnerFuture(RunnerFuture):
    """A measurement on a device, of a future of Python, which is waited for ``timeout_sec`` seconds."""

    def __init__(self, future, timeout_sec):
        RunnerFuture.__init__(self, self.done, self.result)
        self.future, self.timeout_sec = future, timeout_sec

    def done(self):
        """Whether it has ended."""
        return self.future.done()

    def result(self):
        """The seconds, or why there are none."""
        try:
            return RunnerResult([float(sec) for sec in self.future.result(timeout=self.timeout_sec)], None)
        except (TimeoutError, concurrent.futures.TimeoutError):
            return RunnerResult(None, f"RPCRunner: Timeout, killed after {self.timeout_sec} seconds\n")
        except Exception as error:  # whatever a kernel does is told as its result
            return RunnerResult(None, f"RPCRunner: An exception occurred\n{error}")


def default_create_session(rpc_config):
    """A session with a device."""
    return rpc_config.connect_server()


def default_upload_module(session, local_path, remote_path):
    """Send a library; gives it as it is there."""
    session.upload(local_path, remote_path)
    return session.load_module(remote_path)


def default_alloc_argument(session, device, args_info, alloc_repeat):
    """Arguments of random numbers, on the device."""
    return alloc_argument_common(_fill, device, args_info, alloc_repeat)


def default_run_evaluator(session, rt_mod, device, evaluator_config, repeated_args):
    """The seconds of the runs."""
    return run_evaluator_common(rt_mod, device, evaluator_config, repeated_args)


def default_cleanup(session, remote_path):
    """Delete the library on the device."""
    if session is not None and remote_path is not None:
        session.remove(remote_path)
        session.remove(f"{remote_path}.so")
        session.remove("")


def _measure(functions, rpc_config, evaluator_config, repeat, path, device_type, args_info):
    defaults = (default_create_session, default_upload_module, default_alloc_argument, default_run_evaluator, default_cleanup)
    connect, upload, alloc, run, cleanup = (get_global_func_with_default_on_worker(*pair) for pair in zip(functions, defaults))
    session = remote_path = None
    try:
        session = connect(rpc_config)
        device = session.device(device_type, 0)
        remote_path = os.path.basename(path)
        module = upload(session, path, remote_path)
        return run(session, module, device, evaluator_config, alloc(session, device, args_info, repeat))
    finally:
        cleanup(session, remote_path)


class RPCRunner(PyRunner):
    """Measures on devices that a tracker knows, on as many at once as there are.

    ``rpc_config`` says where they are; the other parameters are as :class:`~relaxide.s_tir.meta_schedule.runner.LocalRunner` has them,
    with functions that take the session first.
    """

    def __init__(
        self,
        rpc_config=None,
        evaluator_config=None,
        cooldown_sec=0.0,
        alloc_repeat=1,
        f_create_session=None,
        f_upload_module=None,
        f_alloc_argument=None,
        f_run_evaluator=None,
        f_cleanup=None,
        max_workers=None,
        initializer=None,
    ):
        self.rpc_config = RPCConfig._normalized(rpc_config)
        self.evaluator_config = EvaluatorConfig._normalized(evaluator_config)
        self.cooldown_sec, self.alloc_repeat = cooldown_sec, alloc_repeat
        self._functions = (f_create_session, f_upload_module, f_alloc_argument, f_run_evaluator, f_cleanup)
        if initializer is not None:
            initializer()
        for name in self._functions:
            get_global_func_with_default_on_worker(name, None)
        workers = max_workers or max(1, self.rpc_config.count_num_servers(allow_missing=True))
        # A session waits for its device, not for this process.
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=workers)

    def run(self, runner_inputs):
        """Begin each measurement."""
        futures = []
        for one in runner_inputs:
            args = [info.as_json() for info in one.args_info]
            rest = (self.rpc_config, self.evaluator_config, self.alloc_repeat, str(one.artifact_path), str(one.device_type), args)
            job = self.pool.submit(self._one, *rest)
            futures.append(RPCRunnerFuture(job, self.rpc_config.session_timeout_sec))
        return futures

    def _one(self, *rest):
        seconds = _measure(self._functions, *rest)
        time.sleep(self.cooldown_sec)
        return seconds


__all__ = ["RPCRunner", "RPCRunnerFuture", "default_alloc_argument", "default_cleanup", "default_create_session"]
__all__ += ["default_run_evaluator", "default_upload_module"]
