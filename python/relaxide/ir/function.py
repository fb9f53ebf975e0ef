"""What functions of all languages share."""

from . import _api
from .expr import AttrView, Expr


class BaseFunc(Expr):
    """The base of functions of a module. They never change: methods return functions that differ."""

    @property
    def attrs(self):
        """The attributes; ``None`` where there are none."""
        attrs = self._field("attrs")
        return AttrView(attrs) if len(attrs) else None

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with one attribute more, or with those of a dictionary."""
        more = attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        return _api.ir.WithAttrs(self, dict(more))

    def with_attrs(self, attr_map):
        """The function with more attributes; ``None`` leaves none."""
        if attr_map is not None:
            return _api.ir.WithAttrs(self, dict(attr_map))
        function = self
        for name in self.attrs or ():
            function = function.without_attr(name)
        return function

    def without_attr(self, attr_key):
        """The function with one attribute less."""
        return _api.ir.WithoutAttr(self, attr_key)
