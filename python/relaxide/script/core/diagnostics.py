"""Sources, and what is said about places in them."""

import inspect

from ....error import DiagnosticError
from ....ir.base import SourceName, Span
from . import doc


class Source:
    """A text with the place it is from.

    ``program`` is a text, or a function or class whose text is found. ``start_line`` and ``start_column`` say where it begins in its file.
    """

    def __init__(self, program):
        self.start_line, self.start_column = 1, 0
        if isinstance(program, str):
            self.source_name, self.source = "<str>", program
            self.full_source = program
            return
        if isinstance(program, doc.AST):
            import ast

            self.source_name = "<doc>"
            self.source = self.full_source = ast.unparse(ast.fix_missing_locations(doc.from_doc(program)))
            return
        self.source_name = inspect.getsourcefile(program) or "<unknown>"
        lines, self.start_line = getsourcelines(program)
        self.start_column = len(lines[0]) - len(lines[0].lstrip())
        self.source = "".join(line[self.start_column :] if line[: self.start_column].isspace() else line for line in lines)
        try:
            self.full_source = "".join(inspect.findsource(program)[0])
        except OSError:
            self.full_source = self.source

    def as_ast(self):
        """Its tree."""
        return doc.parse(self.source)

    def location(self, node):
        """``(line, column, end line, end column)`` of a node in its file, counted from 1."""
        line, column = getattr(node, "lineno", None) or 1, (getattr(node, "col_offset", None) or 0) + 1
        end_line, end_column = getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None)
        end_column = column if end_column is None else end_column + 1
        line, end_line = (number + self.start_line - 1 for number in (line, end_line))
        return line, column + self.start_column, end_line, end_column + self.start_column

    def to_span(self, node):
        """The place of a node."""
        line, column, end_line, end_column = self.location(node)
        return Span(SourceName(self.source_name), line, end_line, column, end_column)


class Diagnostics:
    """What is said about a source."""

    def __init__(self, source):
        self.source = source

    def error(self, node, message):
        """Raise a DiagnosticError that shows the place of a node."""
        line, column, end_line, end_column = self.source.location(node)
        lines = self.source.full_source.splitlines()
        marked = _format_source_snippet(lines, line, column, end_line, end_column)
        raise DiagnosticError(f"error: {message}\n --> {self.source.source_name}:{line}:{column}\n{marked}")


def _format_source_snippet(source_lines, lineno, col_offset, end_lineno, end_col_offset):
    """The lines of a place with their numbers, and what of each is meant underlined; all are counted from 1, the end is exclusive."""
    shown = []
    for number in range(lineno, max(lineno, end_lineno) + 1):
        text = source_lines[number - 1].rstrip("\n") if 0 < number <= len(source_lines) else ""
        first = col_offset if number == lineno else len(text) - len(text.lstrip()) + 1
        last = end_col_offset if number == end_lineno else len(text) + 1
        shown += [f"{number:>4} |  {text}", "     |  " + " " * (first - 1) + "^" * max(1, last - first)]
    return "\n".join(shown)


def findsource(obj):
    """``(lines, number)`` of what an object is defined in, as ``inspect.findsource``."""
    return inspect.findsource(obj)


def getsourcelines(obj):
    """``(lines, first line)`` of an object, counted from 1."""
    return inspect.getsourcelines(obj)


__all__ = ["Diagnostics", "Source", "findsource", "getsourcelines"]
