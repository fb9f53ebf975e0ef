"""Modules of Relay: functions and data types by name."""

from ..ffi import register_object
from ..ir.base import Node
from ..ir.expr import GlobalVar
from . import _api
from .expr import Function, RelayExpr
from .ty import GlobalTypeVar


@register_object("relay.Module")
class ModuleNode(Node):
    """The node of a module, which never changes."""


class IRModule:
    """A module: functions by variable or name, and data types. What it uses of the prelude need not be in it."""

    def __init__(self, functions=None, type_definitions=None, attrs=None):
        items = (functions or {}).items()
        named = {getattr(name, "name_hint", name): function for name, function in items}
        types = list((type_definitions or {}).values())
        self._node = _api.ir.Module(named, types, dict(attrs) if attrs else None)

    @staticmethod
    def of(node):
        """The module of a node."""
        made = IRModule.__new__(IRModule)
        made._node = node
        return made

    @staticmethod
    def from_expr(expr, functions=None, type_defs=None):
        """The module whose ``main`` is a function, or a function of an expression's free variables."""
        if not isinstance(expr, Function):
            expr = Function(_api.ir.FreeVars(expr), expr)
        module = IRModule(functions, type_defs)
        module["main"] = expr
        return module

    @property
    def functions(self):
        """The functions by their variables."""
        return {GlobalVar(name): function for name, function in self._node.functions.items()}

    @property
    def type_definitions(self):
        """The data types by their names."""
        return {GlobalTypeVar(name): data for name, data in self._node.types.items()}

    @property
    def attrs(self):
        """The attributes."""
        return self._node.attrs

    def _named(self):
        return dict(self._node.functions.items())

    def _types(self):
        return list(self._node.types.values())

    def __getitem__(self, var):
        if isinstance(var, GlobalTypeVar):
            return self._node.types[var.name_hint]
        name = getattr(var, "name_hint", var)
        functions = self._named()
        if name not in functions:
            raise KeyError(f"the module has no function {name!r}; there are: {', '.join(functions)}")
        return functions[name]

    def __setitem__(self, var, value):
        functions, types = self._named(), self._types()
        if isinstance(var, GlobalTypeVar):
            types = [data for data in types if data.name != var.name_hint] + [value]
        else:
            if not isinstance(value, Function):
                value = Function(_api.ir.FreeVars(value), value)
            functions[getattr(var, "name_hint", var)] = value
        self._node = _api.ir.Module(functions, types, self._node.attrs)

    def __contains__(self, var):
        return getattr(var, "name_hint", var) in self._named()

    def __len__(self):
        return len(self._named())

    def get_global_var(self, name):
        """The variable of a function."""
        self[name]
        return GlobalVar(name)

    def get_global_vars(self):
        """The variables of all functions."""
        return list(self.functions)

    def get_global_type_var(self, name):
        """The name of a data type."""
        return GlobalTypeVar(self._types_by_name()[name].name)

    def _types_by_name(self):
        return {data.name: data for data in [*_api.ir.Prelude().types.values(), *self._types()]}

    def get_type(self, name):
        """A data type with its constructors, one after the other."""
        data = self._types_by_name()[name]
        return (data.header, *data.constructors)

    def update(self, other):
        """Take over the functions and types of another module."""
        functions = {**self._named(), **other._named()}
        types = {data.name: data for data in [*self._types(), *other._types()]}
        self._node = _api.ir.Module(functions, list(types.values()), self._node.attrs)

    def update_func(self, var, func):
        """Replace a function, or add one."""
        self[var] = func

    def import_from_std(self, file_to_import):
        """Take over the prelude's types and functions. Programs that use them need not."""
        if file_to_import != "prelude.rly":
            raise ValueError(f"there is no library {file_to_import!r}; there is 'prelude.rly'")
        self._node = _api.ir.WithPrelude(self._node)

    def type_of(self, expr):
        """The type of an expression in the module."""
        return _api.ir.TypeOf(expr, self._node)

    def clone(self):
        """A module of its own with the same functions."""
        return IRModule.of(self._node)

    def astext(self, show_meta_data=True, annotate=None):
        """The text that :func:`relaxide.relay.parse` reads."""
        return _api.ir.Text(self._node, False)

    def show(self, *_, **__):
        """Print the text."""
        print(self.astext())

    def __repr__(self):
        return self.astext()

    __str__ = __repr__

    def __eq__(self, other):
        from ..ffi import structural_equal

        return isinstance(other, IRModule) and bool(structural_equal(self._node, other._node))

    __hash__ = None


def module_of(value):
    """A module of a module, a function or an expression."""
    if isinstance(value, IRModule):
        return value
    if isinstance(value, RelayExpr):
        return IRModule.from_expr(value)
    raise TypeError(f"a module or an expression of Relay is expected, not {type(value).__name__}")


def parse(source, source_name="from_string", init_module=None, init_meta_table=None):
    """The module of a text. It may use the prelude; types are inferred, and what is wrong is shown at its line."""
    if init_module is not None or init_meta_table is not None:
        raise NotImplementedError("a text is parsed on its own: put the functions that it uses into it")
    module = IRModule.of(_api.ir.ParseModule(source, str(source_name)))
    _api.ir.InferType(module._node)
    return module


def fromtext(source, source_name="from_string"):
    """The module of a text, as :func:`parse`."""
    return parse(source, source_name)


def parse_expr(source, source_name="from_string"):
    """The expression of a text; it may use the prelude."""
    return _api.ir.ParseExpr(source, source_name, None)


def save_json(module):
    """A module as TVM 0.16 saves it."""
    return _api.ir.SaveJson(module_of(module)._node)


def load_json(text):
    """The module of a text that TVM 0.6 to 0.16 saved."""
    return IRModule.of(_api.ir.LoadJson(text))


__all__ = ["IRModule", "fromtext", "load_json", "parse", "parse_expr", "save_json"]
