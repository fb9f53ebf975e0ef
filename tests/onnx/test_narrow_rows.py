"""Operators whose kernels depend on how long rows are or how large sums become, beside ONNX Runtime: axes of a few elements, selections
in blocks, tables along rows, sums of products of small integers. For processors with and without AVX-512.

All calls are nodes of one model, which is compiled once for each kind of lengths.
"""

import numpy as np
import onnxruntime
import pytest
from many_nodes import Nodes

import relaxide as tvm

FLOAT, UINT8, INT32, INT64 = 1, 2, 6, 7


def blocks_of_pixels(m, rng, named):
    for shape, block in [((1, 8, 3, 40), 2), ((2, 27, 5, 17), 3), ((1, 32, 2, 7), 4), ((1, 25, 4, 33), 5), ((1, 36, 1, 1), 6)]:
        name = m.value(rng.standard_normal(shape).astype("float32"), [f"b{block}", shape[1], f"h{block}", f"w{block}"] if named else None)
        m.node("DepthToSpace", [name], [FLOAT], blocksize=block)
        m.node("DepthToSpace", [name], [FLOAT], blocksize=block, mode="CRD")
    for shape, block in [((1, 3, 6, 34), 2), ((2, 2, 9, 3), 3), ((1, 1, 4, 4), 4)]:
        name = m.value(rng.standard_normal(shape).astype("float32"), [f"B{block}", shape[1], f"H{block}", f"W{block}"] if named else None)
        m.node("SpaceToDepth", [name], [FLOAT], blocksize=block)
    for shape, dtype, kind in [((1, 3, 19, 23), "float32", FLOAT), ((2, 4, 5, 3), "uint8", UINT8), ((1, 2, 33, 17), "int64", INT64)]:
        name = m.value((rng.standard_normal(shape) * 50).astype(dtype), [f"b{dtype}", shape[1], f"y{dtype}", f"x{dtype}"] if named else None)
        m.node("Transpose", [name], [kind], perm=[0, 2, 3, 1])


def selections(m, rng, named):
    """TopK: rows with a rest behind the last block, elements that are equal, that are none and that have no end."""
    for shape, k in [((1, 5000), 1), ((3, 545), 7), ((1, 513), 50), ((2, 70001), 64), ((1, 1500), 100), ((1, 140000), 1000), ((2, 600, 3), 4)]:
        x = rng.standard_normal(shape).astype("float32")
        x[0, 40:60] = x[0, 300]
        x[0, 200], x[0, 201], x[0, 400] = np.inf, -np.inf, np.inf
        axis = 1
        name = m.value(x, [f"b{x.size}", f"n{x.size}", *shape[2:]] if named else None)
        for largest in (1, 0):
            m.node("TopK", [name, m.weight(np.array([k]))], [FLOAT, INT64], axis=axis, largest=largest)
    # Many that are equal, also to the last one that is taken.
    integers = rng.integers(-50, 50, (1, 3000))
    name = m.value(integers, ["i", "ni"] if named else None)
    for k in (20, 333, 2999):
        m.node("TopK", [name, m.weight(np.array([k]))], [INT64, INT64], axis=1)


def resized(m, rng, named):
    """Resize: the nearest of lengths that are no multiple of each other or of which nothing is known, and to a whole part."""
    for shape, to in [((1, 2, 9, 11), (20, 33)), ((2, 3, 30, 31), (7, 9)), ((1, 2, 40, 40), (80, 80)), ((1, 2, 64, 32), (16, 16)), ((1, 1, 1, 1), (3, 40)), ((1, 2, 45, 66), (15, 22))]:
        name = m.value(rng.standard_normal(shape).astype("float32"), [f"b{shape[3]}", shape[1], f"h{shape[3]}", f"w{shape[3]}"] if named else None)
        sizes = m.weight(np.array([*shape[:2], *to]))
        for how, rounding in [("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil"), ("align_corners", "ceil")]:
            m.node("Resize", [name, "", "", sizes], [FLOAT], mode="nearest", coordinate_transformation_mode=how, nearest_mode=rounding)
        for how in ["half_pixel", "pytorch_half_pixel", "asymmetric"]:
            m.node("Resize", [name, "", "", sizes], [FLOAT], mode="linear", coordinate_transformation_mode=how)


def pools(m, rng, named):
    for shape, kernel, pad in [((1, 20, 7, 7), 7, 0), ((1, 3, 9, 21), 3, 1), ((2, 2, 8, 9), 5, 2)]:
        name = m.value(rng.standard_normal(shape).astype("float32"), [f"b{kernel}", shape[1], f"h{kernel}", f"w{kernel}"] if named else None)
        for counted in (0, 1):
            m.node("AveragePool", [name], [FLOAT], kernel_shape=[kernel] * 2, pads=[pad] * 4, count_include_pad=counted)


def padded(m, rng, named):
    """Pad: borders of one and of several elements, on one side and on both, in rows that are a few elements and many long."""
    for shape, widths in [((1, 3, 5, 40), (1, 1, 1, 1)), ((2, 2, 4, 17), (0, 2, 3, 0)), ((1, 2, 3, 5000), (2, 1, 0, 2)), ((1, 1, 7, 5), (3, 4, 2, 1)), ((1, 2, 2, 2), (1, 1, 1, 1))]:
        tag = f"{shape[2]}_{shape[3]}"
        name = m.value(rng.standard_normal(shape).astype("float32"), [f"b{tag}", shape[1], f"h{tag}", f"w{tag}"] if named else None)
        top, left, bottom, right = widths
        pads = m.weight(np.array([0, 0, top, left, 0, 0, bottom, right]))
        for mode in ("constant", "edge", "reflect"):
            m.node("Pad", [name, pads], [FLOAT], mode=mode)


def deformed(m, rng, named):
    """DeformConv: taps inside, on the edge and far outside of an image with a number that has no end."""
    image, weight = rng.standard_normal((2, 4, 9, 21)).astype("float32"), rng.standard_normal((4, 2, 3, 3)).astype("float32")
    offset = (rng.standard_normal((2, 36, 9, 21)) * 3).astype("float32")
    offset[0, :, 0, :4], offset[1, :, 8, 20] = 1e9, -1e9
    mask = rng.uniform(0, 1, (2, 18, 9, 21)).astype("float32")
    dims = ["n", 4, "h", "w"] if named else None
    names = [m.value(image, dims), m.weight(weight), m.value(offset, ["n", 36, "h", "w"] if named else None)]
    masked = [*names, "", m.value(mask, ["n", 18, "h", "w"] if named else None)]
    for inputs in (names, masked):
        group = {"group": 2, "offset_group": 2}
        m.node("DeformConv", inputs, [FLOAT], kernel_shape=[3, 3], pads=[1] * 4, **group)
    # Channels that fill vectors.
    wide, weight = rng.standard_normal((2, 24, 9, 21)).astype("float32"), rng.standard_normal((5, 24, 3, 3)).astype("float32") / 8
    names = [m.value(wide, ["n", 24, "h", "w"] if named else None), m.weight(weight), names[2], m.weight(rng.standard_normal(5).astype("float32"))]
    m.node("DeformConv", [*names, masked[-1]], [FLOAT], kernel_shape=[3, 3], pads=[1] * 4, offset_group=2)
    m.node("DeformConv", [*names[:2], m.value(offset[:, :18], ["n", 18, "h", "w"] if named else None)], [FLOAT], kernel_shape=[3, 3], pads=[1] * 4)


def few_rows(m, rng, named):
    """Products of every small number of rows, with matrices that lie in panels and that do not."""
    for inner, columns in [(64, 70), (40, 128)]:
        weight = rng.standard_normal((inner, columns)).astype("float32")
        given = m.value(weight)
        for rows in range(1, 15):
            name = m.value(rng.standard_normal((rows, inner)).astype("float32"), [f"r{rows}_{inner}", inner] if named else None)
            m.node("MatMul", [name, m.weight(weight)], [FLOAT])
            m.node("MatMul", [name, given], [FLOAT])


def integers(m, rng, named):
    """Sums that 24 bits hold, and sums that they do not, of every number of 8 bits."""
    for rows, inner, columns, most in [(5, 40, 33, 255), (1, 259, 17, 255), (3, 4000, 9, 255), (3, 4000, 9, 16)]:
        x = rng.integers(0, 256, (rows, inner)).astype("uint8")
        x[0] = 255
        weight = rng.integers(0, most + 1, (inner, columns)).astype("uint8")
        weight[:, 0] = most
        name = m.value(x, [f"m{inner}_{most}", inner] if named else None)
        zeros = [m.weight(np.uint8(0)), m.weight(rng.integers(0, 9, columns).astype("uint8"))]
        m.node("MatMulInteger", [name, m.weight(weight), *zeros], [INT32])
        m.node("MatMulInteger", [name, m.weight(weight)], [INT32])
    image = rng.integers(0, 256, (2, 6, 9, 11)).astype("uint8")
    name = m.value(image, ["b", 6, "h", "w"] if named else None)
    weight = m.weight(rng.integers(0, 256, (8, 3, 3, 3)).astype("uint8"))
    m.node("ConvInteger", [name, weight, m.weight(np.uint8(7)), m.weight(np.uint8(120))], [INT32], group=2, pads=[1] * 4)


def run(model, feed, target):
    built = tvm.compile(tvm.relax.frontend.onnx.from_onnx(model), target=target)
    result = tvm.relax.VirtualMachine(built, tvm.cpu())["main"](*(tvm.runtime.tensor(x) for x in feed.values()))
    return [y.numpy() for y in result]


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"], ids=["own", "v3"])
@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
@pytest.mark.parametrize("part", [blocks_of_pixels, selections, resized, pools, padded, deformed, few_rows, integers], ids=lambda part: part.__name__)
def test_they_are_what_onnx_runtime_makes_of_them(part, named, target):
    m = Nodes()
    part(m, np.random.default_rng(0), named)
    model = m.model(20)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [name for node in m.nodes for name in node.output]
    for ours, theirs, name in zip(run(model, m.feed, target), session.run(None, m.feed), names, strict=True):
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-4, err_msg=name)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_what_is_no_number_comes_first():
    """ONNX says nothing of NaN; here it is larger than every number, in blocks as one by one."""
    x = np.random.default_rng(3).standard_normal((1, 3000)).astype("float32")
    x[0, [5, 2000, 2999]] = np.nan
    m = Nodes()
    m.node("TopK", [m.value(x), m.weight(np.array([4]))], [FLOAT, INT64], axis=1)
    m.node("TopK", [m.inputs[0].name, m.weight(np.array([4]))], [FLOAT, INT64], axis=1, largest=0)
    _, first, _, last = m.run()
    assert list(first[0]) == [5, 2000, 2999, int(np.nanargmax(x))]
    assert list(last[0]) == list(np.argsort(x[0], kind="stable")[:4])
