"""What Python knows around a program: names, and what expressions of them are worth."""

import builtins
import types
import warnings
from typing import TypeVar

from ._namespace import Inert
from ._proxies import type_of

#: Canonical names of the modules whose members are TVMScript's own.
_NAMESPACES = {
    "relaxide": "tvm",
    "tvm": "tvm",
    "script": "tvm.script",
    "script.parser": "tvm.script",
    "script.ir": "I",
    "script.relax": "R",
    "script.tirx": "T",
    "script.tir": "T",
    "script.tile": "T.tile",
    "script.parser.ir": "I",
    "script.parser.relax": "R",
    "script.parser.tirx": "T",
    "script.parser.tir": "T",
    "relax.script.parser": "R",
    "tirx.script.parser": "T",
}


class _Scope(dict):
    """Names of several dictionaries, those of the first first."""

    def __init__(self, parts):
        super().__init__()
        self._parts = parts

    def __missing__(self, name):
        for part in self._parts:
            if name in part:
                return part[name]
        raise KeyError(name)

    def __contains__(self, name):
        return any(name in part for part in self._parts)


class _Functions:
    """The module that is being read, which programs call `cls`, for expressions that Python evaluates: its functions, by name."""

    def __getattr__(self, name):
        from ..ir.expr import GlobalVar

        return GlobalVar(name)


class Surroundings:
    """Answers the parser's questions. Place 0 is where the program stands; the others are where its macros do."""

    def __init__(self, parts):
        self._places = [[*parts, vars(builtins)]]
        self._macros = None

    def knows(self, place, name):
        """Whether a name has a value."""
        return any(name in part for part in self._places[place])

    def is_type_var(self, name):
        """Whether a name stands for a ``typing.TypeVar`` where the program stands."""
        return isinstance(next((part[name] for part in self._places[0] if name in part), None), TypeVar)

    def evaluate(self, place, source, values):
        """What an expression is worth, with values for names of the program."""
        scope = _Scope([values, *self._places[place]])
        # Comprehensions look names up as globals, which must be a plain dictionary.
        code = compile(f"({source}\n)", "<program>", "eval")
        names = set(_names(code))
        known = {name: scope[name] for name in names if name in scope}
        if "cls" in names and "cls" not in known:
            known["cls"] = _Functions()
        value = eval(code, known)
        if isinstance(value, types.FunctionType) and (source.lstrip().startswith("lambda") or source.strip().isidentifier()):
            # A function that is no callee says how indices are exchanged.
            return _map_of(value)
        return type_of(value)

    def warn(self, message):
        """Warns the program's author."""
        warnings.warn(message, stacklevel=2)

    def macros(self):
        """``(name, text, file, whether hygienic)`` of the macros that programs here can call, in the order of places."""
        from .entry import ScriptMacro

        found, seen = [], set()
        queue = [self._places[0]]
        while queue:
            for part in queue.pop(0):
                if part is vars(builtins):
                    continue
                for name, value in list(part.items()):
                    if isinstance(value, ScriptMacro) and name not in seen:
                        seen.add(name)
                        self._places.append([*value.surroundings, vars(builtins)])
                        queue.append(value.surroundings)
                        found.append((name, "\n" * (value.line - 1) + value.text, value.path, value.hygienic))
        return found

    def namespaces(self):
        """The names that stand for TVMScript's namespaces here."""
        found = {}
        for part in reversed(self._places[0][:-1]):
            for name, value in list(part.items()):
                canonical = _canonical(value)
                if canonical:
                    found[name] = canonical
                else:
                    found.pop(name, None)
        return list(found.items())


def _map_of(function):
    """The map of indices that a function says; the function itself where it says none."""
    from ..tirx import IndexMap

    try:
        return IndexMap.from_func(function, index_dtype="int64")
    except Exception:
        return function


def _names(code):
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _canonical(value):
    if isinstance(value, Inert):
        # Another name of a member: `loop = T.serial`.
        name = repr(value)
        return name if all(part.isidentifier() for part in name.split(".")) else None
    if not isinstance(value, types.ModuleType):
        # Members that are imported by name: `from tvm.script import ir_module`.
        return getattr(value, "__tvmscript__", None) if isinstance(value, types.FunctionType) else None
    name = value.__name__
    for package in ("relaxide.", "tvm."):
        if name.startswith(package):
            return _NAMESPACES.get(name.removeprefix(package))
    return _NAMESPACES.get(name) if name in ("relaxide", "tvm") else None


def _closure(func):
    cells = {}
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or ()):
        try:
            cells[name] = cell.cell_contents
        except ValueError:  # not bound yet
            continue
    return cells


def of_function(func, frame):
    """The names around a function: its closure, those of the frame it is made in, and its module's."""
    return [_closure(func), *_of_frame(frame), func.__globals__]


def of_class(cls, frame):
    """The names around a class: what its body assigns, its functions' closures, those of its frame."""
    members = {name: value for name, value in vars(cls).items() if not name.startswith("__")}
    closures = {}
    for value in members.values():
        if isinstance(value, types.FunctionType):
            closures.update(_closure(value))
    plain = {name: value for name, value in members.items() if not isinstance(value, types.FunctionType)}
    return [plain, closures, *_of_frame(frame), frame.f_globals]


def _of_frame(frame):
    return [dict(frame.f_locals)] if frame.f_locals is not frame.f_globals else []
