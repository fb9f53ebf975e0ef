"""Programs as modules of Python, from which both packages read them."""

import importlib.util
import pathlib
import sys

_HEAD = """from {package}.script import ir as I
from {package}.script import relax as R
from {package}.script import tirx as T


"""


def load(program, package, directory):
    """The module of a program, read by ``tvm`` or ``relaxide``. TVM wants to find the text in a file."""
    path = pathlib.Path(directory) / f"{program.name}_{package}.py"
    path.write_text(_HEAD.format(package=package) + program.text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Module
