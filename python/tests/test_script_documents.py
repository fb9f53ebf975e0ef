"""Python text of trees of parts, with what is underlined in it."""

import ast

import pytest

from relaxide.ffi.access_path import AccessPath
from relaxide.script.printer.doc import (
    AssignDoc,
    CallDoc,
    DictDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    LambdaDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    SliceDoc,
    StmtBlockDoc,
    TupleDoc,
)
from relaxide.script.printer.doc_printer import to_python_script

X, Y, Z = map(IdDoc, "xyz")


def _kinds(first, last):
    return [kind for kind in OperationKind if first < kind < last]


UNARY = _kinds(OperationKind._UnaryStart, OperationKind._UnaryEnd)
BINARY = _kinds(OperationKind._BinaryStart, OperationKind._BinaryEnd)
COMPARISONS = range(OperationKind.Lt, OperationKind.GtE + 1)


def _trees():
    """Every operator as an operand of every other, on either side."""
    inner = [OperationDoc(kind, [X]) for kind in UNARY] + [OperationDoc(kind, [X, Y]) for kind in BINARY]
    inner += [OperationDoc(OperationKind.IfThenElse, [X, Y, Z]), LambdaDoc([X], Y), X.attr("a"), X[Y, Z], X.call(Y, k=Z)]
    for part in inner:
        yield from (OperationDoc(kind, [part]) for kind in UNARY)
        yield from (OperationDoc(kind, operands) for kind in BINARY for operands in ([part, Z], [Z, part]))
        yield OperationDoc(OperationKind.IfThenElse, [part, part, part])
        yield from (part.attr("b"), part[X], part.call(X))


def _shape(node):
    """A tree of Python's or of ours as nested tuples."""
    if isinstance(node, OperationDoc):
        return (node.kind.name, *map(_shape, node.operands))
    if isinstance(node, ast.UnaryOp):
        return (type(node.op).__name__, _shape(node.operand))
    if isinstance(node, ast.BinOp):
        return (type(node.op).__name__.replace("MatMult", "MatMul"), _shape(node.left), _shape(node.right))
    if isinstance(node, ast.BoolOp):
        first, *rest = map(_shape, node.values)
        for value in rest:
            first = (type(node.op).__name__, first, value)
        return first
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return (type(node.ops[0]).__name__, _shape(node.left), _shape(node.comparators[0]))
    if isinstance(node, ast.IfExp):
        return ("IfThenElse", _shape(node.test), _shape(node.body), _shape(node.orelse))
    return ast.unparse(node) if isinstance(node, ast.AST) else ast.unparse(ast.parse(to_python_script(node)))


def _chained(doc):
    """Whether a comparison stands in a comparison, which Python reads as one of three."""
    return isinstance(doc, OperationDoc) and doc.kind in COMPARISONS and any(
        isinstance(part, OperationDoc) and part.kind in COMPARISONS for part in doc.operands[:1]
    )


def test_text_reads_back_as_the_tree():
    wrong = []
    for doc in _trees():
        text = to_python_script(doc)
        if not _chained(doc) and isinstance(doc, OperationDoc) and _shape(ast.parse(text, mode="eval").body) != _shape(doc):
            wrong.append(text)
        ast.parse(text)
    assert wrong == []


def test_statements_and_comments():
    assign = AssignDoc(X, LiteralDoc(1.5), IdDoc("float"))
    assign.comment = "a number"
    body = [assign, IfDoc(X, [ReturnDoc(TupleDoc([X]))], []), ForDoc(TupleDoc([X]), Y, [])]
    function = FunctionDoc(IdDoc("f"), [AssignDoc(X, None, IdDoc("int"))], [IdDoc("wrap")], LiteralDoc(None), body)
    function.comment = "What it does.\n\nAnd more."
    expected = (
        '@wrap\ndef f(x: int) -> None:\n    """\n    What it does.\n\n    And more.\n    """\n    x: float = 1.5  # a number\n'
        "    if x:\n        return (x,)\n    for x, in y:\n        pass"
    )
    assert to_python_script(function) == expected
    assert to_python_script(DictDoc({LiteralDoc('a"b\n'): X[SliceDoc(None, Y, Z)]})) == '{"a\\"b\\n": x[:y:z]}'
    assert to_python_script(ExprStmtDoc(CallDoc(X, Y, key=LiteralDoc(float("inf")))), indent_spaces=2) == 'x(y, key="inf")'


def test_what_is_asked_for_is_underlined():
    def part(name, path):
        doc = IdDoc(name)
        doc.source_paths = [AccessPath.root().attr(path)]
        return doc

    doc = StmtBlockDoc([ExprStmtDoc(part(f"line{i}", "here" if i == 5 else "there")) for i in range(10)])
    wanted = [AccessPath.root().attr("here").attr("more")]
    text = to_python_script(doc, print_line_numbers=True, num_context_lines=1, path_to_underline=wanted)
    assert text.split("\n") == [
        "Access path: <root>.here.more",
        "Note: The underlined object is the nearest visible parent of this path.",
        "",
        "(... 4 lines skipped ...)",
        " 5 line4",
        " 6 line5",
        "   ^^^^^",
        " 7 line6",
        "(... 3 lines skipped ...)",
    ]


def test_parts_that_make_no_sense_are_refused():
    for make in (
        lambda: AssignDoc(X, None),
        lambda: AssignDoc(TupleDoc([X]), Y, IdDoc("int")),
        lambda: IfDoc(X, [], []),
        lambda: to_python_script(OperationDoc(OperationKind.Add, [X])),
    ):
        with pytest.raises(ValueError):
            make()
    with pytest.raises(TypeError, match="ForDoc is made of lhs, rhs, body"):
        ForDoc(X, Y)
    with pytest.raises(TypeError, match="a literal is"):
        LiteralDoc([1])
