"""Layouts of shared memory that tensor cores and the units that copy tensors work on."""

from enum import Enum

from ....runtime import DataType
from ....sym import Analyzer
from ...layout import ComposeLayout, S, TileLayout


class SwizzleMode(Enum):
    """How the columns of eight rows are permuted: over how many bytes of a row, 16 bytes at a time."""

    SWIZZLE_NONE = 0
    SWIZZLE_32B_ATOM = 1
    SWIZZLE_64B_ATOM = 2
    SWIZZLE_128B_ATOM = 3


#: Rows after which a permutation repeats, and bytes that stay together.
_ROWS, _BYTES = 8, 16


def _unit(dtype):
    """Elements that stay together."""
    return 8 * _BYTES // DataType(dtype).bits


def mma_atom_layout(dtype, swizzle_mode):
    """The permutation of eight rows."""
    mode, unit = SwizzleMode(swizzle_mode), _unit(dtype)
    bits = unit.bit_length() - 1
    rows = _ROWS.bit_length() - 1
    return ComposeLayout(bits, mode.value, rows, TileLayout(S[1 << (bits + mode.value + rows)]))


def mma_atom_shape(dtype, swizzle_mode, shape=None):
    """The rows and columns of a permutation, of as many dimensions as a shape has."""
    mode = SwizzleMode(swizzle_mode)
    if mode is SwizzleMode.SWIZZLE_NONE:
        raise KeyError(mode)
    atom = [_ROWS, _unit(dtype) << mode.value]
    return atom if shape is None else [1] * (len(shape) - 2) + atom


def mma_shared_layout(dtype, swizzle_mode, shape):
    """The layout of a tensor in shared memory: permutations of eight rows one below another, then one beside another.

    Without a permutation, 16 bytes of each row lie together, where whole ones make a row.
    """
    if SwizzleMode(swizzle_mode) is SwizzleMode.SWIZZLE_NONE:
        unit, rows, cols = _unit(dtype), int(shape[-2]), int(shape[-1])
        if cols % unit:
            return TileLayout(S[tuple(shape)]).canonicalize()
        *outer, _, _ = (int(dim) for dim in shape)
        strides, stride = [], rows * cols
        for dim in reversed(outer):
            strides.insert(0, stride)
            stride *= dim
        return TileLayout(S[(*outer, rows, cols // unit, unit) : (*strides, unit, rows * unit, 1)]).canonicalize()
    atom = mma_atom_shape(dtype, swizzle_mode, shape)
    column = [*atom[:-2], shape[-2], atom[-1]]
    return mma_atom_layout(dtype, swizzle_mode).tile_to(column, atom).tile_to(shape, column).canonicalize()


def tma_atom_compatible(dst_shape, dst_st, dst_extent, atom_shape):
    """Whether a region consists of whole permutations."""
    analyzer = Analyzer()
    ends = zip(dst_shape, dst_st, dst_extent, atom_shape)
    return all(analyzer.can_prove_equal(end % atom, 0) for *ends_of, atom in ends for end in ends_of)


def get_swizzle_mode_from_layout(layout):
    """The permutation of a layout; ``None`` of what is none.

    A ValueError where low bits change high ones, which no hardware does: the elements would lie elsewhere.
    """
    if isinstance(layout, TileLayout):
        return SwizzleMode.SWIZZLE_NONE
    if not isinstance(layout, ComposeLayout):
        return None
    if layout.swizzle_len > 0 and not layout.swizzle_inner:
        raise ValueError(f"swizzle direction mismatch: hardware permutes with swizzle_inner=True, and {layout} says False")
    modes = {mode.value: mode for mode in SwizzleMode}
    return modes.get(layout.swizzle_len)
