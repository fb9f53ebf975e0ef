"""Where the files of this package lie."""

from pathlib import Path

from . import _core
from ._core import __version__
from .ffi import libinfo as _ffi


def package_lib_paths():
    """The folders that the package's library is in."""
    return [Path(_core.__file__).parent]


def find_libtvm_runtime():
    """The library that runs programs; it compiles them, too."""
    return _core.__file__


def find_include_path():
    """The folder of the headers that C++ code for the runtime is compiled with; see :mod:`relaxide.ffi.libinfo`."""
    return _ffi.find_include_path()


__all__ = ["__version__", "find_include_path", "find_libtvm_runtime", "package_lib_paths"]
