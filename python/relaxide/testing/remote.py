"""Running compiled kernels in a process of their own, or on another machine."""

import os
import tempfile

import numpy as np


def _arguments(args, device):
    from .. import runtime

    return [runtime.tensor(value, device) if isinstance(value, np.ndarray) else value for value in args]


def _measured(module, name, device, args, config):
    evaluator = module.time_evaluator(
        name,
        device,
        number=getattr(config, "number", 3),
        repeat=getattr(config, "repeat", 1),
        min_repeat_ms=getattr(config, "min_repeat_ms", 100),
    )
    return evaluator(*args)


def local_run(mod, device_type, args, evaluator_config=None, export_func="tar", output_format=None):
    """Time a kernel here, after it went through a file.

    Parameters
    ----------
    mod : Module
        With a function ``main``.
    device_type : str
        Where it runs, as ``cpu``.
    args : list of numpy.ndarray, Tensor or number
        What it is called with.
    evaluator_config : object, optional
        With ``number``, ``repeat`` and ``min_repeat_ms``.
    export_func, output_format
        Accepted for compatibility; files are shared libraries.

    Returns
    -------
    tuple
        What was measured, and the arguments after the run.
    """
    from .. import runtime

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.so")
        mod.export_library(path)
        loaded = runtime.load_module(path)
        device = runtime.device(device_type, 0)
        given = _arguments(args, device)
        profile = _measured(loaded, "main", device, given, evaluator_config)
        return profile, [value.numpy() if hasattr(value, "numpy") else value for value in given]


def rpc_run(
    mod, device_type, args, evaluator_config=None, rpc_config=None, export_func="tar", output_format=None
):
    """Time a kernel on a machine that a tracker leases; the parameters are those of :func:`local_run`.

    ``rpc_config`` has ``tracker_host``, ``tracker_port``, ``tracker_key`` and ``session_timeout_sec``; without it the
    environment's ``TVM_TRACKER_HOST``, ``TVM_TRACKER_PORT`` and ``TVM_TRACKER_KEY`` are taken.
    """
    from .. import rpc

    def setting(name):
        value = getattr(rpc_config, name, None) or os.environ.get("TVM_" + name.upper())
        if value is None:
            raise ValueError(f"no {name} is given, and TVM_{name.upper()} is not set")
        return value

    tracker = rpc.connect_tracker(setting("tracker_host"), int(setting("tracker_port")))
    session = tracker.request(
        setting("tracker_key"), session_timeout=getattr(rpc_config, "session_timeout_sec", 60)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.so")
        mod.export_library(path)
        session.upload(path)
        loaded = session.load_module("kernel.so")
        device = session.device(device_type, 0)
        given = _arguments(args, device)
        profile = _measured(loaded, "main", device, given, evaluator_config)
        return profile, [value.numpy() if hasattr(value, "numpy") else value for value in given]
