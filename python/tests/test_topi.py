"""The tensor operator inventory: kernels made of its functions compute what NumPy does."""

import numpy as np
import pytest

import relaxide as rx
from relaxide import te, topi

X = np.random.default_rng(2).standard_normal((2, 3, 4)).astype("float32")
IMAGE = np.random.default_rng(3).standard_normal((1, 4, 6, 6)).astype("float32")


def run(function, *arrays):
    """The results of a function of tensors of the compute language, compiled as one kernel."""
    inputs = [te.placeholder(array.shape, str(array.dtype), name=f"in{at}") for at, array in enumerate(arrays)]
    made = function(*inputs)
    outputs = list(made) if isinstance(made, (list, tuple)) else [made]
    kernel = te.create_prim_func([*inputs, *outputs]).with_attr("global_symbol", "kernel")
    library = rx.compile(rx.IRModule({"kernel": kernel}), target="llvm")
    results = [rx.runtime.empty([int(dim) for dim in out.shape], str(out.dtype), rx.cpu()) for out in outputs]
    library["kernel"](*(rx.runtime.tensor(array) for array in arrays), *results)
    return [result.numpy() for result in results]


UNARY = {
    "abs": np.abs,
    "ceil": np.ceil,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "isnan": np.isnan,
    "negative": np.negative,
    "round": np.round,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sign": np.sign,
    "sin": np.sin,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
BINARY = {
    "add": np.add,
    "divide": np.divide,
    "equal": np.equal,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "not_equal": np.not_equal,
    "subtract": np.subtract,
}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one(name):
    (got,) = run(getattr(topi, name), X)
    np.testing.assert_allclose(got, UNARY[name](X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name):
    row = X[0, :1]
    (got,) = run(getattr(topi, name), X, row)
    np.testing.assert_allclose(got, BINARY[name](X, row), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function, wanted",
    [
        (lambda x: topi.sum(x, 1, keepdims=True), X.sum(1, keepdims=True)),
        (lambda x: topi.max(x), X.max()),
        (lambda x: topi.argmax(x, -1), X.argmax(-1).astype("int32")),
        (lambda x: topi.any(topi.greater(x, 1.0), 0), (X > 1).any(0)),
        (lambda x: topi.reshape(x, [6, 4]), X.reshape(6, 4)),
        (lambda x: topi.transpose(x), X.T),
        (lambda x: topi.transpose(x, [1, 0, 2]), X.transpose(1, 0, 2)),
        (lambda x: topi.expand_dims(x, -1, 2), X[..., None, None]),
        (lambda x: topi.squeeze(topi.expand_dims(x, 0), 0), X),
        (lambda x: topi.concatenate([x, x + 1.0], 2), np.concatenate([X, X + 1], 2)),
        (lambda x: topi.stack([x, -x], 1), np.stack([X, -X], 1)),
        (lambda x: topi.split(x, [1, 3], 2), np.split(X, [1, 3], 2)),
        (lambda x: topi.strided_slice(x, [0, 1], [2, 3], [1, 1]), X[:, 1:3]),
        (lambda x: topi.strided_slice(x, [0, 1], [2, 1], slice_mode="size"), X[:, 1:2]),
        (lambda x: topi.repeat(x, 2, 1), X.repeat(2, 1)),
        (lambda x: topi.tile(x, [2, 1, 1]), np.tile(X, [2, 1, 1])),
        (lambda x: topi.flip(x, 1), X[:, ::-1]),
        (lambda x: topi.clip(x, -0.5, 0.5), X.clip(-0.5, 0.5)),
        (lambda x: topi.cast(x, "int32"), X.astype("int32")),
        (lambda x: topi.where(topi.less(x, 0.0), x * 2.0, x), np.where(X < 0, X * 2, X)),
        (lambda x: topi.full_like(x, 2.0), np.full_like(X, 2)),
        (lambda x: topi.shape(x), np.array(X.shape, "int32")),
        (lambda x: topi.trilu(x, 0, True), np.triu(X)),
        (lambda x: topi.cumsum(x, 2), X.cumsum(2)),
        (lambda x: 1.0 - x / 2.0 * x, 1 - X / 2 * X),
        (lambda x: topi.matmul(x, x, transp_b=True), X @ X.transpose(0, 2, 1)),
        (lambda x: topi.nn.relu(x), X.clip(0)),
        (lambda x: topi.nn.leaky_relu(x, 0.1), np.where(X < 0, X * np.float32(0.1), X)),
        (lambda x: topi.nn.softmax(x), np.exp(X) / np.exp(X).sum(-1, keepdims=True)),
        (lambda x: topi.nn.flatten(x), X.reshape(2, -1)),
        (lambda x: topi.nn.pad(x, [0, 1, 0], [0, 0, 2], 7.0), np.pad(X, [(0, 0), (1, 0), (0, 2)], constant_values=7)),
        (lambda x: topi.nn.dilate(x, [1, 2, 1]), np.insert(X, [1, 2], 0, 1)),
    ],
)
def test_shapes_and_reductions(function, wanted):
    wanted = wanted if isinstance(wanted, list) else [wanted]
    got = run(function, X)
    assert [(g.shape, g.dtype) for g in got] == [(w.shape, w.dtype) for w in wanted]
    for g, w in zip(got, wanted):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


def windows(image, size):
    return np.lib.stride_tricks.sliding_window_view(image, (size, size), (2, 3))


def test_images():
    weight = np.random.default_rng(4).standard_normal((5, 4, 3, 3)).astype("float32")
    (got,) = run(lambda x, w: topi.nn.conv2d(x, w, 1, "VALID", 1), IMAGE, weight)
    np.testing.assert_allclose(got, np.einsum("nchwij,ocij->nohw", windows(IMAGE, 3), weight), rtol=1e-4, atol=1e-4)
    (got,) = run(lambda x, w: topi.nn.conv2d_nhwc(x, w, 1, "SAME", 1), IMAGE.transpose(0, 2, 3, 1), weight.transpose(2, 3, 1, 0))
    assert got.shape == (1, 6, 6, 5)
    (got,) = run(lambda x: topi.nn.pool2d(x, [2, 2], [2, 2], [1, 1], [0, 0, 0, 0], "max"), IMAGE)
    np.testing.assert_array_equal(got, IMAGE.reshape(1, 4, 3, 2, 3, 2).max((3, 5)))
    (got,) = run(lambda x: topi.nn.global_pool(x, "avg"), IMAGE)
    np.testing.assert_allclose(got, IMAGE.mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
    (got,) = run(lambda x: topi.nn.upsampling(x, 2, 2), IMAGE)
    np.testing.assert_array_equal(got, IMAGE.repeat(2, 2).repeat(2, 3))
    (got,) = run(lambda x: topi.nn.depth_to_space(topi.nn.space_to_depth(x, 2), 2), IMAGE)
    np.testing.assert_array_equal(got, IMAGE)


def test_operators_between_other_stages():
    def function(x):
        doubled = te.compute(x.shape, lambda *i: x(*i) * 2.0, name="doubled")
        return te.compute([2], lambda i: topi.sum(doubled, [1, 2])(i) + 1.0, name="result")

    (got,) = run(function, X)
    np.testing.assert_allclose(got, X.sum((1, 2)) * 2 + 1, rtol=1e-5)


def test_numbers_stay_numbers():
    n = te.var("n")
    assert str(topi.add(n, 1)) == str(n + 1)
    assert topi.multiply(2, 3) == 6


def test_what_is_refused():
    x = te.placeholder([2, 3], "float32", name="x")
    with pytest.raises(ValueError, match="reshape"):
        topi.reshape(x, [7])
    with pytest.raises(NotImplementedError, match="batch_dims"):
        topi.take(x, x, batch_dims=1)
    with pytest.raises(TypeError, match="takes a tensor"):
        topi.log_add_exp(1, 2)
