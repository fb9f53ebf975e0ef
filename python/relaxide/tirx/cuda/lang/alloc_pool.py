"""Buffers one behind another in one piece of shared memory, for kernels that are built node by node.

A pool emits into the kernel that is open::

    pool = T.SMEMPool()
    a = pool.alloc_tcgen05_mma_AB((128, 64), "bfloat16")   # permuted as tensor cores read it
    bias = pool.alloc((64,), "float32")                    # behind it
    pool.commit()                                          # says how many bytes the kernel needs
"""

import math

from ....runtime import DataType
from ..tile_primitive.tma_utils import SwizzleMode, mma_atom_shape, mma_shared_layout

__all__ = ["SMEMPool"]

#: Permutations by a word, beside the modes themselves.
_MODES = {"auto": SwizzleMode.SWIZZLE_128B_ATOM, "none": SwizzleMode.SWIZZLE_NONE}


def _bytes(columns, dtype):
    """The length of a row in bytes; a part of one where elements share bytes."""
    bits = columns * DataType(dtype).bits
    return bits // 8 if bits % 8 == 0 else bits / 8


def _validate_mma_alloc_shape(shape, dtype, swizzle_mode):
    """A ValueError where a tensor does not consist of whole permutations. Lengths with names are not looked at."""
    if swizzle_mode is SwizzleMode.SWIZZLE_NONE:
        return
    shape = tuple(shape)
    asked = f"alloc_tcgen05_mma_AB of shape {shape} in {dtype}"
    if len(shape) < 2:
        raise ValueError(
            f"{asked} has fewer than 2 dimensions: {swizzle_mode.name} permutes columns of rows. Give swizzle_mode='none' for one axis"
        )
    rows, columns = shape[-2:]
    if not (isinstance(rows, int) and isinstance(columns, int)):
        return
    atom_rows, atom_columns = mma_atom_shape(dtype, swizzle_mode)
    if columns <= 0 or columns % atom_columns:
        row, atom = _bytes(columns, dtype), _bytes(atom_columns, dtype)
        smaller = (mode for mode in reversed(SwizzleMode) if _is_whole(columns, dtype, mode))
        raise ValueError(
            f"{asked} has {row}B rows, which are not whole pieces of the {atom}B swizzle atom of {swizzle_mode.name}. "
            f"Give swizzle_mode=SwizzleMode.{next(smaller).name}, or make shape[-1] a multiple of {atom_columns} elements"
        )
    if rows <= 0 or rows % atom_rows:
        raise ValueError(
            f"{asked} has shape[-2]={rows}, which is to be a multiple of {atom_rows}, the rows that {swizzle_mode.name} permutes. "
            "Give swizzle_mode='none', or more rows"
        )


def _is_whole(columns, dtype, mode):
    """Whether rows consist of whole pieces of a permutation; without one, every row does."""
    if mode is SwizzleMode.SWIZZLE_NONE:
        return True
    atom = mma_atom_shape(dtype, mode)[-1]
    return columns > 0 and columns % atom == 0


class SMEMPool:
    """A piece of shared memory in which buffers are laid one behind another.

    Parameters
    ----------
    ptr : Var
        The address of memory that somebody else has allocated. Without one, the pool allocates memory whose length
        :meth:`commit` says.
    """

    def __init__(self, ptr=None):
        from ....script.ir_builder import tirx as T

        self._builder = T
        self.buf = None if ptr is not None else T.alloc_buffer([0], "uint8", scope="shared.dyn")
        self.ptr = self.buf.data if ptr is None else ptr
        self.offset = self.max_offset = 0

    def alloc(self, shape, dtype="float32", strides=None, scope="shared.dyn", align=0, layout="default"):
        """A buffer at the next free byte, or at the next multiple of ``align`` bytes."""
        if align > 0:
            self.offset = -(-self.offset // align) * align
        bits = DataType(dtype).bits
        if self.offset * 8 % bits:
            raise ValueError(f"byte {self.offset} of the pool is inside of an element of {dtype}: give align={max(bits // 8, 1)}")
        place = {"strides": strides, "elem_offset": self.offset * 8 // bits, "scope": scope, "align": align, "layout": layout}
        buffer = self._builder.decl_buffer(shape, dtype, data=self.ptr, **place)
        # Elements that share bytes end at a byte, so that the next buffer begins at one.
        self.move_base_to(self.offset + -(-math.prod(shape) * bits // 8))
        return buffer

    def alloc_tcgen05_mma_AB(self, shape, dtype="float16", swizzle_mode="auto", align=1024):
        """A buffer whose rows are permuted as tensor cores read them: by a mode, ``"auto"`` (128 bytes) or ``"none"``."""
        mode = swizzle_mode if isinstance(swizzle_mode, SwizzleMode) else _MODES.get(swizzle_mode)
        if mode is None:
            raise ValueError(f"swizzle_mode is 'auto', 'none' or a SwizzleMode, not {swizzle_mode!r}")
        _validate_mma_alloc_shape(shape, dtype, mode)
        return self.alloc(shape, dtype, align=align, layout=mma_shared_layout(dtype, mode, shape))

    def move_base_to(self, offset):
        """Let the next buffer begin at a byte; buffers that overlap share memory."""
        self.offset = offset
        self.max_offset = max(self.max_offset, offset)

    def commit(self, size=None):
        """Say how many bytes the kernel needs: those that were used, or ``size``. Memory of somebody else is left as it is."""
        if self.buf is None:
            return
        size = self.max_offset if size is None else size
        if size < self.max_offset:
            raise ValueError(f"the pool has {self.max_offset} bytes of buffers, more than {size}")
        from ....tirx import AttrStmt, Evaluate, IntImm
        from ....script.ir_builder.tirx.frame import put

        put(AttrStmt(0, "tirx.dyn_smem_bytes", IntImm("int64", size), Evaluate(0)))
