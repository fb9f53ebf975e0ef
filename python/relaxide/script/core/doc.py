"""Trees of Python's ``ast`` as trees of :mod:`.doc_core`, and back."""

import ast

from . import doc_core
from .doc_core import *  # noqa: F403
from .doc_core import AST


class Entry:
    """How nodes of one name are turned: ``to_doc`` and ``from_doc``, ``None`` where all fields are turned one by one."""

    def __init__(self):
        self.to_doc, self.from_doc = None, None


class Registry:
    """The entries, by names of nodes."""

    _inst = None

    def __init__(self):
        self.table = {}

    def entry(self, name):
        """The entry of a name."""
        return self.table.setdefault(name, Entry())


Registry._inst = Registry()


def register_to_doc(name):
    """A decorator for a function that turns nodes of ``ast`` of a name."""

    def register(func):
        Registry._inst.entry(name).to_doc = func
        return func

    return register


def register_from_doc(name):
    """A decorator for a function that turns nodes of a name into those of ``ast``."""

    def register(func):
        Registry._inst.entry(name).from_doc = func
        return func

    return register


def _turned(value, turn):
    return [_turned(one, turn) for one in value] if isinstance(value, (list, tuple)) else turn(value)


def to_doc(node):
    """The tree of a node of ``ast``; a NotImplementedError for syntax that has no class here."""
    if not isinstance(node, ast.AST):
        return node
    entry = Registry._inst.table.get(type(node).__name__)
    if entry is not None and entry.to_doc is not None:
        return entry.to_doc(node)
    cls = getattr(doc_core, type(node).__name__, None)
    if cls is None:
        # Older Pythons wrap what stands in brackets.
        if type(node).__name__ == "Index":
            return to_doc(node.value)
        raise NotImplementedError(f"there is no node for {type(node).__name__}")
    return cls(**{field: _turned(getattr(node, field, None), to_doc) for field in cls._FIELDS})


def from_doc(node):
    """The node of ``ast`` of a tree."""
    if not isinstance(node, AST):
        return node
    entry = Registry._inst.table.get(type(node).__name__)
    if entry is not None and entry.from_doc is not None:
        return entry.from_doc(node)
    cls = getattr(ast, type(node).__name__)
    fields = {field: _turned(getattr(node, field), from_doc) for field in node._FIELDS if field in (*cls._fields, *cls._attributes)}
    if cls is ast.Module:
        fields["type_ignores"] = []
    return cls(**{field: value for field, value in fields.items() if value is not None or field not in cls._attributes})


def parse(source, filename="<unknown>", mode="exec"):
    """The tree of a text of Python; ``mode`` is as ``ast.parse`` takes it."""
    try:
        program = ast.parse(source, filename=filename, mode=mode)
    except SyntaxError as error:
        raise SyntaxError(f"the text is not Python: {error}") from error
    return to_doc(program)


class NodeVisitor:
    """Visits trees: ``visit_Name(node)`` where it is defined, else all fields."""

    def visit(self, node):
        """Visit a node, or a list of them."""
        if isinstance(node, (list, tuple)):
            for one in node:
                self.visit(one)
        elif isinstance(node, AST):
            getattr(self, f"visit_{type(node).__name__}", self.generic_visit)(node)

    def generic_visit(self, node):
        """Visit all fields of a node."""
        for field in node._FIELDS:
            value = getattr(node, field, None)
            if isinstance(value, (AST, list, tuple)):
                self.visit(value)


class NodeTransformer:
    """Makes trees anew: ``visit_Name(node)`` gives what takes a node's place."""

    def visit(self, node):
        """What takes the place of a node, or of each of a list."""
        if isinstance(node, (list, tuple)):
            return [self.visit(one) for one in node]
        if not isinstance(node, AST):
            return node
        return getattr(self, f"visit_{type(node).__name__}", self.generic_visit)(node)

    def generic_visit(self, node):
        """The node with all fields visited."""
        return type(node)(**{field: self.visit(getattr(node, field, None)) for field in node._FIELDS})


__all__ = [*doc_core.__all__, "Entry", "NodeTransformer", "NodeVisitor", "Registry", "from_doc", "parse", "register_from_doc"]
__all__ += ["register_to_doc", "to_doc"]
