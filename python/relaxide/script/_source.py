"""Where the text of a class or function is to be found: files, notebooks, whatever Python's line cache knows."""

import ast
import linecache
import textwrap


class SourceUnavailable(OSError):
    """The text of a program is nowhere to be found."""


def _lines(path, namespace):
    linecache.checkcache(path)
    return linecache.getlines(path, namespace)


def class_source(cls, frame):
    """``(text, path, first line)`` of a class that is being decorated in a frame."""
    path, namespace = frame.f_code.co_filename, frame.f_globals
    lines = _lines(path, namespace)
    if not lines:
        raise SourceUnavailable(_explain(f"class {cls.__name__}", path))
    # The frame stands at the decorator or at the class, depending on the version of Python.
    return _cut(lines, path, cls.__name__, (ast.ClassDef,), frame.f_lineno)


def function_source(func):
    """``(text, path, first line)`` of a function."""
    code = func.__code__
    lines = _lines(code.co_filename, func.__globals__)
    if not lines:
        raise SourceUnavailable(_explain(f"function {func.__name__}", code.co_filename))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return _cut(lines, code.co_filename, func.__name__, kinds, code.co_firstlineno)


def _cut(lines, path, name, kinds, line):
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError as error:
        raise SourceUnavailable(f"{path} has changed since it was loaded: {error}") from error
    best = None
    for node in ast.walk(tree):
        if not isinstance(node, kinds) or node.name != name:
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        distance = 0 if first <= line <= node.end_lineno else min(abs(first - line), abs(node.end_lineno - line))
        if best is None or (distance, node.end_lineno - first) < best[0]:
            best = ((distance, node.end_lineno - first), first, node.end_lineno)
    if best is None:
        raise SourceUnavailable(_explain(name, path))
    _, first, last = best
    return textwrap.dedent("".join(lines[first - 1 : last])), path, first


def _explain(what, path):
    return (
        f"the source of {what} is not to be had ({path}). Write it in a file or in a notebook, or parse its text with "
        "script.from_source; code that exec runs needs its text in Python's linecache"
    )
