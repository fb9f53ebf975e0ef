"""``suggest_layout_transforms`` and maps of indices: the same as TVM's on the same kernels.

The exchange is text. Maps are compared by where they lead elements.
"""

import itertools

import pytest

import relaxide
from relaxide import relax
from relaxide.tirx import IndexMap

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

HEAD = "# from tvm.script import tirx as T\n\n@T.prim_func(private=True, s_tir=True)\n"


def kernel(params, loops, extents, kinds, body, init=None):
    """A kernel of one block."""
    buffers = ", ".join(f'{name}: T.Buffer({shape}, "float32")' for name, shape in params.items())
    names = [f"v{loop}" for loop in loops]
    first = f"                with T.init():\n                    {init}\n" if init else ""
    return (
        f"{HEAD}def main({buffers}):\n    for {', '.join(loops)} in T.grid({', '.join(map(str, extents))}):\n"
        f'            with T.sblock("block"):\n                {", ".join(names)} = T.axis.remap("{kinds}", [{", ".join(loops)}])\n'
        f"{first}                {body}\n"
    )


SQUARE = {"A": (32, 64), "C": (32, 64)}
CASES = {
    "copy": (kernel(SQUARE, "ij", (32, 64), "SS", "C[vi, vj] = A[vi, vj] + T.float32(1)"), "lambda i, j: (i, j // 16, j % 16)"),
    "transposed read": (
        kernel({"A": (64, 32), "C": (32, 64)}, "ij", (32, 64), "SS", "C[vi, vj] = A[vj, vi]"),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "moved": (kernel(SQUARE, "ij", (32, 64), "SS", "C[vi, vj] = A[vi, vj]"), "lambda i, j: (j, i)"),
    "row": (
        kernel({"A": (32, 64), "B": (64,), "C": (32, 64)}, "ij", (32, 64), "SS", "C[vi, vj] = A[vi, vj] * B[vj]"),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "column": (
        kernel({"A": (32, 64), "B": (32, 1), "C": (32, 64)}, "ij", (32, 64), "SS", "C[vi, vj] = A[vi, vj] * B[vi, 0]"),
        "lambda i, j: (i // 4, j // 16, i % 4, j % 16)",
    ),
    "sum": (
        kernel(
            {"A": (32, 64, 8), "W": (64,), "C": (32, 64)}, "ijk", (32, 64, 8), "SSR",
            "C[vi, vj] = C[vi, vj] + A[vi, vj, vk] * W[vj]", "C[vi, vj] = T.float32(0)",
        ),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "sum in front": (
        kernel(
            {"A": (8, 32, 64), "C": (32, 64)}, "kij", (8, 32, 64), "RSS",
            "C[vi, vj] = C[vi, vj] + A[vk, vi, vj]", "C[vi, vj] = T.float32(0)",
        ),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "product": (
        kernel(
            {"A": (32, 8), "B": (8, 64), "C": (32, 64)}, "ijk", (32, 64, 8), "SSR",
            "C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]", "C[vi, vj] = T.float32(0)",
        ),
        "lambda i, j: (i // 8, j // 16, i % 8, j % 16)",
    ),
    "sums of axes": (
        kernel({"A": (96,), "C": (32, 64)}, "ij", (32, 64), "SS", "C[vi, vj] = A[vi + vj]"),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "two reads": (
        kernel(SQUARE, "ij", (32, 64), "SS", "C[vi, vj] = A[vi, vj] + A[vi, 63 - vj]"),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "strided read": (
        kernel({"A": (64, 64), "C": (32, 64)}, "ij", (32, 64), "SS", "C[vi, vj] = A[vi * 2 + 1, vj]"),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "padded": (
        kernel({"A": (32, 60), "C": (32, 60)}, "ij", (32, 60), "SS", "C[vi, vj] = A[vi, vj]"),
        "lambda i, j: (i, j // 16, j % 16)",
    ),
    "joined": (kernel(SQUARE, "ij", (32, 64), "SS", "C[vi, vj] = A[vi, vj]"), "lambda i, j: (i * 64 + j,)"),
}


def places(map_indices, ndim):
    """Where a map leads some elements."""
    return [[int(i) for i in map_indices(list(index))] for index in itertools.product((0, 3, 17, 29), repeat=ndim)]


def theirs(text, mapping):
    found = tvm.relax.analysis.suggest_layout_transforms(tvm.script.from_source(text), [eval(mapping)])
    block = lambda key: isinstance(key, tvm.s_tir.SBlock)
    name = lambda key: "the block" if block(key) else key.name
    return [
        {name(key): places(lambda at, one=one: one.map_indices([tvm.tirx.const(i, one.initial_indices[0].ty.dtype) for i in at]), len(one.initial_indices)) for key, one in maps.items()}
        for maps in found.values()
    ]


def ours(text, mapping):
    found = relax.analysis.suggest_layout_transforms(relaxide.script.from_source(text), [eval(mapping)])
    return [
        {"the block" if key in found else key.name: places(one.map_indices, len(one.initial_indices)) for key, one in maps.items()}
        for maps in found.values()
    ]


@pytest.mark.parametrize("name", CASES)
def test_suggestions_are_tvms(name):
    text, mapping = CASES[name]
    assert ours(text, mapping) == theirs(text, mapping)


def test_a_kernel_of_two_stages_follows_from_its_end():
    """TVM fails here: nothing is known of what the first stage writes when it is asked."""
    text = (
        f'{HEAD}def main(A: T.Buffer((32, 64), "float32"), C: T.Buffer((32, 64), "float32")):\n'
        '    B = T.sblock_alloc_buffer((32, 64), "float32")\n'
        "    for i, j in T.grid(32, 64):\n"
        '        with T.sblock("first"):\n'
        '            vi, vj = T.axis.remap("SS", [i, j])\n'
        "            B[vi, vj] = A[vi, vj] + T.float32(1)\n"
        "    for i, j in T.grid(32, 64):\n"
        '        with T.sblock("second"):\n'
        '            vi, vj = T.axis.remap("SS", [i, j])\n'
        "            C[vi, vj] = B[vi, vj] * T.float32(2)\n"
    )
    mapping = "lambda i, j: (i, j // 16, j % 16)"
    with pytest.raises(Exception):
        theirs(text, mapping)
    expected = places(IndexMap.from_func(eval(mapping)).map_indices, 2)
    assert [set(maps) for maps in ours(text, mapping)] == [{"the block", "A", "B"}, {"the block", "B", "C"}]
    assert all(found == expected for maps in ours(text, mapping) for found in maps.values())


def test_wrong_maps_are_refused():
    text, _ = CASES["copy"]
    with pytest.raises(ValueError, match="2 dimensions, its map 1"):
        ours(text, "lambda i: (i,)")
    func = relaxide.script.from_source(text)
    one = lambda i, j: (i, j)
    with pytest.raises(ValueError, match="3 maps are given for a kernel of 2 parameters"):
        relax.analysis.suggest_layout_transforms(func, [one] * 3)


def test_maps_lead_there_and_back():
    split = IndexMap.from_func(lambda i, *rest: [rest[0], i // 4, i % 4], ndim=2)
    assert [int(i) for i in split.map_indices([7, 5])] == [5, 1, 3]
    assert [int(d) for d in split.map_shape([14, 5])] == [5, 4, 4]
    back = split.inverse([16, 5])
    assert [int(i) for i in back.map_indices([5, 1, 3])] == [7, 5]
    with pytest.raises(ValueError):
        split.inverse([14, 5])
    inverse, outside = split.non_surjective_inverse([14, 5])
    assert inverse.is_equivalent_to(back) and "14" in str(outside)
    assert not split.is_equivalent_to(back)
    with pytest.raises(ValueError, match="does not lead back"):
        IndexMap.from_func(lambda i: i * i).inverse([4])
