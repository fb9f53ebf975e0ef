"""The references of `topi.testing` against the kernels of `topi`, and the two of them against TVM's where it is installed."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import te, topi
from relaxide.topi import testing

RNG = np.random.default_rng(0)


def _array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def _kernel(make, *arrays):
    """What a kernel of ``topi`` computes."""
    inputs = [te.placeholder(array.shape, str(array.dtype), name=f"x{at}") for at, array in enumerate(arrays)]
    out = make(*inputs)
    lib = tvm.compile(te.create_prim_func([*inputs, out]), "llvm")
    result = tvm.runtime.empty([int(dim) for dim in out.shape], str(out.dtype))
    lib["main"](*map(tvm.runtime.tensor, arrays), result)
    return result.numpy()


_CASES = {
    "conv2d": (
        lambda x, w: topi.nn.group_conv2d_nchw(x, w, 2, (1, 0, 1, 2), 1, 2),
        lambda x, w: testing.conv2d_nchw_python(x, w, 2, (1, 0, 1, 2), 2),
        [_array(2, 4, 7, 6), _array(6, 2, 3, 2)],
    ),
    "conv2d_transpose": (
        lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, (2, 2), (1, 1), "float32", (1, 0)),
        lambda x, w: testing.conv2d_transpose_nchw_python(x, w, (2, 2), (1, 1), (1, 0)),
        [_array(1, 3, 4, 5), _array(3, 2, 3, 3)],
    ),
    "depthwise": (
        lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, (1, 1), (1, 1), (1, 1)),
        lambda x, w: testing.depthwise_conv2d_python_nchw(x, w, 1, 1),
        [_array(1, 3, 5, 5), _array(3, 1, 3, 3)],
    ),
    "softmax": (topi.nn.softmax, lambda x: testing.softmax_python(x, -1), [_array(3, 5)]),
    "layer_norm": (
        lambda x, g, b: topi.nn.layer_norm(x, g, b, [1]),
        lambda x, g, b: testing.layer_norm_python(x, g, b, 1),
        [_array(3, 5), _array(5), _array(5)],
    ),
    "pool": (
        lambda x: topi.nn.pool2d(x, (3, 2), (2, 1), (1, 1), (1, 0, 1, 1), "avg", count_include_pad=False),
        lambda x: testing.poolnd_python(x, (3, 2), (2, 1), (1, 1), (1, 0), (1, 1), "avg", False),
        [_array(1, 2, 6, 5)],
    ),
    "depth_to_space": (lambda x: topi.nn.depth_to_space(x, 2), lambda x: testing.depth_to_space_python(x, 2), [_array(1, 8, 3, 3)]),
    "strided_slice": (
        lambda x: topi.strided_slice(x, [1, 0], [3, 6], [1, 2]),
        lambda x: testing.strided_slice_python(x, [1, 0], [3, 6], [1, 2]),
        [_array(4, 6)],
    ),
}


@pytest.mark.parametrize("name", _CASES)
def test_a_reference_is_what_the_kernel_computes(name):
    make, reference, arrays = _CASES[name]
    np.testing.assert_allclose(_kernel(make, *arrays), reference(*arrays), rtol=1e-4, atol=1e-5)


def test_spaces_and_batches_go_into_each_other():
    data = _array(2, 4, 6, 3)
    apart = testing.space_to_batch_nd_python(data, [2, 3], [0, 0], [0, 0])
    assert apart.shape == (12, 2, 2, 3)
    np.testing.assert_array_equal(testing.batch_to_space_nd_python(apart, [2, 3], [0, 0], [0, 0]), data)
    np.testing.assert_array_equal(testing.space_to_depth_python(testing.depth_to_space_python(_DEEP, 2), 2), _DEEP)


_DEEP = _array(1, 4, 2, 2)


def test_a_reference_that_is_not_here_is_named():
    with pytest.raises(AttributeError, match="no reference 'unheard_of'"):
        testing.unheard_of  # noqa: B018
