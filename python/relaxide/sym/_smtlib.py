"""Conditions in the language of SMT-LIB, for solvers that read it."""

from ..ir import prim
from ..ir.expr import Var

_OPERATORS = {
    prim.Add: "+",
    prim.Sub: "-",
    prim.Mul: "*",
    prim.LT: "<",
    prim.LE: "<=",
    prim.GT: ">",
    prim.GE: ">=",
    prim.EQ: "=",
    prim.NE: "distinct",
    prim.And: "and",
    prim.Or: "or",
}
#: How operators that the language lacks, or rounds in another way, are said in it.
_SPELLED = {
    prim.Min: "(ite (<= {a} {b}) {a} {b})",
    prim.Max: "(ite (<= {a} {b}) {b} {a})",
    prim.FloorDiv: "(ite (> {b} 0) (div {a} {b}) (div (- {a}) (- {b})))",
    prim.FloorMod: "(- {a} (* {b} (ite (> {b} 0) (div {a} {b}) (div (- {a}) (- {b})))))",
    prim.Div: "(ite (>= {a} 0) (div {a} {b}) (- (div (- {a}) {b})))",
    prim.Mod: "(- {a} (* {b} (ite (>= {a} 0) (div {a} {b}) (- (div (- {a}) {b})))))",
}


class _Writer:
    def __init__(self):
        self.declared = {}

    def name(self, node, hint):
        """A constant for a node that has no form here."""
        if node not in self.declared:
            taken = {name for name, _ in self.declared.values()}
            name = next(name for name in (hint, *(f"{hint}_{at}" for at in range(len(taken) + 1))) if name not in taken)
            self.declared[node] = name, "Bool" if str(node.dtype) == "bool" else "Int"
        return f"|{self.declared[node][0]}|"

    def text(self, node):
        kind = type(node)
        if kind is prim.IntImm:
            if str(node.dtype) == "bool":
                return "true" if node.value else "false"
            return str(node.value) if node.value >= 0 else f"(- {-node.value})"
        if isinstance(node, Var):
            return self.name(node, node.name or "v")
        if kind in _OPERATORS:
            return f"({_OPERATORS[kind]} {self.text(node.a)} {self.text(node.b)})"
        if kind in _SPELLED:
            return _SPELLED[kind].format(a=self.text(node.a), b=self.text(node.b))
        if kind is prim.Not:
            return f"(not {self.text(node.a)})"
        if kind is prim.Select:
            return f"(ite {self.text(node.condition)} {self.text(node.true_value)} {self.text(node.false_value)})"
        return self.name(node, "opaque")

    def bounds(self):
        """What types say of constants."""
        for node, (name, sort) in self.declared.items():
            dtype = str(node.dtype)
            if sort == "Int" and dtype.lstrip("u").startswith("int"):
                bits = int(dtype.lstrip("u").removeprefix("int"))
                low, high = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
                yield f"(and (<= {low if low >= 0 else f'(- {-low})'} |{name}|) (<= |{name}| {high}))"


def script_of(conditions, goal=None):
    """A script that asks whether conditions, and the contrary of another one, can hold together."""
    writer = _Writer()
    said = [writer.text(condition) for condition in conditions]
    if goal is not None:
        said.append(f"(not {writer.text(goal)})")
    declared = [f"(declare-const |{name}| {sort})" for name, sort in writer.declared.values()]
    asserted = [f"(assert {text})" for text in (*writer.bounds(), *said)]
    return "\n".join([*declared, *asserted, "(check-sat)", ""])
