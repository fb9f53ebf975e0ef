"""Layouts over the threads and the memory of a device: which element of a tile lies where.

A layout is written as what it iterates over and in which steps::

    TileLayout(S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)])   # element i is register i % 2 of lane i // 2
    TileLayout(S[8 : 4 @ laneid] + R[4 : 1 @ laneid])        # each element is held by four lanes
    TileLayout(S[(8, 8) : (64, 1)] + 2 @ warpid + 16)        # in the memory of warp 2, from 16 on

Steps without an axis are along ``m``, the addresses of memory. Operations make new layouts; where one takes shapes, the products of
dimensions are those of the layout's extents, else it raises a ValueError.
"""

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node
from ..ir.expr import Range
from ._layout_spec import OnAxis, R, S, Spec, iterators, offset_terms
from .exec_scope import ExecScope

_AXIS_NAMES = (
    "bx", "by", "bz", "cbx", "cby", "cbz", "tx", "warpid", "laneid", "wgid", "tid_in_wg", "wid_in_wg", "m", "P", "F", "Bank", "TCol", "TLane",
)  # fmt: skip

__all__ = [*_AXIS_NAMES, "Axis", "ComposeLayout", "ExecScope", "Iter", "Layout", "R", "S", "TileLayout"]
__all__ += ["tcgen05_atom_layout", "tmem_datapath_layout", "tmem_mma_operand_layout", "wg_local_layout"]

_OF_TENSOR_MEMORY = ("tcgen05_atom_layout", "tmem_datapath_layout", "tmem_mma_operand_layout", "wg_local_layout")


def _warps():
    """Whether the target around counts threads by warps of 32."""
    from ..target import Target

    target = Target.current()
    return target is not None and target.kind.name == "cuda"


class _NamedAxes(type(Node)):
    """Axes as members of their class: ``Axis.laneid``."""

    def __getattr__(cls, name):
        if name in _AXIS_NAMES:
            return cls.get(name)
        raise AttributeError(f"type object 'Axis' has no attribute {name!r}")


@register_object("tirx.Axis")
class Axis(Node, metaclass=_NamedAxes):
    """What a layout leads to: an axis of threads, or a memory. ``4 @ axis`` is a step of four along it. Two of one name are equal."""

    def __init__(self, *_args, **_options):
        raise RuntimeError("axes have names: Axis.get(name)")

    #: Axes that were asked for by name.
    reg_dict = {}

    @staticmethod
    def get(name):
        """The axis of a name; a name that is not known is a memory."""
        if name not in Axis.reg_dict:
            Axis.reg_dict[name] = _api.tirx.AxisGet(name)
        return Axis.reg_dict[name]

    def is_thread(self):
        """Whether it counts threads, or units of them."""
        return _api.tirx.AxisIsThreadAxis(self)

    def is_memory(self):
        """Whether it counts places of a memory."""
        return _api.tirx.AxisIsMemoryAxis(self)

    def get_scope(self):
        """The scope within which it counts; ``None`` of a memory."""
        return _api.tirx.AxisGetScope(self)

    def get_subscope(self):
        """The scope whose units it counts; ``None`` of a memory."""
        return _api.tirx.AxisGetSubscope(self)

    def __rmatmul__(self, step):
        return OnAxis(step, self)

    def __eq__(self, other):
        return isinstance(other, Axis) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f'tirx.Axis(name="{self.name}")'

    __str__ = __repr__


@register_object("tirx.Iter")
class Iter(Node):
    """``extent`` steps of ``stride`` along an axis, which is an :class:`Axis` or its name."""

    def __init__(self, extent, stride, axis):
        axis = Axis.get(axis) if isinstance(axis, str) else axis
        self.__init_handle_by_constructor__(_api.tirx.Iter, extent, stride, axis)

    def __repr__(self):
        return f'T.Iter({self.extent}, {self.stride}, "{self.axis.name}")'

    __str__ = __repr__


class Layout(Node):
    """The base of layouts."""

    def __repr__(self):
        return _api.tirx.LayoutText(self)

    __str__ = __repr__

    def verify_well_formed(self):
        """Whether the axes of threads are nested without a gap; a ValueError says which contradict each other."""
        return _api.tirx.LayoutVerifyWellFormed(self)

    def size(self, axis_name=None):
        """How many elements it places, or how many along an axis."""
        return _api.tirx.LayoutGetSize(self, axis_name)

    def span(self, axis_name=None):
        """One more than the furthest place along an axis; along all memories where none is named."""
        return _api.tirx.LayoutGetSpan(self, axis_name)

    def apply(self, *coord, shape=None):
        """Where an element lies.

        Parameters
        ----------
        coord : Expr
            The flat index of the element, or its coordinate over the layout's iterators.
        shape : list of Expr, optional
            What ``coord`` is a coordinate over instead.

        Returns
        -------
        Map
            The place along each axis, by the axis's name.
        """
        if shape is not None:
            return _api.tirx.LayoutApplyWithShape(self, list(coord), list(shape))
        if len(coord) == 1:
            return _api.tirx.LayoutApplyLinear(self, coord[0])
        return _api.tirx.LayoutApply(self, list(coord))

    def apply_to_shape(self, coord, input_shape):
        """The coordinate over the iterators of the element at a coordinate over a shape: a list, one value for each iterator."""
        try:
            grouped, ends = self.group(list(input_shape))
        except ValueError:
            flat = 0
            for at, dim in zip(coord, input_shape):
                flat = flat * dim + at
            return _split(flat, [one.extent for one in self.shard])
        groups = [grouped.shard[begin:end] for begin, end in zip(ends, ends[1:])]
        return [part for at, group in zip(coord, groups) for part in _split(at, [one.extent for one in group])]

    def canonicalize(self):
        """The canonical form: two layouts that are written differently and place elements alike have one form, as far as that is found.

        Within the scope of a CUDA target, axes of threads become one: a warp has 32 lanes, a warp group four warps.
        """
        return _api.tirx.LayoutCanonicalize(self, _warps())

    def tile(self, outer, outer_shape, inner_shape):
        """Tiles of this layout, placed by an outer one: over the shape ``outer_shape * inner_shape``."""
        return _api.tirx.LayoutTile(self, outer, list(outer_shape), list(inner_shape), _warps())

    def direct_sum(self, left, left_shape, right_shape):
        """The layout over both shapes, interleaved, whose places are those of ``left`` and of this layout, added."""
        return _api.tirx.LayoutDirectSum(self, left, list(left_shape), list(right_shape), _warps())

    def is_tile_inner(self, tile_layout, tiled_shape, inner_shape):
        """The outer layout of a tiled one of which this is the inner; ``None`` where it is not."""
        return _api.tirx.LayoutIsTileInner(self, tile_layout, list(tiled_shape), list(inner_shape), _warps())

    def is_tile_outer(self, tile_layout, tiled_shape, outer_shape):
        """The inner layout of a tiled one of which this is the outer; ``None`` where it is not."""
        return _api.tirx.LayoutIsTileOuter(self, tile_layout, list(tiled_shape), list(outer_shape), _warps())

    def is_direct_sum_right(self, sum_layout, interleaved_shape, right_shape):
        """The left layout of a direct sum of which this is the right one; ``None`` where it is not."""
        return _api.tirx.LayoutIsDirectSumRight(self, sum_layout, list(interleaved_shape), list(right_shape), _warps())

    def is_direct_sum_left(self, sum_layout, interleaved_shape, left_shape):
        """The right layout of a direct sum of which this is the left one; ``None`` where it is not."""
        return _api.tirx.LayoutIsDirectSumLeft(self, sum_layout, list(interleaved_shape), list(left_shape), _warps())

    def slice(self, shape, region):
        """The layout of a region of a tile.

        Parameters
        ----------
        shape : list of Expr
            The tile's dimensions.
        region : list of Range or of (begin, end)
            The region, which lies within them.

        Returns
        -------
        Layout or None
            ``None`` where no layout is known to be it.
        """
        ranges = [one if isinstance(one, Range) else (one[0], one[1] - one[0]) for one in region]
        begins = [one.min if isinstance(one, Range) else one[0] for one in ranges]
        extents = [one.extent if isinstance(one, Range) else one[1] for one in ranges]
        return _api.tirx.LayoutSlice(self, list(shape), begins, extents, _warps())

    def tile_to(self, to_shape, current_shape):
        """As many tiles of this layout as make a shape, one behind another."""
        tiles = [whole // part for whole, part in zip(to_shape, current_shape)]
        return self.tile(TileLayout(S[tuple(tiles)]), tiles, current_shape)

    def is_swizzle(self):
        """Whether it is a permutation of addresses and nothing else."""
        return isinstance(self, ComposeLayout) and self.tile_layout.is_trivial()

    def is_trivial(self):
        """Whether element ``i`` lies at address ``i``."""
        return False

    def is_trainium(self):
        """Whether its memories are those of Trainium."""
        return isinstance(self, TileLayout) and _api.tirx.TileLayoutIsTrainium(self)

    def storage(self):
        """What remains of it within a thread: its iterators and offsets along memories."""
        return self._over(
            lambda tile: TileLayout.from_iters(
                [one for one in tile.shard if one.axis.is_memory()],
                [one for one in tile.replica if one.axis.is_memory()],
                {axis: value for axis, value in tile.offset.items() if axis.is_memory()},
            )
        )

    def unpack(self, num):
        """The layout where an element is ``num`` elements in a row."""

        def unpacked(tile):
            shard = [Iter(one.extent, one.stride * num, one.axis) for one in tile.shard]
            return TileLayout.from_iters([*shard, Iter(num, 1, "m")], tile.replica, tile.offset)

        return self._over(unpacked, _bits_of(num) if isinstance(self, ComposeLayout) else 0)

    def pack(self, num):
        """The layout where ``num`` elements in a row are one. An AssertionError where they are not in a row."""

        def packed(tile):
            *outer, last = tile.shard
            whole = last.stride == 1 and last.extent % num == 0 and last.axis.is_memory()
            assert whole, f"layout {tile} has no {num} elements in a row"
            shard = [Iter(one.extent, one.stride // num, one.axis) for one in outer]
            return TileLayout.from_iters([*shard, Iter(last.extent // num, 1, last.axis)], tile.replica, tile.offset)

        return self._over(packed, -_bits_of(num) if isinstance(self, ComposeLayout) else 0)

    def broadcast(self, num, position=-1, axis="m"):
        """The layout with a dimension of ``num`` steps of zero at a position among the iterators, as ``list.insert`` counts; -1 is the end."""

        def repeated(tile):
            shard = list(tile.shard)
            shard.insert(position if position >= 0 else len(shard) + 1 + position, Iter(num, 0, axis))
            return TileLayout.from_iters(shard, tile.replica, tile.offset)

        return self._over(repeated)

    def _over(self, change, bits=0):
        """This layout with a changed tile layout, and elements of so many bits more."""
        if isinstance(self, TileLayout):
            return change(self)
        per_element = self.per_element + bits
        assert per_element >= 0, f"elements of the permutation have {self.per_element} bits: {-bits} are too many to take away"
        return ComposeLayout(per_element, self.swizzle_len, self.atom_len, change(self.tile_layout), self.swizzle_inner)


def _split(flat, extents):
    """The coordinate of a flat index."""
    coord = []
    for extent in reversed(extents[1:]):
        coord.append(flat % extent)
        flat = flat // extent
    return [flat, *reversed(coord)] if extents else []


def _bits_of(num):
    assert num > 0 and num & (num - 1) == 0, f"num must be a power of 2, not {num}"
    return num.bit_length() - 1


@register_object("tirx.TileLayout")
class TileLayout(Layout):
    """Iterators with steps along axes.

    Parameters
    ----------
    spec : S[extents : strides] + R[extents : strides] + offsets
        ``S`` are the iterators over elements, the last fastest, ``R`` those over the places that hold copies of an element. Without
        strides, elements lie one behind another. A stride is ``step @ axis``, a step along ``m``, the name of an axis (a step of one), or a
        pair of step and name.

    ``shard``, ``replica`` and ``offset`` are its parts.
    """

    def __init__(self, spec):
        if not isinstance(spec, Spec):
            raise TypeError(f"a layout is written S[extents : strides] + R[...] + offset, not {spec!r}")
        self.__init_handle_by_constructor__(_api.tirx.TileLayout, *_parts(spec))

    @staticmethod
    def from_iters(shard=(), replica=(), offset=None):
        """The layout of its parts: iterators, and offsets by axis or its name."""
        offset = {Axis.get(key) if isinstance(key, str) else key: value for key, value in (offset or {}).items()}
        return _api.tirx.TileLayout(list(shard), list(replica), offset)

    def is_trivial(self):
        """Whether element ``i`` lies at address ``i``."""
        return _api.tirx.TileLayoutIsTrivial(self)

    def group(self, shape):
        """The layout with its iterators split so that runs of them have the extents of a shape, and where these begin and the last ends."""
        layout, ends = _api.tirx.TileLayoutGroup(self, list(shape))
        return layout, list(ends)

    def group_many(self, shapes):
        """The layout split as little as lets each of several shapes group it, and for each of them where its groups begin and the last
        ends. A dimension of one becomes an iterator."""
        layout, ends = _api.tirx.TileLayoutGroupMany(self, [list(shape) for shape in shapes])
        return layout, [list(one) for one in ends]

    def get_scope(self):
        """The scope whose units it counts and the one within which; ``None`` without axes of threads."""
        return _api.tirx.TileLayoutGetScope(self)

    def permute_dims(self, perm):
        """The layout with its iterators in another order."""
        assert len(perm) == len(self.shard), f"the layout has {len(self.shard)} iterators, the order {len(perm)}"
        return TileLayout.from_iters([self.shard[at] for at in perm], self.replica, self.offset)

    def permute_by_groups(self, seps, perm):
        """The layout with groups of its iterators, as ``group`` says where they begin, in another order."""
        assert sorted(perm) == list(range(len(seps) - 1)), f"invalid perm {perm}: it should order {len(seps) - 1} groups"
        return self.permute_dims([at for group in perm for at in range(seps[group], seps[group + 1])])

    #: Elements of a bank of Trainium's memory of partial sums, and how many banks there are.
    kPSUMMaxElemPerBank = 512
    kPSUMBankNum = 8

    @classmethod
    def trainium(cls, annotation, shape, is_psum=False):
        """The layout of a tensor in Trainium's memory.

        Parameters
        ----------
        annotation : str
            ``"P"`` or ``"F"`` for each dimension: over partitions, of which there are 128, or within one. A single ``P`` may be a multiple of
            128; its rounds lie behind one another.
        shape : tuple of Expr
            The dimensions.
        is_psum : bool
            Whether it lies in the memory of partial sums.
        """
        from ._trainium import trainium

        layout = trainium(annotation, tuple(shape))
        return layout.to_psum() if is_psum else layout

    def to_psum(self):
        """The layout with what lies within a partition divided into banks. An AssertionError where a step lies across a bank's end."""
        from ._trainium import to_psum

        return to_psum(self)


@register_object("tirx.ComposeLayout")
class ComposeLayout(Layout):
    """A tile layout and a permutation of its addresses.

    Of an address without its low ``per_element`` bits, ``swizzle_len`` bits are changed by those that lie ``atom_len`` bits higher; with
    ``swizzle_inner=False`` the high ones by the low ones. A ValueError where the two overlap.
    """

    def __init__(self, per_element, swizzle_len, atom_len, tile_layout, swizzle_inner=True):
        numbers = (per_element, swizzle_len, atom_len)
        self.__init_handle_by_constructor__(_api.tirx.ComposeLayout, *numbers, tile_layout, swizzle_inner)


def _parts(spec):
    def iters(pair):
        return [Iter(extent, stride, axis) for extent, stride, axis in iterators(pair)]

    offset = {Axis.get(axis) if isinstance(axis, str) else axis: value for axis, value in offset_terms(spec.offset).items()}
    return iters(spec.shard), iters(spec.replica), offset


def __getattr__(name):
    if name in _AXIS_NAMES:
        return Axis.get(name)
    if name in _OF_TENSOR_MEMORY:
        from . import _tensor_memory

        return getattr(_tensor_memory, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
