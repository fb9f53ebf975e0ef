"""From Python source to programs."""

import ast
import re
import sys

from .. import _core
from ..error import ScriptError


def from_source(text, path="<string>", extra_vars=None, check_well_formed=True):
    """Parse TVMScript text into a module, or into a function if the text is that of one.

    ``extra_vars`` gives values to names that the text does not bind. A module that breaks a rule (an impure call in a
    dataflow block, a variable that nothing binds) is refused with :class:`relaxide.error.ScriptError`, unless ``check_well_formed`` is false.
    """
    if not isinstance(text, str):
        return parse(text, extra_vars, check_well_formed)
    if extra_vars is None:
        module = _read(_core.parse_script, text, path, 1, check_well_formed)
    else:
        from ._surroundings import Surroundings

        module = _read(_core.parse_script_in, text, path, 1, Surroundings([dict(extra_vars)]), check_well_formed)
    name = _only_function(text)
    return module if name is None else module[name]


def _read(parse, *given):
    """What a parser makes of its arguments; what it refuses is also a ``DiagnosticError``, as in TVM."""
    try:
        return parse(*given)
    except ScriptError:
        raise
    except SyntaxError as error:
        told = ScriptError(*error.args)
        for place in ("filename", "lineno", "offset", "text", "end_lineno", "end_offset"):
            setattr(told, place, getattr(error, place, None))
        raise told.with_traceback(error.__traceback__) from error.__cause__


def _only_function(text):
    """The name of the one function that a text defines, outside of any class."""
    if re.search(r"^class\s", text, re.MULTILINE):
        return None
    defined = [node for node in ast.parse(text).body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    return defined[0].name if len(defined) == 1 and isinstance(defined[0], ast.FunctionDef) else None


def parse(program, extra_vars=None, check_well_formed=True):
    """The module of a text or of a class, or the function of a decorated function."""
    if isinstance(program, str):
        return from_source(program, extra_vars=extra_vars or {}, check_well_formed=check_well_formed)
    frame = sys._getframe(1)
    if isinstance(program, type):
        return _module(program, frame, extra_vars, check_well_formed)
    return _function(program, frame, check_well_formed)


def ir_module(mod=None, check_well_formed=True, s_tir=False, *, tracked=False):
    """Make the functions of a class a module. With ``s_tir``, its kernels have blocks, which is seen without being told.

    The bodies are read, not run. They may use what Python knows around them: numbers, shapes, constants, kernels, lists,
    helper functions.
    """
    frame = sys._getframe(1)
    if mod is None:
        return lambda inner: _module(inner, frame, check_well_formed=check_well_formed)
    if not isinstance(mod, type):
        raise TypeError(f"ir_module decorates a class, got {type(mod).__name__}")
    return _module(mod, frame, check_well_formed=check_well_formed)


def _with_type_vars(text, line, surroundings):
    """A program and its line, below the symbolic dimensions that Python knows as ``n = TypeVar("n")`` around it."""
    names = sorted(name for name in set(re.findall(r"[^\W\d]\w*", text)) if surroundings.is_type_var(name))
    if not names or line == 1:
        return text, line
    # They stand in one of the empty lines in front, so that the program keeps its place.
    return "; ".join(f'{name} = TypeVar("{name}")' for name in names) + "\n" * (line - 1) + text, 1


def _module(cls, frame, extra_vars=None, check_well_formed=True):
    from ._source import class_source
    from ._surroundings import Surroundings, of_class

    text, path, line = class_source(cls, frame)
    surroundings = Surroundings([*of_class(cls, frame), extra_vars or {}])
    text, line = _with_type_vars(text, line, surroundings)
    module = _read(_core.parse_script_in, text, path, line, surroundings, check_well_formed)
    module.__name__ = cls.__name__
    if not any(base.__name__ == "BasePyModule" for base in cls.__mro__):
        return module
    from ..relax.base_py_module import ModuleFactory

    return ModuleFactory(module, cls)


def function(func=None, **options):
    """Make a Python function a Relax function; in a class, leave it for the class's decorator."""
    frame = sys._getframe(1)
    if func is None:
        return lambda inner: _function(inner, frame, options.get("check_well_formed", True))
    return _function(func, frame)


def prim_func(func=None, **options):
    """Make a Python function a kernel; in a class, leave it for the class's decorator."""
    frame = sys._getframe(1)
    if func is None:
        return lambda inner: _function(inner, frame, options.get("check_well_formed", True))
    return _function(func, frame)


def _is_decorated(body):
    """Whether the class of a body has decorators, as far as its text is to be had."""
    import linecache

    line = linecache.getline(body.f_code.co_filename, body.f_code.co_firstlineno, body.f_globals)
    return not line.lstrip().startswith("class ")


def _function(func, frame, check_well_formed=True):
    if not callable(func) or isinstance(func, type):
        raise TypeError(f"a function is decorated, got {type(func).__name__}")
    # The body of a class runs before its decorator, which reads the whole class.
    if "__qualname__" in frame.f_locals and "__module__" in frame.f_locals and _is_decorated(frame):
        return func
    from ._source import function_source
    from ._surroundings import of_function

    from ..tirx.function import PrimFunc

    made = function_in(func.__name__, function_source(func), of_function(func, frame), check_well_formed)
    if isinstance(made, PrimFunc):
        # Nodes are not changed, but the object that the program holds has the name of what it was written as.
        vars(made)["__name__"] = func.__name__
    return made


def function_in(name, source, around, check_well_formed=True):
    """The function of a text ``(text, path, first line)`` among names, dictionaries of which the first comes first."""
    from ._surroundings import Surroundings

    text, path, line = source
    surroundings = Surroundings(around)
    text, line = _with_type_vars(text, line, surroundings)
    return _read(_core.parse_script_in, text, path, line, surroundings, check_well_formed)[name]


class ScriptMacro:
    """Statements under a name. A call of it in a program stands for the statements."""

    def __init__(self, func, frame, hygienic):
        from ._source import function_source
        from ._surroundings import of_function

        self.name, self.hygienic = func.__name__, hygienic
        self.text, self.path, self.line = function_source(func)
        self.surroundings = of_function(func, frame)
        self.__doc__ = func.__doc__

    def __call__(self, *args, **kwargs):
        raise TypeError(f"the macro {self.name} is called in programs, not in Python")

    def __repr__(self):
        return f"ScriptMacro({self.name})"


def script_macro(func=None, *, hygienic=True):
    """Make a Python function a macro. With ``hygienic=False`` its names are those of where it is called."""
    frame = sys._getframe(1)
    if func is not None and not callable(func):
        raise ValueError(f"a macro is made of a function, got {type(func).__name__}; name the option: hygienic=False")
    if func is None:
        return lambda inner: ScriptMacro(inner, frame, hygienic)
    return ScriptMacro(func, frame, hygienic)
