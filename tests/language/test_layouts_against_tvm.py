"""Layouts over threads and memory: the same results as TVM's, for layouts made at random."""

import random

import pytest

import relaxide

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")
from tvm.tirx import layout as theirs  # noqa: E402

from relaxide.tirx import layout as ours  # noqa: E402

SIDES = (ours, theirs)
AXES = ("m", "m", "m", "laneid", "warpid", "tx", "TLane", "TCol")
SEEDS = range(60)


def steps(rng, axes=AXES):
    """Iterators as numbers: compact ones, strided ones, and ones in another order."""
    extents = [rng.choice((1, 2, 3, 4, 8)) for _ in range(rng.randint(1, 4))]
    strides, stride = [], rng.choice((1, 1, 2, 5))
    for extent in reversed(extents):
        strides.insert(0, stride)
        stride *= extent * rng.choice((1, 1, 1, 2))
    axis = rng.choice(axes)
    found = [(extent, stride, axis if rng.random() < 0.7 else rng.choice(axes)) for extent, stride in zip(extents, strides)]
    if rng.random() < 0.3:
        rng.shuffle(found)
    return found


def made(side, shard, replica=(), offset=None):
    iters = [[side.Iter(*one) for one in part] for part in (shard, replica)]
    return side.TileLayout.from_iters(*iters, dict(offset or {}))


def told(layout):
    """A layout as plain values, with replicas in an order of their own."""
    if layout is None:
        return None
    if hasattr(layout, "tile_layout"):
        return (layout.per_element, layout.swizzle_len, layout.atom_len, bool(layout.swizzle_inner), told(layout.tile_layout))

    def iters(of):
        return [(int(one.extent), int(one.stride), one.axis.name) for one in of]

    return iters(layout.shard), sorted(iters(layout.replica)), sorted((axis.name, int(value)) for axis, value in layout.offset.items())


def outcome(ask):
    """What an operation gives; that it refuses, where it does."""
    try:
        return ask()
    except Exception:
        return "refused"


def both(ask):
    return tuple(outcome(lambda side=side: ask(side)) for side in SIDES)


def size(shard):
    total = 1
    for extent, _, _ in shard:
        total *= extent
    return total


def shape_of(rng, shard):
    """A shape of as many elements: products of runs of extents, or others."""
    extents = [one[0] for one in shard]
    cut = rng.randint(0, len(extents))
    parts = (extents[:cut], extents[cut:])
    shape = [size([(extent, 0, "") for extent in part]) for part in parts]
    if rng.random() < 0.2:
        shape = [shape[0] * shape[1]]
    return shape


@pytest.mark.parametrize("seed", SEEDS)
def test_canonical_forms_are_equal(seed):
    rng = random.Random(seed)
    shard, replica = steps(rng), steps(rng, ("m", "laneid"))[: rng.randint(0, 2)]
    offset = {"m": rng.randint(0, 3)} if rng.random() < 0.5 else {}
    # Of axes that leave out a scope, TVM brings none to a canonical form; here only fusing them needs the scope.
    mine, other = both(lambda side: told(made(side, shard, replica, offset).canonicalize()))
    assert mine == other or other == "refused"
    assert both(lambda side: int(made(side, shard, replica, offset).span())) in ((value, value) for value in range(100000))


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_and_slices_are_equal(seed):
    rng = random.Random(seed)
    shard = steps(rng, ("m", "m", "laneid"))
    shape = shape_of(rng, shard)

    def grouped(side):
        layout, ends = made(side, shard).group(shape)
        return told(layout), list(ends)

    mine, other = both(grouped)
    assert mine == other
    region = []
    for dim in shape:
        begin = rng.randrange(dim)
        region.append((begin, rng.randint(begin + 1, dim)))
    mine, other = both(lambda side: told(made(side, shard).slice(shape, region)))
    # Where TVM's slice runs over two iterators at once, its second half may begin outside.
    assert mine == other or mine is None


@pytest.mark.parametrize("seed", SEEDS)
def test_tiles_and_sums_are_equal_and_come_apart_alike(seed):
    rng = random.Random(seed)
    outer, inner = steps(rng, ("m", "laneid")), steps(rng, ("m", "m", "laneid"))
    m, n = size(outer), size(inner)

    def tiled(side):
        a, b = made(side, outer), made(side, inner)
        whole = b.tile(a, [m], [n])
        parts = (b.is_tile_inner(whole, [m * n], [n]), a.is_tile_outer(whole, [m * n], [m]))
        return told(whole), *map(told, parts)

    def summed(side):
        a, b = made(side, outer), made(side, inner)
        whole = b.direct_sum(a, [m], [n])
        parts = (b.is_direct_sum_right(whole, [m, n], [n]), a.is_direct_sum_left(whole, [m, n], [m]))
        return told(whole), *map(told, parts)

    assert len(set(map(str, both(tiled)))) == 1
    assert len(set(map(str, both(summed)))) == 1


@pytest.mark.parametrize("seed", SEEDS)
def test_addresses_are_equal(seed):
    rng = random.Random(seed)
    shard = steps(rng, ("m",))
    numbers = (rng.randint(0, 3), rng.randint(0, 3), 3)
    inner = rng.random() < 0.7
    for index in [rng.randrange(size(shard)) for _ in range(8)]:
        mine, other = both(lambda side: int(made(side, shard).apply(index)["m"]))
        assert mine == other
        mine, other = both(lambda side: int(side.ComposeLayout(*numbers, made(side, shard), inner).apply(index)["m"]))
        assert mine == other
    text = both(lambda side: str(side.ComposeLayout(*numbers, made(side, shard), inner)))
    assert text[0] == text[1]


@pytest.mark.parametrize("kind", ["cuda", None])
def test_axes_of_threads_become_one_alike(kind):
    spans = {"laneid": 32, "wid_in_wg": 4, "wgid": 2, "warpid": 8, "tid_in_wg": 128}
    nested = (("wgid", "wid_in_wg", "laneid"), ("warpid", "laneid"), ("wgid", "tid_in_wg"), ("wid_in_wg", "laneid"))
    for axes in nested:
        shard = [(spans[axis], 1, axis) for axis in axes]

        def ask(side, package, shard=shard):
            layout = made(side, shard, (), {axes[-1]: 1})
            if kind is None:
                return told(layout.canonicalize())
            with package.target.Target(kind):
                return told(layout.canonicalize())

        assert ask(ours, relaxide) == ask(theirs, tvm)


def test_layouts_of_tensor_memory_are_equal():
    paths = [("A", 128), ("B", 64), ("C", 64), ("D", 128), ("E", 64), ("F", 64), ("G", 32), ("D", 64), ("H", 1)]
    for letter, rows in paths:
        for cols, slab in ((64, 0), (64, 1), (3, 0)):
            mine, other = both(lambda side: told(side.tmem_datapath_layout(letter, rows, cols, slab)))
            assert mine == other, (letter, rows, cols, slab)
    for shape in ("32x32b", "16x64b", "16x128b", "16x256b", "8x8"):
        for rows in (32, 64, 128):
            for cols in (1, 2, 8, 24, 64, 256):
                for dtype in ("float32", "float16", "int8"):
                    mine, other = both(lambda side: told(side.tcgen05_atom_layout(shape, (rows, cols), dtype)))
                    assert mine == other, (shape, rows, cols, dtype)
    for operand in "ADX":
        for dims in ((64, 64), (128, 64), (2, 64, 32), (64, 2, 32), (64, 4, 2, 8), (3, 4)):
            for rows, ctas, warp in ((128, 1, False), (64, 1, False), (64, 1, True), (256, 2, False), (128, 2, False), (32, 1, False)):
                options = {"M": rows, "cta_group": ctas, "ws": warp}
                mine, other = both(lambda side: told(side.tmem_mma_operand_layout(operand, dims, "float16", **options)))
                assert mine == other, (operand, dims, options)


def test_layouts_of_trainium_are_equal():
    for annotation, shape in (("PF", (128, 64)), ("FP", (4, 256)), ("PFP", (8, 64, 16)), ("FPF", (512, 512, 4)), ("P", (100,)), ("PF", (200, 2))):
        for psum in (False, True):
            mine, other = both(lambda side: told(side.TileLayout.trainium(annotation, shape, psum)))
            assert mine == other, (annotation, shape, psum)
