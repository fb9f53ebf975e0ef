"""Steps that move, copy, divide and lay out anew what blocks touch."""

from ...ir.expr import is_prim_expr
from ...ir.prim import const
from ...tirx import IndexMap


_SIDES = ["read", "write"]


class RegionSteps:
    """The part of a schedule's methods that is about regions of buffers."""

    # Where blocks stand.

    def compute_at(self, block, loop, preserve_unit_loops=False, index=-1):
        """Compute what consumers of a block need under a loop around them all.

        ``index`` is the place among the loop's statements: -1 the last, -2 the first that is right.
        """
        self._only("ComputeAt", (self._block(block), loop), (preserve_unit_loops, index))

    def reverse_compute_at(self, block, loop, preserve_unit_loops=False, index=-1):
        """Move a block under a loop around all of its producers, over what they write there."""
        self._only("ReverseComputeAt", (self._block(block), loop), (preserve_unit_loops, index))

    # Copies.

    def cache_read(self, block, read_buffer_index, storage_scope, consumer_blocks=None):
        """Let blocks read a copy of a buffer in another scope: all that read it, or ``consumer_blocks``."""
        return self._cache("CacheRead", "read", block, read_buffer_index, storage_scope, consumer_blocks)

    def cache_write(self, block, write_buffer_index, storage_scope, consumer_blocks=None):
        """Let a block write to a buffer in another scope, which is copied behind it."""
        return self._cache("CacheWrite", "write", block, write_buffer_index, storage_scope, consumer_blocks)

    def _cache(self, step, side, block, index, storage_scope, consumer_blocks):
        consumers = [self._block(consumer) for consumer in consumer_blocks or ()]
        block = self._block(block)
        _, index = self._buffer(block, index if not isinstance(index, int) else (side, index), (side,))
        return self._one(step, (block, consumers), (index, storage_scope))

    def reindex(self, block, buffer):
        """Copy a buffer of a block in the order of the block's axes."""
        block = self._block(block)
        side, index = self._buffer(block, buffer)
        return self._one("ReIndex", (block,), (index, _SIDES.index(side)))

    def reindex_cache_read(self, block, read_buffer_index, storage_scope, index_map):
        """Let a block read a copy of a buffer in another scope, at indices that a map of the block's axes gives."""
        return self._reindex_cache("ReindexCacheRead", block, read_buffer_index, storage_scope, index_map)

    def reindex_cache_write(self, block, write_buffer_index, storage_scope, index_map):
        """Let a block write to a buffer in another scope, at indices that a map of its axes gives, which is copied behind it."""
        return self._reindex_cache("ReindexCacheWrite", block, write_buffer_index, storage_scope, index_map)

    def _reindex_cache(self, step, block, index, storage_scope, index_map):
        block = self._block(block)
        return self._one(step, (block, self._map(block, index_map)), (index, storage_scope))

    def cache_inplace(self, block, read_buffer_index, storage_scope):
        """Let a block that changes a buffer work on a copy in another scope: the blocks that read it in and write it back."""
        block = self._block(block)
        index = read_buffer_index
        if not isinstance(index, int):
            _, index = self._buffer(block, index, ("read",))
        return self._list("CacheInplace", (block,), (index, storage_scope))

    def cache_index(self, block, storage_scope, cse_thresh=0):
        """Compute once, in front of a block, what it computes of its axes alone ``cse_thresh`` times or more."""
        return self._list("CacheIndex", (self._block(block),), (storage_scope, cse_thresh))

    def read_at(self, loop, block, read_buffer_index, storage_scope):
        """Copy what is read of a buffer in one iteration of a loop to another scope, and let blocks there read the copy."""
        return self._one("ReadAt", (loop, self._block(block)), (read_buffer_index, storage_scope))

    def write_at(self, loop, block, write_buffer_index, storage_scope):
        """Let what is written of a buffer in one iteration of a loop go to another scope, and copy it back behind."""
        return self._one("WriteAt", (loop, self._block(block)), (write_buffer_index, storage_scope))

    def rolling_buffer(self, block, write_buffer_index):
        """Keep of a buffer that a block computes under a loop only the box that moves along, and compute only what is new."""
        self._only("RollingBuffer", (self._block(block),), (write_buffer_index,))

    # Reductions.

    def decompose_reduction(self, block, loop):
        """Make two blocks of a reduction: one that sets the elements, in front of a loop, and one that adds to them."""
        return self._one("DecomposeReduction", (self._block(block), loop))

    def decompose_padding(self, block, loop):
        """Make two blocks of one that pads: one that fills all with the padding, in front of a loop, and one that copies."""
        return self._one("DecomposePadding", (self._block(block), loop))

    def can_decompose_padding(self, block, loop):
        """Whether :meth:`decompose_padding` is legal. No step: the trace does not know of it."""
        return self._can_decompose_padding(self._untraced_block(block), loop)

    def fuse_reduction_epilogue(self, reduction_block, epilogue_block):
        """Let a sum begin with what a block behind it adds.

        A block that clips (``max(sum + bias, 0)``, ``min(max(sum, lower), upper)``) is executed at each step of the sum then,
        which gives other results wherever a part of the sum is clipped. ``reverse_compute_at`` keeps results.
        """
        self._only("FuseReductionEpilogue", (self._block(reduction_block), self._block(epilogue_block)))

    def rfactor(self, loop, factor_axis):
        """Carry a reduction out apart for each iteration of a loop, and combine the parts."""
        return self._one("RFactor", (loop,), (factor_axis,))

    def pad_einsum(self, block, padding):
        """Round the extents of a contraction's axes up to multiples, on padded copies of its operands."""
        self._only("PadEinsum", (self._block(block),), (list(padding),))

    # Layouts.

    def transform_layout(self, block, buffer, index_map, pad_value=None, *, assume_injective_transform=False):
        """Lay out a buffer of a block anew, and change every access to it.

        ``buffer`` is ``("read", 0)``, ``("write", 0)``, the buffer or its name. ``pad_value`` is what stands where the new
        layout has no element: a number, an expression, or a function of the new indices.
        """
        block = self._block(block)
        side, index = self._buffer(block, buffer)
        region = (self.get(block).reads if side == "read" else self.get(block).writes)[index]
        index_map = self._map(block, index_map, len(region.region))
        if pad_value is not None:
            pad_value = self._padding(block, pad_value, region.buffer.dtype, len(index_map.final_indices))
        attrs = (index, _SIDES.index(side), pad_value, assume_injective_transform)
        self._only("TransformLayout", (block, index_map), attrs)

    def _padding(self, block, value, dtype, rank):
        if isinstance(value, IndexMap):
            return value
        if callable(value) and not is_prim_expr(value):
            return self._map(block, value, rank)
        kinds = {int: ("int", "uint"), float: ("float", "bfloat")}.get(type(value), ())
        if str(dtype).startswith(kinds) and kinds:
            value = const(value, str(dtype))
        return self._map(block, lambda *indices: value, rank)

    def transform_block_layout(self, block, index_map):
        """Put a block over other axes, by a map of the indices of the old ones."""
        block = self._block(block)
        self._only("TransformBlockLayout", (block,), (self._map(block, index_map, len(self.get(block).iter_vars)),))

    def _map(self, block, index_map, rank=None):
        """A map of indices of the type that a block's axes have."""
        if isinstance(index_map, IndexMap):
            return index_map
        node = self.get(block)
        types = [str(axis.var.dtype) for axis in node.iter_vars]
        types += [str(dim.dtype) for region in (*node.reads, *node.writes) for dim in region.buffer.shape]
        return IndexMap.from_func(index_map, rank, index_dtype=types[0] if types else "int64")

    def annotate_buffer_access(self, block, buffer_index, buf_type, gen_new_ranges):
        """Say what a block touches of a buffer. ``gen_new_ranges`` takes the block's axes and gives an index, or where a range
        begins and ends, for each dimension."""
        block = self._block(block)
        axes = [axis.var for axis in self.get(block).iter_vars]
        ends = []
        for part in gen_new_ranges(*axes):
            begin, end = part if isinstance(part, (tuple, list)) else (part, part + 1)
            ends += [begin, end]
        if buf_type not in _SIDES:
            raise ValueError(f"accesses are 'read' or 'write', not {buf_type!r}")
        self._only("AnnotateBufferAccess", (block, buffer_index, _SIDES.index(buf_type), IndexMap(axes, ends)))

    def unsafe_hide_buffer_access(self, block, buf_type, buf_index_array):
        """Let a block say no longer that it reads or writes the buffers at some indices. Later steps believe it."""
        self._only("UnsafeHideBufferAccess", (self._block(block), buf_type, list(buf_index_array)))

    def set_scope(self, block, buffer_index, storage_scope):
        """Let a buffer that a block writes live in another scope."""
        block = self._block(block)
        self._only("SetScope", (block,), (self._written(block, buffer_index), storage_scope))

    def storage_align(self, block, buffer_index, axis, factor, offset):
        """Let rows of a buffer begin at ``factor * n + offset`` elements."""
        self._only("StorageAlign", (self._block(block),), (buffer_index, axis, factor, offset))

    def unsafe_set_dtype(self, block, buffer_index, dtype):
        """Let a buffer that a block writes hold another type. Results change by what the type cannot hold."""
        block = self._block(block)
        self._only("UnsafeSetDType", (block,), (self._written(block, buffer_index), str(dtype)))

    # Blocks of blocks.

    def blockize(self, target, preserve_unit_iters=True):
        """Make one block of what a loop executes, or of several blocks that stand one behind the other."""
        if isinstance(target, (list, tuple)):
            target = [self._block(block) for block in target]
        return self._one("Blockize", (target,), (preserve_unit_iters,))

    def tensorize(self, block_or_loop, tensor_intrin, preserve_unit_iters=True):
        """Execute a block, or what a loop executes, by an intrinsic that :class:`TensorIntrin` knows."""
        self._only("Tensorize", (self._block(block_or_loop),), (tensor_intrin, preserve_unit_iters))

    # Buffers of blocks.

    def _written(self, block, buffer):
        return self._buffer(block, ("write", buffer) if isinstance(buffer, int) else buffer, ("write",))[1]

    def _buffer(self, block, buffer, sides=("read", "write")):
        """The side and the index of a buffer of a block that is named by them, by itself or by its name."""
        if isinstance(buffer, (tuple, list)):
            side, index = buffer
            if side not in sides:
                raise ValueError(f"a buffer is named by {' or '.join(repr((s, 0)) for s in sides)}, not {buffer!r}")
            return side, index
        node = self.get(block)
        known = {"read": node.reads, "write": node.writes}
        found = [
            (side, index)
            for side in sides
            for index, region in enumerate(known[side])
            if (region.buffer.name == buffer if isinstance(buffer, str) else region.buffer.same_as(buffer))
        ]
        if not found or any(not known[s][i].buffer.same_as(known[side][at].buffer) for s, i in found for side, at in found):
            name = buffer if isinstance(buffer, str) else buffer.name
            raise ValueError(f"block {node.name_hint} has not one buffer {name}: say ('read', index) or ('write', index)")
        return found[-1]


__all__ = ["RegionSteps"]
