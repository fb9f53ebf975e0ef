"""Python's numbers as literals of programs."""


def const(value, dtype=None, span=None):
    """A number as a literal: of type ``dtype``; where none is given of bool, int32, int64 or float32, whichever holds it."""
    from ..ir import _api
    from ..ffi import dtype as element_type

    if not isinstance(value, (bool, int, float)):
        value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"a literal is a number or a bool, not {type(value).__name__}")
    if dtype is None:
        wide = isinstance(value, int) and not -(2**31) <= value < 2**31
        dtype = "bool" if isinstance(value, bool) else "float32" if isinstance(value, float) else "int64" if wide else "int32"
    return _api.prim.const(value, element_type(dtype))


__all__ = ["const"]
