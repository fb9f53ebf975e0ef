"""Operators of the inventory that are computes of their own, against NumPy."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import te, topi
from relaxide.topi import nn

RNG = np.random.default_rng(11)


def _floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _run(make, *arrays):
    inputs = [te.placeholder(array.shape, str(array.dtype), name=f"a{i}") for i, array in enumerate(arrays)]
    made = make(*inputs)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    func = te.create_prim_func([*inputs, *outputs]).with_attr("global_symbol", "main")
    results = [tvm.runtime.tensor(np.zeros([int(dim) for dim in out.shape], str(out.dtype))) for out in outputs]
    tvm.compile(tvm.IRModule({"main": func}), "llvm")["main"](*map(tvm.runtime.tensor, arrays), *results)
    found = [result.numpy() for result in results]
    return found if len(found) > 1 else found[0]


def _close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3)


def test_winograds_convolution_is_the_convolution():
    x, w = _floats(1, 3, 7, 9), _floats(4, 3, 3, 3)
    wanted = _run(lambda a, b: nn.conv2d_nchw(a, b, 1, 1, 1), x, w)
    _close(_run(lambda a, b: nn.conv2d_winograd_nchw(a, b, 1, 1, 1, "float32"), x, w), wanted)
    with pytest.raises(ValueError, match="step of one"):
        _run(lambda a, b: nn.conv2d_winograd_nchw(a, b, 2, 1, 1, "float32"), x, w)


def test_packed_layouts_compute_the_same():
    x, w = _floats(1, 8, 6, 6), _floats(4, 8, 3, 3)
    wanted = _run(lambda a, b: nn.conv2d_nchw(a, b, 1, 1, 1), x, w)
    packed_x = x.reshape(1, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2).copy()
    packed_w = w.reshape(2, 2, 2, 4, 3, 3).transpose(0, 2, 4, 5, 3, 1).copy()
    found = _run(lambda a, b: nn.conv2d_NCHWc(a, b, 1, 1, 1, "NCHW4c", "NCHW2c"), packed_x, packed_w)
    _close(found.transpose(0, 1, 4, 2, 3).reshape(1, 4, 6, 6), wanted)


def test_products_bit_by_bit():
    a, b = RNG.integers(0, 4, (3, 32)).astype("int32"), RNG.integers(0, 2, (5, 32)).astype("int32")
    found = _run(lambda p, q: nn.bitserial_dense(p, q, 2, 1, unipolar=False), a, b)
    assert (found == a @ b.T).all()
    signs = [np.where(_floats(rows, 32) >= 0, 1, -1).astype("float32") for rows in (2, 3)]
    found = _run(lambda p, q: nn.binary_dense(nn.binarize_pack(p), nn.binarize_pack(q)), *signs)
    assert (found == signs[0] @ signs[1].T).all()


def test_elements_that_move():
    a = _floats(3, 4, 5)
    assert (_run(lambda p: topi.sliding_window(p, 1, [2, 3], [1, 2]), a)[2, 1, 1] == a[2, 1:3, 2:5]).all()
    _close(_run(lambda p, q: topi.tensordot(p, q, [[1, 2], [0, 1]]), a, _floats(4, 5, 2)).shape, (3, 2))
    lengths = np.array([1, 3, 2], "int32")
    wanted = a.copy()
    for row, length in enumerate(lengths):
        wanted[row, :length] = a[row, :length][::-1]
    assert (_run(lambda p, q: topi.reverse_sequence(p, q, 1, 0), a, lengths) == wanted).all()
    blocks = _run(lambda p: nn.space_to_batch_nd(p, [2, 2], [0, 0], [1, 0]), a.reshape(1, *a.shape))
    assert (blocks[0, 0, 0] == a[0, 0]).all() and blocks.shape == (4, 2, 2, 5)
    places = np.array([5, 11], "int32")
    found = _run(lambda p, q: topi.unravel_index(p, q), places, np.array([3, 4], "int32"))
    assert (found == np.array(np.unravel_index(places, (3, 4)))).all()


def test_transforms_of_signals_and_sums_in_order():
    re, im = _floats(2, 6), _floats(2, 6)
    found = _run(lambda p, q: topi.dft(p, q, tvm.tirx.IntImm("bool", 0)), re, im)
    wanted = np.fft.fft(re + 1j * im)
    _close(found[0], wanted.real)
    _close(found[1], wanted.imag)
    _close(_run(lambda p: topi.scanop(p, lambda s, t: s + t, 0.0, "sums", 1), re), np.cumsum(re, 1))
    _close(_run(lambda p: topi.scanop(p, lambda s, t: s + t, 0.0, "sums", 1, exclusive=True), re)[:, 1:], np.cumsum(re, 1)[:, :-1])


def test_neighbours_and_diagonals():
    x = _floats(1, 5, 2, 2)
    squares = np.stack([(x[:, max(c - 1, 0) : c + 2] ** 2).sum(1) for c in range(5)], 1)
    _close(_run(lambda p: nn.lrn(p, 3, 1, 3.0, 0.5, 1.0), x), x / np.sqrt(1 + squares))
    a, d = _floats(2, 3, 4), _floats(2, 3)
    wanted = a.copy()
    wanted[:, range(3), range(3)] = d
    assert (_run(lambda p, q: topi.matrix_set_diag(p, q), a, d) == wanted).all()
