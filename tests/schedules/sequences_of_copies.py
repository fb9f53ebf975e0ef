"""Sequences of steps on copies, partitions, layouts with padding and sampled places."""

from sequences import loops, on, refused

# Layouts with padding.


@on("elementwise")
def layout_with_padding(sch):
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=0.0)


@on("elementwise")
def layout_with_padding_that_is_computed(sch):
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=lambda i, j, k: (i + j * k) * 1.5)


@on("elementwise")
def layout_with_padding_behind_split_loops(sch):
    sch.split(loops(sch, "B")[0], [4, 4])
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=0.0)


@on("elementwise")
def layout_with_padding_that_is_not_needed(sch):
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 4, j % 4), pad_value=0.0)


@on("elementwise")
def layouts_of_result_and_operand_with_padding(sch):
    sch.transform_layout("D", ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=0.0)
    sch.transform_layout("D", ("read", 0), lambda i, j: (i // 3, j, i % 3), pad_value=1.0)


@on("matmul")
def layout_of_a_sum_with_padding(sch):
    sch.transform_layout("C", ("write", 0), lambda i, j: (i, j // 7, j % 7), pad_value=0.0)


@on("elementwise")
def layout_that_is_trusted(sch):
    sch.transform_layout("B", ("write", 0), lambda i, j: (i + j, j), assume_injective_transform=True)


@refused("elementwise")
def layout_with_padding_of_another_type(sch):
    block = sch.get_sblock("D")
    return lambda: sch.transform_layout(block, ("write", 0), lambda i, j: (i, j // 5, j % 5), pad_value=1)


@refused("elementwise")
def layout_with_padding_that_nobody_gives(sch):
    block = sch.get_sblock("B")
    return lambda: sch.transform_layout(block, ("write", 0), lambda i, j: (i, j // 5, j % 5))


# Sampled places and tiles.


@on("conv")
def sampled_place(sch):
    sch.compute_at("pad", sch.sample_compute_location("pad", decision=2))


@on("conv")
def sampled_place_that_is_none_any_more(sch):
    sch.compute_at("pad", sch.sample_compute_location("pad", decision=6))


@on("conv")
def sampled_place_inlines(sch):
    sch.compute_at("pad", sch.sample_compute_location("pad", decision=-2))


@on("conv")
def sampled_place_stays(sch):
    sch.compute_at("pad", sch.sample_compute_location("pad", decision=0))
    sch.reverse_compute_at("relu", sch.sample_compute_location("relu", decision=-1))


@on("dynamic")
def sampled_tile_of_an_unknown_extent(sch):
    i, j = loops(sch, "B")
    sch.split(i, sch.sample_perfect_tile(i, 3, 8))


@on("matmul")
def partitioned_tile_is_mended(sch):
    i, _, _ = loops(sch, "C")
    sch.split(i, sch.sample_partitioned_tile(i, 3, 1, 4, decision=[3, 5, 4]))


@refused("conv")
def place_that_is_no_loop(sch):
    place = sch.sample_compute_location("pad", decision=-1)
    return lambda: sch.unroll(place)


# Partitions.


@on("elementwise")
def partition(sch):
    sch.loop_partition(loops(sch, "B")[0], [2, None])


@on("elementwise")
def partition_with_a_rest(sch):
    sch.loop_partition(loops(sch, "B")[0], [2, 8])


@on("elementwise")
def partition_inside(sch):
    sch.loop_partition(loops(sch, "C")[1], [8, None, 8])


@on("matmul")
def partition_of_a_reduction(sch):
    sch.loop_partition(loops(sch, "C")[2], [2, None])


@on("elementwise")
def partition_then_schedule_the_parts(sch):
    first, second = sch.loop_partition(loops(sch, "B")[0], [4, None])
    sch.vectorize(sch.split(loops(sch, "B_i1")[1], [None, 8])[1])
    sch.unroll(first)
    del second


@refused("elementwise")
def partition_of_more_than_there_is(sch):
    i = loops(sch, "B")[0]
    return lambda: sch.loop_partition(i, [8, 8])


@refused("dynamic")
def partition_of_an_unknown_extent(sch):
    i = loops(sch, "B")[0]
    return lambda: sch.loop_partition(i, [2, None])


# Copies by maps.


@on("matmul")
def reindexed_copies(sch):
    sch.reindex_cache_read("C", 0, "local", lambda i, j, k: (k // 4, i, k % 4))
    sch.reindex_cache_write("D", 0, "local", lambda i, j: (j // 8, i, j % 8))


@on("matmul")
def reindexed_copy_of_a_sum(sch):
    sch.reindex_cache_write("C", 0, "global", lambda i, j, k: (j, i))


@on("conv")
def reindexed_copy_of_windows(sch):
    sch.reindex_cache_read("conv", 0, "local", lambda n, o, h, w, c, a, b: (n, c, h + a, w + b))


@on("conv")
def reindexed_copy_under_a_loop(sch):
    sch.compute_at("pad", loops(sch, "conv")[2])
    sch.reindex_cache_read("conv", 0, "local", lambda n, o, h, w, c, a, b: (n, h + a, w + b, c))


@on("conv")
def reindexed_copy_of_split_loops(sch):
    sch.split(loops(sch, "conv")[1], [4, 4])
    sch.reindex_cache_read("conv", 1, "local", lambda n, o, h, w, c, a, b: (o, c * 9 + a * 3 + b))


@on("matmul")
def reindexed_copy_of_fused_loops(sch):
    sch.fuse(*loops(sch, "C")[:2])
    sch.reindex_cache_read("C", 0, "local", lambda i, j, k: (k, i))


@on("elementwise")
def reindexed_copy_of_what_others_read(sch):
    sch.reindex_cache_read("D", 1, "local", lambda i, j: (j, i))
    sch.reindex_cache_write("B", 0, "local", lambda i, j: (j + i, i))


@refused("matmul")
def reindexed_copy_without_an_axis(sch):
    block = sch.get_sblock("C")
    return lambda: sch.reindex_cache_read(block, 0, "local", lambda i, j, k: (k,))


@refused("matmul")
def reindexed_copy_with_another_axis(sch):
    block = sch.get_sblock("C")
    return lambda: sch.reindex_cache_read(block, 0, "local", lambda i, j, k: (k, i, j))


# Copies in place, at loops, of indices.


@on("in_place")
def copy_in_place(sch):
    sch.cache_inplace("A", 0, "local")


@refused("in_place")
def copy_in_place_of_what_is_read_only(sch):
    block = sch.get_sblock("A")
    return lambda: sch.cache_inplace(block, 1, "local")


@on("flatten")
def indices(sch):
    sch.cache_index("D", "local")


@on("conv")
def indices_of_windows(sch):
    sch.cache_index("conv", "global", 1)


@on("matmul")
def copies_for_reading_at_a_loop(sch):
    i, j, k = loops(sch, "C")
    io, ii = sch.split(i, [None, 8])
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(io, ko, ii, j, ki)
    sch.read_at(ko, sch.get_sblock("C"), 0, "shared")
    sch.read_at(ko, sch.get_sblock("C"), 1, "shared")


@on("matmul")
def copies_for_writing_at_a_loop(sch):
    io, _ = sch.split(loops(sch, "C")[0], [None, 8])
    sch.write_at(io, sch.get_sblock("C"), 0, "shared")
    sch.write_at(loops(sch, "D")[0], sch.get_sblock("D"), 0, "local")
    sch.read_at(loops(sch, "D")[0], sch.get_sblock("D"), 0, "local")


@on("conv")
def copy_of_windows_at_a_loop(sch):
    sch.read_at(loops(sch, "conv")[2], sch.get_sblock("conv"), 0, "local")


@on("pools")
def rolling_rows(sch):
    sch.compute_at("B", loops(sch, "C")[0])
    sch.rolling_buffer("B", 0)


@on("pools")
def rolling_tiles(sch):
    i, j, _, _ = loops(sch, "C")
    io, ii = sch.split(i, [None, 4])
    jo, ji = sch.split(j, [None, 4])
    sch.reorder(io, jo, ii, ji)
    sch.compute_at("B", jo)
    sch.rolling_buffer("B", 0)


@refused("pools")
def rolling_a_result(sch):
    block = sch.get_sblock("C")
    return lambda: sch.rolling_buffer(block, 0)


@refused("pools")
def rolling_without_a_loop(sch):
    block = sch.get_sblock("B")
    return lambda: sch.rolling_buffer(block, 0)


@refused("elementwise")
def rolling_what_does_not_overlap(sch):
    sch.compute_at("C", loops(sch, "D")[0])
    block = sch.get_sblock("C")
    return lambda: sch.rolling_buffer(block, 0)


# Epilogues, declared accesses, and what became wider.


@on("linear")
def bias_in_front(sch):
    sch.fuse_reduction_epilogue("C", "D")


@on("linear")
def bias_in_front_of_split_loops(sch):
    i, j, k = loops(sch, "C")
    io, ii = sch.split(i, [4, 4])
    sch.reorder(k, j, ii)
    sch.fuse_reduction_epilogue("C", "D")


@refused("linear")
def bias_of_a_decomposed_sum(sch):
    sch.decompose_reduction("C", loops(sch, "C")[0])
    blocks = sch.get_sblock("C_update"), sch.get_sblock("D")
    return lambda: sch.fuse_reduction_epilogue(*blocks)


@on("elementwise")
def declared_accesses(sch):
    block = sch.get_sblock("B")
    sch.annotate_buffer_access(block, 0, "read", lambda vi, vj: ((vi - 1, vi + 1), vj))
    sch.annotate_buffer_access(block, 0, "write", lambda vi, vj: ((vi - 1, vi + 1), (vj, vj + 2)))


@on("elementwise")
def hidden_accesses(sch):
    sch.unsafe_hide_buffer_access(sch.get_sblock("D"), "read", [1])


@refused("elementwise")
def hidden_access_that_is_not_there(sch):
    block = sch.get_sblock("D")
    return lambda: sch.unsafe_hide_buffer_access(block, "read", [3])


@on("apart")
def moved_to_a_loop_that_makes_nothing_for_it(sch):
    sch.reverse_compute_at("D", loops(sch, "B")[0])


@on("flat_sums")
def computed_at_a_sum_of_axes(sch):
    sch.compute_at("B", loops(sch, "D")[0])


@on("flat_sums")
def computed_at_a_part_of_a_sum_of_axes(sch):
    sch.split(loops(sch, "D")[1], [None, 4])
    sch.compute_at("B", loops(sch, "D")[1])


@on("flat_sums")
def moved_to_a_sum_of_axes(sch):
    sch.reverse_compute_at("D", loops(sch, "B")[0])


@on("flatten")
def moved_by_quotient_and_remainder(sch):
    sch.reverse_compute_at("D", loops(sch, "B")[1])


@on("padded")
def padding_with_factors(sch):
    sch.decompose_padding("P", loops(sch, "P")[0])


@on("again")
def merged_where_the_operand_is_overwritten(sch):
    sch.merge(loops(sch, "B")[1], loops(sch, "A")[1])


@on("odd")
def sums_of_products_are_padded(sch):
    sch.pad_einsum("D", [8, 8, 8])


@on("odd")
def spatial_axes_are_padded(sch):
    sch.pad_einsum("S", [4, 1])
