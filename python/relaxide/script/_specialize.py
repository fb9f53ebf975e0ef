"""Kernels that are made of one text for several values (``T.jit``).

The text is read each time anew, with the values among the names around it. Parameters that a value is given for, and optional ones
that are left out, are cut out of it; whether an optional one is there is then known where the text asks for it, and what
depends on that is decided without being read.
"""

import ast
import builtins
import sys

from ._source import function_source
from ._surroundings import _Scope, of_function


class _Constexpr:
    """Marks a parameter whose value is given when the kernel is made: ``N: T.constexpr``."""

    def __call__(self, *_):
        raise TypeError("T.constexpr is what a parameter of a kernel of T.jit is declared as; it is not called")

    def __repr__(self):
        return "T.constexpr"


constexpr = _Constexpr()


class Optional:
    """Marks a parameter that a kernel of ``T.jit`` may be made without: ``a: T.Optional(T.handle)``."""

    def __init__(self, annotation):
        self.annotation = annotation


def jit(func=None, **options):
    """Make a Python function a kernel of several values; ``kernel.specialize(N=128)`` makes the one of these.

    Parameters
    ----------
    func : callable
        The function. Those of its parameters that are declared as ``T.constexpr`` are values, those declared as
        ``T.Optional(...)`` may be left out.
    options
        What ``T.prim_func`` takes.
    """
    frame = sys._getframe(1)
    if func is None:
        return lambda inner: SpecializableKernel(inner, frame, options)
    return SpecializableKernel(func, frame, options)


class SpecializableKernel:
    """What ``T.jit`` makes of a function."""

    def __init__(self, func, frame, options):
        if not callable(func) or isinstance(func, type):
            raise TypeError(f"a function is decorated, got {type(func).__name__}")
        self.func, self.__name__, self.__doc__ = func, func.__name__, func.__doc__
        self._checked = options.get("check_well_formed", True)
        self._source = function_source(func)
        self._around = of_function(func, frame)
        self._made = {}
        self._definition = ast.parse(self._source[0]).body[0]
        values, optional = {}, {}
        for parameter, default in _parameters(self._definition.args):
            if parameter.annotation is None:
                continue
            marked = self._marked(parameter.annotation)
            if marked is constexpr:
                values[parameter.arg] = default
            elif isinstance(marked, Optional):
                optional[parameter.arg] = parameter.annotation.args[0]
        self.constexpr_names, self.optional_names = frozenset(values), frozenset(optional)
        self._optional = optional
        self.constexpr_defaults = {
            name: self._value(default) for name, default in values.items() if default is not None
        }

    def specialize(self, **given):
        """The kernel for values.

        Parameters
        ----------
        given
            A value for each parameter that is ``T.constexpr`` and has none of its own, and ``None`` for each optional one that
            the kernel is made without.

        Returns
        -------
        PrimFunc
            The kernel, whose parameters are the others. Equal values give the same one.

        Raises
        ------
        TypeError
            A value lacks, or is for no such parameter.
        """
        name = self.__name__
        unknown = sorted(given.keys() - self.constexpr_names - self.optional_names)
        if unknown:
            known = ", ".join(sorted(self.constexpr_names | self.optional_names)) or "none"
            raise TypeError(f"{name}.specialize: unexpected {', '.join(unknown)}; it takes {known}")
        absent = given.keys() & self.optional_names
        wrong = sorted(key for key in absent if given[key] is not None)
        if wrong:
            raise TypeError(f"{name}.specialize: optional parameters only accept None here, which leaves them out: {wrong[0]}")
        values = {**self.constexpr_defaults, **{key: given[key] for key in given.keys() & self.constexpr_names}}
        missing = sorted(self.constexpr_names - values.keys())
        if missing:
            raise TypeError(f"{name}.specialize: missing {', '.join(missing)}; give each a value: specialize({missing[0]}=…)")
        try:
            key = (frozenset((name, type(value), value) for name, value in values.items()), frozenset(absent))
            made = self._made.get(key)
        except TypeError as error:
            raise TypeError(f"{name}.specialize: values are numbers, texts, tuples and others with a hash: {error}") from None
        if made is None:
            made = self._made[key] = self._make(values, absent)
        return made

    def _make(self, values, absent):
        from .entry import function_in, prim_func

        text, path, line = self._source
        edits = _Edits(text)
        self._cut(edits, absent)
        present = {name: name not in absent for name in self._optional}
        for statement in self._definition.body:
            _Decisions(present, edits).visit(statement)
        known = {**values, **dict.fromkeys(absent), "prim_func": prim_func}
        return function_in(self.__name__, (edits.applied(), path, line), [known, *self._around], self._checked)

    def _cut(self, edits, absent):
        """Leaves the parameters that the kernel has."""
        arguments = self._definition.args
        left = []
        for parameter, _ in _parameters(arguments):
            if parameter.arg in self.constexpr_names or parameter.arg in absent:
                continue
            annotation = self._optional.get(parameter.arg, parameter.annotation)
            if annotation is not None:
                # An annotation may stand in quotes, as it uses values that are not known yet.
                is_text = isinstance(annotation, ast.Constant) and isinstance(annotation.value, str)
                left.append(f"{parameter.arg}: {annotation.value if is_text else edits.text_of(annotation)}")
            else:
                left.append(parameter.arg)
        everything = [*arguments.args, *arguments.kwonlyargs, *arguments.defaults, *filter(None, arguments.kw_defaults)]
        if everything:
            start = min(edits.start(node) for node in everything)
            # A star in front of the parameters by name goes, too.
            start = edits.text.rindex("(", 0, start) + 1
            end = max(edits.end(node) for node in everything)
            behind = edits.text[end:].lstrip()
            if not left and behind.startswith(","):
                end = edits.text.index(",", end) + 1
            edits.replace(start, end, ", ".join(left))
        for decorator in self._definition.decorator_list:
            callee = decorator.func if isinstance(decorator, ast.Call) else decorator
            written = f"{edits.text_of(callee.value)}.prim_func" if isinstance(callee, ast.Attribute) else "prim_func"
            edits.replace(edits.start(callee), edits.end(callee), written)

    def _marked(self, annotation):
        """What marks a parameter, if anything does. Other annotations may use values that are not known yet."""
        callee = annotation.func if isinstance(annotation, ast.Call) else annotation
        try:
            found = self._value(callee)
        except Exception:
            return None
        if found is Optional and isinstance(annotation, ast.Call) and len(annotation.args) == 1:
            return Optional(annotation.args[0])
        return found if found is constexpr else None

    def _value(self, node):
        scope = _Scope([*self._around, vars(builtins)])
        return eval(compile(ast.Expression(node), self._source[1], "eval"), {}, scope)

    def __repr__(self):
        return f"SpecializableKernel({self.__name__})"


def _parameters(arguments):
    """``(parameter, default)`` of a function."""
    places = [*arguments.posonlyargs, *arguments.args]
    yield from zip(places, [*[None] * (len(places) - len(arguments.defaults)), *arguments.defaults])
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults)


class _Decisions(ast.NodeVisitor):
    """Writes down what is decided by which parameters are there. What is not decided stays as it is."""

    def __init__(self, present, edits):
        self._present, self._edits = present, edits

    def truth(self, node):
        """Whether a condition holds; ``None`` where that is not decided."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.left, ast.Name):
            against_none = isinstance(node.comparators[0], ast.Constant) and node.comparators[0].value is None
            there = self._present.get(node.left.id)
            if there is not None and against_none and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
                return there == isinstance(node.ops[0], ast.IsNot)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            # Python stops at the first operand that settles it.
            settles = isinstance(node.op, ast.Or)
            for operand in node.values:
                holds = self.truth(operand)
                if holds is None:
                    return None
                if holds == settles:
                    return holds
            return not settles
        return None

    def _decide(self, node):
        holds = self.truth(node)
        if holds is not None:
            self._edits.replace(self._edits.start(node), self._edits.end(node), str(holds))
        return holds

    def visit_If(self, node):
        holds = self._decide(node.test)
        if holds is None:
            self.visit(node.test)
        for statement in (*node.body, *node.orelse) if holds is None else node.body if holds else node.orelse:
            self.visit(statement)

    def visit_IfExp(self, node):
        holds = self.truth(node.test)
        if holds is None:
            self.generic_visit(node)
            return
        chosen = node.body if holds else node.orelse
        self._edits.replace(self._edits.start(node), self._edits.end(node), f"({self._edits.text_of(chosen)})")

    def visit_BoolOp(self, node):
        if self._decide(node) is None:
            self.generic_visit(node)

    visit_Compare = visit_BoolOp


class _Edits:
    """Replacements in a text that keep its lines."""

    def __init__(self, text):
        self.text, self._edits = text, []
        self._lines = [0]
        for line in text.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def _place(self, line, column):
        start = self._lines[line - 1]
        # Columns count bytes.
        written = self.text[start : self._lines[line]]
        return start + len(written.encode()[:column].decode())

    def start(self, node):
        return self._place(node.lineno, node.col_offset)

    def end(self, node):
        return self._place(node.end_lineno, node.end_col_offset)

    def text_of(self, node):
        return self.text[self.start(node) : self.end(node)]

    def replace(self, start, end, written):
        # Lines that go away are added behind, so that those that follow keep their numbers.
        lost = self.text.count("\n", start, end) - written.count("\n")
        self._edits.append((start, end, written, lost))

    def applied(self):
        text = self.text
        for start, end, written, lost in sorted(self._edits, reverse=True):
            text = text[:start] + written + _continued(lost, text, end) + text[end:]
        return text


def _continued(lines, text, end):
    """Line ends that mean nothing where they stand: within brackets plain ones, elsewhere joined ones."""
    return ("\\\n" if "\n" in text[end:] else "") * max(lines, 0)
