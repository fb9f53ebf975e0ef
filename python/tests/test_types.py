"""The stubs say what the modules have: names, members, and parameters. Where checkers are installed, a program with types is clean."""

import ast
import importlib
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "relaxide"
#: The operators' stub is made of their registry, which `test_stubs` compares.
STUBS = sorted(path for path in PACKAGE.rglob("*.pyi") if path.parent.name != "op")
PROGRAM = Path(__file__).parents[2] / "examples" / "typed" / "program.py"


def _module(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return importlib.import_module(".".join(["relaxide", *(part for part in parts if part != "__init__")]))


def _parameters(node):
    args = node.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [arg.arg for arg in named]


def _is_overload(node):
    return any(getattr(decorator, "id", "") == "overload" for decorator in node.decorator_list)


def _of_value(value):
    """The named parameters of a function, or None where Python does not know them."""
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return [one.name for one in found if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]


def _check_function(where, node, value):
    if node.name in ("__getattr__", "__new__") or _is_overload(node):
        return
    known, said = _of_value(value), _parameters(node)
    generic = known in (None, [], ["self"]) or "built-in" in repr(value) or "slot wrapper" in repr(value)
    if not generic and [name for name in known if name != "self"] != [name for name in said if name != "self"]:
        yield f"{where}: the stub has the parameters {said}, and the function {known}"


def _check_class(where, node, value):
    for item in node.body:
        names = [item.name] if isinstance(item, ast.FunctionDef) else []
        if isinstance(item, ast.Assign):
            names = [target.id for target in item.targets]
        for name in names:
            if name in ("__init__", "__getattr__"):
                continue
            member = inspect.getattr_static(value, name, None)
            if member is None and not hasattr(value, name):
                yield f"{where}.{name} is in the stub only"
            elif isinstance(item, ast.FunctionDef) and not isinstance(member, property) and callable(getattr(value, name, None)):
                yield from _check_function(f"{where}.{name}", item, getattr(value, name))


def _problems(path):
    module, tree = _module(path), ast.parse(path.read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.asname}
            if any(alias.name == "*" for alias in node.names):
                names |= set(getattr(importlib.import_module(f".{node.module}", module.__name__), "__all__"))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name != "__getattr__":
            names.add(node.name)
            value = getattr(module, node.name, None)
            check = _check_function if isinstance(node, ast.FunctionDef) else _check_class
            if value is not None:
                yield from check(f"{module.__name__}.{node.name}", node, value)
        if isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if not target.id.startswith("_")}
    for name in sorted(names):
        if not hasattr(module, name):
            yield f"{module.__name__}.{name} is in the stub only"
    incomplete = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    for name in () if incomplete else sorted(set(getattr(module, "__all__", ())) - names):
        yield f"{module.__name__}.{name} is not in the stub"


@pytest.mark.parametrize("path", STUBS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_stub_says_what_its_module_has(path):
    assert list(_problems(path)) == []


def test_all_names_that_the_package_promises_have_types():
    for name in ("__init__", "runtime/__init__", "onnxruntime/__init__"):
        path = PACKAGE / f"{name}.pyi"
        text = path.read_text()
        missing = [one for one in _module(path).__all__ if one not in text]
        assert missing == [], f"{path.name} lacks them"


@pytest.mark.skipif(os.environ.get("RELAXIDE_DEEP") != "1", reason="type checkers take seconds: RELAXIDE_DEEP=1")
def test_a_program_with_types_is_clean():
    pytest.importorskip("mypy")
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
    sources = [str(PROGRAM), *map(str, STUBS), str(PACKAGE / "relax" / "op" / "__init__.pyi")]
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", os.devnull, *sources]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
