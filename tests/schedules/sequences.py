"""Sequences of steps, each a function of a schedule: one of TVM or one of Relaxide, which have the same methods."""

SEQUENCES = []


def on(kernel):
    """Enters a sequence for a kernel."""

    def enter(function):
        SEQUENCES.append((kernel, function.__name__, function))
        return function

    return enter


def loops(sch, name):
    return sch.get_loops(sch.get_sblock(name))


@on("elementwise")
def nothing(sch):
    pass


@on("elementwise")
def split_divides(sch):
    sch.split(loops(sch, "B")[0], [4, 4])


@on("elementwise")
def split_open_factor(sch):
    sch.split(loops(sch, "B")[1], [None, 8])


@on("elementwise")
def split_in_three(sch):
    sch.split(loops(sch, "C")[1], [2, None, 4])


@on("elementwise")
def split_with_predicate(sch):
    sch.split(loops(sch, "B")[1], [None, 5])


@on("elementwise")
def split_with_predicate_twice(sch):
    i, j = loops(sch, "B")
    sch.split(i, [3, 6])
    _, inner = sch.split(j, [None, 5])
    sch.split(inner, [None, 2])


@on("elementwise")
def split_without_predicate(sch):
    sch.split(loops(sch, "B")[1], [7, 5], disable_predication=True)


@on("elementwise")
def split_keeps_unit(sch):
    sch.split(loops(sch, "B")[0], [1, 16])


@on("elementwise")
def split_drops_unit(sch):
    sch.split(loops(sch, "B")[0], [1, None, 1], preserve_unit_iters=False)


@on("elementwise")
def fuse_two(sch):
    sch.fuse(*loops(sch, "C"))


@on("elementwise")
def fuse_then_split(sch):
    fused = sch.fuse(*loops(sch, "C"))
    sch.split(fused, [None, 64])


@on("elementwise")
def fuse_then_split_with_predicate(sch):
    fused = sch.fuse(*loops(sch, "C"))
    sch.split(fused, [None, 100])


@on("elementwise")
def split_then_fuse_back(sch):
    i, _ = loops(sch, "B")
    sch.fuse(*sch.split(i, [4, 4]))


@on("elementwise")
def swap(sch):
    i, j = loops(sch, "D")
    sch.reorder(j, i)


@on("elementwise")
def inline_first(sch):
    sch.compute_inline(sch.get_sblock("B"))


@on("elementwise")
def inline_all(sch):
    sch.compute_inline("B")
    sch.compute_inline("C")


@on("elementwise")
def inline_then_parallel(sch):
    sch.compute_inline("C")
    i, j = loops(sch, "D")
    sch.parallel(i)
    sch.vectorize(sch.split(j, [None, 8])[1])
    sch.unroll(loops(sch, "B")[1])


@on("elementwise")
def neighbours(sch):
    b, d = sch.get_sblock("B"), sch.get_sblock("D")
    root = sch.get_sblock("root")
    sch.get_consumers(b)
    sch.get_producers(d)
    sch.get_output_blocks(root)
    sch.get_child_blocks(root)
    sch.get_child_blocks(loops(sch, "C")[0])


@on("elementwise")
def hints(sch):
    b = sch.get_sblock("B")
    i, j = sch.get_loops(b)
    sch.annotate(b, "pragma", 1)
    sch.annotate(i, "list", ["a", 2])
    sch.annotate(i, "list", 5)
    sch.annotate(j, "gone", "x")
    sch.unannotate(j, "gone")


@on("elementwise")
def unit_loops(sch):
    b = sch.get_sblock("B")
    sch.add_unit_loop(b)
    sch.add_unit_loop(sch.get_loops(b)[0])


@on("elementwise")
def axes_change_places(sch):
    sch.reorder_block_iter_var(sch.get_sblock("D"), [1, 0])


@on("elementwise")
def threads(sch):
    i, j = loops(sch, "B")
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")


@on("elementwise")
def sampled_numbers(sch):
    i, j = loops(sch, "B")
    tile = sch.sample_perfect_tile(i, 3, decision=[2, 4, 2])
    sch.split(i, tile)
    depth = sch.sample_categorical([0, 16, 64], [0.25, 0.25, 0.5], decision=1)
    sch.annotate(sch.get_sblock("B"), "depth", depth)
    sch.enter_postproc()
    sch.split(j, [None, tile[1]])


@on("elementwise")
def decision_does_not_fit(sch):
    i, _ = loops(sch, "B")
    sch.split(i, sch.sample_perfect_tile(i, 2, decision=[2, 3]))


@on("matmul")
def tile(sch):
    i, j, k = loops(sch, "C")
    io, ii = sch.split(i, [None, 8])
    jo, ji = sch.split(j, [None, 8])
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(io, jo, ko, ki, ii, ji)


@on("matmul")
def tile_with_predicate(sch):
    i, j, k = loops(sch, "C")
    io, ii = sch.split(i, [None, 7])
    jo, ji = sch.split(j, [None, 16])
    sch.reorder(io, jo, k, ii, ji)
    sch.parallel(sch.fuse(io, jo))
    sch.vectorize(ji)
    sch.unroll(ii)


@on("matmul")
def reduction_outside(sch):
    i, j, k = loops(sch, "C")
    sch.reorder(k, i, j)


@on("matmul")
def partial_reorder(sch):
    i, j, k = loops(sch, "C")
    sch.reorder(k, j)


@on("matmul")
def split_reduction(sch):
    k = loops(sch, "C")[2]
    ko, ki = sch.split(k, [None, 5])
    sch.unroll(ki)


@on("matmul")
def fuse_three(sch):
    i, j, k = loops(sch, "C")
    sch.fuse(i, j, k)


@on("matmul")
def parallel_and_vector(sch):
    i, j, k = loops(sch, "C")
    sch.reorder(i, k, j)
    sch.parallel(i)
    sch.vectorize(j)
    sch.parallel(sch.fuse(*loops(sch, "D")))


@on("matmul")
def sampled_tile(sch):
    i, j, k = loops(sch, "C")
    parts = [sch.split(l, sch.sample_perfect_tile(l, 2, 16, d)) for l, d in ((i, [8, 8]), (j, [5, 8]), (k, [12, 4]))]
    sch.reorder(*[outer for outer, _ in parts], *[inner for _, inner in parts])


@on("conv")
def inline_padding(sch):
    sch.compute_inline("pad")


@on("conv")
def tile_conv(sch):
    n, o, h, w, c, kh, kw = loops(sch, "conv")
    oo, oi = sch.split(o, [None, 8])
    wo, wi = sch.split(w, [None, 7])
    sch.reorder(n, oo, h, wo, c, kh, kw, wi, oi)
    sch.parallel(sch.fuse(n, oo, h))
    sch.vectorize(oi)
    sch.unroll(wi)


@on("conv")
def fuse_pixels(sch):
    n, o, h, w, c, kh, kw = loops(sch, "conv")
    sch.fuse(h, w)
    sch.fuse(kh, kw)


@on("conv")
def fuse_and_split_pixels(sch):
    n, o, h, w, *_ = loops(sch, "conv")
    pixels = sch.fuse(h, w)
    sch.split(pixels, [None, 32])


@on("conv")
def reorder_kernel_outside(sch):
    n, o, h, w, c, kh, kw = loops(sch, "conv")
    sch.reorder(kh, kw, c, h, o)


@on("softmax")
def parallel_rows(sch):
    for name in ("max", "exp", "sum", "norm"):
        sch.parallel(loops(sch, name)[0])


@on("softmax")
def inline_exp(sch):
    sch.compute_inline("exp")


@on("softmax")
def vector_columns(sch):
    for name in ("exp", "norm"):
        _, inner = sch.split(loops(sch, name)[1], [None, 16])
        sch.vectorize(inner)


@on("softmax")
def split_sum(sch):
    i, k = loops(sch, "sum")
    ko, ki = sch.split(k, [None, 8])
    sch.reorder(ko, i, ki)


@on("flatten")
def into_producer(sch):
    sch.reverse_compute_inline("D")


@on("flatten")
def into_consumer(sch):
    sch.compute_inline("B")


@on("flatten")
def into_producer_then_fuse(sch):
    sch.reverse_compute_inline(sch.get_sblock("D"))
    sch.vectorize(sch.split(sch.fuse(*loops(sch, "B")), [None, 16])[1])


@on("dynamic")
def dynamic_split(sch):
    i, j = loops(sch, "B")
    sch.split(i, [None, 8])


@on("dynamic")
def dynamic_tile(sch):
    i, j = loops(sch, "B")
    io, ii = sch.split(i, [None, 4])
    sch.reorder(io, j, ii)
    sch.parallel(io)


@on("dynamic")
def dynamic_fuse(sch):
    sch.fuse(*loops(sch, "B"))


@on("dynamic")
def dynamic_fuse_and_split(sch):
    sch.split(sch.fuse(*loops(sch, "B")), [None, 256])


#: Steps that both refuse: kernel, name, what leads to the place, and the step.
REFUSALS = []


def refused(kernel):
    """Enters a sequence of which the last step is not legal."""

    def enter(function):
        REFUSALS.append((kernel, function.__name__, function))
        return function

    return enter


@refused("matmul")
def parallel_reduction(sch):
    k = loops(sch, "C")[2]
    return lambda: sch.parallel(k)


@refused("matmul")
def vector_reduction(sch):
    k = loops(sch, "C")[2]
    return lambda: sch.vectorize(k)


@refused("matmul")
def blocks_of_threads_reduce(sch):
    k = loops(sch, "C")[2]
    return lambda: sch.bind(k, "blockIdx.x")


@refused("matmul")
def fuse_with_gap(sch):
    i, _, k = loops(sch, "C")
    return lambda: sch.fuse(i, k)


@refused("matmul")
def fuse_backwards(sch):
    i, j, _ = loops(sch, "C")
    return lambda: sch.fuse(j, i)


@refused("matmul")
def reorder_across_nests(sch):
    i, other = loops(sch, "C")[0], loops(sch, "D")[0]
    return lambda: sch.reorder(i, other)


@refused("matmul")
def reorder_twice(sch):
    i = loops(sch, "C")[0]
    return lambda: sch.reorder(i, i)


@refused("matmul")
def two_open_factors(sch):
    i = loops(sch, "C")[0]
    return lambda: sch.split(i, [None, None])


@refused("matmul")
def factors_too_small(sch):
    i = loops(sch, "C")[0]
    return lambda: sch.split(i, [2, 4])


@refused("matmul")
def split_of_annotated_loop(sch):
    i = loops(sch, "C")[0]
    sch.annotate(i, "a", 1)
    return lambda: sch.split(i, [2, 32])


@refused("matmul")
def inline_a_reduction(sch):
    block = sch.get_sblock("C")
    return lambda: sch.compute_inline(block)


@refused("matmul")
def inline_an_output(sch):
    block = sch.get_sblock("D")
    return lambda: sch.compute_inline(block)


@refused("matmul")
def inline_into_a_reduction(sch):
    block = sch.get_sblock("D")
    return lambda: sch.reverse_compute_inline(block)


@refused("elementwise")
def inline_into_one_of_two_producers(sch):
    block = sch.get_sblock("D")
    return lambda: sch.reverse_compute_inline(block)


@refused("elementwise")
def unknown_block(sch):
    return lambda: sch.get_sblock("E")


@refused("elementwise")
def no_order_of_axes(sch):
    block = sch.get_sblock("D")
    return lambda: sch.reorder_block_iter_var(block, [0, 0])


@refused("elementwise")
def reused_loop(sch):
    i = loops(sch, "B")[0]
    sch.split(i, [4, 4])
    return lambda: sch.split(i, [2, 8])


@refused("elementwise")
def merge_what_is_read_later(sch):
    sch.reorder(*reversed(loops(sch, "B")))
    j, i = loops(sch, "B")[0], loops(sch, "C")[0]
    return lambda: sch.merge(j, i)


@refused("matmul")
def pad_what_does_not_pad(sch):
    block = sch.get_sblock("D")
    loop = loops(sch, "D")[0]
    return lambda: sch.decompose_padding(block, loop)


@refused("matmul")
def an_intrinsic_that_is_not_known(sch):
    loop = loops(sch, "C")[1]
    return lambda: sch.tensorize(loop, "test.nobody_knows")


@refused("matmul")
def an_intrinsic_that_computes_otherwise(sch):
    loop = loops(sch, "C")[1]
    return lambda: sch.tensorize(loop, "test.exp_16")
