"""Expressions of a program that is read, evaluated in Python."""

import ast

from . import dispatch, doc


class ExprEvaluator:
    """Evaluates expressions over a table of names."""

    def __init__(self, parser, value_table):
        self.parser, self.value_table = parser, value_table

    @staticmethod
    def eval(parser, value_table, node):
        """The value of an expression."""
        return ExprEvaluator(parser, value_table)._value(node)

    def _value(self, node):
        if isinstance(node, doc.Expression):
            node = node.body
        for kind, count in ((doc.BinOp, 2), (doc.Compare, 2), (doc.BoolOp, 2)):
            if isinstance(node, kind):
                made = self._by_dispatch(node)
                if made is not NotImplemented:
                    return made
        tree = ast.fix_missing_locations(ast.Expression(doc.from_doc(node)))
        return eval(compile(tree, "<script>", "eval"), {**self.value_table})  # noqa: S307 the program is the user's own

    def _by_dispatch(self, node):
        if isinstance(node, doc.BinOp):
            op, operands = type(node.op), [node.left, node.right]
        elif isinstance(node, doc.Compare) and len(node.ops) == 1:
            op, operands = type(node.ops[0]), [node.left, node.comparators[0]]
        elif isinstance(node, doc.BoolOp):
            op, operands = type(node.op), list(node.values)
        else:
            return NotImplemented
        if not dispatch._OPERATORS:
            return NotImplemented
        values = [self._value(one) for one in operands]
        for index, value in enumerate(values):
            found = dispatch.get_op(type(value), op, index)
            if found is not None:
                return found(*values)
        return NotImplemented


def eval_expr(parser, node, dict_globals):
    """The value of an expression over names."""
    return ExprEvaluator.eval(parser, dict_globals or {}, node)


def eval_assign(parser, target, source):
    """The names that an assignment gives values, with these: ``a, *b`` of ``[1, 2, 3]`` are ``{"a": 1, "b": [2, 3]}``."""
    names = {}

    def give(node, value):
        if isinstance(node, doc.Name):
            if node.id in names:
                raise ValueError(f"the name {node.id} stands twice in an assignment")
            names[node.id] = value
        elif isinstance(node, (doc.Tuple, doc.List)):
            values, stars = list(value), [i for i, one in enumerate(node.elts) if isinstance(one, doc.Starred)]
            missing = len(values) - len(node.elts)
            if missing < -1 or missing and not stars:
                raise ValueError(f"{len(values)} values for {len(node.elts)} names")
            if stars:
                at = stars[0]
                values[at : at + missing + 1] = [values[at : at + missing + 1]]
            for one, part in zip(node.elts, values):
                give(one.value if isinstance(one, doc.Starred) else one, part)
        elif isinstance(node, doc.Starred):
            give(node.value, value)
        else:
            raise ValueError(f"{type(node).__name__} is not given a value by name")

    give(target, source)
    return names


__all__ = ["ExprEvaluator", "eval_assign", "eval_expr"]
