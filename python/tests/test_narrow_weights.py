"""Weights in fewer bits: what the pass changes, and how far results are off."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax

RNG = np.random.default_rng(0)
WIDTH = 96


def _module(form, w):
    """A program of ``form`` over a matrix, and its inputs."""
    b = relax.BlockBuilder()
    rows = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((rows, w.shape[1] if form == "transposed" else w.shape[0]), "float32"))
    i = relax.Var("i", relax.TensorType((5,), "int64"))
    params = {"lookup": [i], "tied": [i]}.get(form, [x])
    op, matrix = relax.op, relax.const(w)
    with b.function("main", params):
        with b.dataflow():
            if form == "plain":
                y = b.emit(op.nn.relu(b.emit(op.add(b.emit(op.matmul(x, matrix)), relax.const(np.float32(1))))))
            elif form == "transposed":
                y = b.emit(op.matmul(x, b.emit(op.permute_dims(matrix))))
            else:
                y = b.emit(op.take(matrix, i, axis=0))
                if form == "tied":
                    y = b.emit(op.matmul(y, b.emit(op.permute_dims(matrix))))
            out = b.emit_output(y)
        b.emit_func_output(out)
    return b.get()


def _run(mod, *args):
    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["main"](*map(tvm.runtime.tensor, args)).numpy()


def _types(mod):
    """The types of the tensors of a program's constants."""
    found = []
    relax.analysis.post_order_visit(mod["main"], lambda e: found.append(str(e.data.dtype)) if isinstance(e, relax.Constant) else None)
    return found


def _rounded(w, dtype, axis):
    """A matrix as it is kept: rounded, or to steps of each row (``axis`` 1) or column (0)."""
    if dtype == "float16":
        return w.astype(dtype).astype("float64")
    if dtype == "bfloat16":
        bits = w.view("uint32").astype("uint64")
        return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype("uint32").view("float32").astype("float64")
    scale = np.abs(w).max(axis=axis, keepdims=True) / np.float32(127)
    return np.round(w / scale).astype("float64") * scale


@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float16"])
@pytest.mark.parametrize("form", ["plain", "transposed", "lookup", "tied"])
@pytest.mark.parametrize("rows", [1, 7, 40])
def test_results_are_those_of_rounded_matrices(form, dtype, rows):
    w = RNG.standard_normal((WIDTH, 128)).astype("float32") * np.exp(RNG.standard_normal(128)).astype("float32")
    kept = _rounded(w, dtype, 0 if form == "plain" else 1)
    assert 0 < np.abs(kept - w).max() < {"int8": 0.01, "bfloat16": 0.01, "float16": 0.001}[dtype] * np.abs(w).max()
    if form in ("lookup", "tied"):
        given = np.array([0, WIDTH - 1, 3, 3, 17])
        expected = kept[given] if form == "lookup" else kept[given] @ kept.T
    else:
        given = RNG.standard_normal((rows, w.shape[form == "transposed"])).astype("float32")
        expected = np.maximum(given @ kept + 1, 0) if form == "plain" else given @ kept.T
    mod = _module(form, w)
    narrow = relax.transform.NarrowWeights(dtype)(mod)
    assert dtype in _types(narrow) and sum(kind == "float32" for kind in _types(narrow)) <= 2
    np.testing.assert_allclose(_run(narrow, given), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_matrices_that_do_not_fit_stay():
    for w in (np.full((96, 96), np.nan), np.full((96, 96), 1e6), np.ones((8, 8))):
        mod = _module("plain", w.astype("float32"))
        tvm.ir.assert_structural_equal(relax.transform.NarrowWeights("float16")(mod), mod)
    with pytest.raises(tvm.error.TVMError, match="dtype is int4, int8, float16 or bfloat16, not int2"):
        relax.transform.NarrowWeights("int2")(mod)
    with pytest.raises(tvm.error.TVMError, match="products are computed in bfloat16 or int8 only, and dtype is float16"):
        relax.transform.NarrowWeights("float16", products=True)(mod)


def _constants(mod):
    """A program's constants that are not of one element."""
    found = []
    visit = lambda e: found.append(e.data.numpy()) if isinstance(e, relax.Constant) and np.prod(e.data.shape) > 1 else None
    relax.analysis.post_order_visit(mod["main"], visit)
    return found


def _unpacked(mod, rows, columns, bits=4):
    """The matrix that a program keeps in blocks of numbers, from its words, scales and zeros."""
    panels = [c for c in _constants(mod) if c.ndim == 3]
    (words,) = [c for c in panels if c.dtype == np.uint32]
    (scales,) = [c for c in panels if c.dtype in (np.float16, np.float32)]
    zeros = [c for c in panels if c.dtype == np.uint8]
    shifts = np.array([8 * (i % 4) + 4 * (i // 4) for i in range(32 // bits)], "uint32")
    numbers = (words[:, :, None, :] >> shifts[None, None, :, None]) & (2**bits - 1)
    numbers = numbers.reshape(words.shape[0], -1, words.shape[2]).astype("int32")
    spread = lambda a: np.repeat(a, numbers.shape[1] // scales.shape[1], axis=1)
    steps = numbers - (spread(zeros[0]).astype("int32") if zeros else 2 ** (bits - 1))
    matrix = steps * spread(scales).astype("float64")
    return matrix.transpose(1, 0, 2).reshape(matrix.shape[1], -1)[:rows, :columns], bool(zeros)


def _by_blocks(x, w, block=32):
    """A product whose left side is quantized to 8 bits in blocks."""
    pad = -x.shape[1] % block
    blocks = np.pad(x, ((0, 0), (0, pad))).reshape(x.shape[0], -1, block)
    largest = np.abs(blocks).max(axis=2, keepdims=True)
    factor = np.where(largest > 0, np.float32(127) / np.maximum(largest, np.finfo("float32").tiny), 0).astype("float32")
    steps = np.clip(np.round(blocks * factor), -127, 127).astype("float64")
    return (steps * (largest / 127.0)).reshape(x.shape[0], -1)[:, : x.shape[1]] @ w


@pytest.mark.parametrize("form", ["plain", "transposed", "lookup", "tied"])
@pytest.mark.parametrize("shape", [(96, 128), (121, 77), (257, 79), (64, 200)])
@pytest.mark.parametrize("offset", [0.0, 1.5])
def test_matrices_in_blocks_of_four_bits(form, shape, offset):
    w = (RNG.standard_normal(shape) + offset).astype("float32") * np.exp(RNG.standard_normal(shape[1])).astype("float32")
    mod = _module(form, w)
    narrow = relax.transform.NarrowWeights("int4")(mod)
    turned = form != "plain"
    kept, with_zeros = _unpacked(narrow, *(shape[::-1] if turned else shape))
    kept = kept.T if turned else kept
    # Columns have sizes of their own, which the blocks of a row mix.
    assert turned or with_zeros == (offset > 0)
    # Better than seven steps to each side of zero, from the largest of each block on.
    columns = w.T if turned else w
    blocks = np.pad(columns, ((0, -columns.shape[0] % 32), (0, 0))).reshape(-1, 32, columns.shape[1])
    scale = np.maximum(np.abs(blocks).max(axis=1, keepdims=True), 1e-30) / 7
    assert np.square(kept - w).sum() < 0.95 * np.square(np.round(blocks / scale) * scale - blocks).sum()
    if form in ("lookup", "tied"):
        given = np.array([0, shape[0] - 1, 3, 3, 17])
        expected = kept[given] if form == "lookup" else _by_blocks(kept[given].astype("float32"), kept.T)
        got = _run(narrow, given)
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
        return
    for rows in (1, 2, 3, 4, 5, 7, 40):
        given = RNG.standard_normal((rows, shape[turned])).astype("float32")
        expected = _by_blocks(given, kept.T) if turned else np.maximum(_by_blocks(given, kept) + 1, 0)
        np.testing.assert_allclose(_run(narrow, given), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["plain", "transposed", "lookup", "tied"])
@pytest.mark.parametrize("shape", [(96, 128), (128, 96), (121, 77), (257, 79)])
def test_products_of_int8_quantize_both_sides(form, shape):
    w = RNG.standard_normal(shape).astype("float32") * np.exp(RNG.standard_normal(shape[1])).astype("float32")
    narrow = relax.transform.NarrowWeights("int8", products=True)(_module(form, w))
    turned = form != "plain"
    kept, with_zeros = _unpacked(narrow, *(shape[::-1] if turned else shape), bits=8)
    kept = kept.T if turned else kept
    assert not with_zeros and np.abs(kept - w).max() < np.abs(w).max() / 200
    # What is summed is cut into blocks as long as fill up nothing.
    block = 32 if shape[turned] % 64 else 64
    (scales,) = [c for c in _constants(narrow) if c.ndim == 3 and c.dtype != np.uint32]
    assert scales.shape[1] == -(-shape[turned] // block)
    if form in ("lookup", "tied"):
        given = np.array([0, shape[0] - 1, 3, 3, 17])
        expected = kept[given] if form == "lookup" else _by_blocks(kept[given].astype("float32"), kept.T, block)
        np.testing.assert_allclose(_run(narrow, given), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())
        return
    for rows in (1, 2, 5, 40):
        given = RNG.standard_normal((rows, shape[turned])).astype("float32")
        expected = _by_blocks(given, kept.T, block) if turned else np.maximum(_by_blocks(given, kept, block) + 1, 0)
        np.testing.assert_allclose(_run(narrow, given), expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


def test_what_four_bits_hold_is_exact():
    w = (RNG.integers(-8, 8, (128, 96)) * 0.25).astype("float32")
    w[::32] = -2.0
    given = RNG.integers(-127, 128, (5, 128)).astype("float32")
    given[:, ::32] = 127
    narrow = relax.transform.NarrowWeights("int4")(_module("plain", w))
    expected = np.maximum(given.astype("float64") @ w + 1, 0)
    np.testing.assert_allclose(_run(narrow, given), expected, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("form", [("int4", False), ("int8", True), None], ids=["int4", "int8", "float32"])
@pytest.mark.parametrize("shape", [(160, 130), (1100, 270)], ids=["cached", "from memory"])
def test_a_row_is_the_same_beside_others(form, shape):
    mod = _module("plain", RNG.standard_normal(shape).astype("float32"))
    executable = tvm.compile(relax.transform.NarrowWeights(*form)(mod) if form else mod, "llvm")
    run = relax.VirtualMachine(executable, tvm.cpu())["main"]
    given = RNG.standard_normal((31, shape[0])).astype("float32")
    whole = run(tvm.runtime.tensor(given)).numpy()
    for row in range(31):
        np.testing.assert_array_equal(run(tvm.runtime.tensor(given[row : row + 1])).numpy()[0], whole[row])
    np.testing.assert_array_equal(run(tvm.runtime.tensor(given[:2])).numpy(), whole[:2])
    assert run(tvm.runtime.tensor(given[:0])).numpy().shape == (0, shape[1])


@pytest.mark.parametrize(
    "w",
    [
        np.zeros((96, 96)),
        np.full((96, 96), 1e30),
        np.full((96, 96), 1e-30),
        np.full((64, 64), 1e-45),
        np.where(np.arange(96 * 96).reshape(96, 96) % 2, 3e38, -3e38),
    ],
    ids=["zeros", "large", "small", "least", "both ends"],
)
def test_extreme_matrices_are_kept_or_stay(w):
    w = w.astype("float32")
    given = np.ones((2, w.shape[0]), "float32") * np.float32(1e-3)
    got = _run(relax.transform.NarrowWeights("int4")(_module("plain", w)), given)
    scale = max(float(np.abs(w).max()), 1.0)
    np.testing.assert_allclose(got / scale, np.maximum(given.astype("float64") @ w + 1, 0) / scale, rtol=0.05, atol=0.02)


def test_matrices_that_blocks_would_enlarge_stay():
    for shape in ((4, 2048), (4096, 2)):
        mod = _module("plain", RNG.standard_normal(shape).astype("float32"))
        tvm.ir.assert_structural_equal(relax.transform.NarrowWeights("int4")(mod), mod)


@pytest.mark.parametrize("form", ["plain", "transposed", "lookup", "tied"])
@pytest.mark.parametrize("shape", [(96, 128), (97, 65), (65, 97)])
def test_products_of_bfloat16_round_both_sides(form, shape):
    w = RNG.standard_normal(shape).astype("float32")
    kept = _rounded(w, "bfloat16", 0)
    narrow = relax.transform.NarrowWeights("bfloat16", products=True)(_module(form, w))
    if form in ("lookup", "tied"):
        given = np.array([0, shape[0] - 1, 3, 3, 17])
        got = _run(narrow, given)
        if form == "lookup":
            np.testing.assert_array_equal(got, kept[given].astype("float32"))
        else:
            np.testing.assert_allclose(got, kept[given] @ kept.T, rtol=1e-4, atol=1e-4)
        return
    for rows in (1, 2, 7, 40):
        given = RNG.standard_normal((rows, shape[form == "transposed"])).astype("float32")
        rounded = _rounded(given, "bfloat16", 0)
        expected = np.maximum(rounded @ kept + 1, 0) if form == "plain" else rounded @ kept.T
        np.testing.assert_allclose(_run(narrow, given), expected, rtol=1e-4, atol=1e-4)
