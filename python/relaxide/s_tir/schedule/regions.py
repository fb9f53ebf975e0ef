"""Steps that move, copy, divide and lay out anew what blocks touch."""

from ...tirx import IndexMap


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
        return self._one(step, (block, consumers) if consumers else (block,), (index, storage_scope))

    def reindex(self, block, buffer):
        """Copy a buffer of a block in the order of the block's axes."""
        block = self._block(block)
        return self._one("ReIndex", (block,), (list(self._buffer(block, buffer)),))

    # Reductions.

    def decompose_reduction(self, block, loop):
        """Make two blocks of a reduction: one that sets the elements, in front of a loop, and one that adds to them."""
        return self._one("DecomposeReduction", (self._block(block), loop))

    def decompose_padding(self, block, loop):
        """Make two blocks of one that pads: one that fills all with the padding, in front of a loop, and one that copies."""
        return self._one("DecomposePadding", (self._block(block), loop))

    def rfactor(self, loop, factor_axis):
        """Carry a reduction out apart for each iteration of a loop, and combine the parts."""
        return self._one("RFactor", (loop,), (factor_axis,))

    def pad_einsum(self, block, padding):
        """Round the extents of a contraction's axes up to multiples, on padded copies of its operands."""
        self._only("PadEinsum", (self._block(block),), (list(padding),))

    # Layouts.

    def transform_layout(self, block, buffer, index_map, pad_value=None, *, assume_injective_transform=False):
        """Lay out a buffer of a block anew, and change every access to it.

        ``buffer`` is ``("read", 0)``, ``("write", 0)``, the buffer or its name.
        """
        block = self._block(block)
        side, index = self._buffer(block, buffer)
        region = (self.get(block).reads if side == "read" else self.get(block).writes)[index]
        index_map = _map(index_map, len(region.region))
        attrs = ([side, index], index_map, pad_value, assume_injective_transform)
        self._only("TransformLayout", (block,), attrs)

    def transform_block_layout(self, block, index_map):
        """Put a block over other axes, by a map of the indices of the old ones."""
        block = self._block(block)
        self._only("TransformBlockLayout", (block,), (_map(index_map, len(self.get(block).iter_vars)),))

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
        """Make one block of what a loop carries out, or of several blocks that stand one behind the other."""
        if isinstance(target, (list, tuple)):
            target = [self._block(block) for block in target]
        return self._one("Blockize", (target,), (preserve_unit_iters,))

    def tensorize(self, block_or_loop, tensor_intrin, preserve_unit_iters=True):
        """Carry a block, or what a loop carries out, out by an intrinsic that :class:`TensorIntrin` knows."""
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


def _map(index_map, rank):
    return index_map if isinstance(index_map, IndexMap) else IndexMap.from_func(index_map, rank)


__all__ = ["RegionSteps"]
