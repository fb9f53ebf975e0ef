"""Python text of a tree of parts, with underlines below what stands for given paths."""

from . import doc as parts
from ._underline import decorated, merged
from .doc import OperationKind as Kind

#: How an operator is written, and how strongly it binds: that of Python, from a choice (2) to names (15).
_OPERATORS = {
    Kind.USub: ("-", 13),
    Kind.Invert: ("~", 13),
    Kind.Not: ("not ", 5),
    Kind.Add: ("+", 11),
    Kind.Sub: ("-", 11),
    Kind.Mult: ("*", 12),
    Kind.Div: ("/", 12),
    Kind.FloorDiv: ("//", 12),
    Kind.Mod: ("%", 12),
    Kind.Pow: ("**", 14),
    Kind.LShift: ("<<", 10),
    Kind.RShift: (">>", 10),
    Kind.BitAnd: ("&", 9),
    Kind.BitOr: ("|", 7),
    Kind.BitXor: ("^", 8),
    Kind.Lt: ("<", 6),
    Kind.LtE: ("<=", 6),
    Kind.Eq: ("==", 6),
    Kind.NotEq: ("!=", 6),
    Kind.Gt: (">", 6),
    Kind.GtE: (">=", 6),
    Kind.And: ("and", 4),
    Kind.Or: ("or", 3),
    Kind.MatMul: ("@", 12),
    Kind.IfThenElse: ("if", 2),
}
_UNARY, _LAMBDA, _ATOM = 13, 1, 15
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def to_python_script(doc, indent_spaces=4, print_line_numbers=False, num_context_lines=None, path_to_underline=None):
    """The text of a part.

    Parameters
    ----------
    doc : Doc
        What is written.
    indent_spaces : int
        By how many spaces a block is indented.
    print_line_numbers : bool
        Write the number of each line in front of it.
    num_context_lines : int, optional
        How many lines around underlined ones are kept; all where none is said.
    path_to_underline : list of AccessPath, optional
        What is underlined: the parts whose path is the longest beginning of one of these. The paths stand in front of the text, with
        a note where such a part is not the path's own, or where there is none.
    """
    paths = list(path_to_underline or ())
    writer = _Writer(indent_spaces, paths)
    writer.write(doc)
    text = "".join(writer.text).rstrip(" ")
    if text and not text.endswith("\n"):
        text += "\n"
    spans = merged(writer.underlines(), writer.exempted)
    context = len(text) if num_context_lines is None or num_context_lines < 0 else num_context_lines
    told = decorated(text, spans, print_line_numbers, context)
    # The last line end is no part of the text.
    told = told[:-1] if told.endswith("\n") else told
    return told if not paths else "\n".join(writer.notes()) + "\n\n" + told


class _Writer:
    def __init__(self, indent, paths):
        self.indent, self.depth = indent, 0
        self.text, self.place, self.exempted = [], 0, []
        # For each path: the depth of its longest beginning so far, that beginning, and where it was written.
        self.wanted = [[path, 0, None, []] for path in paths]

    # Text.

    def put(self, text):
        self.text.append(text)
        self.place += len(text)

    def line(self):
        begin = self.place
        self.put("\n" + " " * (self.indent * self.depth))
        self.exempted.append((begin, self.place))

    def write(self, doc):
        begin = self.place
        getattr(self, f"_{type(doc).__name__}")(doc)
        for path in doc.source_paths:
            self.mark((begin, self.place), path)

    def joined(self, docs, separator=", "):
        for index, doc in enumerate(docs):
            if index:
                self.put(separator)
            self.write(doc)

    def child(self, doc, strength, same_too=False):
        """An operand, in parentheses where it binds less strongly; with ``same_too`` also where it binds as strongly."""
        own = _strength(doc)
        if own < strength or (same_too and own == strength):
            self.put("(")
            self.write(doc)
            self.put(")")
        else:
            self.write(doc)

    def block(self, body):
        self.depth += 1
        for doc in body:
            self.line()
            self.write(doc)
        if not body:
            self.line()
            self.put("pass")
        self.depth -= 1

    # Underlines.

    def mark(self, span, path):
        for entry in self.wanted:
            wanted, depth, found, spans = entry
            if path.depth < depth or not path.is_prefix_of(wanted):
                continue
            if path.depth > depth or found is None:
                entry[1], entry[2] = path.depth, path
                spans.clear()
            spans.append(span)

    def underlines(self):
        return [span for entry in self.wanted for span in entry[3]]

    def notes(self):
        for wanted, _, found, _ in self.wanted:
            yield f"Access path: {wanted}"
            if found is None:
                yield "Note: No visible object for this path is rendered in TVMScript."
            elif found != wanted:
                yield "Note: The underlined object is the nearest visible parent of this path."

    # Comments.

    def _beside(self, doc):
        if doc.comment is not None:
            if "\n" in doc.comment:
                raise ValueError(f"the comment of a {type(doc).__name__} stands beside it, so that it cannot have newline")
            self._exempt(lambda: self.put(f"  # {doc.comment}"))

    def _above(self, doc):
        if doc.comment is not None:
            self._CommentDoc(doc)
            self.line()

    def _exempt(self, put):
        begin = self.place
        put()
        self.exempted.append((begin, self.place))

    def _CommentDoc(self, doc):
        def put():
            for index, text in enumerate(doc.comment.split("\n")):
                if index:
                    self.line()
                self.put(f"# {text}")

        if doc.comment:
            self._exempt(put)

    def _DocStringDoc(self, doc):
        if doc.comment:
            self._quoted(doc.comment)

    def _quoted(self, comment):
        def put():
            self.put('"""')
            for text in comment.split("\n"):
                # Empty lines have no indentation.
                if text:
                    self.line()
                self.put(text or "\n")
            self.line()
            self.put('"""')

        self._exempt(put)

    def _inside(self, doc):
        if doc.comment is not None:
            self.depth += 1
            self.line()
            self._quoted(doc.comment)
            self.depth -= 1

    # Expressions.

    def _LiteralDoc(self, doc):
        value = doc.value
        if isinstance(value, str):
            self.put('"' + "".join(_escaped(letter) for letter in value) + '"')
        elif isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            self.put(f'"{value}"')
        elif isinstance(value, float):
            self.put(f"{value:.1f}" if value == int(value) else f"{value:.17g}")
        else:
            self.put(str(value))

    def _IdDoc(self, doc):
        self.put(doc.name)

    def _AttrAccessDoc(self, doc):
        self.child(doc.value, _ATOM)
        self.put(f".{doc.name}")

    def _IndexDoc(self, doc):
        self.child(doc.value, _ATOM)
        if not doc.indices:
            self.put("[()]")
            return
        self.put("[")
        self.joined(doc.indices)
        self.put("]")

    def _CallDoc(self, doc):
        self.child(doc.callee, _ATOM)
        self.put("(")
        self.joined(doc.args)
        for index, (key, value) in enumerate(zip(doc.kwargs_keys, doc.kwargs_values)):
            self.put(f"{', ' if index or doc.args else ''}{key}=")
            self.write(value)
        self.put(")")

    def _OperationDoc(self, doc):
        if doc.kind not in _OPERATORS:
            raise ValueError(f"{doc.kind!r} is a bound, no operator")
        (sign, strength), operands = _OPERATORS[doc.kind], doc.operands
        wanted = 1 if doc.kind < Kind._UnaryEnd else 2 if doc.kind < Kind._BinaryEnd else 3
        if len(operands) != wanted:
            raise ValueError(f"{doc.kind.name} has {wanted} operands, but {len(operands)} were given")
        if wanted == 1:
            self.put(sign)
            self.child(operands[0], strength)
        elif doc.kind == Kind.Pow:
            # It groups from the right, and a sign on its right binds more strongly.
            self.child(operands[0], strength, same_too=True)
            self.put(" ** ")
            self.child(operands[1], _UNARY)
        elif wanted == 2:
            self.child(operands[0], strength)
            self.put(f" {sign} ")
            self.child(operands[1], strength, same_too=True)
        else:
            condition, value, other = operands
            self.child(value, strength, same_too=True)
            self.put(" if ")
            self.child(condition, strength, same_too=True)
            self.put(" else ")
            self.child(other, strength, same_too=True)

    def _LambdaDoc(self, doc):
        self.put("lambda ")
        self.joined(doc.args)
        self.put(": ")
        self.child(doc.body, _LAMBDA)

    def _ListDoc(self, doc):
        self.put("[")
        self.joined(doc.elements)
        self.put("]")

    def _TupleDoc(self, doc):
        self.put("(")
        self.joined(doc.elements)
        self.put(",)" if len(doc.elements) == 1 else ")")

    def _DictDoc(self, doc):
        self.put("{")
        for index, (key, value) in enumerate(zip(doc.keys, doc.values)):
            self.put(", " if index else "")
            self.write(key)
            self.put(": ")
            self.write(value)
        self.put("}")

    def _SliceDoc(self, doc):
        for part, separator in ((doc.start, ""), (doc.stop, ":"), (doc.step, ":" if doc.step is not None else "")):
            self.put(separator)
            if part is not None:
                self.write(part)

    # Statements.

    def _StmtBlockDoc(self, doc):
        for index, stmt in enumerate(doc.stmts):
            if index:
                self.line()
            self.write(stmt)

    def _AssignDoc(self, doc):
        if isinstance(doc.lhs, parts.TupleDoc):
            self.joined(doc.lhs.elements)
        else:
            self.write(doc.lhs)
        if doc.annotation is not None:
            self.put(": ")
            self.write(doc.annotation)
        if doc.rhs is not None:
            self.put(" = ")
            if isinstance(doc.rhs, parts.TupleDoc) and len(doc.rhs.elements) > 1:
                self.joined(doc.rhs.elements)
            else:
                self.write(doc.rhs)
        self._beside(doc)

    def _IfDoc(self, doc):
        self._headed(doc, "if ", doc.predicate, body=doc.then_branch)
        if doc.else_branch:
            self.line()
            self.put("else:")
            self.block(doc.else_branch)

    def _headed(self, doc, word, *head, body, between=""):
        self._above(doc)
        self.put(word)
        for index, part in enumerate(head):
            self.put(between if index else "")
            self.write(part)
        self.put(":")
        self.block(body)

    def _WhileDoc(self, doc):
        self._headed(doc, "while ", doc.predicate, body=doc.body)

    def _ForDoc(self, doc):
        self._above(doc)
        self.put("for ")
        if isinstance(doc.lhs, parts.TupleDoc):
            self.joined(doc.lhs.elements)
            self.put("," if len(doc.lhs.elements) == 1 else "")
        else:
            self.write(doc.lhs)
        self.put(" in ")
        self.write(doc.rhs)
        self.put(":")
        self.block(doc.body)

    def _ScopeDoc(self, doc):
        head = (doc.rhs,) if doc.lhs is None else (doc.rhs, doc.lhs)
        self._headed(doc, "with ", *head, body=doc.body, between=" as ")

    def _ExprStmtDoc(self, doc):
        self.write(doc.expr)
        self._beside(doc)

    def _AssertDoc(self, doc):
        self.put("assert ")
        self.write(doc.test)
        if doc.msg is not None:
            self.put(", ")
            self.write(doc.msg)
        self._beside(doc)

    def _ReturnDoc(self, doc):
        self.put("return ")
        self.write(doc.value)
        self._beside(doc)

    def _decorators(self, doc):
        for decorator in doc.decorators:
            self.put("@")
            self.write(decorator)
            self.line()

    def _FunctionDoc(self, doc):
        if any(arg.comment is not None for arg in doc.args):
            raise ValueError("an argument of a function has no comment")
        self._decorators(doc)
        self.put("def ")
        self.write(doc.name)
        if doc.type_params:
            self.put("[")
            self.joined(doc.type_params)
            self.put("]")
        self.put("(")
        self.joined(doc.args)
        self.put(")")
        if doc.return_type is not None:
            self.put(" -> ")
            self.write(doc.return_type)
        self.put(":")
        self._inside(doc)
        self.block(doc.body)
        # A line of its own ends it, without indentation.
        if self.depth:
            self._exempt(lambda: self.put("\n"))

    def _ClassDoc(self, doc):
        self._decorators(doc)
        self.put("class ")
        self.write(doc.name)
        self.put(":")
        self._inside(doc)
        self.block(doc.body)


def _strength(doc):
    if isinstance(doc, parts.OperationDoc):
        if doc.kind not in _OPERATORS:
            raise ValueError(f"{doc.kind!r} is a bound, no operator")
        return _OPERATORS[doc.kind][1]
    return _LAMBDA if isinstance(doc, parts.LambdaDoc) else _ATOM


def _escaped(letter):
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    code = ord(letter)
    return letter if 32 <= code < 127 or code > 255 else f"\\x{code:02x}"


__all__ = ["to_python_script"]
