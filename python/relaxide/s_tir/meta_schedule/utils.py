"""Numbers of cores, seeds, names of modules, and functions by name."""

import os
import random

from ...ir import structural_hash
from ...runtime import get_global_func

_SEEDS = 2147483647


def cpu_count(logical=True):
    """How many cores this process may use; ``logical=False`` counts physical ones."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if logical:
        return count
    try:
        with open("/proc/cpuinfo") as info:
            pairs = [line.split(":") for line in info if line.startswith(("physical id", "core id"))]
    except OSError:
        return count
    cores = {(a[1].strip(), b[1].strip()) for a, b in zip(pairs[::2], pairs[1::2])}
    return min(count, len(cores)) if cores else count


def fork_seed(seed, n):
    """``n`` seeds that follow from one; ``None`` or -1 draws them."""
    source = random.Random(None if seed in (None, -1) else seed)
    return [source.randint(1, _SEEDS) for _ in range(n)]


def get_global_func_with_default_on_worker(name, default):
    """A function, or that of a name; the default for ``None``. A ValueError where there is none of that name."""
    if name is None:
        return default
    if callable(name):
        return name
    found = get_global_func(name, allow_missing=True)
    if found is None:
        raise ValueError(f"no function is registered as {name!r}: register it with register_global_func, on workers in their initializer")
    return found


def get_global_func_on_rpc_session(session, name, extra_error_msg=None):
    """A function of another machine; an AttributeError that says so where it has none of that name."""
    try:
        return session.get_function(name)
    except AttributeError as error:
        extra = f" {extra_error_msg}" if extra_error_msg else ""
        raise AttributeError(f'Unable to find function "{name}" on the remote RPC server.{extra}') from error


def shash2hex(mod):
    """The structural hash of a module as text, under which logs know it."""
    func = mod["main"] if "main" in [var.name_hint for var in mod.get_global_vars()] else mod
    return f"0x{structural_hash(func) & ((1 << 64) - 1):016x}"


def remove_build_dir(artifact_path):
    """Delete what a build left behind, with its folder."""
    import shutil

    shutil.rmtree(os.path.dirname(artifact_path), ignore_errors=True)


__all__ = ["cpu_count", "fork_seed", "get_global_func_on_rpc_session", "get_global_func_with_default_on_worker", "remove_build_dir"]
__all__ += ["shash2hex"]
