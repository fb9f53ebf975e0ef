"""What is asked of all of a process: versions, providers, threads, logs."""

import platform

from .._core import __version__ as _relaxide_version
from ..runtime import set_num_threads
from ._providers import PROVIDERS, get_all_providers
from ._typed import taken_number

#: The version of ONNX Runtime whose interface this is.
__version__ = "1.32.0"


def get_device():
    """The kind of device that sessions run on."""
    return "CPU"


def get_build_info():
    """What this is."""
    return f"Relaxide {_relaxide_version}"


def get_version_string():
    """The version of ONNX Runtime whose interface this is."""
    return __version__


def set_default_logger_severity(severity):
    """Kept for its name: nothing is logged. Severities are 0 to 4."""
    if not 0 <= taken_number(severity, "a severity") <= 4:
        raise RuntimeError(f"a severity is 0 (everything) to 4 (what ends the process), not {severity}")


def set_default_logger_verbosity(verbosity):
    """Kept for its name: nothing is logged."""
    taken_number(verbosity, "a verbosity")


def disable_telemetry_events():
    """Kept for its name: nothing is reported to anybody."""


def enable_telemetry_events():
    """Kept for its name: nothing is reported to anybody."""


def set_default_logger_callback(callback, severity=2):
    """Kept for its name: nothing is logged."""


def set_global_thread_pool_sizes(intra_op_num_threads=0, inter_op_num_threads=0):
    """Say how many threads kernels use."""
    if intra_op_num_threads > 0:
        set_num_threads(intra_op_num_threads)


def set_seed(seed):
    """Kept for its name: random operators give the same numbers in every run, by their own seed or else by their name."""
    taken_number(seed, "a seed")


def has_collective_ops():
    """Whether machines compute together: they do not."""
    return False


def print_debug_info():
    """Print what this is and where it runs."""
    print(f"{get_build_info()}, as ONNX Runtime {__version__}")
    print(f"{platform.platform()}, Python {platform.python_version()}")
    print(f"providers: {', '.join(PROVIDERS)}")


def preload_dlls(cuda=True, cudnn=True, msvc=True, directory=None):
    """Kept for its name: there is nothing to load."""


__all__ = [
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "print_debug_info",
    "set_default_logger_callback",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]
