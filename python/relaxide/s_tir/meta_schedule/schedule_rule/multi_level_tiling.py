"""Rules that tile loops several times, for the memories between the cores and the main one."""

from typing import NamedTuple

from ....tirx import For, Var
from ....tirx._walk import walk
from ...stmt import SBlock
from ._blocks import extent, kind_of, limit_of, loop_kinds, needs_multi_level_tiling, number, realize_of
from .schedule_rule import _Copied


class ReuseType(NamedTuple):
    """Whether copies are kept: ``req`` is ``"no"``, ``"may"`` or ``"must"``, ``levels`` are the tiles under which they are made, ``scope``
    is their memory."""

    req: str
    levels: list
    scope: str

    def as_dict(self):
        """The fields by name."""
        return self._asdict()

    @staticmethod
    def _of(given):
        if given is None:
            return ReuseType("no", [], "")
        made = ReuseType(**given) if isinstance(given, dict) else given
        if made.req not in ("no", "may", "must"):
            raise ValueError(f"req is no, may or must, got {made.req!r}")
        return made


class _State:
    def __init__(self, sch, block, tiles=()):
        self.sch, self.block, self.tiles = sch, block, tiles

    def copy(self):
        return _State(self.sch.copy(), self.block, [list(tile) for tile in self.tiles])


class MultiLevelTiling(_Copied):
    """Tiles the loops of a block whose inputs serve several results.

    Parameters
    ----------
    structure : str
        A letter for each level: ``S`` for spatial loops, ``R`` for reduced ones: ``"SSRSRS"``.
    tile_binds : list of str, optional
        What the outer levels are bound to.
    max_innermost_factor : int, optional
        The longest innermost tile.
    vector_load_lens : list of int, optional
        The numbers of elements that threads fetch at once.
    reuse_read, reuse_write : ReuseType, optional
        Copies of what is read and written.
    filter_fn : callable, optional
        ``(sch, block) -> bool``: blocks that are tiled besides.
    """

    def __init__(
        self,
        structure,
        tile_binds=None,
        max_innermost_factor=None,
        vector_load_lens=None,
        reuse_read=None,
        reuse_write=None,
        filter_fn=None,
    ):
        if not structure or set(structure) - set("SR"):
            raise ValueError(f"Invalid tiling structure: {structure!r}; it has the letters S and R")
        self._made_of(
            structure=structure,
            tile_binds=tile_binds,
            max_innermost_factor=max_innermost_factor,
            vector_load_lens=vector_load_lens,
            reuse_read=reuse_read,
            reuse_write=reuse_write,
            filter_fn=filter_fn,
        )
        self._read, self._write = ReuseType._of(reuse_read), ReuseType._of(reuse_write)

    def apply(self, sch, block):
        """The tiled schedules, one for each choice of copies."""
        wanted = self.filter_fn is not None and self.filter_fn(sch, block)
        if not wanted and not needs_multi_level_tiling(sch, block):
            return [sch]
        sch.annotate(block, "meta_schedule.tiling_structure", self.structure)
        return self._tiled(_State(sch, block))

    def _tiled(self, state):
        self._tile(state)
        return [one.sch for made in self._with_writes(state) for one in self._with_reads(made)]

    def _split(self, sch, block, loop, count):
        most = -1 if self.max_innermost_factor is None else self.max_innermost_factor
        return sch.split(loop, sch.sample_perfect_tile(loop, n=count, max_innermost_factor=most))

    def _tile(self, state):
        sch, block = state.sch, state.block
        levels = {kind: [index for index, letter in enumerate(self.structure) if letter == kind] for kind in "SR"}
        tiles, space = [[] for _ in self.structure], 1
        for loop, kind in zip(sch.get_loops(block), loop_kinds(sch, block)):
            if kind not in levels:
                continue
            if kind == "S" and space is not None:
                length = extent(sch, loop)
                space = None if length is None else space * length
            slots = levels[kind]
            parts = [loop] if len(slots) == 1 else self._split(sch, block, loop, len(slots))
            for slot, part in zip(slots, parts):
                tiles[slot].append(part)
        sch.reorder(*(loop for tile in tiles for loop in tile))
        for index, thread in enumerate((self.tile_binds or [])[: len(tiles)]):
            fused = sch.fuse(*tiles[index])
            sch.bind(fused, thread)
            tiles[index] = [fused]
        state.tiles = tiles
        warp = limit_of(self._context.target if self._context else None, "thread_warp_size", -1)
        if warp != -1 and self.tile_binds:
            most = limit_of(self._context.target, "max_threads_per_block", 1024)
            low = warp if space is None or space > 2 * warp else 1
            sch.annotate(block, "meta_schedule.thread_extent_low_inclusive", low)
            sch.annotate(block, "meta_schedule.thread_extent_high_inclusive", most)

    def _with_writes(self, state):
        req, levels, scope = self._write
        if req == "no":
            return [state]
        said = (state.sch.get(state.block).annotations or {}).get("meta_schedule.write_cache_level")
        if said is not None:
            req, levels = "must", [number(level) for level in said]
        consumers = state.sch.get_consumers(state.block)
        made = [state.copy()] if req == "may" else []
        copied = consumers[0] if len(consumers) == 1 and _is_copy_like(state.sch, consumers[0]) else None
        if copied is None:
            copied = state.sch.cache_write(state.block, 0, scope)
        for level in levels:
            one = state.copy()
            one.sch.reverse_compute_at(copied, one.tiles[level - 1][-1], preserve_unit_loops=True)
            made.append(one)
        return made

    def _with_reads(self, state):
        req, levels, scope = self._read
        if req == "no":
            return [state]
        made = [state.copy()] if req == "may" else []
        for level in levels:
            one = state.copy()
            sch, block = one.sch, one.block
            node = sch.get(block)
            written = [region.buffer for region in node.writes]
            reads = [region.buffer for region in node.reads]
            for index, buffer in enumerate(reads):
                if any(buffer.same_as(other) for other in written):
                    continue
                copy = sch.cache_read(block, index, scope, consumer_blocks=[block])
                sch.compute_at(copy, one.tiles[level - 1][-1], preserve_unit_loops=True)
                sch.fuse(*sch.get_loops(copy)[-len(buffer.shape) :])
                self._fetch_together(sch, copy, str(buffer.dtype))
            made.append(one)
        return made

    def _fetch_together(self, sch, copy, dtype):
        lens = [count for count in self.vector_load_lens or () if _fits(dtype, count)]
        if lens:
            count = sch.sample_categorical(lens, [1.0 / len(lens)] * len(lens))
            sch.annotate(copy, "meta_schedule.cooperative_fetch", count)


def _fits(dtype, count):
    """Whether a GPU loads so many elements at once."""
    if dtype == "float32":
        return count <= 4
    if dtype == "float16":
        return (count == 1 or count % 2 == 0) and count <= 8
    return count <= 16 if dtype == "int8" else True


def _is_copy_like(sch, block):
    """Whether a consumer makes each of its elements of the one at the same place, so that it can write a tile back itself."""
    node = sch.get(block)
    if len(node.writes) != 1 or any(kind_of(axis) != "S" for axis in node.iter_vars):
        return False
    axes = [axis.var for axis in node.iter_vars]
    region = node.writes[0].region
    return len(region) == len(axes) and all(number(dim.extent) == 1 for dim in region)


class MultiLevelTilingWideVector(MultiLevelTiling):
    """Tiles so that the innermost loop along the result's last dimension fills vectors of ``vector_length_in_bits``."""

    def __init__(self, structure, vector_length_in_bits, max_innermost_factor=None, reuse_read=None, reuse_write=None):
        super().__init__(structure, None, max_innermost_factor, None, reuse_read, reuse_write)
        self._values = {
            "structure": structure,
            "vector_length_in_bits": vector_length_in_bits,
            "max_innermost_factor": max_innermost_factor,
            "reuse_read": reuse_read,
            "reuse_write": reuse_write,
        }
        self.vector_length_in_bits = vector_length_in_bits

    def _split(self, sch, block, loop, count):
        node, realize = sch.get(block), realize_of(sch, block)
        region = node.writes[0]
        last = region.region[-1].min if region.region else None
        var, length = sch.get(loop).loop_var, extent(sch, loop)
        pairs = zip(node.iter_vars, realize.iter_values)
        axis = next((axis for axis, value in pairs if isinstance(value, Var) and value.same_as(var)), None)
        lanes = self.vector_length_in_bits // region.buffer.dtype.bits
        if axis is None or last is None or not last.same_as(axis.var) or length is None or length < lanes or length % lanes:
            return super()._split(sch, block, loop, count)
        outer, inner = sch.split(loop, [None, lanes])
        return [*super()._split(sch, block, outer, count - 1), inner] if count > 2 else [outer, inner]


class MultiLevelTilingWithIntrin(MultiLevelTiling):
    """Tiles a block whose innermost tile an intrinsic of :class:`~relaxide.s_tir.TensorIntrin` executes."""

    def __init__(
        self,
        intrin_name,
        structure,
        tile_binds=None,
        max_innermost_factor=None,
        vector_load_lens=None,
        reuse_read=None,
        reuse_write=None,
    ):
        from ... import TensorIntrin

        super().__init__(structure, tile_binds, max_innermost_factor, vector_load_lens, reuse_read, reuse_write)
        self._values = {"intrin_name": intrin_name, **{k: v for k, v in self._values.items() if k != "filter_fn"}}
        self.intrin_name = intrin_name
        TensorIntrin.get(intrin_name)

    def apply(self, sch, block):
        """The tiled schedules; the one as it was where the intrinsic does not fit."""
        if not needs_multi_level_tiling(sch, block):
            return [sch]
        tried = sch.copy()
        whole = tile_for_intrin(tried, block, self.intrin_name)
        if whole is None:
            return [sch]
        inner = tried.blockize(whole)
        tried.annotate(inner, "meta_schedule.auto_tensorize", self.intrin_name)
        tried.annotate(inner, "meta_schedule.tiling_structure", self.structure)
        return self._tiled(_State(tried, inner))


def tile_for_intrin(sch, block, intrin_name):
    """Split the innermost loops of a block into those of an intrinsic; gives the outermost of these, ``None`` where they do not fit."""
    from ... import TensorIntrin

    desc = TensorIntrin.get(intrin_name).desc
    wanted = [number(loop.extent) for loop in walk(desc.body) if isinstance(loop, For)]
    inner = next(stmt for stmt in reversed(list(walk(desc.body))) if isinstance(stmt, SBlock))
    kinds = [kind_of(axis) for axis in inner.iter_vars]
    loops, own = sch.get_loops(block), loop_kinds(sch, block)
    chosen, last = [], len(loops)
    for length, kind in zip(reversed(wanted), reversed(kinds)):
        for index in reversed(range(last)):
            have = extent(sch, loops[index])
            if own[index] == kind and have is not None and have % length == 0:
                chosen.append((index, length))
                last = index
                break
        else:
            return None
    inner_loops = []
    for index, length in reversed(chosen):
        outer, part = sch.split(loops[index], [None, length])
        loops[index] = outer
        inner_loops.append(part)
    sch.reorder(*loops, *inner_loops)
    return inner_loops[0]


__all__ = ["MultiLevelTiling", "MultiLevelTilingWideVector", "MultiLevelTilingWithIntrin", "ReuseType"]
