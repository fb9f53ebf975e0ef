"""Convolutions that are computed as others: transposed ones phase by phase, and distant taps by every few rows and columns.

Sizes are random; the reference is NumPy's sum over taps. Lengths are known, and have names.
"""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax

RNG = np.random.default_rng(11)


def run(call, x, weight, named):
    batch, channels, *size = x.shape
    sizes = ', '.join(f'"d{i}"' if named else str(n) for i, n in enumerate(size))
    text = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({batch}, {channels}, {sizes}), "float32")):
        with R.dataflow():
            y = {call}
            R.output(y)
        return y
"""
    module = relax.transform.BindParams("main", {"w": tvm.runtime.tensor(weight)})(
        tvm.script.from_source(text.replace('"float32")):', f'"float32"), w: R.Tensor({weight.shape}, "float32")):'))
    )
    vm = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return vm["main"](tvm.runtime.tensor(x)).numpy()


def transposed(x, weight, strides, padding, extra):
    """The sum of each element's window, without what is cut off."""
    batch, _, *size = x.shape
    _, filters, *window = weight.shape
    whole = [(n - 1) * s + k for n, s, k in zip(size, strides, window)]
    y = np.zeros((batch, filters, *(n + e for n, e in zip(whole, extra))))
    for tap in np.ndindex(*window):
        term = np.einsum("nc...,co->no...", x, weight[(slice(None), slice(None), *tap)])
        place = tuple(slice(t, t + (n - 1) * s + 1, s) for t, n, s in zip(tap, size, strides))
        y[(slice(None), slice(None), *place)] += term
    ends = (slice(p, n + e - p) for p, n, e in zip(padding, whole, extra))
    return y[(slice(None), slice(None), *ends)]


def dilated(x, weight, dilation, padding):
    up, left, down, right = padding
    x = np.pad(x, ((0, 0), (0, 0), (up, down), (left, right)))
    size = [n - (k - 1) * d for n, k, d in zip(x.shape[2:], weight.shape[2:], dilation)]
    y = np.zeros((x.shape[0], weight.shape[0], *size))
    for tap in np.ndindex(*weight.shape[2:]):
        place = tuple(slice(t * d, t * d + n) for t, d, n in zip(tap, dilation, size))
        y += np.einsum("ncyx,mc->nmyx", x[(slice(None), slice(None), *place)], weight[(slice(None), slice(None), *tap)])
    return y


def random(low, high, count=1):
    return RNG.integers(low, high, count, endpoint=True).tolist()


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("rank", [1, 2])
def test_transposed_convolutions_of_any_window_and_stride(rank, named):
    names = {1: "nn.conv1d_transpose", 2: "nn.conv2d_transpose"}
    cases = [([3] * rank, [2] * rank, [p] * rank, [e] * rank) for p in (0, 1) for e in (0, 1)]
    for _ in range(10):
        strides = random(1, 4, rank)
        window = random(1, 6, rank)
        padding = [random(0, (k - 1) // 2)[0] for k in window]
        cases.append((window, strides, padding, [random(0, s - 1)[0] for s in strides]))
    for window, strides, padding, extra in cases:
        x = RNG.uniform(-1, 1, (random(1, 2)[0], 5, *random(2, 12, rank))).astype("float32")
        weight = RNG.uniform(-1, 1, (5, 16, *window)).astype("float32")
        call = f"R.{names[rank]}(x, w, strides={strides}, padding={padding * 2}, output_padding={extra})"
        want = transposed(x.astype("float64"), weight, strides, padding, extra)
        np.testing.assert_allclose(run(call, x, weight, named), want, rtol=1e-4, atol=1e-4, err_msg=call)


@pytest.mark.parametrize("named", [False, True])
def test_distant_taps_are_neighbours_in_every_few_rows(named):
    for dilation in ([2, 2], [1, 3], [4, 2], [5, 5]):
        padding = [random(0, d + 1)[0] for d in dilation * 2]
        x = RNG.uniform(-1, 1, (random(1, 2)[0], 192, *random(36, 48, 2))).astype("float32")
        weight = RNG.uniform(-1, 1, (160, 192, 3, 3)).astype("float32")
        call = f"R.nn.relu(R.nn.conv2d(x, w, padding={padding}, dilation={dilation}))"
        want = np.maximum(dilated(x.astype("float64"), weight, dilation, padding), 0)
        np.testing.assert_allclose(run(call, x, weight, named), want, rtol=1e-3, atol=1e-3, err_msg=call)
