"""Attributes of calls and functions: values by name."""


class Attrs(dict):
    """Attributes by name, as items and as attributes."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no attribute {name!r}; there are: {', '.join(self)}") from None

    def get_int(self, key):
        """An integer attribute."""
        return int(self[key])

    def get_int_tuple(self, key):
        """An attribute of several integers."""
        return tuple(int(getattr(value, "value", value)) for value in self[key])

    def get_str(self, key):
        """A text attribute."""
        return str(self[key])


class DictAttrs(Attrs):
    """Attributes that may have any name."""


def make_node(type_key, **kwargs):
    """The node of a type, of its fields by name: ``make_node("ir.IntImm", ty=PrimType("int32"), value=1)``."""
    if type_key == "ir.DictAttrs":
        return DictAttrs(kwargs)
    from ..ffi import get_global_func

    fields = (part for pair in kwargs.items() for part in pair)
    return get_global_func("ffi.MakeObjectFromPackedArgs")(type_key, *fields)


__all__ = ["Attrs", "DictAttrs", "make_node"]
