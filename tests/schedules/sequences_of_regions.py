"""Sequences of steps that move, copy, divide and lay out anew what blocks touch; see ``sequences.py``."""

import intrinsics  # noqa: F401  (makes them known)
from sequences import loops, on


def tiled(sch):
    """A product in tiles of 8 x 8 x 4; its block and loops."""
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    (io, ii), (jo, ji), (ko, ki) = sch.split(i, [None, 8]), sch.split(j, [None, 8]), sch.split(k, [None, 4])
    sch.reorder(io, jo, ko, ii, ji, ki)
    return block, (io, jo, ko, ii, ji, ki)


@on("elementwise")
def compute_under_a_loop(sch):
    sch.compute_at(sch.get_sblock("C"), loops(sch, "D")[0])


@on("elementwise")
def compute_under_a_split_loop(sch):
    outer, _ = sch.split(loops(sch, "D")[1], [None, 8])
    sch.compute_at("C", outer, preserve_unit_loops=True)


@on("matmul")
def epilogue_under_tiles(sch):
    _, (_, jo, *_) = tiled(sch)
    sch.reverse_compute_at("D", jo)


@on("matmul")
def copies_near_the_tile(sch):
    block, (_, jo, ko, *_) = tiled(sch)
    a = sch.cache_read(block, 0, "shared")
    b = sch.cache_read(block, "B", "shared")
    sch.compute_at(a, ko)
    sch.compute_at(b, ko)
    sch.reverse_compute_at(sch.cache_write(block, 0, "local"), jo)
    sch.decompose_reduction(block, ko)


@on("matmul")
def copies_inside_of_a_block(sch):
    block, (_, _, ko, ii, *_) = tiled(sch)
    sch.blockize(ii)
    inner = sch.get_sblock("C")
    sch.cache_read(inner, "A", "local")
    sch.cache_read(inner, "B", "local")


@on("elementwise")
def rows_written_by_a_block_of_their_own(sch):
    sch.blockize(loops(sch, "D")[1])
    sch.cache_write(sch.get_sblock("D"), 0, "local")
    sch.cache_read(sch.get_sblock("D"), 0, "local")


@on("matmul")
def copy_for_one_consumer(sch):
    block = sch.get_sblock("D")
    sch.cache_read(block, 0, "shared", consumer_blocks=[block])


@on("matmul")
def operands_in_order_of_axes(sch):
    block = sch.get_sblock("C")
    sch.reindex(block, ("read", 0))
    sch.reindex(block, "B")
    sch.reindex(block, ("write", 0))


@on("matmul")
def parts_of_a_sum(sch):
    k = loops(sch, "C")[2]
    outer, _ = sch.split(k, [None, 6])
    part = sch.rfactor(outer, 0)
    sch.parallel(sch.get_loops(part)[0])


@on("softmax")
def parts_of_a_maximum(sch):
    _, inner = sch.split(loops(sch, "max")[1], [None, 8])
    sch.rfactor(inner, 1)


@on("matmul")
def panels(sch):
    sch.transform_layout("C", ("read", 1), lambda i, j: (j // 8, i, j % 8))
    sch.transform_layout("C", "C", lambda i, j: (i // 8, j // 8, i % 8, j % 8))


@on("matmul")
def axes_laid_out_anew(sch):
    sch.transform_block_layout("C", lambda i, j, k: (i // 8, j, i % 8, k))


@on("matmul")
def rounded_up(sch):
    sch.pad_einsum("C", [7, 16, 5])


@on("matmul")
def tile_as_a_block(sch):
    _, (*_, ii, _, _) = tiled(sch)
    sch.blockize(ii)


@on("matmul")
def scopes_and_alignment(sch):
    sch.set_scope("C", 0, "shared")
    sch.storage_align("C", 0, axis=0, factor=16, offset=4)


@on("matmul")
def another_type(sch):
    sch.unsafe_set_dtype("C", 0, "float16")


@on("matmul")
def tile_by_an_intrinsic(sch):
    block, (_, _, ko, ii, *_) = tiled(sch)
    sch.decompose_reduction(block, ko)
    sch.tensorize(ii, "test.product_8x8x4")


@on("matmul")
def block_by_an_intrinsic(sch):
    block, (_, _, ko, ii, *_) = tiled(sch)
    sch.decompose_reduction(block, ko)
    sch.tensorize(sch.blockize(ii), "test.product_8x8x4")


@on("elementwise")
def row_by_an_intrinsic(sch):
    _, inner = sch.split(loops(sch, "C")[1], [None, 16])
    sch.tensorize(inner, "test.exp_16")


@on("elementwise")
def two_nests_in_one(sch):
    sch.parallel(sch.merge(loops(sch, "B")[0], loops(sch, "C")[0]))


@on("elementwise")
def three_nests_in_one(sch):
    sch.merge(*(loops(sch, name)[1] for name in "BCD"))


@on("elementwise")
def nests_in_a_nest(sch):
    sch.merge(loops(sch, "B")[0], loops(sch, "C")[0])
    sch.merge(loops(sch, "B")[1], loops(sch, "C")[1])


@on("conv")
def border_apart(sch):
    sch.decompose_padding("pad", loops(sch, "pad")[0])


@on("conv")
def border_of_each_row(sch):
    sch.decompose_padding("pad", loops(sch, "pad")[2])


@on("conv")
def border_of_tiles(sch):
    _, _, h, _ = loops(sch, "pad")
    outer, _ = sch.split(h, [None, 8])
    sch.decompose_padding("pad", outer)
    sch.vectorize(loops(sch, "pad_pad_const")[-1])


@on("matmul")
def initial_values_in_vectors(sch):
    block, (_, _, ko, *_) = tiled(sch)
    first = sch.decompose_reduction(block, ko)
    sch.vectorize(sch.get_loops(first)[-1])


@on("elementwise")
def rows_of_two_blocks_as_one(sch):
    sch.merge(loops(sch, "B")[0], loops(sch, "C")[0])
    sch.blockize([sch.get_sblock("B"), sch.get_sblock("C")])


@on("elementwise")
def two_blocks_as_one(sch):
    sch.blockize([sch.get_sblock("B"), sch.get_sblock("C")], preserve_unit_iters=False)


@on("matmul")
def columns_as_a_block(sch):
    sch.blockize(loops(sch, "C")[1])


@on("matmul")
def columns_as_a_block_without_unit_axes(sch):
    sch.blockize(loops(sch, "C")[1], preserve_unit_iters=False)
