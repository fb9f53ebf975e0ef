"""Helpers beside compilation: folders, compilers of C, archives."""

from .._parts import open_parts as _open_parts
from . import cc, clang, ndk, popen_pool, tar, utils

__all__ = ["cc", "clang", "describe", "libinfo", "ndk", "popen_pool", "tar", "utils"]


def libinfo():
    """What the library was built with: names of options of TVM's build and their values."""
    from .. import __version__

    return {
        "RELAXIDE_VERSION": __version__,
        "USE_LLVM": "ON",
        "USE_RPC": "ON",
        "USE_CUDA": "OFF",
        "USE_OPENCL": "OFF",
    }


def describe():
    """Print what a report of a defect should say of the machine and of the library."""
    import platform
    import sys

    print("Python", sys.version.replace("\n", " "))
    print("System", platform.platform())
    for name, value in libinfo().items():
        print(name, value)


_open_parts("relaxide", "support")
