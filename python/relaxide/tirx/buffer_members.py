"""What buffers can do beyond reads and writes: pointers, offsets, views.

Buffers are nodes of their own here; in TVM they are variables of a buffer's type. A variable that holds a scalar has the names of
these members and rejects them, as TVM's does.
"""

from enum import IntEnum
from math import prod

from ..ffi import dtype as _dtype
from ..ir.expr import Range, Var
from ..ir.prim import const
from ..ir.type import PointerType, PrimType
from .buffer import Buffer, BufferRegion, decl_buffer
from .intrinsic import address_of, tvm_access_ptr


class BufferAccessKind(IntEnum):
    """What is done through a pointer."""

    READ = 1
    WRITE = 2


def buffer_data(buffer):
    """The pointer to a buffer's memory."""
    _check_buffer(buffer)
    return buffer.data


def buffer_data_pointer_type(buffer):
    """The type of the pointer to a buffer's memory."""
    _check_buffer(buffer)
    return PointerType(PrimType(buffer.dtype), buffer.scope())


def _check_buffer(value):
    if not isinstance(value, Buffer):
        raise TypeError(f"a buffer is expected, and got {type(value).__name__}")


def access_ptr(self, access_mask, ptr_type="handle", content_lanes=1, offset=0, extent=None):
    """The address of elements, for a function that is handed it.

    Parameters
    ----------
    access_mask : int or str
        What is done through it: ``"r"``, ``"w"``, ``"rw"``, or bits of :class:`BufferAccessKind`.
    ptr_type : str, optional
        The pointer's type; another than ``"handle"`` is what elements are taken for.
    content_lanes : int, optional
        How many elements one access takes.
    offset : Expr, optional
        How many elements behind the first one.
    extent : Expr, optional
        How many elements are in reach; all from there on, where nothing is said.
    """
    if isinstance(access_mask, str):
        unknown = set(access_mask) - set("rw")
        if unknown:
            raise ValueError(f"access_mask is {access_mask!r}: 'r', 'w' or 'rw' is expected")
        access_mask = ("r" in access_mask) * BufferAccessKind.READ | ("w" in access_mask) * BufferAccessKind.WRITE
    if ptr_type not in ("handle", PointerType(PrimType("void"))):
        raise NotImplementedError(f"ptr_type={ptr_type!r}: pointers are to the buffer's own elements here; reinterpret the result")
    element = _dtype(self.dtype)
    first = _plus(self.elem_offset, offset)
    # Of a buffer with strides, what lies between its elements is in reach, too.
    reach = self.strides[0] * self.shape[0] if len(self.strides) else _total(self)
    extent = reach - offset if extent is None else extent
    if content_lanes > 1:
        first, element = first // content_lanes, element.with_lanes(content_lanes)
        extent = extent // content_lanes
    return tvm_access_ptr(element, self.data, first, extent, int(access_mask))


def offset_of(self, indices):
    """Where an element lies behind the first of the memory, in elements, as a list of one."""
    return [_plus(self.elem_offset, _within(self, indices))]


def elem_offset_of(self, indices, inner=True):
    """Where an element lies behind the buffer's first; with ``inner=False`` behind the first of the memory."""
    return _within(self, indices) if inner else offset_of(self, indices)[0]


def byte_offset_of(self, indices, inner=True):
    """The same in bytes."""
    return elem_offset_of(self, indices, inner) * _dtype(self.dtype).bits // 8


def byte_offset(self):
    """Where the buffer's first element lies in its memory, in bytes."""
    return self.elem_offset * _dtype(self.dtype).bits // 8


def get_flattened_buffer(self):
    """The same memory as a buffer of one dimension; the buffer itself where it has one."""
    return self if len(self.shape) == 1 else _view(self, [_total(self)], strides=())


def with_dtype(self, dtype):
    """Another buffer of the same kind, whose elements are of another type."""
    parts = (list(self.strides), self.elem_offset, self.scope(), self.data_alignment)
    return decl_buffer(list(self.shape), dtype, self.name, None, *parts)


def is_scalar(self, alloc_or_decl=True):
    """Whether it holds one element, by having no dimension or one of length 1."""
    return all(getattr(dim, "value", None) == 1 for dim in self.shape) and len(self.shape) <= 1


def ptr_to(self, indices):
    """The address of an element."""
    if len(indices) != len(self.shape):
        raise ValueError(f"{self.name} has {len(self.shape)} dimensions, not {len(indices)}")
    return address_of(self[tuple(indices)])


def view(self, *args, layout=None):
    """The same memory with other dimensions, of which one may be -1, or, given an element type, with other elements.

    Parameters
    ----------
    args :
        The dimensions, or the element type.
    layout : Layout, optional
        Where the elements lie; where the buffer has a layout of its own, the view keeps it.

    Raises
    ------
    ValueError
        The buffer is not compact, or holds another number of elements.
    """
    if layout is not None:
        return _view(self, list(args), strides=[], layout=layout)
    if len(self.strides):
        raise ValueError(f"{self.name} has strides, so that its elements are not one behind the other: view takes a compact buffer")
    if len(args) == 1 and isinstance(args[0], (str, type(_dtype("int8")))):
        ours, theirs = _dtype(self.dtype).bits, _dtype(args[0]).bits
        *outer, last = self.shape
        layout = _given_layout(self)
        if layout != "default" and layout is not None:
            layout = layout.pack(theirs // ours) if theirs > ours else layout.unpack(ours // theirs)
        return _view(self, [*outer, last * ours // theirs], dtype=args[0], elem_offset=self.elem_offset * ours // theirs, layout=layout)
    shape = list(args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args)
    if -1 in [dim for dim in shape if isinstance(dim, int)]:
        shape[shape.index(-1)] = _total(self) // prod((dim for dim in shape if not isinstance(dim, int) or dim != -1), start=1)
    known = [getattr(dim, "value", dim) for dim in [*shape, _total(self)]]
    if all(isinstance(dim, int) for dim in known) and prod(known[:-1]) != known[-1]:
        raise ValueError(f"{self.name} holds {known[-1]} elements, and the view {known[:-1]} has {prod(known[:-1])}")
    return _view(self, shape, layout=_given_layout(self))


def local(self, *shape, layout=None):
    """What a thread holds of a buffer that is spread over threads, one element behind another.

    Parameters
    ----------
    shape : int or Expr
        Dimensions of as many elements; one of all of them where none are given.
    layout : Layout, optional
        Where the elements lie within the thread.

    Raises
    ------
    ValueError
        The buffer's layout is not known, or the dimensions are of another number of elements.
    """
    from ..sym import Analyzer

    whole = self.layout
    if whole is None and (layout is None or not shape):
        raise ValueError(f"{self.name} has layout=None: what a thread holds of it is not known (parent buffer has layout=None); give it a layout")
    if not shape:
        held = whole.storage()
        shape = (held.span() if layout is None else held.size(),)
    elif layout is None:
        span = whole.storage().span()
        if not Analyzer().can_prove_equal(prod(shape, start=const(1, "int32")), span):
            raise ValueError(f"a thread holds {span} elements of {self.name}, and the local view {list(shape)} has another number")
    return _view(self, list(shape), strides=[], layout="default" if layout is None else layout)


def permute(self, *dims):
    """The same memory with its dimensions in another order."""
    if sorted(dims) != list(range(len(self.shape))):
        raise ValueError(f"{self.name} has {len(self.shape)} dimensions: each of their numbers once is expected, and got {dims}")
    strides = _strides(self)
    return _view(self, [self.shape[dim] for dim in dims], strides=[strides[dim] for dim in dims])


def _check_within(buffer, index, dim):
    """Refuses an index that is known to lie outside."""
    place, length = _known(index), _known(dim)
    if place is not None and (place < 0 or (length is not None and place >= length)):
        raise ValueError(f"{buffer.name}.sub: index {place} is out of range for a dimension of {dim}")


def _check_part(buffer, begin, end, step, dim):
    """Refuses a part that is known to be empty or to lie outside."""
    first, last, length = _known(begin), _known(end), _known(dim)
    if first is None:
        return
    if step != 1 and not 0 <= first < step:
        raise ValueError(f"{buffer.name}.sub: a part by {step} begins in [0, {step}), not at {first}")
    if first < 0:
        raise ValueError(f"{buffer.name}.sub: the begin of a part must be non-negative, not {first}")
    if last is not None and last <= first:
        raise ValueError(f"{buffer.name}.sub: the length of a part must be positive, not {last - first}")
    if last is not None and length is not None and last > length:
        raise ValueError(f"{buffer.name}.sub: the part {first}:{last} exceeds a dimension of {length}")


def _known(value):
    return getattr(value, "value", value if isinstance(value, int) else None)


class _Sub:
    """Makes views by indices: a number drops a dimension, a slice narrows it, and a step takes every so many elements."""

    def __init__(self, buffer):
        self._buffer = buffer

    def __getitem__(self, indices):
        buffer = self._buffer
        indices = indices if isinstance(indices, tuple) else (indices,)
        if len(indices) > len(buffer.shape):
            raise IndexError(f"{buffer.name} has {len(buffer.shape)} dimensions, not {len(indices)}")
        indices += (slice(None),) * (len(buffer.shape) - len(indices))
        shape, strides, first = [], [], buffer.elem_offset
        for index, dim, stride in zip(indices, buffer.shape, _strides(buffer)):
            if not isinstance(index, slice):
                _check_within(buffer, index, dim)
                first = _plus(first, index * stride)
                continue
            begin, step = 0 if index.start is None else index.start, 1 if index.step is None else index.step
            end = dim if index.stop is None else index.stop
            _check_part(buffer, begin, end, step, dim)
            first = _plus(first, begin * stride)
            shape.append((end - begin + step - 1) // step)
            strides.append(stride * step)
        return _view(buffer, shape, strides=strides, elem_offset=first)


def sub(self):
    """Views by indices: ``buffer.sub[2, 4:8]`` is the same memory without its first dimension, and four of the second."""
    return _Sub(self)


class _Chunks:
    def __init__(self, buffer, counts):
        self._buffer, self._counts = buffer, counts

    def __getitem__(self, picks):
        picks = picks if isinstance(picks, tuple) else (picks,)
        if len(picks) != len(self._counts):
            raise IndexError(f"{self._buffer.name} has {len(self._counts)} dimensions, not {len(picks)}")
        region = []
        for pick, count, dim in zip(picks, self._counts, self._buffer.shape):
            if count is not None:
                length = dim // count
                region.append(Range.from_min_extent(pick * length, length))
            elif isinstance(pick, slice):
                begin = pick.start or 0
                region.append(Range(begin, dim if pick.stop is None else pick.stop))
            else:
                region.append(Range.from_min_extent(pick, 1))
        return BufferRegion(self._buffer, region)


def chunk(self, spec):
    """Regions that are equal parts: ``buffer.chunk((None, 4))[:, 2]`` is the third quarter along the second dimension."""
    if len(spec) != len(self.shape):
        raise ValueError(f"{self.name} has {len(self.shape)} dimensions, and the chunks are of {len(spec)}")
    for count, dim in zip(spec, self.shape):
        if count is not None and isinstance(getattr(dim, "value", None), int) and dim.value % count:
            raise ValueError(f"a dimension of {dim.value} has no {count} equal parts")
    return _Chunks(self, tuple(spec))


def _for_gpus(name):
    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"Buffer.{name} is about memory of GPU threads and their layouts; view, permute and sub make views of memory")

    refuse.__name__ = name
    refuse.__doc__ = f"``{name}`` of a buffer over threads of a GPU, which is not here: a NotImplementedError says what to use."
    return refuse


def _given_layout(buffer):
    """The layout that a buffer was given."""
    given = buffer._field("layout")
    return "default" if given is None else None if isinstance(given, str) else given


def _view(buffer, shape, *, dtype=None, strides=None, elem_offset=None, layout="default"):
    strides = list(buffer.strides if strides is None and len(shape) == len(buffer.strides) else strides or ())
    offset = buffer.elem_offset if elem_offset is None else elem_offset
    parts = (strides, offset, buffer.scope(), buffer.data_alignment)
    return decl_buffer(shape, dtype or buffer.dtype, buffer.name, buffer.data, *parts, layout=layout)


def _layout(buffer):
    from .layout import S, TileLayout

    given = _given_layout(buffer)
    if given != "default":
        return given
    shape, strides = tuple(buffer.shape), tuple(buffer.strides)
    return TileLayout(S[shape:strides] if strides else S[shape]) if shape else TileLayout.from_iters()


def _strides(buffer):
    if len(buffer.strides):
        return list(buffer.strides)
    strides = [const(1, "int32")]
    for dim in reversed(list(buffer.shape)[1:]):
        strides.insert(0, strides[0] * dim)
    return strides if len(buffer.shape) else []


def _within(buffer, indices):
    indices = list(indices) if isinstance(indices, (list, tuple)) else [indices]
    if len(indices) != len(buffer.shape):
        raise ValueError(f"{buffer.name} has {len(buffer.shape)} dimensions, not {len(indices)}")
    offset = const(0, "int32")
    for index, stride in zip(indices, _strides(buffer)):
        offset = _plus(offset, index * stride)
    return offset


def _total(buffer):
    return prod(buffer.shape, start=const(1, "int32"))


def _plus(a, b):
    """A sum without the zeros in it."""
    if getattr(a, "value", a) == 0 if isinstance(getattr(a, "value", a), int) else False:
        return b if not isinstance(b, int) else const(b, "int32")
    return a if isinstance(getattr(b, "value", b), int) and getattr(b, "value", b) == 0 else a + b


_METHODS = (access_ptr, offset_of, elem_offset_of, byte_offset_of, get_flattened_buffer, with_dtype, is_scalar, ptr_to, view, local, permute, chunk)
for _method in (*_METHODS, *map(_for_gpus, ("tile", "rearrange", "with_allocated_addr"))):
    setattr(Buffer, _method.__name__, _method)
Buffer.byte_offset, Buffer.sub = property(byte_offset), property(sub)
Buffer.layout = property(_layout, doc="Where its elements lie: the layout that was given, else that of its strides; None where nobody knows it yet.")
Buffer.allocated_addr = property(lambda self: [], doc="Addresses in a GPU's tensor memory: none.")


def _member_of_buffers(name):
    def refuse(self):
        raise AttributeError(f"{self.name} is no buffer, and only buffers have {name}: it is a variable of type {self.ty}")

    return property(refuse, doc=f"``{name}`` of a buffer; a variable that is none rejects it.")


_FIELDS = "shape strides elem_offset data_alignment offset_factor layout allocated_addr data scope vload vstore byte_offset sub"
for _name in (*_FIELDS.split(), *(method.__name__ for method in _METHODS), "tile", "rearrange", "with_allocated_addr"):
    setattr(Var, _name, _member_of_buffers(_name))

__all__ = ["BufferAccessKind", "buffer_data", "buffer_data_pointer_type"]
