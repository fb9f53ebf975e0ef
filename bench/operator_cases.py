"""Single operators as real networks have them: class, name, node and the shapes of its arguments.

Each case is a model of one node (or of the few nodes that exporters write for it). With ``named``, every length of its first argument that
is not a number of channels has a name. Lengths are those of networks that people deploy; which, the names say.
"""

import dataclasses
from typing import Any

import numpy as np

FLOAT, INT64 = "float32", "int64"


@dataclasses.dataclass(frozen=True)
class Case:
    """One model."""

    kind: str
    name: str
    #: Nodes: operator, names of inputs, names of outputs, attributes.
    nodes: tuple
    #: What a caller gives: name to array.
    inputs: dict
    #: What the model holds: name to array.
    weights: dict = dataclasses.field(default_factory=dict)
    #: Axes of inputs that have names in the variant with named lengths: name of the input to axes.
    named: dict = dataclasses.field(default_factory=dict)
    outputs: tuple = ("y",)
    domain: str = ""
    opset: int = 20

    def __str__(self):
        return f"{self.kind}/{self.name}"


def numbers(*shape, dtype=FLOAT, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 100, shape).astype(dtype)


def case(kind, name, op, inputs, weights=None, named=(), outputs=("y",), domain="", opset=20, **attributes):
    """A case of one node, whose arguments are the inputs and then the weights; ``None`` leaves an argument out."""
    given = {f"x{i}": value for i, value in enumerate(inputs)}
    held = {f"w{i}": np.asarray(value) for i, value in enumerate(weights or []) if value is not None}
    names = [*given, *("" if value is None else f"w{i}" for i, value in enumerate(weights or []))]
    node = (op, tuple(names), tuple(outputs), attributes, domain)
    return Case(kind, name, (node,), given, held, {"x0": tuple(named)}, tuple(outputs), domain, opset)


def convolutions():
    def conv(kind, name, size, channels, filters, kernel, stride=1, dilation=1, group=1, pads=None):
        space = [size] * 2 if isinstance(size, int) else list(size)
        kernel = [kernel] * len(space) if isinstance(kernel, int) else list(kernel)
        pads = [(k - 1) * dilation // 2 for k in kernel] * 2 if pads is None else pads
        weight = numbers(filters, channels // group, *kernel, seed=1) / np.sqrt(channels * np.prod(kernel))
        return case(
            kind, name, "Conv", [numbers(1, channels, *space)], [weight.astype(FLOAT), numbers(filters)],
            named=range(2, 2 + len(space)), strides=[stride] * len(space), dilations=[dilation] * len(space),
            group=group, pads=pads,
        )  # fmt: skip

    for size, channels, filters in [(56, 64, 64), (28, 128, 128), (14, 256, 256), (7, 512, 512), (80, 32, 64), (40, 64, 128)]:
        yield conv("conv3x3", f"{channels}-{filters}@{size}", size, channels, filters, 3)
    for size, channels, filters in [(56, 64, 128), (28, 128, 256), (14, 256, 512), (320, 16, 32), (160, 32, 64)]:
        yield conv("conv3x3s2", f"{channels}-{filters}@{size}", size, channels, filters, 3, 2)
    for size, channels, filters in [(56, 64, 256), (28, 512, 128), (14, 1024, 256), (7, 2048, 512), (112, 16, 96), (56, 24, 144)]:
        yield conv("conv1x1", f"{channels}-{filters}@{size}", size, channels, filters, 1)
    for size, channels, filters in [(56, 256, 512), (28, 512, 1024), (14, 1024, 2048)]:
        yield conv("conv1x1s2", f"{channels}-{filters}@{size}", size, channels, filters, 1, 2)
    for channels, filters in [(64, 16), (256, 64), (960, 240), (240, 960), (2048, 128)]:
        yield conv("conv of one pixel", f"{channels}-{filters}", 1, channels, filters, 1)
    for name, size, filters, kernel, stride in [
        ("ResNet", 224, 64, 7, 2), ("MobileNet", 224, 32, 3, 2), ("VGG", 224, 64, 3, 1), ("YOLO", 640, 32, 6, 2), ("AlexNet", 224, 64, 11, 4)
    ]:  # fmt: skip
        yield conv("conv stem", name, size, 3, filters, kernel, stride)
    for name, size, filters, kernel in [("ViT-B", 224, 768, 16), ("DINO-S", 518, 384, 14), ("CLIP-L", 224, 1024, 14), ("ConvNeXt", 224, 96, 4), ("Swin", 224, 96, 4)]:
        yield conv("conv patches", name, size, 3, filters, kernel, kernel, pads=[0] * 4)
    for size, channels, dilation in [(33, 256, 6), (33, 256, 12), (33, 256, 24), (33, 256, 36), (65, 512, 2), (65, 512, 4)]:
        yield conv("conv dilated", f"{channels}@{size} d{dilation}", size, channels, 256, 3, dilation=dilation)
    for size, channels, group in [(56, 64, 2), (56, 128, 32), (28, 256, 32), (14, 512, 32), (28, 240, 4), (27, 96, 2), (56, 48, 3), (14, 256, 16)]:
        yield conv("conv grouped", f"{channels}@{size} g{group}", size, channels, channels, 3, group=group)
    for size, channels, kernel, stride in [
        (112, 32, 3, 1), (56, 144, 3, 1), (28, 192, 3, 1), (14, 576, 3, 1), (7, 960, 3, 1), (112, 96, 3, 2), (56, 144, 3, 2), (28, 240, 5, 1),
        (14, 672, 5, 1), (14, 672, 5, 2), (56, 96, 7, 1), (14, 384, 7, 1), (7, 768, 7, 1),
    ]:  # fmt: skip
        yield conv("conv depthwise", f"{kernel}x{kernel}s{stride} {channels}@{size}", size, channels, channels, kernel, stride, group=channels)
    for length, channels, filters, kernel, dilation, group in [
        (1000, 80, 512, 3, 1, 1), (3000, 80, 384, 3, 1, 1), (16000, 1, 512, 10, 1, 1), (4000, 64, 64, 3, 9, 1), (8000, 32, 32, 7, 3, 1), (8000, 32, 32, 11, 5, 1),
        (1000, 256, 256, 31, 1, 256), (500, 512, 512, 3, 4, 512), (400, 768, 768, 128, 1, 16), (2000, 128, 256, 1, 1, 1),
    ]:  # fmt: skip
        yield conv("conv 1-D", f"{channels}-{filters} k{kernel} d{dilation} g{group} @{length}", [length], channels, filters, kernel, dilation=dilation, group=group)
    for size, channels, kernel in [(16, 32, 3), (8, 64, 3), (28, 16, 3)]:
        yield conv("conv 3-D", f"{channels}@{size}", [size] * 3, channels, channels, kernel)


def transposed():
    def spread(name, space, channels, filters, kernel, stride, pads=0, group=1):
        n = len(space)
        weight = (numbers(channels, filters // group, *[kernel] * n, seed=1) / np.sqrt(channels)).astype(FLOAT)
        return case(
            f"transposed {n}-D", name, "ConvTranspose", [numbers(1, channels, *space)], [weight, numbers(filters)],
            named=range(2, 2 + n), strides=[stride] * n, pads=[pads] * (2 * n), group=group,
        )  # fmt: skip

    for size, channels, filters, kernel, stride, pads in [
        (28, 128, 64, 2, 2, 0), (14, 256, 128, 3, 2, 1), (28, 128, 64, 3, 2, 1), (8, 256, 128, 4, 2, 1), (16, 128, 64, 4, 2, 1), (32, 64, 3, 4, 2, 1),
        (28, 21, 21, 8, 4, 2), (28, 21, 21, 16, 8, 4), (1, 100, 512, 4, 1, 0), (40, 64, 64, 2, 2, 0), (160, 24, 24, 2, 2, 0), (64, 64, 32, 3, 1, 1),
    ]:  # fmt: skip
        yield spread(f"{channels}-{filters} {kernel}x{kernel}s{stride} @{size}", [size] * 2, channels, filters, kernel, stride, pads)
    for length, channels, filters, kernel, stride, pads in [
        (200, 512, 256, 16, 8, 4), (1600, 256, 128, 16, 8, 4), (12800, 128, 64, 4, 2, 1), (100, 512, 256, 8, 4, 2), (400, 256, 128, 8, 4, 2), (3000, 512, 1, 16, 8, 0), (500, 1026, 1, 1024, 256, 0),
    ]:  # fmt: skip
        yield spread(f"{channels}-{filters} k{kernel}s{stride} @{length}", [length], channels, filters, kernel, stride, pads)
    yield spread("depthwise 64 4x4s2 @28", [28] * 2, 64, 64, 4, 2, 1, group=64)
    yield spread("grouped 64 4x4s2 @28 g4", [28] * 2, 64, 64, 4, 2, 1, group=4)


def products():
    for rows, inner, columns in [
        (1, 768, 768), (1, 768, 3072), (1, 3072, 768), (1, 1024, 50257), (1, 4096, 4096), (2, 768, 3072), (4, 1024, 1024), (8, 768, 768), (16, 512, 512), (32, 768, 3072),
        (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (512, 1024, 1024), (197, 768, 2304), (50, 512, 2048), (1024, 64, 1024), (7, 13, 5),
    ]:  # fmt: skip
        weight = (numbers(inner, columns, seed=1) / np.sqrt(inner)).astype(FLOAT)
        yield case("product", f"{rows}x{inner}x{columns}", "MatMul", [numbers(1, rows, inner)], [weight], named=[1])
    for rows, inner, columns in [(1, 512, 1000), (1, 2048, 1000), (1, 1280, 1000), (32, 784, 256), (1, 25088, 4096), (1, 768, 2)]:
        weight = (numbers(columns, inner, seed=1) / np.sqrt(inner)).astype(FLOAT)
        yield case("Gemm", f"{rows}x{inner}x{columns}", "Gemm", [numbers(rows, inner)], [weight, numbers(columns)], named=[0], transB=1)
    yield case("Gemm", "two inputs, second transposed", "Gemm", [numbers(1, 768), numbers(768, 768)], [], named=[], transB=1)
    for heads, rows, inner, columns in [(12, 128, 64, 128), (12, 128, 128, 64), (12, 1, 64, 1024), (12, 1, 1024, 64), (8, 512, 64, 512), (16, 197, 64, 197), (32, 1, 128, 2048), (4, 50, 8, 50)]:
        inputs = [numbers(1, heads, rows, inner), numbers(1, heads, inner, columns, seed=1)]
        yield case("batched product", f"{heads}x{rows}x{inner}x{columns}", "MatMul", inputs, named=[])
    for rows, inner, columns in [(1, 768, 768), (128, 768, 768), (128, 768, 3072), (1, 1024, 4096)]:
        x, w = numbers(rows, inner, dtype="uint8"), numbers(inner, columns, dtype="uint8", seed=1)
        yield case("MatMulInteger", f"{rows}x{inner}x{columns}", "MatMulInteger", [x], [w, np.uint8(100), np.uint8(120)], named=[0])
    for rows, inner, columns in [(1, 2048, 2048), (32, 2048, 2048), (1, 1024, 4096)]:
        blocks = inner // 32
        w, scales = numbers(columns, blocks, 16, dtype="uint8", seed=1), np.abs(numbers(columns * blocks)) / 100
        yield case(
            "MatMulNBits", f"{rows}x{inner}x{columns}", "MatMulNBits", [numbers(rows, inner)], [w, scales.astype(FLOAT)], named=[0],
            domain="com.microsoft", K=inner, N=columns, bits=4, block_size=32,
        )  # fmt: skip
    for text, a, b in [("bij,bjk->bik", (8, 64, 64), (8, 64, 64)), ("bhid,bhjd->bhij", (1, 12, 128, 64), (1, 12, 128, 64)), ("bchw,hkc->bkhw", (1, 96, 14, 14), (14, 24, 96)), ("ij,jk->ik", (128, 512), (512, 256))]:
        yield case("Einsum", text, "Einsum", [numbers(*a), numbers(*b, seed=1)], named=[0], equation=text)


def signals():
    for batch, n in [(16, 1024), (1, 400), (64, 512), (8, 2048), (4, 4096), (16, 480), (1, 1009)]:
        yield case("DFT", f"{batch}x{n}", "DFT", [numbers(batch, n, 1)], [None, np.int64(1)], named=[0])
    yield case("DFT", "16x1024 of complex numbers", "DFT", [numbers(16, 1024, 2)], [None, np.int64(1)], named=[0])
    yield case("DFT", "inverse 16x1024", "DFT", [numbers(16, 1024, 2)], [None, np.int64(1)], named=[0], inverse=1)
    for length, frame, step in [(16000, 400, 160), (16000, 512, 128), (48000, 2048, 512)]:
        window = np.hanning(frame).astype(FLOAT)
        yield case("STFT", f"{length} {frame}/{step}", "STFT", [numbers(1, length, 1)], [np.int64(step), window], named=[1])
    yield case("MelWeightMatrix", "80 of 512", "MelWeightMatrix", [], [np.int64(80), np.int64(512), np.int64(16000), np.float32(0), np.float32(8000)])


def orders():
    for shape, axis, k in [((1, 50257), 1, 50), ((1, 50257), 1, 1), ((1, 8400), 1, 100), ((1, 8400), 1, 1000), ((128, 1000), 1, 5), ((1, 100, 300), 1, 10), ((512, 8), 1, 2), ((64, 64), 1, 8)]:
        yield case("TopK", f"{k} of {shape[axis]}, {shape}", "TopK", [numbers(*shape)], [np.array([k])], named=[axis], outputs=("y", "i"), axis=axis)
    for shape, axis in [((1, 1000), 1), ((1, 50257), 1), ((128, 1000), 1), ((1, 21, 65, 65), 1), ((8, 384), 1)]:
        yield case("ArgMax", f"{shape} axis {axis}", "ArgMax", [numbers(*shape)], named=[axis], axis=axis, keepdims=0)
    for count in (1000, 8400):
        yield case("NonZero", f"{count}", "NonZero", [(numbers(count) > 1).astype("float32")], named=[0])
        yield case("Unique", f"{count}", "Unique", [numbers(count, dtype=INT64)], named=[0])
    for boxes, classes in [(1000, 1), (8400, 1), (8400, 20), (300, 80)]:
        rng = np.random.default_rng(0)
        corners = rng.uniform(0, 600, (1, boxes, 2))
        rectangles = np.concatenate([corners, corners + rng.uniform(5, 60, (1, boxes, 2))], 2).astype(FLOAT)
        scores = rng.uniform(0, 1, (1, classes, boxes)).astype(FLOAT)
        limits = [np.array([100]), np.array([0.5], FLOAT), np.array([0.5], FLOAT)]
        yield case("NonMaxSuppression", f"{boxes} boxes, {classes} classes", "NonMaxSuppression", [rectangles, scores], limits, named=[1])


def images():
    for shape, size, mode in [
        ((1, 64, 40, 40), 80, "nearest"), ((1, 256, 20, 20), 40, "nearest"), ((1, 21, 33, 33), 513, "linear"), ((1, 256, 28, 28), 56, "linear"), ((1, 3, 640, 480), 224, "linear"),
        ((1, 3, 256, 256), 224, "cubic"), ((1, 64, 56, 56), 28, "linear"),
    ]:  # fmt: skip
        sizes = np.array([*shape[:2], size, size])
        yield case("Resize", f"{mode} {shape[1]}@{shape[2]} to {size}", "Resize", [numbers(*shape)], [None, None, sizes], named=[2, 3], mode=mode)
    yield case("Resize", "antialias 3@640 to 224", "Resize", [numbers(1, 3, 640, 640)], [None, None, np.array([1, 3, 224, 224])], named=[2, 3], mode="linear", antialias=1)
    for channels, size, mode in [(64, 56, "linear"), (3, 224, "linear"), (64, 56, "nearest"), (32, 64, "cubic")]:
        grid = np.random.default_rng(0).uniform(-1, 1, (1, size, size, 2)).astype(FLOAT)
        yield case("GridSample", f"{mode} {channels}@{size}", "GridSample", [numbers(1, channels, size, size), grid], named=[2, 3], mode=mode)
    rng = np.random.default_rng(0)
    corners = rng.uniform(0, 600, (300, 2))
    rois = np.concatenate([corners, corners + rng.uniform(20, 200, (300, 2))], 1).astype(FLOAT)
    yield case("RoiAlign", "300 of 256@50", "RoiAlign", [numbers(1, 256, 50, 50), rois, np.zeros(300, INT64)], named=[2, 3], output_height=7, output_width=7, sampling_ratio=2, spatial_scale=1 / 16)
    offsets = numbers(1, 18, 28, 28, seed=2)
    yield case("DeformConv", "64@28", "DeformConv", [numbers(1, 64, 28, 28), numbers(64, 64, 3, 3, seed=1), offsets], named=[], kernel_shape=[3, 3], pads=[1] * 4)
    for op, kernel, stride, channels, size, pads in [
        ("MaxPool", 3, 2, 64, 112, 1), ("MaxPool", 2, 2, 64, 112, 0), ("MaxPool", 5, 1, 256, 20, 2), ("MaxPool", 13, 1, 512, 20, 6), ("MaxPool", 3, 1, 192, 28, 1), ("AveragePool", 2, 2, 128, 56, 0),
        ("AveragePool", 3, 1, 256, 35, 1), ("AveragePool", 7, 1, 1024, 7, 0), ("MaxPool", 3, 2, 192, 56, 0),
    ]:  # fmt: skip
        yield case("pooling", f"{op} {kernel}s{stride} {channels}@{size}", op, [numbers(1, channels, size, size)], named=[2, 3], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pads] * 4)
    for channels, size in [(512, 7), (1280, 7), (2048, 7), (64, 56)]:
        yield case("pooling", f"GlobalAveragePool {channels}@{size}", "GlobalAveragePool", [numbers(1, channels, size, size)], named=[2, 3])
    for channels, size, block in [(256, 28, 2), (48, 128, 4), (64, 80, 2)]:
        yield case("DepthToSpace", f"{channels}@{size} by {block}", "DepthToSpace", [numbers(1, channels, size, size)], named=[2, 3], blocksize=block)
        yield case("SpaceToDepth", f"{channels}@{size} by {block}", "SpaceToDepth", [numbers(1, channels, size, size)], named=[2, 3], blocksize=block)


def moves():
    for shape, order in [((1, 128, 12, 64), (0, 2, 1, 3)), ((1, 12, 128, 64), (0, 1, 3, 2)), ((1, 64, 56, 56), (0, 2, 3, 1)), ((1, 56, 56, 64), (0, 3, 1, 2)), ((512, 512), (1, 0)), ((1, 197, 3, 12, 64), (2, 0, 3, 1, 4)), ((1, 3, 224, 224), (0, 2, 3, 1))]:
        yield case("Transpose", f"{shape} {order}", "Transpose", [numbers(*shape)], named=[1], perm=order)
    for mode in ("constant", "reflect", "edge", "wrap"):
        for shape in ((1, 64, 56, 56), (1, 3, 224, 224)):
            yield case("Pad", f"{mode} {shape}", "Pad", [numbers(*shape)], [np.array([0, 0, 1, 1, 0, 0, 1, 1])], named=[2, 3], mode=mode)
    for shape, repeats in [((1, 64, 56), (1, 1, 4)), ((1, 8, 128, 64), (1, 4, 1, 1)), ((256, 16), (1, 8)), ((1000,), (100,))]:
        yield case("Tile", f"{shape} {repeats}", "Tile", [numbers(*shape)], [np.array(repeats)], named=[0])
    for rows, columns, count in [(30522, 768, 128), (50257, 1024, 1), (1000, 64, 10000), (32000, 4096, 16)]:
        indices = np.random.default_rng(0).integers(0, rows, (1, count))
        node = ("Gather", ("w0", "x0"), ("y",), {}, "")
        yield Case("Gather", f"{count} rows of {rows}x{columns}", (node,), {"x0": indices}, {"w0": numbers(rows, columns)}, {"x0": (1,)})
    for shape, axis in [((1000, 64), 0), ((128, 512), 1)]:
        indices = np.random.default_rng(0).integers(0, shape[axis], shape)
        yield case("GatherElements", f"{shape} axis {axis}", "GatherElements", [numbers(*shape), indices], named=[0], axis=axis)
        yield case("ScatterElements", f"{shape} axis {axis}", "ScatterElements", [numbers(*shape), indices, numbers(*shape)], named=[0], axis=axis)
    indices = np.random.default_rng(0).integers(0, 500, (1000, 1))
    yield case("ScatterND", "1000 rows of 500x64", "ScatterND", [numbers(500, 64), indices, numbers(1000, 64)], named=[0])
    yield case("GatherND", "1000 rows of 500x64", "GatherND", [numbers(500, 64), indices], named=[0])
    for shapes, axis in [([(64, 16)] * 26, 1), ([(1, 64, 56, 56)] * 4, 1), ([(1, 128, 768)] * 2, 1), ([(128, 3), (128, 5), (128, 7)], 1), ([(1, 32, 80, 80)] * 3, 1)]:
        yield case("Concat", f"{len(shapes)} of {shapes[0]} axis {axis}", "Concat", [numbers(*s) for s in shapes], named=[0], axis=axis)
    for shape, axis, parts in [((1, 197, 2304), 2, 3), ((1, 256, 28, 28), 1, 2), ((1, 64, 12), 2, 12)]:
        yield case("Split", f"{shape} in {parts}", "Split", [numbers(*shape)], named=[1], outputs=tuple(f"y{i}" for i in range(parts)), axis=axis, num_outputs=parts)
    for shape, begin, end, step in [((1, 197, 768), [1], [197], [1]), ((1, 64, 56, 56), [0], [56], [2]), ((1, 1000, 80), [999], [-1001], [-1])]:
        axis = np.array([1 if len(shape) == 3 else 3])
        yield case("Slice", f"{shape} {begin}:{end}:{step}", "Slice", [numbers(*shape)], [np.array(begin), np.array(end), axis, np.array(step)], named=[1])
    yield case("Expand", "(1, 8, 1, 128, 64)", "Expand", [numbers(1, 8, 1, 128, 64)], [np.array([1, 8, 4, 128, 64])], named=[3])
    yield case("Where", "(1, 12, 128, 128)", "Where", [numbers(1, 1, 128, 128) > 0, numbers(1, 12, 128, 128), numbers(1)], named=[2, 3])
    yield case("OneHot", "1000 of 128", "OneHot", [numbers(1000, dtype=INT64)], [np.int64(128), np.array([0, 1], FLOAT)], named=[0])
    for shape in [(1, 1000, 80), (8, 512)]:
        yield case("CumSum", f"{shape}", "CumSum", [numbers(*shape)], [np.int64(1)], named=[1])


def reductions():
    for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp", "ReduceProd"):
        for shape, axes in [((1, 128, 768), [2]), ((1, 768, 128), [1]), ((1, 64, 56, 56), [2, 3]), ((1000000,), [0]), ((8, 12, 197, 197), [3])]:
            yield case("reduction", f"{op} {shape} over {axes}", op, [numbers(*shape)], [np.array(axes)], named=[1] if len(shape) > 1 else [0], keepdims=0)
    for shape in [(1, 12, 128, 128), (1, 12, 1, 1024), (1, 1000), (128, 30522), (16, 197, 197), (1, 8, 77, 77), (1, 21, 65, 65)]:
        for op, axis in (("Softmax", -1), ("LogSoftmax", -1), ("Softmax", 1)):
            yield case("softmax", f"{op} {shape} axis {axis}", op, [numbers(*shape)], named=[len(shape) - 1], axis=axis)
    for rows, width in [(128, 768), (197, 768), (1, 4096), (512, 1024), (50, 96), (3136, 96)]:
        yield case("norm", f"LayerNormalization {rows}x{width}", "LayerNormalization", [numbers(1, rows, width)], [numbers(width), numbers(width)], named=[1])
    for channels, size in [(64, 56), (256, 28), (512, 14)]:
        scale = [numbers(channels), numbers(channels)]
        yield case("norm", f"InstanceNormalization {channels}@{size}", "InstanceNormalization", [numbers(1, channels, size, size)], scale, named=[2, 3])
        yield case("norm", f"GroupNormalization {channels}@{size}", "GroupNormalization", [numbers(1, channels, size, size)], scale, named=[2, 3], num_groups=32, opset=21)
        moments = [numbers(channels), numbers(channels), numbers(channels), np.abs(numbers(channels)) + 1]
        yield case("norm", f"BatchNormalization {channels}@{size}", "BatchNormalization", [numbers(1, channels, size, size)], moments, named=[2, 3])
    yield case("norm", "LpNormalization 128x768", "LpNormalization", [numbers(128, 768)], named=[0])
    yield case("norm", "LRN 96@27", "LRN", [numbers(1, 96, 27, 27)], named=[2, 3], size=5)


def elementwise():
    shape = (1, 128, 3072)
    for op in (
        "Relu", "Sigmoid", "Tanh", "Gelu", "Erf", "Exp", "Log", "Sqrt", "HardSwish", "HardSigmoid", "Elu", "Selu", "Softplus", "Mish", "LeakyRelu", "Abs", "Neg", "Floor", "Round", "Sign", "Sin", "Cos", "Reciprocal", "Clip", "Celu", "Softsign",
    ):  # fmt: skip
        opset = 22 if op in ("Mish",) else 20
        x = np.abs(numbers(*shape)) + 0.1 if op in ("Log", "Sqrt", "Reciprocal") else numbers(*shape)
        weights = [np.float32(-1), np.float32(1)] if op == "Clip" else []
        yield case("elementwise", f"{op} {shape}", op, [x.astype(FLOAT)], weights, named=[1], opset=opset)
    for op in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow"):
        for other in [(1, 128, 3072), (3072,), (1, 128, 1)]:
            base = np.abs(numbers(*shape)) + 0.5 if op == "Pow" else numbers(*shape)
            y = np.abs(numbers(*other, seed=1)) + 0.5
            yield case("broadcast", f"{op} {shape} {other}", op, [base.astype(FLOAT), y.astype(FLOAT)], named=[1] if len(other) == 1 else [])
    for op in ("Less", "Equal", "Greater"):
        yield case("compare", f"{op} {shape}", op, [numbers(*shape), numbers(*shape, seed=1)])
    for source, target in [("float32", 10), ("float32", 7), ("int64", 1), ("float32", 9), ("uint8", 1)]:
        yield case("Cast", f"{source} to {target}", "Cast", [numbers(*shape, dtype=source)], named=[1], to=target)
    yield case("PRelu", "64@56", "PRelu", [numbers(1, 64, 56, 56)], [numbers(64, 1, 1)], named=[2, 3])


def quantized():
    x = numbers(1, 128, 768)
    scale, zero = np.float32(0.02), np.uint8(128)
    yield case("quantize", "QuantizeLinear 128x768", "QuantizeLinear", [x], [scale, zero], named=[1])
    yield case("quantize", "DequantizeLinear 128x768", "DequantizeLinear", [numbers(1, 128, 768, dtype="uint8")], [scale, zero], named=[1])
    yield case("quantize", "DynamicQuantizeLinear 128x768", "DynamicQuantizeLinear", [x], named=[1], outputs=("y", "s", "z"))
    for channels, filters, kernel, size, stride in [(64, 64, 1, 56, 1), (64, 64, 3, 56, 1), (256, 256, 3, 14, 1), (3, 64, 7, 224, 2), (128, 128, 3, 28, 1), (1024, 256, 1, 14, 1)]:
        image = numbers(1, channels, size, size, dtype="uint8")
        weight = np.random.default_rng(1).integers(-100, 100, (filters, channels, kernel, kernel)).astype("int8")
        weights = [scale, zero, weight, np.float32(0.01), np.int8(0), np.float32(0.5), zero]
        yield case("QLinearConv", f"{channels}-{filters} {kernel}x{kernel}s{stride} @{size}", "QLinearConv", [image], weights, named=[2, 3], pads=[kernel // 2] * 4, strides=[stride] * 2)
    for rows, inner, columns in [(1, 768, 768), (128, 768, 768), (128, 768, 3072)]:
        a, b = numbers(rows, inner, dtype="uint8"), np.random.default_rng(1).integers(-100, 100, (inner, columns)).astype("int8")
        weights = [scale, zero, b, np.float32(0.01), np.int8(0), np.float32(1), zero]
        yield case("QLinearMatMul", f"{rows}x{inner}x{columns}", "QLinearMatMul", [a], weights, named=[0])
    a, b = numbers(1, 64, 56, 56, dtype="uint8"), numbers(1, 64, 56, 56, dtype="uint8", seed=1)
    node = ("QLinearAdd", ("x0", "w0", "w1", "x1", "w0", "w1", "w0", "w1"), ("y",), {}, "com.microsoft")
    yield Case("quantize", "QLinearAdd 64@56", (node,), {"x0": a, "x1": b}, {"w0": scale, "w1": zero}, {"x0": ()}, domain="com.microsoft")
    yield case("quantize", "QLinearSigmoid 64@56", "QLinearSigmoid", [a], [scale, zero, np.float32(1 / 256), np.uint8(0)], named=[2, 3], domain="com.microsoft")


def recurrent():
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for batch, length, inputs, hidden in [(1, 50, 128, 128), (1, 1, 256, 256), (1, 100, 64, 64), (8, 50, 256, 256)]:
            w = (numbers(1, gates * hidden, inputs, seed=1) / 16).astype(FLOAT)
            r = (numbers(1, gates * hidden, hidden, seed=2) / 16).astype(FLOAT)
            b = numbers(1, 2 * gates * hidden, seed=3)
            yield case("recurrent", f"{op} b{batch} t{length} {inputs}-{hidden}", op, [numbers(length, batch, inputs)], [w, r, b], named=[0], hidden_size=hidden)


def transformers():
    for heads, rows, keys, width in [(12, 128, 128, 64), (12, 1, 1024, 64), (8, 77, 77, 64), (32, 1, 512, 128), (16, 256, 256, 64)]:
        q, k, v = numbers(1, heads, rows, width), numbers(1, heads, keys, width, seed=1), numbers(1, heads, keys, width, seed=2)
        yield case("Attention", f"{heads}x{rows}x{keys}x{width}", "Attention", [q, k, v], opset=23)
    cos, sin = numbers(2048, 32), numbers(2048, 32, seed=1)
    for length in (1, 128):
        positions = np.arange(length)[None]
        node = ("RotaryEmbedding", ("x0", "x1", "w0", "w1"), ("y",), {}, "com.microsoft")
        yield Case("RotaryEmbedding", f"12x{length}x64", (node,), {"x0": numbers(1, 12, length, 64), "x1": positions}, {"w0": cos, "w1": sin}, {"x0": (2,)}, domain="com.microsoft")
    gamma = numbers(768)
    yield case("norm", "SkipLayerNormalization 128x768", "SkipLayerNormalization", [numbers(1, 128, 768), numbers(1, 128, 768, seed=1)], [gamma, gamma], named=[], domain="com.microsoft")
    yield case("norm", "SimplifiedLayerNormalization 128x768", "SimplifiedLayerNormalization", [numbers(1, 128, 768)], [gamma], named=[1], axis=-1, epsilon=1e-5)
    yield case("elementwise", "FastGelu (1, 128, 3072)", "FastGelu", [numbers(1, 128, 3072)], [numbers(3072)], named=[1], domain="com.microsoft")


FAMILIES = [convolutions, transposed, products, signals, orders, images, moves, reductions, elementwise, quantized, recurrent, transformers]


def cases() -> list[Case]:
    """All of them."""
    return [made for family in FAMILIES for made in family()]


def model(made: Case, named: bool) -> Any:
    """The ONNX model of a case, or nothing where it has no lengths to name."""
    from onnx import helper, numpy_helper

    if named and not any(made.named.values()):
        return None
    infos = []
    for name, value in made.inputs.items():
        value = np.asarray(value)
        dims = [f"{name}_{axis}" if named and axis in made.named.get(name, ()) else int(n) for axis, n in enumerate(value.shape)]
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), dims))
    nodes = [helper.make_node(op, ins, outs, domain=domain, **attributes) for op, ins, outs, attributes, domain in made.nodes]
    outputs = [helper.make_empty_tensor_value_info(name) for name in made.outputs]
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in made.weights.items()]
    graph = helper.make_graph(nodes, "case", infos, outputs, weights)
    opsets = [helper.make_opsetid("", made.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
