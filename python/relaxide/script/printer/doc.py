"""The parts of Python text: expressions, statements, definitions.

::

    x = IdDoc("x")
    doc = AssignDoc(x, OperationDoc(OperationKind.Add, [x, LiteralDoc(1)]))
    to_python_script(doc)  # x = x + 1

Two parts are the same if they are one object. A list of parts that is given becomes a tuple.
"""

from enum import IntEnum, unique


class Doc:
    """The base of parts. ``source_paths`` are the paths (:class:`relaxide.ffi.access_path.AccessPath`) of what it was written for,
    which :func:`to_python_script` underlines when it is asked for them."""

    __slots__ = ("_source_paths", "__weakref__")
    #: The fields, in the order in which they are given.
    _fields = ()

    def __init__(self, *values, **named):
        rest = self._fields[len(values) :]
        if len(values) > len(self._fields) or set(named) != set(rest):
            raise TypeError(f"{type(self).__name__} is made of {', '.join(self._fields)}: give each of them once")
        for name, value in zip(self._fields, [*values, *(named[name] for name in rest)]):
            setattr(self, name, tuple(value) if isinstance(value, list) else value)

    @property
    def source_paths(self):
        """The paths of what this was written for."""
        return getattr(self, "_source_paths", ())

    @source_paths.setter
    def source_paths(self, paths):
        self._source_paths = tuple(paths)

    def __repr__(self):
        from .doc_printer import to_python_script

        return to_python_script(self)


class ExprDoc(Doc):
    """The base of expressions."""

    __slots__ = ()

    def attr(self, name):
        """An attribute of it: ``self.name``."""
        return AttrAccessDoc(self, name)

    def call(self, *args, **kwargs):
        """A call of it."""
        return CallDoc(self, *args, **kwargs)

    def __getitem__(self, indices):
        return IndexDoc(self, list(indices) if isinstance(indices, tuple) else [indices])

    def __iter__(self):
        # Python would ask for items by numbers without end.
        raise RuntimeError(f"{type(self).__name__} is no sequence: indices of it are expressions")


class StmtDoc(Doc):
    """The base of statements. ``comment`` is text that is written beside a statement on one line, in front of one on several, and
    into functions and classes."""

    __slots__ = ("_comment",)

    @property
    def comment(self):
        """The comment; ``None`` where there is none."""
        return getattr(self, "_comment", None)

    @comment.setter
    def comment(self, text):
        self._comment = text


class StmtBlockDoc(Doc):
    """Statements in a row."""

    __slots__ = _fields = ("stmts",)

    def __init__(self, stmts):
        super().__init__(list(stmts))


class LiteralDoc(ExprDoc):
    """A number, text, bool or ``None``; anything else is a TypeError."""

    __slots__ = _fields = ("value",)

    def __init__(self, value, path=None):
        if not isinstance(value, (str, float, bool, int, type(None))):
            raise TypeError(f"a literal is text, a number, a bool or None, not a {type(value).__name__}")
        super().__init__(value)
        if path is not None:
            self.source_paths = [path]


class IdDoc(ExprDoc):
    """A name."""

    __slots__ = _fields = ("name",)


class AttrAccessDoc(ExprDoc):
    """``value.name``."""

    __slots__ = _fields = ("value", "name")


class IndexDoc(ExprDoc):
    """``value[indices]``, where indices are expressions and slices."""

    __slots__ = _fields = ("value", "indices")


class CallDoc(ExprDoc):
    """A call: ``callee(*args, **kwargs)``. The keywords are ``kwargs_keys``, their values ``kwargs_values``."""

    __slots__ = _fields = ("callee", "args", "kwargs_keys", "kwargs_values")

    def __init__(self, callee, *args, **kwargs):
        super().__init__(callee, list(args), list(kwargs), list(kwargs.values()))


@unique
class OperationKind(IntEnum):
    """The operators, under the names that Python's ``ast`` has for them. Those that begin with an underscore are bounds."""

    _UnaryStart = 0
    USub = 1
    Invert = 2
    Not = 3
    _UnaryEnd = 4
    _BinaryStart = 5
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    MatMul = 26
    _BinaryEnd = 27
    _SpecialStart = 28
    IfThenElse = 29
    _SpecialEnd = 30


class OperationDoc(ExprDoc):
    """An operator and its operands; of a choice they are condition, value, other value. Their number is checked when it is written."""

    __slots__ = _fields = ("kind", "operands")

    def __init__(self, kind, operands):
        super().__init__(OperationKind(kind), list(operands))


class LambdaDoc(ExprDoc):
    """``lambda args: body``."""

    __slots__ = _fields = ("args", "body")

    def __init__(self, args, body):
        super().__init__(list(args), body)


class _Elements(ExprDoc):
    __slots__ = _fields = ("elements",)

    def __init__(self, elements):
        super().__init__(list(elements))


class TupleDoc(_Elements):
    """A tuple."""

    __slots__ = ()


class ListDoc(_Elements):
    """A list."""

    __slots__ = ()


class DictDoc(ExprDoc):
    """A dictionary, from one of expressions."""

    __slots__ = _fields = ("keys", "values")

    def __init__(self, content):
        super().__init__(list(content), list(content.values()))


class SliceDoc(ExprDoc):
    """``start:stop:step`` among indices; each may be ``None``."""

    __slots__ = _fields = ("start", "stop", "step")

    def __init__(self, start=None, stop=None, step=None):
        super().__init__(start, stop, step)


class AssignDoc(StmtDoc):
    """``lhs: annotation = rhs``, without what is ``None``: a ValueError where both are, or where several names are annotated."""

    __slots__ = _fields = ("lhs", "rhs", "annotation")

    def __init__(self, lhs, rhs, annotation=None):
        if rhs is None and annotation is None:
            raise ValueError("an assignment has a value or an annotation, or both")
        if annotation is not None and not isinstance(lhs, IdDoc):
            raise ValueError("only the assignment to one name has an annotation")
        super().__init__(lhs, rhs, annotation)


class IfDoc(StmtDoc):
    """A choice between statements; a ValueError where there are none on both sides."""

    __slots__ = _fields = ("predicate", "then_branch", "else_branch")

    def __init__(self, predicate, then_branch, else_branch):
        if not then_branch and not else_branch:
            raise ValueError("a choice has statements on one side at least")
        super().__init__(predicate, list(then_branch), list(else_branch))


class WhileDoc(StmtDoc):
    """``while predicate: body``."""

    __slots__ = _fields = ("predicate", "body")


class ForDoc(StmtDoc):
    """``for lhs in rhs: body``."""

    __slots__ = _fields = ("lhs", "rhs", "body")


class ScopeDoc(StmtDoc):
    """``with rhs as lhs: body``; ``lhs`` may be ``None``."""

    __slots__ = _fields = ("lhs", "rhs", "body")


class ExprStmtDoc(StmtDoc):
    """An expression as a statement."""

    __slots__ = _fields = ("expr",)


class AssertDoc(StmtDoc):
    """``assert test, msg``; ``msg`` may be ``None``."""

    __slots__ = _fields = ("test", "msg")

    def __init__(self, test, msg=None):
        super().__init__(test, msg)


class ReturnDoc(StmtDoc):
    """``return value``."""

    __slots__ = _fields = ("value",)


class FunctionDoc(StmtDoc):
    """A function: arguments are assignments without comments, type parameters names or annotated names."""

    __slots__ = _fields = ("name", "args", "decorators", "return_type", "body", "type_params")

    def __init__(self, name, args, decorators, return_type, body, type_params=None):
        super().__init__(name, list(args), list(decorators), return_type, list(body), list(type_params or ()))


class ClassDoc(StmtDoc):
    """A class."""

    __slots__ = _fields = ("name", "decorators", "body")


class CommentDoc(StmtDoc):
    """A comment on lines of its own."""

    __slots__ = ()

    def __init__(self, comment):
        super().__init__()
        self.comment = comment


class DocStringDoc(StmtDoc):
    """Text in three quotation marks."""

    __slots__ = ()

    def __init__(self, docs):
        super().__init__()
        self.comment = docs


__all__ = [name for name, value in list(vars().items()) if name[0] != "_" and isinstance(value, type) and value is not IntEnum]
