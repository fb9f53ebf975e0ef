"""Where the files lie that C++ code for this runtime is compiled with.

The headers are those of the package ``apache-tvm-ffi``, where it is installed; the functions that they need are in this
package's own library.
"""

import importlib.util
from pathlib import Path

from .. import _core


def _headers():
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("Cannot find include path: install apache-tvm-ffi, whose headers C++ code is compiled with")
    return Path(list(spec.submodule_search_locations)[0])


def find_libtvm_ffi():
    """The library that has the functions of the interface."""
    return _core.__file__


def find_include_path():
    """The folder of the headers ``tvm/ffi/*.h``."""
    return _folder(_headers() / "include", "tvm")


def find_dlpack_include_path():
    """The folder of the header ``dlpack/dlpack.h``."""
    for folder in (_headers() / "include", _headers() / "3rdparty" / "dlpack" / "include"):
        if (folder / "dlpack").is_dir():
            return str(folder)
    raise RuntimeError("Cannot find dlpack include path.")


def include_paths():
    """All folders of headers."""
    return sorted({find_include_path(), find_dlpack_include_path()})


def _folder(path, part):
    if not (path / part).is_dir():
        raise RuntimeError(f"Cannot find include path: {path} has no folder {part}")
    return str(path)


__all__ = ["find_dlpack_include_path", "find_include_path", "find_libtvm_ffi", "include_paths"]
