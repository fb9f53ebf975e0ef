"""Every operator that the reference could execute gives what it gave, in the machine and in the interpreter.

``operators.tsv`` holds a call of each, ``operators.npz`` what it was given and what TVM 0.16 made of it.
"""

import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relay

HERE = pathlib.Path(__file__).parent
HEADER = '#[version = "0.0.5"]\n'


def _cases():
    for line in (HERE / "operators.tsv").read_text().splitlines():
        yield line.split("\t")


CASES = list(_cases())


@pytest.fixture(scope="module")
def arrays():
    return np.load(HERE / "operators.npz")


def _given(arrays, kind, index):
    found = []
    while f"{index}.{kind}{len(found)}" in arrays:
        found.append(arrays[f"{index}.{kind}{len(found)}"])
    return found


def _program(name, text, inputs):
    params = (f"%{'abcdefgh'[i]}: Tensor[({', '.join(map(str, v.shape))}), {v.dtype}]" for i, v in enumerate(inputs))
    return f"def @{name}({', '.join(params)}) {{ {text} }}"


def _flat(value):
    if hasattr(value, "fields"):
        return [tensor for field in value.fields for tensor in _flat(field)]
    return [value.numpy()]


def _differences(found, expected):
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in expected]:
        return f"{[(a.shape, str(a.dtype)) for a in found]} is not {[(a.shape, str(a.dtype)) for a in expected]}"
    for a, b in zip(found, expected):
        # Integers are equal to the last one; kernels of floats add in orders of their own.
        exact = a.dtype.kind in "iub"
        same = np.array_equal(a, b) if exact else np.allclose(a, b, rtol=1e-4, atol=2e-5, equal_nan=True)
        if not same:
            return f"{a.ravel()[:8]} is not {b.ravel()[:8]}"
    return None


def test_the_machine_gives_what_the_reference_gave(arrays):
    programs = [_program(f"c{i}", text, _given(arrays, "in", i)) for i, (_, text) in enumerate(CASES)]
    machine = relay.vm.VirtualMachine(relay.vm.compile(relay.parse(HEADER + "\n".join(programs)), "llvm"), tvm.cpu())
    wrong = {}
    for i, (name, _) in enumerate(CASES):
        found = _flat(machine.invoke(f"c{i}", *_given(arrays, "in", i)))
        difference = _differences(found, _given(arrays, "out", i))
        if difference:
            wrong[name] = difference
    assert not wrong


def test_the_interpreter_gives_what_the_reference_gave(arrays):
    wrong = {}
    for i, (name, text) in enumerate(CASES):
        inputs = _given(arrays, "in", i)
        mod = relay.parse(HEADER + _program("main", text, inputs))
        found = _flat(relay.create_executor("debug", mod).evaluate()(*inputs))
        difference = _differences(found, _given(arrays, "out", i))
        if difference:
            wrong[name] = difference
    assert not wrong


def test_texts_of_all_calls_are_printed_and_read_to_the_same(arrays):
    for i, (name, text) in enumerate(CASES):
        mod = relay.parse(HEADER + _program("main", text, _given(arrays, "in", i)))
        assert relay.parse(mod.astext()) == mod, name
        assert relay.load_json(relay.save_json(mod)) == mod, name


def test_unknown_operators_and_attributes_are_refused():
    with pytest.raises(AttributeError, match="no operator"):
        relay.op.get("nn.convolution")
    with pytest.raises(ValueError, match="did you mean `padding`"):
        relay.Call(relay.op.get("nn.conv2d"), [relay.var("x"), relay.var("w")], {"paddding": [1, 1]})


def _scattered(apply):
    def run(data, indices, updates):
        out = data.copy()
        for (i, j), value in np.ndenumerate(updates):
            out[i, indices[i, j]] = apply(out[i, indices[i, j]], value)
        return out

    return run


def _quantized(function):
    def run(x):
        real = (x.astype("float64") + 10) * 0.05
        with np.errstate(all="ignore"):
            return np.clip(np.floor(function(real) / 0.02 + 0.5) + 4, -128, 127).astype("int8")

    return run


_erf = np.vectorize(__import__("math").erf)
RANDOM = np.random.default_rng(11)
PLACES = np.array([[0, 3], [1, 1], [4, 0]], "int64")
#: Calls that the reference could not execute, with NumPy's answers.
BY_HAND = {
    "scatter_elements(%a, %b, %c, axis=1, reduction=\"add\")": (
        [RANDOM.standard_normal((3, 5)).astype("float32"), PLACES, RANDOM.standard_normal((3, 2)).astype("float32")],
        _scattered(lambda a, b: a + b),
    ),
    "scatter_elements(%a, %b, %c, axis=1, reduction=\"max\")": (
        [RANDOM.standard_normal((3, 5)).astype("float32"), PLACES, RANDOM.standard_normal((3, 2)).astype("float32")],
        _scattered(max),
    ),
    "trilu(%a, 0)": ([RANDOM.standard_normal((4, 5)).astype("float32")], np.triu),
    "trilu(%a, 1, upper=False)": ([RANDOM.standard_normal((4, 5)).astype("float32")], lambda a: np.tril(a, 1)),
    "cumsum(%a)": ([RANDOM.integers(0, 9, (3, 4)).astype("int32")], lambda a: np.cumsum(a, dtype="int32")),
    "invert_permutation(%a)": ([np.array([2, 0, 3, 1], "int64")], np.argsort),
    "slice_like(%a, %b, axes=[])": (
        [RANDOM.standard_normal((4, 5)).astype("float32"), np.zeros((2, 3), "float32")],
        lambda a, b: a[:2, :3],
    ),
    "nn.dense(%a, %b, units=4)": (
        [RANDOM.standard_normal((2, 3, 5)).astype("float32"), RANDOM.standard_normal((4, 5)).astype("float32")],
        lambda a, b: a @ b.T,
    ),
    "dft(%a, %b)": (
        [RANDOM.standard_normal((2, 8)).astype("float32"), RANDOM.standard_normal((2, 8)).astype("float32")],
        lambda a, b: (np.fft.fft(a + 1j * b).real.astype("float32"), np.fft.fft(a + 1j * b).imag.astype("float32")),
    ),
    "dft(%a, %b, inverse=True)": (
        [RANDOM.standard_normal((2, 6)).astype("float32"), RANDOM.standard_normal((2, 6)).astype("float32")],
        lambda a, b: (np.fft.ifft(a + 1j * b).real.astype("float32"), np.fft.ifft(a + 1j * b).imag.astype("float32")),
    ),
    'nn.contrib_dense_pack(%a, %b, units=None, weight_layout="NC4n")': (
        [RANDOM.standard_normal((3, 5)).astype("float32"), RANDOM.standard_normal((2, 5, 4)).astype("float32")],
        lambda a, b: a @ b.transpose(1, 0, 2).reshape(5, 8),
    ),
    'qnn.batch_matmul(%a, %b, 3, -2, 0.5f, 0.25f, out_dtype="int32")': (
        [RANDOM.integers(-128, 127, (2, 4, 8)).astype("int8"), RANDOM.integers(-128, 127, (2, 5, 8)).astype("int8")],
        lambda a, b: (a.astype("int32") - 3) @ (b.astype("int32") + 2).transpose(0, 2, 1),
    ),
}
def _halfway(rows):
    """Rows, and between each two their mean."""
    return np.stack([(rows[i // 2] + rows[(i + 1) // 2]) / 2 for i in range(2 * len(rows) - 1)]).astype("float32")


def _unique(text):
    def run(data):
        values, index, inverse, counts = np.unique(data, return_index=True, return_inverse=True, return_counts=True)
        if "sorted=False" in text:
            order = np.argsort(index)
            inverse = np.argsort(order)[inverse]
            values, index, counts = values[order], index[order], counts[order]
        rest = len(data) - len(values)
        found = [np.pad(values, (0, rest)), np.pad(index, (0, rest), constant_values=len(data)), inverse]
        found += [np.array([len(values)])] + ([np.pad(counts, (0, rest))] if "counts=True" in text else [])
        return tuple([found[0], *(part.astype("int32") for part in found[1:])])

    return run


_PLAIN = RANDOM.standard_normal((1, 2, 3, 4)).astype("float32")
BY_HAND["image.resize(%a, size=[6, 8], method=\"nearest_neighbor\", coordinate_transformation_mode=\"asymmetric\")"] = (
    [_PLAIN],
    lambda a: a.repeat(2, axis=2).repeat(2, axis=3),
)
BY_HAND["image.resize(%a, size=[5, 7], align_corners=True)"] = (
    [_PLAIN],
    lambda a: np.stack([_halfway(_halfway(p).T).T for p in a[0]])[None],
)
# TVM leaves undefined what stands behind the different elements.
for _text in ("unique(%a)", "unique(%a, return_counts=True)", "unique(%a, sorted=False)", "unique(%a, sorted=False, return_counts=True)"):
    BY_HAND[_text] = ([RANDOM.integers(0, 9, 17).astype("int32")], _unique(_text))
_CODES = RANDOM.integers(0, 127, (3, 8)).astype("int8")
for _name, _function in {"tanh": np.tanh, "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "sqrt": np.sqrt, "erf": _erf}.items():
    BY_HAND[f"qnn.{_name}(%a, 0.05f, -10, 0.02f, 4)"] = ([_CODES], _quantized(_function))




def _conv2d(data, weight, pad):
    """A convolution in NHWC, the weight in HWIO."""
    data = np.pad(data.astype("float64"), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(data, weight.shape[:2], (1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows, weight)


def _tiled(weight, n, k, bytes_first):
    """A weight in HWIO as tiles of n by k, whose rows fill four tiles."""
    rows, columns = np.prod(weight.shape[:3]), weight.shape[3]
    flat = np.pad(weight.reshape(rows, columns), ((0, -rows % (4 * k)), (0, -columns % n)))
    tiles = flat.reshape(-1, k, flat.shape[1] // n, n)
    return np.ascontiguousarray(tiles.transpose((2, 0, 3, 1) if bytes_first else (2, 0, 1, 3)))


_HWIO = RANDOM.standard_normal((3, 3, 5, 7)).astype("float32")
_CODED = RANDOM.integers(-9, 9, (3, 3, 5, 7)).astype("int8")
_NHWC = RANDOM.standard_normal((2, 6, 5, 5)).astype("float32")
for _weight in (_HWIO, _CODED):
    BY_HAND[f"nn.contrib_conv2d_gemm_weight_transform(%a, tile_N=4, tile_K=2) /* {_weight.dtype} */"] = (
        [_weight],
        lambda a: _tiled(a, 4, 2, a.dtype == "int8"),
    )
_GEMM = "nn.contrib_conv2d_gemm_without_weight_transform(%a, %b, padding=[1, 1, 1, 1], channels=7, kernel_size=[3, 3], "
BY_HAND[_GEMM + 'data_layout="NHWC", kernel_layout="HWIO", out_dtype="float32")'] = (
    [_NHWC, _tiled(_HWIO, 4, 2, False)],
    lambda a, b: _conv2d(a, _HWIO, 1).astype("float32"),
)
BY_HAND[_GEMM + 'data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32")'] = (
    [(_NHWC * 9).astype("int8"), _tiled(_CODED, 4, 16, True)],
    lambda a, b: _conv2d(a, _CODED.astype("int32"), 1).astype("int32"),
)
#: A sparse matrix of four rows and five columns: rows, and rows of blocks of two by one.
_MATRIX = np.zeros((4, 5), "float32")
_MATRIX[[0, 1, 1, 3], [1, 0, 4, 2]] = [1, 2, 3, 4]
_ROWS = [np.array([1, 2, 3, 4], "float32"), np.array([1, 0, 4, 2], "int32"), np.array([0, 1, 3, 3, 4], "int32")]
BY_HAND["nn.sparse_conv2d(%a, %b, %c, %d)"] = ([_NHWC, *_ROWS], lambda a, *_: a @ _MATRIX.T)
BY_HAND['nn.sparse_conv2d(%a, %b, %c, %d, layout="NCHW")'] = (
    [np.ascontiguousarray(_NHWC.transpose(0, 3, 1, 2)), *_ROWS],
    lambda a, *_: np.einsum("nchw,oc->nohw", a, _MATRIX),
)
_SPREAD = np.zeros((4, 45), "float32")
_SPREAD[[0, 1, 1, 3], [17, 0, 44, 23]] = [1, 2, 3, 4]
_SPREAD_ROWS = [_ROWS[0], np.array([17, 0, 44, 23], "int32"), _ROWS[2]]
BY_HAND["nn.sparse_conv2d(%a, %b, %c, %d, kernel_size=[3, 3])"] = (
    [_NHWC, *_SPREAD_ROWS],
    lambda a, *_: _conv2d(a, _SPREAD.reshape(4, 3, 3, 5).transpose(1, 2, 3, 0), 1).astype("float32"),
)
BY_HAND['nn.sparse_conv2d(%a, %b, %c, %d, layout="NCHW", kernel_size=[3, 3])'] = (
    [np.ascontiguousarray(_NHWC.transpose(0, 3, 1, 2)), *_SPREAD_ROWS],
    lambda a, *_: _conv2d(a.transpose(0, 2, 3, 1), _SPREAD.reshape(4, 5, 3, 3).transpose(2, 3, 1, 0), 1)
    .transpose(0, 3, 1, 2)
    .astype("float32"),
)
BY_HAND["relay.op.annotation.simulated_quantize(%a, 0.25f, -2f, 3f, kind=1)"] = (
    [_PLAIN],
    lambda a: (np.round(np.clip(a / 0.25, -2, 3)) * 0.25).astype("float32"),
)


def _anchors(stride, scales, ratios):
    middle, found = 0.5 * (stride - 1), []
    for ratio in ratios:
        narrow = np.floor(np.sqrt(np.floor(stride * stride / ratio)) + 0.5)
        for scale in scales:
            w, h = narrow * scale, np.floor(narrow * ratio + 0.5) * scale
            found.append([middle - (w - 1) / 2, middle - (h - 1) / 2, middle + (w - 1) / 2, middle + (h - 1) / 2])
    return np.array(found)


def _apart(boxes, threshold):
    """The places of boxes that do not overlap an earlier one that stays."""
    kept = []
    for i, (left, top, right, bottom) in enumerate(boxes):
        def overlap(other):
            w = max(0, min(right, other[2]) - max(left, other[0]) + 1)
            h = max(0, min(bottom, other[3]) - max(top, other[1]) + 1)
            area = (other[2] - other[0] + 1) * (other[3] - other[1] + 1)
            return w * h / ((right - left + 1) * (bottom - top + 1) + area - w * h)

        if all(overlap(boxes[k]) <= threshold for k in kept):
            kept.append(i)
    return kept


def _proposal(scores, offsets, info, plain=False, before=20, wanted=6):
    anchors, (batch, _, height, width) = _anchors(8, [1, 2], [0.5, 1]), scores.shape
    rows = []
    for b in range(batch):
        boxes, found = [], []
        for y, x, k in np.ndindex(height, width, 4):
            left, top, right, bottom = anchors[k] + 8 * np.array([x, y, x, y])
            dx, dy, dw, dh = offsets[b, 4 * k : 4 * k + 4, y, x].astype("float64")
            if plain:
                box = [left + dx, top + dy, right + dw, bottom + dh]
            else:
                w, h = right - left + 1, bottom - top + 1
                cx, cy, w, h = dx * w + left + (w - 1) / 2, dy * h + top + (h - 1) / 2, np.exp(dw) * w, np.exp(dh) * h
                box = [cx - (w - 1) / 2, cy - (h - 1) / 2, cx + (w - 1) / 2, cy + (h - 1) / 2]
            box = np.clip(box, 0, [info[b, 1] - 1, info[b, 0] - 1] * 2)
            score, least = scores[b, 4 + k, y, x], info[b, 2] * 6
            if y >= int(info[b, 0] / 8) or x >= int(info[b, 1] / 8):
                score = -1
            if box[2] - box[0] + 1 < least or box[3] - box[1] + 1 < least:
                box, score = box + np.array([-1, -1, 1, 1]) * least / 2, -1
            boxes.append(box)
            found.append(score)
        order = np.argsort(-np.array(found), kind="stable")[:before]
        sorted_boxes = np.array(boxes)[order]
        kept = _apart(sorted_boxes, 0.6)
        rows += [[b, *sorted_boxes[kept[i % len(kept)]]] for i in range(wanted)]
    return np.array(rows, "float32")


_SCORES = RANDOM.random((2, 8, 4, 5)).astype("float32")
_OFFSETS = (RANDOM.standard_normal((2, 16, 4, 5)) / 5).astype("float32")
_INFO = np.array([[32, 40, 1], [24, 33, 1.5]], "float32")
_PROPOSAL = "vision.proposal(%a, %b, %c, scales=[1f, 2f], ratios=[0.5f, 1f], feature_stride=8, threshold=0.6f, rpn_min_size=6, "
BY_HAND[_PROPOSAL + "rpn_pre_nms_top_n=20, rpn_post_nms_top_n=6)"] = ([_SCORES, _OFFSETS, _INFO], _proposal)
BY_HAND[_PROPOSAL + "rpn_pre_nms_top_n=-1, rpn_post_nms_top_n=90, iou_loss=True)"] = (
    [_SCORES, _OFFSETS, _INFO],
    lambda *args: _proposal(*args, plain=True, before=80, wanted=90),
)


def _multibox(background):
    def run(scores, offsets, anchors):
        batch, classes, count = scores.shape
        rows, counts = np.full((batch, count, 6), -1, "float32"), np.zeros(batch, "int32")
        for b, i in np.ndindex(batch, count):
            first = 0 if background else 1
            best = scores[b, first:, i]
            kind = int(np.argmax(best)) + first
            kind = 0 if kind > 0 and best.max() < 0.4 else kind
            if not background and kind == 0:
                continue
            left, top, right, bottom = anchors[0, i].astype("float64")
            dx, dy, dw, dh = offsets[b, 4 * i : 4 * i + 4] * [0.1, 0.1, 0.2, 0.2]
            w, h = right - left, bottom - top
            cx, cy, w, h = dx * w + (left + right) / 2, dy * h + (top + bottom) / 2, np.exp(dw) * w / 2, np.exp(dh) * h / 2
            rows[b, counts[b]] = [kind - first, best.max(), *np.clip([cx - w, cy - h, cx + w, cy + h], 0, 1)]
            counts[b] += 1
        return rows, counts

    return run


_ANCHORS = np.sort(RANDOM.random((1, 9, 2, 2)), axis=2).reshape(1, 9, 4).astype("float32")
for _text, _background in {"": False, ", keep_background=True": True}.items():
    BY_HAND[f"vision.multibox_transform_loc(%a, %b, %c, threshold=0.4f{_text})"] = (
        [RANDOM.random((2, 4, 9)).astype("float32") * 0.6, RANDOM.standard_normal((2, 36)).astype("float32"), _ANCHORS],
        _multibox(_background),
    )


@pytest.mark.parametrize("text", BY_HAND)
def test_what_the_reference_could_not_carry_out_is_as_numpy_has_it(text):
    inputs, expected = BY_HAND[text]
    expected = expected(*inputs)
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    mod = relay.parse(HEADER + _program("main", text, inputs))
    for kind in ("debug", "vm"):
        found = _flat(relay.create_executor(kind, mod).evaluate()(*inputs))
        assert _differences(found, expected) is None, kind


def test_what_has_no_kernel_is_refused_with_its_name():
    mod = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { annotation.with_funcid(%x) }'
    with pytest.raises(Exception, match="annotation.with_funcid is known but cannot be compiled yet"):
        relay.parse(mod)
