"""Modules of C++ source, compiled by the system's compiler when a program runs.

::

    module = load_inline("example", cpp_sources="int add(int a, int b) { return a + b; }", functions="add")
    module.add(1, 2)

The headers come from the package ``apache-tvm-ffi`` (see :mod:`relaxide.ffi.libinfo`); what is compiled is kept in a cache and
compiled again when source, options or compiler change.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import libinfo
from .module import load_module

_HEADERS = "container/tensor.h dtype.h error.h extra/c_env_api.h function.h".split()
_TYPES = {
    "bool": "bool",
    "float16": "DLFloat16",
    "float32": "float",
    "float64": "double",
    **{f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}


def to_cpp_dtype(dtype_str):
    """The name of an element type in C++."""
    name = str(dtype_str).removeprefix("torch.")
    try:
        return _TYPES[name]
    except KeyError:
        raise ValueError(f"Unsupported dtype: {dtype_str}; known are {', '.join(_TYPES)}") from None


def _list(value):
    return [] if value is None else [value] if isinstance(value, (str, os.PathLike)) else list(value)


def _compiler():
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        found = name and shutil.which(name)
        if found:
            return found
    raise RuntimeError("no C++ compiler is found: install one, or name it in the variable CXX")


def _refuse_devices(cuda, backend):
    if cuda or backend not in (None, "cpp", "cpu"):
        raise NotImplementedError("only C++ for the CPU can be compiled: CUDA and ROCm sources are not supported")


def _with_exports(source, functions):
    """A source with headers, and the functions that the module offers."""
    if isinstance(functions, str):
        functions = [functions]
    docs = dict(functions) if hasattr(functions, "items") else dict.fromkeys(functions or (), "")
    lines = [f"#include <tvm/ffi/{header}>" for header in _HEADERS] + ["", source]
    for name, doc in docs.items():
        lines.append(f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({name}, {name});")
        if doc:
            text = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'TVM_FFI_DLL_EXPORT_TYPED_FUNC_DOC({name}, "{text}");')
    return "\n".join(lines) + "\n"


def _library(name, files, cflags, ldflags, includes, folder, output=None):
    """The path of the shared library that files are compiled to."""
    compiler = _compiler()
    paths = [*libinfo.include_paths(), *map(os.fspath, _list(includes))]
    options = ["-std=c++17", "-O2", "-fPIC", "-shared", *_list(cflags), *(f"-I{path}" for path in paths)]
    digest = hashlib.sha256()
    for part in (compiler, *options, *_list(ldflags), *(Path(path).read_bytes() for path in files)):
        digest.update(part if isinstance(part, bytes) else str(part).encode())
        digest.update(b"\0")
    cache = os.environ.get("TVM_FFI_CACHE_DIR") or Path.home() / ".cache" / "relaxide"
    folder = Path(folder) if folder else Path(cache) / f"{name}_{digest.hexdigest()[:16]}"
    library = Path(output) if output else folder / f"{name}.so"
    stamp = library.with_suffix(".sha256")
    if library.is_file() and stamp.is_file() and stamp.read_text() == digest.hexdigest():
        return str(library)
    library.parent.mkdir(parents=True, exist_ok=True)
    # Another process may be at the same: each writes its own file, and renaming is atomic.
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        made = Path(scratch) / library.name
        command = [compiler, *options, *map(os.fspath, files), "-o", os.fspath(made), *_list(ldflags)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the compiler refused {name}:\n{' '.join(command)}\n{done.stderr}")
        os.replace(made, library)
    stamp.write_text(digest.hexdigest())
    return str(library)


def build_inline(
    name,
    *,
    cpp_sources=None,
    cuda_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    embed_cubin=None,
    backend=None,
):
    """Compile source text to a shared library that offers ``functions``; returns its path."""
    _refuse_devices(cuda_sources or embed_cubin, backend)
    text = _with_exports("\n".join(_list(cpp_sources)), functions)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / f"{name}.cc"
        source.write_text(text)
        return _library(name, [source], extra_cflags, extra_ldflags, extra_include_paths, build_directory)


def load_inline(name, *, keep_module_alive=True, **options):
    """The module of source text; takes what :func:`build_inline` takes."""
    return load_module(build_inline(name, **options), keep_module_alive)


def build(
    name,
    *,
    sources=None,
    cpp_files=None,
    cuda_files=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    backend=None,
    output=None,
):
    """Compile files to a shared library; returns its path. Functions are exported by macros in the source."""
    _refuse_devices(cuda_files, backend)
    files = [*_list(sources), *_list(cpp_files)]
    if not files:
        raise ValueError("no files are given")
    return _library(name, files, extra_cflags, extra_ldflags, extra_include_paths, build_directory, output)


def load(name, *, keep_module_alive=True, **options):
    """The module of files; takes what :func:`build` takes."""
    return load_module(build(name, **options), keep_module_alive)


__all__ = ["build", "build_inline", "load", "load_inline", "to_cpp_dtype"]
