"""What functions of all languages share."""

from enum import IntEnum

from .. import _core
from . import _api
from .attrs import DictAttrs
from .expr import Expr


class BaseFunc(Expr):
    """The base of functions of a module. They never change: methods return functions that differ."""

    @property
    def attrs(self):
        """The attributes by name."""
        attrs = DictAttrs(self._field("attrs"))
        if isinstance(attrs.get("target"), str):
            attrs["target"] = _core.Target(attrs["target"])
        return attrs

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with one attribute more, or with those of a dictionary."""
        more = attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        return _api.ir.WithAttrs(self, dict(more))

    def with_attrs(self, attr_map):
        """The function with more attributes; ``None`` leaves none."""
        if attr_map is not None:
            return _api.ir.WithAttrs(self, dict(attr_map))
        function = self
        for name in self.attrs:
            function = function.without_attr(name)
        return function

    def without_attr(self, attr_key):
        """The function with one attribute less."""
        return _api.ir.WithoutAttr(self, attr_key)


class CallingConv(IntEnum):
    """How a kernel is called: by the program, by the library's functions, or as a launch of a device."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2
