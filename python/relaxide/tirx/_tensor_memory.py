"""Layouts of tensor memory, and of the registers that it is read into.

Tensor memory has 128 lanes (``TLane``) of columns (``TCol``) of 32 bits. Which lanes the rows of a product lie in depends on the instruction's
number of rows, of blocks, and on whether one warp works; NVIDIA names these data paths by letters.
"""

from dataclasses import dataclass

from ..runtime import DataType
from .layout import Axis, Iter, R, S, TileLayout


@dataclass(frozen=True)
class _Path:
    """A data path: its rows, and over how many parts of the lanes its columns are folded. Scattered rows lie 16 to a warp's 32 lanes."""

    rows: int
    folds: int = 1
    scattered: bool = False


_PATHS = {
    "A": _Path(128),
    "B": _Path(64, folds=2),
    "C": _Path(64, scattered=True),
    "D": _Path(128),
    "E": _Path(64, folds=2),
    "F": _Path(64, scattered=True),
    "G": _Path(32, folds=4),
}


def tmem_datapath_layout(datapath, rows, cols, sub_slab=0):
    """Where the result of a product of ``(rows, cols)`` lies in tensor memory.

    Parameters
    ----------
    datapath : str
        The data path's letter. ``A`` and ``D`` have 128 rows, one a lane. ``B`` and ``E`` have 64, with the second half of the columns in the
        upper lanes; ``G`` has 32, with quarters of the columns. ``C`` and ``F`` have 64, 16 in each warp's lanes.
    rows, cols : int
        The shape.
    sub_slab : int
        Of scattered rows, whether they are the lower (0) or the upper (1) 16 lanes of a warp.

    Raises
    ------
    ValueError
        The letter is unknown, or the shape is not the data path's.
    """
    path = _PATHS.get(datapath)
    if path is None:
        raise ValueError(f"tmem_datapath_layout: unknown datapath {datapath!r}; there are {', '.join(_PATHS)}")
    if rows != path.rows:
        raise ValueError(f"tmem_datapath_layout: datapath={datapath!r} expects rows={path.rows}, got {rows}")
    if sub_slab not in (0, 1):
        raise ValueError(f"tmem_datapath_layout: sub_slab must be 0 or 1, got {sub_slab}")
    if sub_slab and not path.scattered:
        raise ValueError(f"tmem_datapath_layout: datapath={datapath!r} fills the lanes of a warp: sub_slab must be 0")
    if cols % path.folds:
        parts = "even cols" if path.folds == 2 else f"cols % {path.folds} == 0"
        raise ValueError(f"tmem_datapath_layout: datapath={datapath!r} expects {parts}, got {cols}")
    lane, col = Axis.TLane, Axis.TCol
    if path.scattered:
        spec = S[(4, 16, cols) : (32 @ lane, 1 @ lane, 1 @ col)]
        return TileLayout(spec + 16 @ lane if sub_slab else spec)
    if path.folds == 1:
        return TileLayout(S[(rows, cols) : (1 @ lane, 1 @ col)])
    return TileLayout(S[(rows, path.folds, cols // path.folds) : (1 @ lane, 128 // path.folds @ lane, 1 @ col)])


def _path_of(rows, cta_group, ws, sparse):
    """The data path of a product's instruction."""
    if sparse:
        raise ValueError(f"alloc_tcgen05_mma_AB: sparse A (Layout C) is not supported, for M={rows}, cta_group={cta_group}")
    if ws and (cta_group, rows) != (1, 64):
        raise ValueError(f"alloc_tcgen05_mma_AB: ws=True only valid for cta_group=1, M=64 (Layout E), got M={rows}, cta_group={cta_group}")
    path = {(1, 128): "D", (1, 64): "E" if ws else "F", (2, 256): "A", (2, 128): "B"}.get((cta_group, rows))
    if path is None:
        raise ValueError(f"alloc_tcgen05_mma_AB: no datapath for M={rows}, cta_group={cta_group}: M is 64 or 128 of one block, 128 or 256 of two")
    return path


def tmem_mma_operand_layout(operand, shape, dtype, *, M, cta_group, ws=False, sparse=False, group=None):
    """Where an operand of a product lies in tensor memory.

    Parameters
    ----------
    operand : str
        ``"A"`` for the left factor, ``"D"`` for the result.
    shape : list of int
        Its dimensions: rows of a block, then columns. Where columns are folded over two halves of the lanes, they may be written as
        ``(2, columns)`` behind the rows or in front of them, for the result as segments ``(segments, 2, columns)``, too.
    dtype : str
        Its element type. It does not change the layout.
    M, cta_group, ws, sparse :
        The instruction: rows, blocks, one warp's, with a sparse factor.
    group : list of int
        Of a result ``(rows, columns)``, its columns as segments.
    """
    path = _path_of(M, cta_group, ws, sparse)
    dims = [int(dim) for dim in shape]
    folded = _PATHS[path].folds == 2

    def rows_of(rows):
        if rows != M // cta_group:
            raise ValueError(f"alloc_mma_{operand}: M={M}, cta_group={cta_group} expects per-CTA rows {M // cta_group}, got {rows} (shape {dims})")
        return rows

    make = {"A": _left_factor, "D": _result}.get(operand)
    if make is None:
        raise ValueError(f"tmem_mma_operand_layout: operand must be 'A' or 'D', got {operand!r}")
    if group is not None and operand == "D":
        if len(dims) != 2 or not folded or len(group) != 3 or group[1] != 2 or group[0] * 2 * group[2] != dims[1]:
            raise ValueError(f"alloc_tcgen05_mma_D group must be (segments, 2, columns) of a result (m, N) on Layout B or E, got {group} of {dims}")
        dims = [dims[0], *(int(one) for one in group)]
    return make(path, dims, rows_of, folded).canonicalize()


def _banks_in_front(dims, rows_of):
    lane = Axis.TLane
    return TileLayout(S[(2, rows_of(dims[1]), dims[2]) : (64 @ lane, 1 @ lane, 1 @ Axis.TCol)])


def _result(path, dims, rows_of, folded):
    lane, col = Axis.TLane, Axis.TCol
    if len(dims) == 2:
        return tmem_datapath_layout(path, rows_of(dims[0]), dims[1])
    if folded and len(dims) == 3 and dims[0] == 2:
        return _banks_in_front(dims, rows_of)
    if folded and len(dims) == 3 and dims[1] == 2:
        return TileLayout(S[(rows_of(dims[0]), 2, dims[2]) : (1 @ lane, 64 @ lane, 1 @ col)])
    if folded and len(dims) == 4 and dims[2] == 2:
        segments, columns = dims[1], dims[3]
        return TileLayout(S[(rows_of(dims[0]), segments, 2, columns) : (1 @ lane, columns @ col, 64 @ lane, 1 @ col)])
    raise ValueError(f"alloc_tcgen05_mma_D: unsupported D shape {dims} for datapath {path}")


def _left_factor(path, dims, rows_of, folded):
    lane, col = Axis.TLane, Axis.TCol
    if folded and len(dims) == 3 and dims[0] == 2:
        return _banks_in_front(dims, rows_of)
    # One warp reads the other half of the lanes unseen: it is said.
    if len(dims) != 2 or path == "E":
        expected = {"B": "(64, K) or (2, 64, K)", "E": "bank-batched (2, 64, K)"}.get(path, "2D (m, K)")
        kind = " identity" if path in "AD" else ""
        raise ValueError(f"alloc_tcgen05_mma_A: datapath {path}{kind} needs {expected}, got {dims}")
    spec = S[(rows_of(dims[0]), dims[1]) : (1 @ lane, 1 @ col)]
    return TileLayout(spec + R[2 : 64 @ lane] if path == "B" else spec)


def wg_local_layout(cols, rows=128):
    """Registers of a warp group: a row a thread, with ``cols`` elements in it."""
    return TileLayout(S[(rows, cols) : (1 @ Axis.tid_in_wg, 1)])


#: Stands for how often an instruction repeats.
_TIMES = "times"


@dataclass(frozen=True)
class _Atom:
    """What an instruction that reads tensor memory does: 32-bit columns of one repetition, the most repetitions, and the iterators over 16 rows of
    each warp and over columns, as ``(extent, step, axis)``. Steps along ``m`` are in registers."""

    columns: int
    most: int
    rows: tuple
    cols: tuple


_WARPS = (4, 1, "wid_in_wg")
_ATOMS = {
    "32x32b": _Atom(1, 128, (), ()),
    "16x64b": _Atom(2, 128, (_WARPS, (2, 1, "laneid"), (8, 4, "laneid")), ((_TIMES, 1, "m"), (2, 2, "laneid"))),
    "16x128b": _Atom(4, 64, (_WARPS, (2, 1, "m"), (8, 4, "laneid")), ((_TIMES, 2, "m"), (4, 1, "laneid"))),
    "16x256b": _Atom(8, 32, (_WARPS, (2, 2, "m"), (8, 4, "laneid")), ((_TIMES, 4, "m"), (4, 1, "laneid"), (2, 1, "m"))),
}


def tcgen05_atom_layout(instr_shape, tensor_shape, dtype):
    """The registers of a warp group that ``tcgen05.ld`` and ``tcgen05.st`` move.

    Parameters
    ----------
    instr_shape : str
        ``"32x32b"``, ``"16x64b"``, ``"16x128b"`` or ``"16x256b"``.
    tensor_shape : (int, int)
        64 or 128 rows, and columns in elements: those of one repetition times a power of two. 64 rows of ``"32x32b"`` are those of data path
        ``B``, in 32 bits.
    dtype : str
        The element type, of 16 or of 32 bits; two elements of 16 bits share a register.

    Raises
    ------
    ValueError
        No instruction moves such a tensor.
    """
    atom = _ATOMS.get(instr_shape)
    if atom is None:
        raise ValueError(f"tcgen05_atom_layout instr_shape must be one of {list(_ATOMS)}, got {instr_shape!r}")
    bits = DataType(dtype).bits
    if bits not in (16, 32):
        raise ValueError(f"tcgen05_atom_layout dtype must be a 32-bit or 16-bit type, got {dtype} ({bits} bits)")
    if len(tensor_shape) != 2:
        raise ValueError(f"tcgen05_atom_layout tensor_shape must be 2-D (rows, cols), got {tensor_shape!r}")
    rows, cols = tensor_shape
    if rows not in (64, 128):
        raise ValueError(f"tcgen05_atom_layout {instr_shape!r} expects 64 or 128 rows, got {rows}")
    if instr_shape == "32x32b" and rows == 64:
        return _folded_registers(cols, bits, dtype)
    packed = 32 // bits
    times, rest = divmod(cols, atom.columns * packed)
    if rest:
        raise ValueError(f"tcgen05_atom_layout cols={cols} not divisible by {atom.columns * packed}, the columns of one {instr_shape} of {dtype}")
    _repeats(instr_shape, times, f"cols={cols}")
    if instr_shape == "32x32b":
        return TileLayout.from_iters([Iter(rows, 1, "tid_in_wg"), Iter(cols, 1, "m")])
    over_rows = list(atom.rows)
    if rows == 128:
        # The upper 16 lanes of each warp are a second instruction, whose registers lie behind those of the first.
        over_rows.insert(1, (2, times * atom.columns // 2, "m"))
    registers = [(times if extent is _TIMES else extent, step, axis) for extent, step, axis in (*over_rows, *atom.cols)]
    iters = [Iter(extent, step * packed if axis == "m" else step, axis) for extent, step, axis in registers]
    return TileLayout.from_iters([*iters, Iter(packed, 1, "m")] if packed > 1 else iters)


def _repeats(instr_shape, times, given):
    most = _ATOMS[instr_shape].most
    if not (0 < times <= most and times & (times - 1) == 0):
        raise ValueError(f"tcgen05_atom_layout {given}: {instr_shape} repeats a power of two up to {most} times, not {times}")


def _folded_registers(cols, bits, dtype):
    if bits != 32:
        raise ValueError(f"tcgen05_atom_layout: 32x32b with 64 rows is the image of datapath B and is fp32-only, got {dtype} ({bits} bits)")
    if cols % 2:
        raise ValueError(f"tcgen05_atom_layout: 32x32b with 64 rows is the image of datapath B and expects an even number of columns, got {cols}")
    _repeats("32x32b", cols // 2, f"N/2={cols // 2}")
    return TileLayout.from_iters([Iter(64, 1, "tid_in_wg"), Iter(2, 64, "tid_in_wg"), Iter(cols // 2, 1, "m")])
