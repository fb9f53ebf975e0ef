"""Sampling, resizing, regions and detection: against ONNX Runtime where it has the operator, else against a loop in Python."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

import relaxide as tvm
from relaxide import relax

RNG = np.random.default_rng(7)


def reals(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape).astype("float32")


def onnx_runtime(op, inputs, attrs, opset=20, outputs=1):
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, [n if x is not None else "" for n, x in zip(names, inputs)], [f"y{i}" for i in range(outputs)], **attrs)
    given = {n: x for n, x in zip(names, inputs) if x is not None}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in given.items()]
    outs = [onnx.ValueInfoProto(name=f"y{i}") for i in range(outputs)]
    graph = helper.make_graph([node], "g", infos, outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 9
    model = onnx.shape_inference.infer_shapes(model)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, given)


def ours(call, *inputs):
    params = ", ".join(f'x{i}: R.Tensor({tuple(x.shape)}, dtype="{x.dtype}")' for i, x in enumerate(inputs))
    source = f"# from tvm.script import tirx as T\n# from tvm.script import relax as R\n\n@R.function\ndef main({params}):\n    y = {call}\n    return y\n"
    machine = relax.VirtualMachine(tvm.compile(tvm.script.from_source(source), target="llvm"), tvm.cpu())
    result = machine["main"](*(tvm.runtime.tensor(np.ascontiguousarray(x)) for x in inputs))
    return result.numpy() if hasattr(result, "numpy") else result if isinstance(result, int) else [r.numpy() for r in result]


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(method, padding, align):
    x, grid = reals(2, 3, 5, 6), reals(2, 4, 3, 2, low=-1.4, high=1.4)
    names = {"bilinear": "linear", "bicubic": "cubic"}
    expect = onnx_runtime("GridSample", [x, grid], {"mode": names.get(method, method), "padding_mode": padding, "align_corners": align})[0]
    attrs = f'method="{method}", padding_mode="{padding}", align_corners={bool(align)}'
    got = ours(f'R.image.grid_sample(x0, x1, layout="NCHW", {attrs})', x, grid.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(got, expect, rtol=1e-4, atol=1e-4)
    last = ours(f'R.image.grid_sample(x0, x1, layout="NHWC", {attrs})', x.transpose(0, 2, 3, 1), grid.transpose(0, 3, 1, 2))
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), expect, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_is_fused_with_what_makes_the_grid(method):
    """The places are data: names for them within the kernel are nobody's dimensions."""
    x, grid = reals(2, 3, 5, 6), reals(2, 4, 3, 2)
    names = {"bilinear": "linear", "bicubic": "cubic"}
    attrs = {"mode": names.get(method, method), "padding_mode": "border", "align_corners": 0}
    expect = onnx_runtime("GridSample", [x, np.tanh(grid) * np.float32(1.5)], attrs)[0]
    made = "R.permute_dims(R.multiply(R.tanh(x1), R.const(1.5, 'float32')), axes=[0, 3, 1, 2])"
    got = ours(f'R.image.grid_sample(x0, {made}, layout="NCHW", method="{method}", padding_mode="border", align_corners=False)', x, grid)
    np.testing.assert_allclose(got, expect, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_grid_sample_of_volumes(method, align):
    x, grid = reals(1, 2, 3, 4, 5), reals(1, 2, 3, 4, 3, low=-1.2, high=1.2)
    mode = {"bilinear": "linear"}.get(method, method)
    expect = onnx_runtime("GridSample", [x, grid], {"mode": mode, "padding_mode": "zeros", "align_corners": align})[0]
    got = ours(f'R.image.grid_sample(x0, x1, method="{method}", layout="NCDHW", padding_mode="zeros", align_corners={bool(align)})', x, grid.transpose(0, 4, 1, 2, 3))
    np.testing.assert_allclose(got, expect, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("size", [(4, 5), (3, 4, 2)])
def test_affine_grid(size, align):
    n = len(size)
    maps = reals(2, n, n + 1)
    expect = onnx_runtime("AffineGrid", [maps, np.array([2, 1, *size], "int64")], {"align_corners": align})[0]
    got = ours(f"R.image.affine_grid(x0, R.shape({list(size)}), align_corners={bool(align)})", maps)
    np.testing.assert_allclose(np.moveaxis(got, 1, -1), expect, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("method, rounding", [("linear", ""), ("cubic", ""), ("nearest_neighbor", "round_prefer_floor"), ("nearest_neighbor", "ceil"), ("nearest_neighbor", "floor")])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_resize2d(method, rounding, mode, layout):
    x = reals(1, 2, 5, 6)
    names = {"nearest_neighbor": "nearest"}
    attrs = {"mode": names.get(method, method), "coordinate_transformation_mode": mode}
    if rounding:
        attrs["nearest_mode"] = rounding
    expect = onnx_runtime("Resize", [x, None, None, np.array([1, 2, 8, 4], "int64")], attrs, opset=13)[0]
    data = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    got = ours(f'R.image.resize2d(x0, R.shape([8, 4]), layout="{layout}", method="{method}", coordinate_transformation_mode="{mode}", rounding_method="{rounding}")', data)
    got = got if layout == "NCHW" else got.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(got, expect, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("method", ["linear", "nearest_neighbor"])
def test_resize3d(method, mode):
    x = reals(1, 2, 3, 4, 5)
    attrs = {"mode": {"nearest_neighbor": "nearest"}.get(method, method), "coordinate_transformation_mode": mode}
    if method == "nearest_neighbor":
        attrs["nearest_mode"] = "floor"
    expect = onnx_runtime("Resize", [x, None, None, np.array([1, 2, 5, 3, 7], "int64")], attrs, opset=13)[0]
    got = ours(f'R.image.resize3d(x0, R.shape([5, 3, 7]), method="{method}", coordinate_transformation_mode="{mode}", rounding_method="floor")', x)
    np.testing.assert_allclose(got, expect, rtol=1e-4, atol=1e-4)


REGIONS = np.array([[0, 1, 1, 7, 9], [1, 0, 2, 3, 4], [0, 4, 4, 5, 5], [1, 2, 0, 11, 8]], "float32")


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(aligned, ratio):
    """The mean only: of the largest, ONNX Runtime takes weighted elements, we the mixtures; see the next test."""
    x = reals(2, 3, 8, 9, low=0, high=1)
    attrs = {"mode": "avg", "output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 0.7}
    attrs["coordinate_transformation_mode"] = "half_pixel" if aligned else "output_half_pixel"
    boxes = REGIONS[:, 1:].copy()
    expect = onnx_runtime("RoiAlign", [x, boxes, REGIONS[:, 0].astype("int64")], attrs, opset=16)[0]
    regions = REGIONS.copy()
    if aligned:
        # ONNX moves regions by half an element; this operator takes them as they are.
        regions[:, 1:] -= 0.5 / 0.7
    for layout in ("NCHW", "NHWC"):
        data = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
        call = f'R.vision.roi_align(x0, x1, pooled_size=[2, 3], spatial_scale=0.7, sample_ratio={ratio or -1}, aligned={aligned}, layout="{layout}", mode="avg")'
        got = ours(call, data, regions)
        got = got if layout == "NCHW" else got.transpose(0, 3, 1, 2)
        np.testing.assert_allclose(got, expect, rtol=1e-4, atol=1e-4)


def test_the_largest_of_a_region_is_that_of_its_places():
    x = reals(1, 1, 6, 6)
    regions = np.array([[0, 1, 1, 4, 4]], "float32")
    got = ours('R.vision.roi_align(x0, x1, pooled_size=[1, 1], spatial_scale=1.0, sample_ratio=3, aligned=True, layout="NCHW", mode="max")', x, regions)
    # Places at 1.5, 2.5, 3.5: the mean of four elements each.
    mixed = (x[0, 0, :-1, :-1] + x[0, 0, 1:, :-1] + x[0, 0, :-1, 1:] + x[0, 0, 1:, 1:]) / 4
    np.testing.assert_allclose(got[0, 0, 0, 0], mixed[1:4, 1:4].max(), rtol=1e-5)


def test_roi_pool():
    x = reals(2, 3, 8, 9)
    expect = onnx_runtime("MaxRoiPool", [x, REGIONS], {"pooled_shape": [2, 3], "spatial_scale": 0.7})[0]
    got = ours('R.vision.roi_pool(x0, x1, pooled_size=[2, 3], spatial_scale=0.7, layout="NCHW")', x, REGIONS)
    np.testing.assert_allclose(got, expect, rtol=1e-5)


def boxes(*shape):
    corner, size = RNG.uniform(0, 5, (*shape, 2)), RNG.uniform(1, 4, (*shape, 2))
    return np.concatenate([corner, corner + size], -1).astype("float32")


@pytest.mark.parametrize("most, overlap, score", [(3, 0.4, 0.2), (10, 0.7, 0.0), (1, 0.1, 0.5)])
def test_all_class_non_max_suppression(most, overlap, score):
    places, scores = boxes(2, 9), RNG.random((2, 3, 9)).astype("float32")
    limits = [np.array([most], "int64"), np.array([overlap], "float32"), np.array([score], "float32")]
    expect = onnx_runtime("NonMaxSuppression", [places, scores, *limits], {}, opset=11)[0]
    rows, count = ours('R.vision.all_class_non_max_suppression(x0, x1, x2, x3, x4, output_format="onnx")', places, scores, *limits)
    assert count.tolist() == [len(expect)]
    np.testing.assert_array_equal(rows, expect)
    indices, values, counts = ours('R.vision.all_class_non_max_suppression(x0, x1, x2, x3, x4, output_format="tensorflow")', places, scores, *limits)
    for image in range(2):
        own = expect[expect[:, 0] == image]
        assert counts[image] == len(own)
        np.testing.assert_array_equal(indices[image, : len(own)], own[:, 1:])
        np.testing.assert_allclose(values[image, : len(own)], scores[image, own[:, 1], own[:, 2]])


@pytest.mark.parametrize("count, steps, most", [(1, 3, 1), (2, 1, 5), (150, 7, 20), (400, 1000, 400), (257, 2, 40)])
def test_of_equal_scores_the_first_box_is_taken(count, steps, most):
    """Scores of few values, so that many are equal, a third of which do not count."""
    places = RNG.uniform(0, 9, (2, count, 4)).astype("float32")
    scores = (RNG.integers(0, steps, (2, 2, count)) / steps).astype("float32")
    limits = [np.array([most], "int64"), np.array([0.3], "float32"), np.array([0.33], "float32")]
    expect = onnx_runtime("NonMaxSuppression", [places, scores, *limits], {}, opset=11)[0]
    rows, _ = ours('R.vision.all_class_non_max_suppression(x0, x1, x2, x3, x4, output_format="onnx")', places, scores, *limits)
    np.testing.assert_array_equal(rows, expect)


def overlap_of(a, b):
    width = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - width * height
    return 0 if union <= 0 else width * height / union


def suppressed(rows, count, limit, force, most, top, sigma, lowest):
    """The rows that are kept, as indices, and their scores."""
    order = sorted(range(count), key=lambda j: -rows[j, 1])[: top if top > 0 else count]
    scores, kept = {j: rows[j, 1] for j in order}, []
    left = list(order)
    while left and (most <= 0 or len(kept) < most):
        best = max(left, key=lambda j: scores[j])
        if scores[best] <= lowest:
            break
        left.remove(best)
        kept.append(best)
        for j in list(left):
            if not force and rows[j, 0] != rows[best, 0]:
                continue
            shared = overlap_of(rows[best, 2:], rows[j, 2:])
            if shared >= limit:
                left.remove(j)
            elif sigma > 0:
                scores[j] *= np.exp(np.float32(-0.5 / sigma) * np.float32(shared) ** 2)
                if scores[j] <= lowest:
                    left.remove(j)
    return kept


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("most, top, sigma", [(-1, -1, 0.0), (2, -1, 0.0), (-1, 4, 0.0), (-1, -1, 0.5), (3, 6, 0.5)])
def test_non_max_suppression(force, most, top, sigma):
    rows = np.concatenate([RNG.integers(0, 2, (2, 8, 1)), RNG.uniform(0.1, 1, (2, 8, 1)), boxes(2, 8)], -1).astype("float32")
    counts, indices = np.array([8, 5], "int32"), np.tile(np.arange(8, dtype="int32")[::-1], (2, 1)).copy()
    attrs = f"max_output_size={most}, iou_threshold=0.3, force_suppress={force}, top_k={top}, soft_nms_sigma={sigma}"
    result = ours(f"R.vision.non_max_suppression(x0, x1, x2, {attrs}, return_indices=True)", rows, counts, indices)
    places, kept_counts = result[-2:]
    for i in range(2):
        kept = suppressed(rows[i], counts[i], 0.3, force, most, top, sigma, 0.0)
        assert kept_counts[i, 0] == len(kept)
        np.testing.assert_array_equal(places[i, : len(kept)], indices[i, kept])
        assert (places[i, len(kept) :] == -1).all()
    if not sigma:
        data = ours(f"R.vision.non_max_suppression(x0, x1, x2, {attrs}, return_indices=False, invalid_to_bottom=True)", rows, counts, indices)
        for i in range(2):
            kept = suppressed(rows[i], counts[i], 0.3, force, most, top, sigma, 0.0)
            np.testing.assert_allclose(data[i, : len(kept)], rows[i, kept])
            assert (data[i, len(kept) :] == -1).all()


def test_get_valid_counts():
    rows = np.concatenate([RNG.integers(-1, 2, (2, 6, 1)), RNG.uniform(0, 1, (2, 6, 1)), boxes(2, 6)], -1).astype("float32")
    counts, data, indices = ours("R.vision.get_valid_counts(x0, score_threshold=0.4, id_index=0, score_index=1)", rows)
    for i in range(2):
        valid = np.nonzero((rows[i, :, 1] > 0.4) & (rows[i, :, 0] >= 0))[0]
        assert counts[i] == len(valid)
        np.testing.assert_array_equal(data[i, : len(valid)], rows[i, valid])
        np.testing.assert_array_equal(indices[i], np.pad(valid, (0, 6 - len(valid)), constant_values=-1))
        assert (data[i, len(valid) :] == -1).all()


@pytest.mark.parametrize("softmax, background, clip", [(True, True, False), (False, False, True)])
def test_multibox_transform_loc(softmax, background, clip):
    scores, offsets, anchors = reals(2, 3, 4), reals(2, 16, low=-1, high=1), boxes(1, 4) / 10
    got_boxes, got_scores = ours(
        f"R.vision.multibox_transform_loc(x0, x1, x2, clip={clip}, threshold=0.2, variances=[0.1, 0.1, 0.2, 0.2], "
        f"keep_background={background}, apply_softmax={softmax})", scores, offsets, anchors
    )
    e = np.exp(scores - scores.max(1, keepdims=True))
    expect = e / e.sum(1, keepdims=True) if softmax else scores
    expect = np.where(expect >= 0.2, expect, 0)
    if not background:
        expect[:, 0] = 0
    np.testing.assert_allclose(got_scores, expect, rtol=1e-4, atol=1e-6)
    left, top, right, bottom = np.moveaxis(anchors[0], -1, 0)
    x, y, w, h = np.moveaxis(offsets.reshape(2, 4, 4), -1, 0)
    cx, cy = x * 0.1 * (right - left) + (left + right) / 2, y * 0.1 * (bottom - top) + (top + bottom) / 2
    hw, hh = np.exp(w * 0.2) * (right - left) / 2, np.exp(h * 0.2) * (bottom - top) / 2
    decoded = np.stack([cy - hh, cx - hw, cy + hh, cx + hw], -1)
    np.testing.assert_allclose(got_boxes, np.clip(decoded, 0, 1) if clip else decoded, rtol=1e-4, atol=1e-5)


def test_inspection():
    x = reals(2, 3, 4)
    for name, expect in {"ndim": 3, "dtype_code": 2, "dtype_bits": 32, "dtype_lanes": 1, "byte_offset": 0, "elem_offset": 0}.items():
        assert ours(f"R.inspect.tensor_{name}(x0)", x) == expect, name
    for axis, (size, stride) in enumerate([(2, 12), (3, 4), (4, 1)]):
        assert ours(f"R.inspect.tensor_shape_i(x0, R.prim_value({axis}))", x) == size
        assert ours(f"R.inspect.tensor_stride_i(x0, R.prim_value({axis}))", x) == stride
