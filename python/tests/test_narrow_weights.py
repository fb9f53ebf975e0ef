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
    with pytest.raises(tvm.error.TVMError, match="dtype is int8, float16 or bfloat16, not int4"):
        relax.transform.NarrowWeights("int4")(mod)
