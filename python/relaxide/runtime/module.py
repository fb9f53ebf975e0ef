"""Modules as a user of compiled models meets them: loading, and timing of their functions."""

import os
import tempfile
import struct

from .. import _core
from .._core import Module, num_threads
from .._extend import methods_of
from ..ffi import system_lib


class BenchmarkResult:
    """What a timing gave: seconds of one call, one for each repetition, and what follows from them."""

    def __init__(self, results):
        # Imported here because it takes as long as the whole package.
        from statistics import fmean, median, pstdev

        self.results = results
        self.mean, self.std, self.median = fmean(results), pstdev(results), median(results)
        self.min, self.max = min(results), max(results)

    def __repr__(self):
        return (
            f"BenchmarkResult(min={self.min}, mean={self.mean}, median={self.median}, max={self.max}, std={self.std}, "
            f"results={self.results})"
        )

    def __str__(self):
        columns = {name: getattr(self, name) for name in ("mean", "median", "max", "min", "std")}
        head = " ".join(f"{name + ' (ms)':^12}" for name in columns)
        row = " ".join(f"{value * 1000:^12.4f}" for value in columns.values())
        return f"Execution time summary:\n{head}\n{row}"


@methods_of(Module)
class _Methods:
    def __getitem__(self, name):
        """A function of the module, or of the kernels that it brings along: a library of kernels alone has them there."""
        return self.get_function(name, query_imports=True)

    def time_evaluator(
        self,
        func_name,
        dev,
        number=10,
        repeat=1,
        min_repeat_ms=0,
        limit_zero_time_iterations=100,
        cooldown_interval_ms=0,
        repeats_to_cooldown=1,
        cache_flush_bytes=0,
        f_preproc="",
    ):
        """A function that times ``func_name`` with the arguments that it is given, after one call that does not count.

        Each of ``repeat`` measurements is the mean of ``number`` calls, of more where they last less than
        ``min_repeat_ms``. ``f_preproc`` names a global function that is called before each measurement.
        """
        make = _evaluator_of(self)
        evaluator = make(
            self,
            func_name,
            dev.dlpack_device_type() % 128,  # a remote device is measured where it is
            dev.index,
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
            cache_flush_bytes,
            f_preproc,
        )
        return lambda *args: BenchmarkResult(struct.unpack(f"@{repeat}d", evaluator(*args)))


def _evaluator_of(module):
    """What makes evaluators where a module's functions run."""
    if module.kind != "rpc":
        return _core.get_global_func("runtime.RPCTimeEvaluator")
    if _core.get_global_func("rpc.IsSession")(module):
        # The session stands for the far side's global functions.
        make = module.get_function("runtime.RPCTimeEvaluator")
        return lambda _session, *args: make(None, *args)
    return _core.get_global_func("rpc.SessionOf")(module).get_function("runtime.RPCTimeEvaluator")


def load_module(path, weights=None):
    """The module in a shared library.

    ``weights``, which is Relaxide's own, is the file of weights of a library that has them in a file of their own; where nothing is
    said it is the one beside the library. An archive (``.tar``) is opened, and the library in it loaded.
    """
    path = os.fspath(path)
    if not os.path.isfile(path):
        raise ValueError(f"cannot find file {path}")
    if path.endswith(".tar"):
        from ._linking import library_of_tar

        with tempfile.TemporaryDirectory() as folder:
            return load_module(library_of_tar(path, folder), weights)
    module = _core.load_module(path)
    if weights is not None:
        module["load_weights"](os.fspath(weights))
    return module


#: What this build runs, and what it knows of and does not run.
_RUNS = {"cpu": True, "llvm": True, "rpc": True}
_RUNS |= dict.fromkeys("cuda gpu opencl cl gles vulkan metal mtl rocm hip hexagon nvptx".split(), False)


def load_static_library(path, func_names):
    """The code of an object file (`.o`) or archive (`.a`), to be linked into the library of a module that imports it.

    Parameters
    ----------
    path : str or path
        The file. Its functions are in the packed convention, under the symbols ``__tvm_ffi_<name>``.
    func_names : list of str
        The names of its functions.

    Returns
    -------
    Module
        A module whose functions can be called once it is linked: ``executable.import_module(it)``, and then ``export_library`` or ``jit``.

    Raises
    ------
    ValueError
        Where the file is no object or archive, or lacks one of the functions.
    """
    return _core.load_static_library(path, list(func_names))


def enabled(target):
    """Whether programs for a target can run: for its kind, given as text, as a dictionary or as a target."""
    if isinstance(target, dict):
        target = target.get("kind", "")
    kind = (str(target).split() or [""])[0].partition(":")[0]
    if kind not in _RUNS:
        raise RuntimeError(f"Unknown optional runtime {kind}; known are {', '.join(sorted(_RUNS))}")
    return _RUNS[kind]


__all__ = ["BenchmarkResult", "Module", "enabled", "load_module", "system_lib"]
