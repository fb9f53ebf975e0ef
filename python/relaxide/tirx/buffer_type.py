"""The type of a buffer: what its elements are, and how they lie in memory."""

from ..ir.type import PrimType


class BufferType:
    """What a buffer is, apart from its name: two buffers of one type can take each other's place.

    ``shape``, ``strides``, ``elem_offset``, ``data_alignment``, ``offset_factor`` and ``layout`` are the buffer's own; ``dtype`` is the type
    of an element, and ``storage_scope`` the memory that it lies in.
    """

    def __init__(self, buffer):
        self._buffer = buffer

    def __getattr__(self, name):
        if name in ("shape", "strides", "elem_offset", "data_alignment", "offset_factor", "layout"):
            return getattr(self._buffer, name)
        raise AttributeError(f"the type of a buffer has no attribute {name!r}")

    @property
    def dtype(self):
        """The type of an element."""
        return PrimType(self._buffer.dtype)

    @property
    def storage_scope(self):
        """The memory it lies in: ``"global"``, ``"local"``, ``"shared"`` …"""
        return self._buffer.scope()

    def _parts(self):
        from ..ffi import structural_hash

        buffer = self._buffer
        numbers = [*buffer.shape, *buffer.strides, buffer.elem_offset]
        return str(self.dtype), self.storage_scope, buffer.data_alignment, buffer.offset_factor, *map(structural_hash, numbers)

    def __eq__(self, other):
        return isinstance(other, BufferType) and self._parts() == other._parts()

    def __hash__(self):
        return hash(self._parts())

    def is_missing(self):
        """Whether nothing is known of it: never."""
        return False

    def __repr__(self):
        return f"T.Buffer(({', '.join(map(str, self.shape))}), {str(self._buffer.dtype)!r})"


__all__ = ["BufferType"]
