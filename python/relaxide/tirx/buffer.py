"""Buffers: memory that kernels read and write by indices."""

from ..ffi import dtype as _dtype
from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node, Scriptable
from ..ir.expr import ExprWithOp, Range, Var
from ..ir.prim import BufferLoad, Ramp, const
from .stmt import BufferStore


@register_object("tirx.Buffer", init=False)
class Buffer(Node, Scriptable):
    """Memory with a shape and an element type; :func:`decl_buffer` makes one.

    ``name``, ``dtype``, ``shape``, ``strides``, ``elem_offset`` and ``data``, the pointer to it, say what it is.
    ``buffer[i, j]`` reads an element and ``buffer[0:4, j]`` stands for a region; another number of indices than of dimensions is
    an IndexError.
    """

    def __getitem__(self, indices):
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) != len(self.shape):
            raise IndexError(f"{self.name} has {len(self.shape)} dimensions, not {len(indices)}")
        if not any(isinstance(index, slice) for index in indices):
            return BufferLoad(self, indices)
        if all(getattr(index, "step", None) is None for index in indices):
            return BufferRegion(self, [self._range(*item) for item in enumerate(indices)])
        return BufferLoad(self, [self._vector(*item) for item in enumerate(indices)])

    def _bounds(self, axis, index):
        begin = 0 if index.start is None else index.start
        return begin, self.shape[axis] if index.stop is None else index.stop

    def _range(self, axis, index):
        return Range(*self._bounds(axis, index)) if isinstance(index, slice) else Range.from_min_extent(index, 1)

    def _vector(self, axis, index):
        """A slice with a step is a vector of indices."""
        if not isinstance(index, slice):
            return index
        begin, end = self._bounds(axis, index)
        step = 1 if index.step is None else index.step
        lanes = _api.prim.simplify((_index(end) - begin + step - 1) // step)
        if getattr(lanes, "value", None) is None:
            raise ValueError("a slice with a step has a constant length")
        return Ramp(_index(begin), step, lanes)

    def vload(self, begin, dtype=None):
        """The element, or the vector of type ``dtype``, at indices."""
        indices = list(begin) if isinstance(begin, (tuple, list)) else [begin]
        lanes = 1 if dtype is None else _dtype(dtype).lanes
        return BufferLoad(self, _last_as_vector(indices, lanes))

    def vstore(self, begin, value):
        """A store of an element or of a vector at indices."""
        indices = list(begin) if isinstance(begin, (tuple, list)) else [begin]
        lanes = value.dtype.lanes if isinstance(value, ExprWithOp) else 1
        return BufferStore(self, value, _last_as_vector(indices, lanes))

    @property
    def ty(self):
        """Its type: element, lengths, and how it lies in memory."""
        from .buffer_type import BufferType

        return BufferType(self)

    def scope(self):
        """The memory it lies in: ``"global"``, ``"local"``, ``"shared"`` …"""
        return self._field("scope")

    @property
    def data_alignment(self):
        """The alignment of its memory in bytes."""
        return self.alignment


def _index(value):
    return const(value) if isinstance(value, int) else value


def _last_as_vector(indices, lanes):
    if lanes == 1:
        return indices
    *rest, last = indices
    return [*rest, Ramp(_index(last), 1, lanes)]


def decl_buffer(
    shape,
    dtype=None,
    name="buffer",
    data=None,
    strides=None,
    elem_offset=None,
    scope="",
    data_alignment=-1,
    offset_factor=0,
    span=None,
    layout="default",
):
    """A buffer of a shape; the element type is float32 where none is given.

    ``data`` is the pointer to its memory, a variable; by default a fresh one. ``strides`` are the distances of neighbours
    along each dimension; none means compact, row by row. ``layout`` says where elements lie over threads and memory
    (:mod:`tirx.layout`), and ``None`` that nobody knows it yet. Numbers among the dimensions are 32-bit, as TVMScript reads them.
    ``scope`` is the memory it lies in, ``"global"`` where none is said. ``offset_factor`` says of how many elements the offset is
    a multiple; where no ``elem_offset`` is given with it, the offset is a variable that the caller's tensor gives.
    """
    shape = list(shape) if isinstance(shape, (tuple, list)) or hasattr(shape, "__len__") else [shape]
    if offset_factor and elem_offset is None:
        first = shape[0] if shape else 0
        elem_offset = Var("elem_offset", "int32" if isinstance(first, int) else first.dtype)
    strides = [_index(stride) for stride in strides or ()]
    # Of what has a default, nothing is said; that nobody knows the layout yet is said by a word.
    layout = {"default": None, None: "none"}.get(layout, layout) if layout is None or isinstance(layout, str) else layout
    parts = (data, strides, elem_offset, scope, data_alignment, max(offset_factor, 1), layout)
    return _api.tirx.Buffer(name, _dtype(dtype or "float32"), [_index(dim) for dim in shape], *parts)


def is_buffer_var(value):
    """Whether a value is a buffer."""
    return isinstance(value, Buffer)


@register_object("tirx.BufferRegion")
class BufferRegion(Node, Scriptable):
    """A box of a buffer: a range for each dimension."""

    def __init__(self, buffer, region):
        self.__init_handle_by_constructor__(_api.tirx.BufferRegion, buffer, list(region))

    @property
    def source(self):
        """The buffer."""
        return self.buffer


__all__ = ["Buffer", "BufferRegion", "decl_buffer", "is_buffer_var"]


def __getattr__(name):
    # What buffers can do beyond reads and writes is in a file of its own, and so is their type.
    if name == "BufferType":
        from .buffer_type import BufferType

        return BufferType
    from . import buffer_members

    if name in buffer_members.__all__:
        return getattr(buffer_members, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
