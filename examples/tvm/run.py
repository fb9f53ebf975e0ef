"""Runs programs that import ``tvm``, with Relaxide in its place or with TVM itself.

    python run.py relaxide quick_start.py tir_creation.py
    python run.py tvm quick_start.py

Each program prints numbers, which are the same. Without names all are run; those that begin with a network of PyTorch only where that is
installed.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import runpy
import sys
from pathlib import Path

_WITH_TORCH = {"e2e_opt_model", "python_in_module"}
_PLACES = {"tvm": "relaxide", "tvm_ffi": "relaxide.ffi"}


class _Stand(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of Relaxide under TVM's names; they are the very modules, not copies."""

    def find_spec(self, name, path=None, target=None):
        top, _, rest = name.partition(".")
        if top not in _PLACES:
            return None
        spec = importlib.machinery.ModuleSpec(name, self)
        spec.loader_state = f"{_PLACES[top]}.{rest}".rstrip(".")
        try:
            importlib.import_module(spec.loader_state)
        except ModuleNotFoundError as error:
            if error.name != spec.loader_state:
                raise
            return None
        return spec

    def create_module(self, spec):
        module = importlib.import_module(spec.loader_state)
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self._spec


def _here():
    """The programs beside this one that can run."""
    programs = {path.stem: str(path) for path in Path(__file__).parent.glob("*.py") if path.name != Path(__file__).name}
    left_out = set() if importlib.util.find_spec("torch") else _WITH_TORCH
    if left_out:
        print(f"PyTorch is not installed: without {', '.join(sorted(left_out))}")
    return [programs[name] for name in sorted(programs.keys() - left_out)]


def main():
    package, *programs = sys.argv[1:]
    if package not in ("relaxide", "tvm"):
        sys.exit("usage: run.py relaxide|tvm PROGRAM...")
    if package == "relaxide":
        sys.meta_path.insert(0, _Stand())
    for program in programs or _here():
        print(f"== {Path(program).stem}")
        runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
