"""Executables of the virtual machine."""

import os
import tempfile

from ..runtime._linking import is_tar, make_library, write_tar
from ..runtime.executable import Executable, without_compiler
from ..runtime.module import load_module


class VMExecutable(Executable):
    """A compiled program: bytecode, constants and native kernels."""

    def __init__(self, mod, target=None, prefix=None):
        super().__init__(mod)
        self._main = None
        self._target, self._prefix = target, prefix

    def __getitem__(self, name):
        """A function of the executable, or a kernel that the program is made of."""
        return self.jit().get_function(name, query_imports=True)

    def __getattr__(self, name):
        # Kernels are members, too, as those of a module that is built are.
        if not name.startswith("_") and self.implements_function(name):
            return self[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __call__(self, *args):
        if self._main is None:
            self._main = self["main"]
        return self._main(*args)

    def jit(self, *, fcompile=None, addons=None, force_recompile=False, **kwargs):
        """The module, ready to run in this process: loaded once, unless ``force_recompile`` asks for another.

        A program for the target ``c`` is compiled by the machine's compiler, or by ``fcompile``, with ``addons`` linked to it; the
        other arguments are the compiler's. Others need none, and take none.
        """
        if self._jitted_mod is None or force_recompile:
            self._jitted_mod, self._main = self._loaded(fcompile, addons, kwargs), None
        return self._jitted_mod

    def _loaded(self, fcompile, addons, options):
        if not self._is_c():
            without_compiler(fcompile, addons)
            return self.mod.jit()
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "exported.so")
            self.export_library(library, fcompile=fcompile, addons=addons, **options)
            return load_module(library)

    def _is_c(self):
        """Whether kernels are C, which is compiled before it runs."""
        return self._target is not None and str(self._target.kind) == "c"

    def time_evaluator(self, func_name, dev, **options):
        """A function that times a kernel of the program; see :meth:`relaxide.runtime.Module.time_evaluator`."""
        root = self.jit()
        holder = next((module for module in (root, *root.imports) if module.implements_function(func_name)), root)
        return holder.time_evaluator(func_name, dev, **options)

    def export_library(self, file_name, weights="library", *, fcompile=None, addons=None, workspace_dir=None, **kwargs):
        """Write one shared library that a virtual machine, TVM's included, loads. No compiler or linker is called.

        With the ending `.o` or `.a` it is an object or a static archive to link into a program in C, with a header of the same
        name beside it; the module's attribute `system_lib_prefix`, or else the file's name, is in front of its names there. With
        `.tar` it is an archive that holds the library, which ``load_module`` loads.

        A program for the target ``c`` is written as it is with the ending `.c`; otherwise the machine's compiler, or
        ``fcompile(file_name, files, **kwargs)``, makes the library of it and of ``addons``. Native programs with the attribute
        `system_lib_prefix` are handed to ``fcompile`` as an object; others need no compiler, and ``fcompile`` is refused.

        ``workspace_dir`` is where files on the way are written, where there are any.

        With ``weights="safetensors"``, which is Relaxide's own, weights are in a file beside it: ``model.so`` has
        ``model.safetensors``. Whoever loads the library maps it, so that processes that run the model share them.
        """
        file_name = str(file_name)
        if is_tar(file_name) and (fcompile is None or getattr(fcompile, "output_format", None) == "tar"):
            return write_tar(file_name, lambda path: self.export_library(path, weights, addons=addons, **kwargs))
        as_object = self._has_prefix() and (fcompile is not None or addons)
        if as_object or self._is_c() and not file_name.endswith(".c"):
            options = {"fcompile": fcompile, "addons": addons, "workspace_dir": workspace_dir, **kwargs}
            return make_library(self.mod.export_library, file_name, is_c=self._is_c(), **options)
        without_compiler(fcompile, addons)
        # Programs that were built by hand, instruction by instruction, are written as they are.
        options = () if weights == "library" else (weights,)
        return self.mod.export_library(file_name, *options)

    def _has_prefix(self):
        """Whether it is meant to be linked into programs, among other modules."""
        return self._prefix is not None

    @property
    def imports(self):
        """The modules that the program imports: its kernels, and what backends compiled."""
        return self.mod.imports

    @property
    def entry_name(self):
        """The name of the function that is called first."""
        return "main"

    def inspect_source(self, fmt=""):
        """The kernels as text: for LLVM before its passes (``"ll"``), as assembly (``"asm"``, ``"s"``), or in C (``"c"``)."""
        return self.mod.inspect_source("asm" if fmt == "s" else fmt)

    def schedule(self):
        """What schedule rules decided for the kernels, as JSON: the form of the file that the option ``relaxide.schedule`` of a
        ``PassContext`` names."""
        return self.mod.schedule()

    def get_function(self, name, query_imports=False):
        """A function of a name; an AttributeError where there is none."""
        return self.jit().get_function(name, query_imports=True)

    def implements_function(self, name, query_imports=False):
        """Whether there is a function of that name."""
        root = self.jit()
        return any(module.implements_function(name) for module in (root, *root.imports))

    def is_compilation_exportable(self):
        """Whether it can be written to a library: always."""
        return True

    def write_to_file(self, file_name, fmt=""):
        """Write it to a file of the kind that its ending says; see :meth:`export_library`.

        An object (`.o`) of kernels alone has them under their own names: :func:`relaxide.runtime.load_static_library` reads it.
        """
        if fmt and not str(file_name).endswith(f".{fmt}"):
            raise ValueError(f"the file {file_name} ends in something else than the format {fmt!r}: they must agree")
        if str(file_name).endswith(".o") and self._is_only_kernels() and not (self._is_c() or self._has_prefix()):
            self.mod.write_object(file_name)
        else:
            self.export_library(file_name)

    def _is_only_kernels(self):
        """Whether no function of the virtual machine is in it."""
        return not self.mod.has_functions()

    def import_module(self, module):
        """Add a module to call into: a static library (:func:`relaxide.runtime.load_static_library`) is linked where the
        program is exported or loaded."""
        self.mod.import_module(module)
        self._jitted_mod = self._main = None

    def output_names(self, func_name="main"):
        """The names of what a function returns, in order: those of the ONNX model for ``main``; empty if there are none.

        Relaxide's own.
        """
        return [str(name) for name in self.mod.get_function("output_names")(func_name)]

    def as_text(self):
        """The instructions, one a line."""
        return self.mod.get_function("as_text")()

    def as_python(self):
        """The code as calls of a builder, in TVM's words: constants appear by number only."""
        return self.mod.get_function("as_python")()

    def as_script(self):
        """A Python program that stands on its own and builds the same executable. Relaxide's own."""
        return self.mod.get_function("as_script")()

    def stats(self):
        """What the executable consists of."""
        return self.mod.get_function("stats")()
