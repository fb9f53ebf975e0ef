"""External modules: functions of object files and of C++ sources that are linked into a program."""

import os
import tempfile
from pathlib import Path

from ....runtime.module import load_static_library
from ....support import cc
from ._calls import extern as call_extern

_SUFFIXES = {"cpp": ".cc"}


class ExternModule:
    """Functions that a program calls and that are not in it.

    Parameters
    ----------
    symbols : dict of str to callable
        For each function what the types of its results are: a function from its arguments to placeholders
        (:meth:`Tensor.placeholder`).
    """

    def __init__(self, symbols):
        self._symbols = dict(symbols)

    def __getitem__(self, func_name):
        """What a method calls for the function ``func_name``; the module becomes part of the program with it."""
        from .exporter import add_extern

        if func_name not in self._symbols:
            known = ", ".join(self._symbols)
            raise KeyError(f"the external module has no function {func_name!r}; it has {known}")
        add_extern(self)

        def call(*args):
            return call_extern(func_name, list(args), self._symbols[func_name](*args))

        call.__name__ = func_name
        return call

    def _load(self, path):
        """The object file as a module that is linked into the library."""
        return load_static_library(path, list(self._symbols))

    def load(self):
        """The module that is linked into the library."""
        raise NotImplementedError(f"{type(self).__name__} does not say where its functions are (`load`)")


class ObjectModule(ExternModule):
    """The functions of an object file."""

    def __init__(self, symbols, filepath):
        path = Path(filepath)
        if not path.is_file():
            raise FileNotFoundError(f"there is no object file {path}")
        super().__init__(symbols)
        self.filepath = path

    def load(self):
        return self._load(self.filepath)


class SourceModule(ExternModule):
    """The functions of a source in C++.

    Parameters
    ----------
    symbols : dict of str to callable
        See :class:`ExternModule`.
    source_code : str or Path
        The source, or its file.
    source_format : str
        ``"cpp"``.
    compile_options : list of str, optional
        The options of the compiler, :meth:`get_compile_options` where nothing is said.
    compiler : str, optional
        The compiler.
    output_format : str
        ``"obj"``.
    """

    def __init__(
        self, symbols, source_code, source_format, compile_options=None, compiler=None, output_format="obj"
    ):
        if source_format not in _SUFFIXES:
            raise ValueError(f"the source is in {' or '.join(_SUFFIXES)}, got {source_format!r}")
        if output_format != "obj":
            raise ValueError(f"external modules are compiled to object files (`obj`), got {output_format!r}")
        super().__init__(symbols)
        is_file = isinstance(source_code, Path) or ("\n" not in source_code and os.path.isfile(source_code))
        self.source_code = Path(source_code).read_text() if is_file else source_code
        self.source_format, self.output_format = source_format, output_format
        self.compiler = compiler
        self.compile_options = self.get_compile_options(source_format) if compile_options is None else list(compile_options)

    @staticmethod
    def tvm_home():
        """The folder of the installed package."""
        return Path(__file__).resolve().parents[3]

    @staticmethod
    def get_includes(tvm_pkg=None):
        """The folders of headers: those of the package ``tvm_ffi`` and of DLPack where they are installed."""
        if tvm_pkg:
            raise ValueError(f"there are no packages of headers here, got {tvm_pkg}")
        try:
            from tvm_ffi import libinfo
        except ImportError as error:
            raise ImportError("external sources include the headers of the package apache-tvm-ffi: install it") from error
        return [Path(path) for path in libinfo.include_paths()]

    @staticmethod
    def get_compile_options(source_format, tvm_pkg=None):
        """The usual options of the compiler."""
        if source_format not in _SUFFIXES:
            raise ValueError(f"the source is in {' or '.join(_SUFFIXES)}, got {source_format!r}")
        folders = [f"-I{path}" for path in SourceModule.get_includes(tvm_pkg)]
        return ["-c", "-fPIC", "-std=c++17", "-O3", *folders]

    def compile(self, output_path):
        """Compile the source to an object file."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"main{_SUFFIXES[self.source_format]}"
            source.write_text(self.source_code)
            options = [option for option in self.compile_options if option != "-c"]
            cc.create_object(str(source), str(output_path), options, self.compiler)

    def load(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "main.o"
            self.compile(path)
            return self._load(path)


__all__ = ["ExternModule", "ObjectModule", "SourceModule"]
