"""Executables of the virtual machine."""

from ..runtime.executable import Executable, without_compiler


class VMExecutable(Executable):
    """A compiled program: bytecode, constants and native kernels."""

    def __init__(self, mod):
        super().__init__(mod)
        self._main = None

    def __getitem__(self, name):
        """A function of the executable, or a kernel that the program is made of."""
        return self.jit().get_function(name, query_imports=True)

    def __call__(self, *args):
        if self._main is None:
            self._main = self["main"]
        return self._main(*args)

    def jit(self, *, fcompile=None, addons=None, force_recompile=False):
        """The module, ready to run in this process: loaded once, unless ``force_recompile`` asks for another."""
        without_compiler(fcompile, addons)
        if self._jitted_mod is None or force_recompile:
            self._jitted_mod, self._main = self.mod.jit(), None
        return self._jitted_mod

    def time_evaluator(self, func_name, dev, **options):
        """A function that times a kernel of the program; see :meth:`relaxide.runtime.Module.time_evaluator`."""
        root = self.jit()
        holder = next((module for module in (root, *root.imports) if module.implements_function(func_name)), root)
        return holder.time_evaluator(func_name, dev, **options)

    def export_library(self, file_name, weights="library", *, fcompile=None, addons=None, workspace_dir=None):
        """Write one shared library that a virtual machine, TVM's included, loads. No compiler or linker is called.

        With the ending `.o` or `.a` it is an object or a static archive to link into a program in C, with a header of the same
        name beside it; the module's attribute `system_lib_prefix`, or else the file's name, is in front of its names there.

        ``workspace_dir`` is for programs that give it: there are no files on the way.

        With ``weights="safetensors"``, which is Relaxide's own, weights are in a file beside it: ``model.so`` has
        ``model.safetensors``. Whoever loads the library maps it, so that processes that run the model share them.
        """
        without_compiler(fcompile, addons)
        # Programs that were built by hand, instruction by instruction, are written as they are.
        options = () if weights == "library" else (weights,)
        self.mod.export_library(str(file_name), *options)

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
