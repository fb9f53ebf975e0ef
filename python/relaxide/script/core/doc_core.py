"""Trees of Python's syntax that do not depend on the version of Python: a class for each kind of node, with its fields as attributes."""

_PLACE = "lineno col_offset end_lineno end_col_offset"

#: The base of each kind, and its fields.
_STATEMENTS = {
    "FunctionDef": "name args body decorator_list returns",
    "ClassDef": "name bases keywords body decorator_list",
    "Return": "value",
    "Delete": "targets",
    "Assign": "targets value",
    "AugAssign": "target op value",
    "AnnAssign": "target annotation value simple",
    "For": "target iter body orelse",
    "While": "test body orelse",
    "If": "test body orelse",
    "With": "items body",
    "Raise": "exc cause",
    "Try": "body handlers orelse finalbody",
    "Assert": "test msg",
    "Import": "names",
    "ImportFrom": "module names level",
    "Global": "names",
    "Nonlocal": "names",
    "Expr": "value",
    "Pass": "",
    "Break": "",
    "Continue": "",
}
_EXPRESSIONS = {
    "BoolOp": "op values",
    "BinOp": "left op right",
    "UnaryOp": "op operand",
    "Lambda": "args body",
    "IfExp": "test body orelse",
    "Dict": "keys values",
    "Set": "elts",
    "ListComp": "elt generators",
    "SetComp": "elt generators",
    "DictComp": "key value generators",
    "GeneratorExp": "elt generators",
    "Yield": "value",
    "YieldFrom": "value",
    "Compare": "left ops comparators",
    "Call": "func args keywords",
    "FormattedValue": "value conversion format_spec",
    "JoinedStr": "values",
    "Constant": "value kind",
    "Attribute": "value attr ctx",
    "Subscript": "value slice ctx",
    "Starred": "value ctx",
    "Name": "id ctx",
    "List": "elts ctx",
    "Tuple": "elts ctx",
    "Slice": "lower upper step",
    "NamedExpr": "target value",
}
#: What functions and classes are generic over.
_TYPE_PARAMS = {"TypeVar": "name bound default_value", "ParamSpec": "name default_value", "TypeVarTuple": "name default_value"}
_WORDS = {
    "boolop": "And Or",
    "operator": "Add BitAnd BitOr BitXor Div FloorDiv LShift Mod Mult MatMult Pow RShift Sub",
    "unaryop": "Invert Not UAdd USub",
    "cmpop": "Eq Gt GtE In Is IsNot Lt LtE NotEq NotIn",
    "expr_context": "Load Store Del",
}
_PARTS = {
    "comprehension": "target iter ifs is_async",
    "arguments": "args vararg kwonlyargs kw_defaults kwarg defaults posonlyargs",
    "arg": f"arg annotation {_PLACE}",
    "keyword": "arg value",
    "alias": "name asname",
    "withitem": "context_expr optional_vars",
}


class AST:
    """The base of nodes. Fields are attributes, and arguments in their order; equal nodes are of one class with equal fields."""

    _FIELDS = ()

    def __init__(self, *values, **named):
        if len(values) > len(self._FIELDS):
            raise TypeError(f"{type(self).__name__} has {len(self._FIELDS)} fields, got {len(values)}")
        unknown = set(named) - set(self._FIELDS)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]!r}; there are: {', '.join(self._FIELDS)}")
        for field in self._FIELDS:
            setattr(self, field, None)
        for field, value in [*zip(self._FIELDS, values), *named.items()]:
            setattr(self, field, value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{field}={getattr(self, field)!r}' for field in self._FIELDS)})"


def _make(name, base, fields, doc):
    return type(name, (base,), {"__doc__": doc, "__module__": __name__, "_FIELDS": tuple(fields.split())})


def _classes():
    made = {}

    def put(name, base, fields, doc):
        made[name] = _make(name, made.get(base, AST), fields, doc)

    for name, what in (("mod", "programs"), ("stmt", "statements"), ("expr", "expressions"), ("excepthandler", "handlers of errors"), ("type_param", "type parameters")):
        put(name, None, "", f"The base of {what}.")
    for word in _WORDS:
        put(word, None, "", "The base of words.")
    for name, fields in (("Module", "body"), ("Interactive", "body"), ("Expression", "body")):
        put(name, "mod", fields, f"A program of kind {name}.")
    for table, base in ((_STATEMENTS, "stmt"), (_EXPRESSIONS, "expr"), (_TYPE_PARAMS, "type_param")):
        for name, fields in table.items():
            put(name, base, f"{fields} {_PLACE}", f"The node {name} of Python's syntax.")
    for base, names in _WORDS.items():
        for name in names.split():
            put(name, base, "", f"The word {name} of Python's syntax.")
    for name, fields in _PARTS.items():
        put(name, None, fields, f"The part {name} of Python's syntax.")
    put("ExceptHandler", "excepthandler", "type name body", "A handler of errors.")
    return made


globals().update(_classes())
__all__ = ["AST", *_classes()]
