"""Element types: text that knows its size."""

from enum import IntEnum

from .. import _core


class DataTypeCode(IntEnum):
    """Kinds of elements, with DLPack's numbers."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    BOOL = 6
    Float8E3M4 = 7
    Float8E4M3 = 8
    Float8E4M3B11FNUZ = 9
    Float8E4M3FN = 10
    Float8E4M3FNUZ = 11
    Float8E5M2 = 12
    Float8E5M2FNUZ = 13
    Float8E8M0FNU = 14
    Float6E2M3FN = 15
    Float6E3M2FN = 16
    Float4E2M1FN = 17


class dtype(str):
    """An element type, which is also its name: ``dtype("float32") == "float32"``."""

    __slots__ = ("_data_type",)

    def __new__(cls, content):
        # The type of a scalar is that of its elements.
        of = getattr(content, "dtype", None)
        data_type = _core.DataType(of if isinstance(of, dtype) else content)
        self = str.__new__(cls, data_type)
        self._data_type = data_type
        return self

    @staticmethod
    def from_dlpack_data_type(dltype_data_type):
        """The element type of a triple ``(code, bits, lanes)``."""
        return dtype(_core.DataType._of(*dltype_data_type))

    def __repr__(self):
        return f"dtype('{self}')"

    def __reduce__(self):
        return (dtype, (str(self),))

    def with_lanes(self, lanes):
        """The vector of ``lanes`` such elements."""
        return dtype.from_dlpack_data_type((self.type_code, self.bits, lanes))

    @property
    def type_code(self):
        """The kind of element, one of :class:`DataTypeCode`."""
        return self._data_type.type_code

    @property
    def bits(self):
        """Bits of one lane."""
        return self._data_type.bits

    @property
    def lanes(self):
        """Lanes of one element."""
        return self._data_type.lanes

    @property
    def itemsize(self):
        """Bytes of one element with all its lanes. Of a vector whose lanes the machine says it is a ValueError to ask."""
        if "vscale" in str(self):
            raise ValueError(f"how many bytes {self} has is known to the machine that runs it")
        return self.bits * self.lanes // 8

    @property
    def dtype(self):
        """The element type itself, as arrays have it."""
        return self


_core.set_dtype_class(dtype)

#: The element types that are names of this package.
NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float64 float32 float16 bfloat16 float8_e3m4 float8_e4m3 "
    "float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float6_e2m3fn "
    "float6_e3m2fn float4_e2m1fn float4_e2m1fnx2"
).split()

__all__ = ["DataTypeCode", "dtype"]
