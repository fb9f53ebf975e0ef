"""Object types that Python declares, by classes with annotated fields.

::

    @py_class("example.Point")
    class Point(Object):
        x: int
        y: int = 0

    point = Point(1)

The type is one of the whole process: other languages read its fields, and comparison, hashes, printing, copies and JSON work
as for types of the compiler. :func:`c_class` gives a type that is declared elsewhere a class.
"""

from ..._core import Object
from ._class import c_class, py_class
from ._enum import Enum, EnumAttrMap, EnumState, IntEnum, StrEnum, auto, entry
from ._field import KW_ONLY, MISSING, Field, field
from ._values import asdict, astuple, fields, is_dataclass, replace

__all__ = ["KW_ONLY", "MISSING", "Field", "Object", "asdict", "astuple", "c_class", "field", "fields", "is_dataclass"]
__all__ += ["Enum", "EnumAttrMap", "EnumState", "IntEnum", "StrEnum", "auto", "entry", "py_class", "replace"]
