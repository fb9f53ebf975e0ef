"""What runners are given and give."""

from ....ir.utils import Outer


class RunnerInput:
    """A library, the kind of device, and the arguments that its kernel is run with."""

    def __init__(self, artifact_path, device_type, args_info):
        self.artifact_path, self.device_type, self.args_info = artifact_path, device_type, args_info


class RunnerResult:
    """The seconds of the runs, or why there are none."""

    def __init__(self, run_secs, error_msg):
        self.run_secs = None if run_secs is None else [float(getattr(sec, "value", sec)) for sec in run_secs]
        self.error_msg = error_msg


class RunnerFuture:
    """A measurement that goes on: ``f_done()`` says whether it has ended, ``f_result()`` waits for it."""

    def __init__(self, f_done, f_result=None):
        self._f_done, self._f_result = f_done, f_result

    def done(self):
        """Whether it has ended."""
        return self._f_done()

    def result(self):
        """The :class:`RunnerResult`."""
        return self._f_result()


class PyRunnerFuture(Outer, RunnerFuture):
    """The base of futures of one's own: define ``done`` and ``result``."""

    def __init__(self):
        RunnerFuture.__init__(self, None, None)

    def done(self):
        """Whether it has ended."""
        raise NotImplementedError(f"{type(self).__name__}.done")

    def result(self):
        """The :class:`RunnerResult`."""
        raise NotImplementedError(f"{type(self).__name__}.result")


class Runner:
    """The base of runners."""

    def run(self, runner_inputs):
        """A :class:`RunnerFuture` for each :class:`RunnerInput`."""
        raise NotImplementedError(f"{type(self).__name__}.run")

    @staticmethod
    def create(kind="local", *args, **kwargs):
        """A runner by name: ``"local"`` measures on this machine, ``"rpc"`` on devices that a tracker knows."""
        from .local_runner import LocalRunner
        from .rpc_runner import RPCRunner

        kinds = {"local": LocalRunner, "rpc": RPCRunner}
        if kind not in kinds:
            raise ValueError(f"Unknown Runner: {kind}; there are {', '.join(kinds)}")
        options = {name: value for name, value in kwargs.items() if kind != "rpc" or name != "max_workers"}
        return kinds[kind](*args, **options)


class PyRunner(Outer, Runner):
    """The base of runners of one's own: define ``run``."""


create = Runner.create
#: What may be given for a runner.
Runner.RunnerType = Runner

__all__ = ["PyRunner", "PyRunnerFuture", "Runner", "RunnerFuture", "RunnerInput", "RunnerResult", "create"]
