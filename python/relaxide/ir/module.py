"""Modules: functions by name."""

from .. import _core
from .._core import IRModule
from .._extend import methods_of
from .base import _MARKS, _known_style, _marked, _with_alias
from .supply import UniqueNameSupply


@methods_of(IRModule)
class _Methods:
    def script(self, *, show_meta=False, **style):
        """The module as TVMScript. ``show_meta`` adds the section that holds tensor constants; parts of the text are underlined and
        remarked upon as :meth:`relaxide.ir.base.Scriptable.script` says."""
        _known_style(style)
        if _MARKS.intersection(name for name, value in style.items() if value):
            options = (style.pop("print_line_numbers", False), style.pop("num_context_lines", -1))
            return _marked(self, show_meta, *options, style)
        text = self._script(show_meta).removesuffix("\n")
        return text if style.get("module_alias") is None else _with_alias(text, style["module_alias"])

    def show(self, style=None, black_format=None, *, show_meta=False, **options):
        """Print the module as TVMScript, coloured where the output shows colours."""
        from ._highlight import show

        show(self.script(show_meta=show_meta, **options))

    @property
    def functions(self):
        """The functions by their variables."""
        return dict(self._items())

    def functions_items(self):
        """The functions with their variables, sorted by name."""
        return sorted(self._items(), key=lambda item: item[0].name_hint)

    def get_global_vars(self):
        """The variables of all functions."""
        return [var for var, _ in self._items()]

    def update_func(self, var, func):
        """Replace a function, or add one."""
        self[var] = func

    def update(self, other):
        """Take over the functions of another module, or of a dictionary."""
        for var, func in (other.functions if isinstance(other, IRModule) else other).items():
            self[var] = func

    def get_attr(self, attr_key):
        """An attribute; ``None`` if there is none."""
        return (self.attrs or {}).get(attr_key)

    def with_attr(self, attr_key, attr_value):
        """A module with one attribute more."""
        return self.with_attrs({attr_key: attr_value})

    def with_attrs(self, attr_map):
        """A module with more attributes."""
        changed = self.clone()
        changed._set_attrs({**(self.attrs or {}), **attr_map})
        return changed

    def without_attr(self, attr_key):
        """A module with one attribute less."""
        changed = self.clone()
        changed._set_attrs({key: value for key, value in (self.attrs or {}).items() if key != attr_key})
        return changed

    @staticmethod
    def from_expr(expr, functions=None):
        """The module of one function, and of others if they are given. It is named by its symbol, or ``main`` with a number behind where
        that is taken. A function of Relay makes a module of Relay."""
        if getattr(type(expr), "__tvm_ffi_type_key__", "").startswith("relay."):
            from ..relay.module import IRModule as RelayModule

            return RelayModule.from_expr(expr, functions)
        attrs = expr.attrs or {}
        module = IRModule(functions)
        name = attrs.get("global_symbol")
        if name is None:
            names = UniqueNameSupply()
            for var in module.get_global_vars():
                names.reserve_name(var.name_hint)
            name = names.fresh_name("main")
        module[name] = expr
        return module

    def __repr__(self):
        return self.script()

    def __iter__(self):
        return iter(self.get_global_vars())

    def __reduce__(self):
        return _from_script, (self.script(show_meta=True),)

    def __dir__(self):
        return sorted({*object.__dir__(self), *(var.name_hint for var in self.get_global_vars())})


def _from_script(text):
    return _core.parse_script(text, "<pickled module>", 1, False)


__all__ = ["IRModule"]
