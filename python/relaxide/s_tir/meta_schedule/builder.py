"""Builders: they compile the candidates of a search, in other processes, so that what fails or hangs there does no harm."""

import os
import tempfile

from ...ir.utils import Outer
from .utils import get_global_func_with_default_on_worker


class BuilderInput:
    """What to compile: a module, for a target, with constants by name."""

    def __init__(self, mod, target, params=None):
        self.mod, self.target, self.params = mod, target, params


class BuilderResult:
    """Where the library lies, or why there is none."""

    def __init__(self, artifact_path, error_msg):
        self.artifact_path, self.error_msg = artifact_path, error_msg


class Builder:
    """The base of builders."""

    def build(self, build_inputs):
        """A :class:`BuilderResult` for each :class:`BuilderInput`."""
        raise NotImplementedError(f"{type(self).__name__}.build")

    @staticmethod
    def create(kind="local", *args, **kwargs):
        """A builder by name: ``"local"`` builds in processes of this machine (:class:`LocalBuilder`)."""
        if kind != "local":
            raise ValueError(f"Unknown Builder: {kind}; there is 'local'")
        return LocalBuilder(*args, **kwargs)


class PyBuilder(Outer, Builder):
    """The base of builders of one's own: define ``build``."""


create = Builder.create
#: What may be given for a builder.
Builder.BuilderType = Builder


def default_build(mod, target, _params):
    """Compile a module's kernels."""
    from ... import tirx

    return tirx.build(mod, target)


def default_export(mod):
    """Write a library to a new folder; gives its path."""
    path = os.path.join(tempfile.mkdtemp(prefix="relaxide_tune_"), "kernel.so")
    mod.export_library(path)
    return path


def _build_in_worker(f_build, f_export, mod, target, params):
    from ...ir import load_json
    from ...runtime import load_param_dict
    from ...target import Target

    build = get_global_func_with_default_on_worker(f_build, default_build)
    export = get_global_func_with_default_on_worker(f_export, default_export)
    constants = None if params is None else load_param_dict(params)
    return export(build(load_json(mod), Target(target), constants))


def _check_names(*names):
    for name in names:
        get_global_func_with_default_on_worker(name, None)


class LocalBuilder(PyBuilder):
    """Builds in processes of this machine.

    Parameters
    ----------
    max_workers : int, optional
        How many at once; the number of physical cores where it is not given.
    timeout_sec : float
        After so many seconds a build is given up.
    f_build : callable or str, optional
        ``(mod, target, params) -> module``, or the name that ``initializer`` registers it under.
    f_export : callable or str, optional
        ``(module) -> path``.
    initializer : callable, optional
        Called in each process first.
    """

    def __init__(self, *, max_workers=None, timeout_sec=30.0, f_build=None, f_export=None, initializer=None):
        from ...support.popen_pool import PopenPoolExecutor
        from .utils import cpu_count

        self.max_workers = cpu_count(logical=False) if max_workers is None else max_workers
        self.timeout_sec, self.f_build, self.f_export = timeout_sec, f_build, f_export
        self.initializer = initializer
        self._options = {"max_workers": self.max_workers, "timeout": timeout_sec, "initializer": initializer}
        with PopenPoolExecutor(max_workers=1, timeout=60, initializer=initializer) as pool:
            # A name that no process knows would fail every build; it is found out here.
            if f_build is not None or f_export is not None:
                pool.submit(_check_names, f_build, f_export).result()

    def build(self, build_inputs):
        """Compile each; a failure is told in its result."""
        from ...ir import save_json
        from ...runtime import save_param_dict
        from ...support.popen_pool import PopenPoolExecutor, StatusKind

        jobs = []
        for one in build_inputs:
            params = None if one.params is None else bytes(save_param_dict(one.params))
            jobs.append((self.f_build, self.f_export, save_json(one.mod), str(one.target), params))
        results = []
        with PopenPoolExecutor(**self._options) as pool:
            for outcome in pool.map_with_error_catching(_call, jobs):
                if outcome.status == StatusKind.COMPLETE:
                    results.append(BuilderResult(outcome.value, None))
                elif outcome.status == StatusKind.TIMEOUT:
                    results.append(BuilderResult(None, f"LocalBuilder: Timeout, killed after {self.timeout_sec} seconds"))
                else:
                    results.append(BuilderResult(None, f"LocalBuilder: An exception occurred\n{outcome.value}"))
        return results


def _call(job):
    return _build_in_worker(*job)


def get_local_builder():
    """A builder of this machine, with what it says by default."""
    return LocalBuilder()


__all__ = ["Builder", "BuilderInput", "BuilderResult", "LocalBuilder", "PyBuilder", "create", "get_local_builder"]
