"""Operators that read images at places which are computed, beside ONNX Runtime: tables of places, rows before columns, clipped windows, long signals
in pieces.

All calls are nodes of one model, which is compiled once for each kind of lengths.
"""

import itertools

import numpy as np
import pytest

from many_nodes import Nodes


def samples(m, rng, named):
    """GridSample: places inside, on and beyond the edges, of images with one number that is none."""
    for number, (mode, padding) in enumerate(itertools.product(["linear", "nearest", "cubic"], ["zeros", "border", "reflection"])):
        image = rng.standard_normal((2, 3, 5, 7)).astype("float32")
        image[0, 1, 0, 0] = np.nan
        grid = rng.uniform(-1.6, 1.6, (2, 4, 9, 2)).astype("float32")
        grid[0, 0, :4] = [[-1, -1], [1, 1], [-3, 0], [40, -40]]
        names = [m.value(image, ["n", 3, "h", "w"] if named else None), m.value(grid, ["n", "y", "x", 2] if named else None)]
        m.node("GridSample", names, [1], mode=mode, padding_mode=padding, align_corners=number % 2)
    for number, (channels, padding) in enumerate(itertools.product([16, 35], ["zeros", "border", "reflection"])):
        image, grid = rng.standard_normal((2, channels, 5, 7)).astype("float32"), rng.uniform(-1.6, 1.6, (2, 4, 9, 2)).astype("float32")
        image[0, 1, 0, 0] = np.nan
        names = [m.value(image, ["n", channels, "h", "w"] if named else None), m.value(grid, ["n", "y", "x", 2] if named else None)]
        m.node("GridSample", names, [1], mode="linear", padding_mode=padding, align_corners=number % 2)
    volume, places = rng.standard_normal((1, 2, 3, 4, 5)).astype("float32"), rng.uniform(-1.3, 1.3, (1, 2, 3, 9, 3)).astype("float32")
    m.node("GridSample", [m.value(volume), m.value(places)], [1], mode="linear")


def regions(m, rng, named):
    """RoiAlign: small regions, those that leave the image, and those beyond it."""
    image = rng.standard_normal((2, 16, 6, 9)).astype("float32")
    corners = rng.uniform(-8, 30, (7, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(0, 20, (7, 2))], 1).astype("float32")
    boxes[0] = [0, 0, 0, 0]
    boxes[1] = [900, 900, 950, 950]
    names = [m.value(image), m.value(boxes, ["r", 4] if named else None), m.value(np.array([0, 1, 1, 0, 1, 0, 0]), ["r"] if named else None)]
    for mode, ratio, how in [("avg", 2, "half_pixel"), ("avg", 3, "output_half_pixel"), ("avg", 0, "half_pixel"), ("max", 2, "half_pixel")]:
        m.node(
            "RoiAlign", names, [1], mode=mode, output_height=3, output_width=5, sampling_ratio=ratio, spatial_scale=0.4, coordinate_transformation_mode=how
        )


def windows(m, rng, named):
    """MaxPool: windows over padding, with steps and gaps, of images narrower than a vector and wider."""
    for size, kernel, stride, pads, gap, ceil in [
        (33, 3, 2, [1, 1, 1, 1], 1, 0), (20, 3, 2, [0, 0, 0, 0], 1, 1), (19, 5, 1, [2, 2, 2, 2], 1, 0), (17, 3, 3, [1, 0, 0, 1], 1, 0),
        (40, 3, 1, [2, 2, 2, 2], 2, 0), (5, 3, 2, [1, 1, 1, 1], 1, 0), (70, 2, 2, [0, 0, 0, 0], 1, 0),
        (56, 3, 2, [0, 0, 0, 0], 1, 0), (2, 3, 2, [0, 0, 0, 0], 1, 0), (3, 5, 4, [0, 0, 0, 0], 1, 0), (4, 3, 2, [0, 0, 0, 0], 2, 0),
    ]:  # fmt: skip
        image = rng.standard_normal((1, 2, size, size + 3)).astype("float32")
        image[0, 1, 0, 0] = -np.inf
        image[0, 1, -1] = -np.inf
        image = image[:, :, :, : size if size < 5 else None]
        name = m.value(image, [1, 2, f"h{size}", f"w{size}"] if named else None)
        m.node("MaxPool", [name], [1], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=pads, dilations=[gap] * 2, ceil_mode=ceil)


def sizes(m, rng, named):
    """Resize along rows and columns: larger, smaller, of one element, of other types."""
    for shape, to, how in [
        ((1, 3, 9, 11), (20, 33), "half_pixel"), ((2, 3, 30, 31), (7, 9), "half_pixel"), ((1, 2, 7, 5), (14, 10), "align_corners"),
        ((1, 2, 6, 6), (6, 17), "asymmetric"), ((1, 2, 1, 1), (4, 9), "half_pixel"), ((1, 1, 12, 12), (1, 1), "pytorch_half_pixel"),
        ((2, 2, 5, 1), (4, 8), "half_pixel"), ((2, 2, 5, 2), (4, 21), "half_pixel"), ((2, 19, 60, 57), (29, 30), "half_pixel"),
    ]:  # fmt: skip
        name = m.value(rng.standard_normal(shape).astype("float32"), ["b", shape[1], f"h{shape[2]}_{to[0]}", f"w{to[1]}"] if named and shape[0] > 1 else None)
        m.node("Resize", [name, "", "", m.weight(np.array([*shape[:2], *to]))], [1], mode="linear", coordinate_transformation_mode=how)


def dilated(m, rng, named):
    """Conv with taps about as far apart as the image is wide."""
    for size, gap, stride in [(13, 4, 1), (17, 8, 1), (9, 12, 1), (33, 12, 1), (33, 24, 1), (21, 9, 2)]:
        image = rng.standard_normal((2, 32, size, size + 1)).astype("float32")
        weight = m.weight(rng.standard_normal((32, 32, 3, 3)).astype("float32"))
        names = [m.value(image, ["n", 32, f"h{size}", f"w{size}"] if named else None), weight, m.weight(rng.standard_normal(32).astype("float32"))]
        m.node("Conv", names, [1], dilations=[gap] * 2, pads=[gap] * 4, strides=[stride] * 2)


def signals(m, rng, named):
    """Conv and ConvTranspose of signals that are cut into pieces: of whole ones, with a rest, and shorter than one."""
    for length, channels, gap in [(1280, 110, 1), (1283, 110, 3), (1536 + 5, 96, 1), (256, 64, 1), (77, 64, 2)]:
        signal = rng.standard_normal((2, channels, length)).astype("float32")
        names = [m.value(signal, ["n", channels, f"l{length}"] if named else None), m.weight(rng.standard_normal((7, channels, 3)).astype("float32"))]
        m.node("Conv", [*names, m.weight(rng.standard_normal(7).astype("float32"))], [1], dilations=[gap], pads=[2, 1])
    signal = rng.standard_normal((1, 128, 1100)).astype("float32")
    names = [m.value(signal, [1, 128, "t"] if named else None), m.weight(rng.standard_normal((128, 5, 4)).astype("float32"))]
    m.node("ConvTranspose", names, [1], strides=[2], pads=[1, 1])


def spread(m, rng, named):
    """ConvTranspose of images that are little else than the padding around them."""
    for size, channels, filters, kernel, pad in [(1, 100, 96, 4, 0), (2, 100, 96, 4, 0), (5, 70, 64, 4, 1), (1, 130, 64, 3, 0), (9, 64, 70, 3, 0), (3, 64, 64, 5, 0)]:
        image = rng.standard_normal((2, channels, size, size + 1)).astype("float32")
        name = m.value(image, ["n", channels, f"h{size}_{kernel}", f"w{size}_{kernel}"] if named else None)
        weight = m.weight((rng.standard_normal((channels, filters, kernel, kernel)) / channels).astype("float32"))
        m.node("ConvTranspose", [name, weight, m.weight(rng.standard_normal(filters).astype("float32"))], [1], pads=[pad] * 4)


@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
@pytest.mark.parametrize("part", [signals, spread, samples, regions, windows, sizes, dilated], ids=lambda part: part.__name__)
def test_images_are_read_where_onnx_runtime_reads_them(part, named):
    m = Nodes()
    part(m, np.random.default_rng(0), named)
    for ours, theirs, node in zip(m.run(), m.run_there(), m.nodes, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=3e-4, err_msg=str(node))


@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
def test_the_largest_element_under_a_window_is_none_where_one_is_not_a_number(named):
    """ONNX Runtime leaves such elements out."""
    m, rng = Nodes(), np.random.default_rng(1)
    image = rng.standard_normal((1, 2, 21, 23)).astype("float32")
    image[0, 0, 7, ::5] = image[0, 1, 0, 0] = image[0, 1, 20, 22] = np.nan
    name = m.value(image, [1, 2, "h", "w"] if named else None)
    expected = []
    for kernel, stride in [(3, 2), (5, 1)]:
        pad = kernel // 2
        m.node("MaxPool", [name], [1], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4)
        padded = np.pad(image, [(0, 0), (0, 0), (pad, pad), (pad, pad)], constant_values=-np.inf)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))[:, :, ::stride, ::stride]
        expected.append(windows.max((4, 5)))
    for ours, right in zip(m.run(), expected, strict=True):
        np.testing.assert_array_equal(ours, right)
