"""Convolutions in tiles (Winograd's) give what direct sums give: channels, paddings, lengths of every remainder, named lengths, and what
stands behind them. What the pass leaves alone, it leaves alone."""

import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import pytest

import relaxide as tvm
from relaxide.script import relax as R

PASS = "WinogradConv2D"


def network(shape, weight, padding, behind="", **attrs):
    """A convolution, and a bias, a residual and an activation behind it where they are asked for."""
    op = tvm.relax.op
    bb = tvm.relax.BlockBuilder()
    x = tvm.relax.Var("x", R.Tensor(shape, "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(op.nn.conv2d(x, tvm.relax.const(weight), padding=padding, **attrs))
            if "bias" in behind:
                bias = np.linspace(-1, 1, weight.shape[0], dtype="float32").reshape(1, -1, 1, 1)
                y = bb.emit(op.add(y, tvm.relax.const(bias)))
            if "residual" in behind:
                y = bb.emit(op.add(y, bb.emit(op.multiply(y, tvm.relax.const(np.float32(0.5))))))
                y = bb.emit(op.add(y, x)) if "same" in behind else y
            if "relu" in behind:
                y = bb.emit(op.nn.relu(y))
            if "silu" in behind:
                y = bb.emit(op.nn.silu(y))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    return bb.get()


def in_tiles(library):
    return "winograd" in library.as_text()


def run(module, x, without=()):
    with tvm.transform.PassContext(disabled_pass=list(without)):
        library = tvm.compile(module, "llvm")
    assert in_tiles(library) == (PASS not in without)
    return tvm.relax.VirtualMachine(library, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()


def check(shape, sizes, filters, padding, behind=""):
    rng = np.random.default_rng(len(behind) + filters)
    channels = sizes[1]
    weight = (rng.standard_normal((filters, channels, 3, 3)) / np.sqrt(9 * channels)).astype("float32")
    module = network(shape, weight, padding, behind)
    x = rng.standard_normal(sizes).astype("float32")
    np.testing.assert_allclose(run(module, x), run(module, x, [PASS]), atol=3e-5, rtol=1e-5)


def cases(count):
    rng = random.Random(11)
    for _ in range(count):
        channels, filters = (rng.choice([64, 72, 80, 96]) for _ in range(2))
        batch, height, width = rng.choice([1, 1, 2, 3]), rng.randint(20, 40), rng.randint(20, 70)
        padding = [rng.randint(0, 3) for _ in range(4)] if rng.random() < 0.5 else [1] * 4
        behind = rng.choice(["", "bias", "bias relu", "bias silu", "residual", "bias residual relu"])
        if padding == [1] * 4 and "residual" in behind and channels == filters:
            behind += " same"
        named = [d if rng.random() < 0.3 else n for n, d in zip((batch, channels, height, width), "nchw", strict=True)]
        named[1] = channels
        yield pytest.param(tuple(named), (batch, channels, height, width), filters, padding, behind)


@pytest.mark.parametrize("shape, sizes, filters, padding, behind", list(cases(24)))
def test_tiles_give_what_direct_sums_give(shape, sizes, filters, padding, behind):
    check(shape, sizes, filters, padding, behind)


@pytest.mark.parametrize("size", [13, 14, 15, 16, 17, 55])
def test_every_remainder_of_a_tile(size):
    check((1, 128, size, size + 1), (1, 128, size, size + 1), 128, [1] * 4, "bias relu")


def test_named_lengths_serve_images_smaller_than_a_tile():
    rng = np.random.default_rng(3)
    weight = (rng.standard_normal((64, 64, 3, 3)) / 24).astype("float32")
    module = network(("n", 64, "h", "w"), weight, [1] * 4, "bias relu")
    tiled, direct = (tvm.relax.VirtualMachine(made, tvm.cpu())["main"] for made in compiled_both_ways(module))
    for shape in [(1, 64, 1, 1), (2, 64, 3, 2), (1, 64, 5, 70), (3, 64, 64, 64)]:
        x = tvm.runtime.tensor(rng.standard_normal(shape).astype("float32"))
        np.testing.assert_allclose(tiled(x).numpy(), direct(x).numpy(), atol=3e-5, rtol=1e-5)


def compiled_both_ways(module):
    yield tvm.compile(module, "llvm")
    with tvm.transform.PassContext(disabled_pass=[PASS]):
        yield tvm.compile(module, "llvm")


def test_a_deep_network_of_random_weights_stays_close():
    """Twenty layers, each with the scale that keeps the size of what passes: errors add up, and do not grow."""
    op, rng = tvm.relax.op, np.random.default_rng(5)
    bb = tvm.relax.BlockBuilder()
    x = tvm.relax.Var("x", R.Tensor((1, 64, 28, 28), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            y = x
            for _ in range(20):
                weight = (rng.standard_normal((64, 64, 3, 3)) * np.sqrt(2 / (9 * 64))).astype("float32")
                y = bb.emit(op.nn.relu(bb.emit(op.nn.conv2d(y, tvm.relax.const(weight), padding=[1] * 4))))
            y = bb.emit_output(y)
        bb.emit_func_output(y)
    given = rng.standard_normal((1, 64, 28, 28)).astype("float32")
    tiled, direct = run(bb.get(), given), run(bb.get(), given, [PASS])
    assert np.abs(tiled - direct).max() < 2e-5 * np.abs(direct).max()


def test_results_do_not_depend_on_the_number_of_threads():
    program = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from test_winograd import network, run
rng = np.random.default_rng(7)
weight = rng.standard_normal((96, 64, 3, 3)).astype("float32")
x = rng.standard_normal((2, 64, 37, 45)).astype("float32")
print(hashlib.sha256(run(network((2, 64, 37, 45), weight, [1] * 4, "bias relu"), x).tobytes()).hexdigest())
"""
    here = str(pathlib.Path(__file__).parent)
    answers = {
        subprocess.run(
            [sys.executable, "-c", program, here],
            env={**os.environ, "RELAXIDE_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "5")
    }
    assert len(answers) == 1


@pytest.mark.parametrize(
    "sizes, filters, attrs",
    [
        ((1, 3, 64, 64), 64, {}),
        ((1, 512, 7, 7), 512, {}),
        ((1, 64, 56, 56), 64, {"strides": [2, 2]}),
        ((1, 64, 56, 56), 64, {"dilation": [24, 24]}),
        ((1, 64, 56, 56), 64, {"groups": 2}),
    ],
)
def test_what_does_not_pay_or_fit_stays(sizes, filters, attrs):
    channels = sizes[1] // attrs.get("groups", 1)
    module = network(sizes, np.full((filters, channels, 3, 3), 0.3, "float32"), [1] * 4, **attrs)
    assert not in_tiles(tvm.compile(module, "llvm"))


def test_taps_that_are_near_go_in_tiles_of_every_second_row():
    module = network((1, 128, 56, 56), np.full((128, 128, 3, 3), 0.3, "float32"), [1] * 4, dilation=[2, 2])
    assert in_tiles(tvm.compile(module, "llvm"))


def test_a_weight_that_is_an_argument_stays():
    bb = tvm.relax.BlockBuilder()
    x, w = (tvm.relax.Var(n, R.Tensor(s, "float32")) for n, s in (("x", (1, 64, 56, 56)), ("w", (64, 64, 3, 3))))
    with bb.function("main", [x, w]):
        with bb.dataflow():
            y = bb.emit_output(tvm.relax.op.nn.conv2d(x, w, padding=[1] * 4))
        bb.emit_func_output(y)
    assert not in_tiles(tvm.compile(bb.get(), "llvm"))


def test_sums_of_integers_stay_exact():
    """Quantized networks have integers in float32."""
    rng = np.random.default_rng(9)
    weight = rng.integers(-128, 128, (64, 64, 3, 3)).astype("float32")
    x = rng.integers(0, 256, (1, 64, 28, 28)).astype("float32")
    module = network(x.shape, weight, [1] * 4)
    library = tvm.compile(module, "llvm")
    assert not in_tiles(library)
    found = tvm.relax.VirtualMachine(library, tvm.cpu())["main"](tvm.runtime.tensor(x)).numpy()
    assert (found == np.round(found)).all()
