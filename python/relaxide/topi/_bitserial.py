"""Products of signs and of small integers, bit by bit, as computes."""

from .. import te
from ._more_shapes import _const
from ._shapes import transpose
from ._winograd import _pair


def binary_op_multiplier(pack_dtype):
    """How many bits an element of a packed type has, which is as many values of one bit: 8 of ``"uint8"``."""
    return int(str(pack_dtype)[len("uint") :])


def binarize_pack(data, axis=None, name="PackedInput"):
    """Whether elements are not below zero, 32 of them as bits of a number along an axis."""
    axis = len(data.shape) - 1 if axis is None else axis
    if int(data.shape[axis]) % 32:
        raise ValueError(f"the length {data.shape[axis]} of the axis {axis} is no multiple of 32")
    shape = [te.indexdiv(dim, 32) if i == axis else dim for i, dim in enumerate(data.shape)]

    def element(*indices):
        packed = _const(0, "uint32")
        for bit in range(32):
            places = [index * 32 + bit if i == axis else index for i, index in enumerate(indices)]
            packed = packed * _const(2, "uint32") + te.Select(data(*places) >= 0, _const(1, "uint32"), _const(0, "uint32"))
        return packed

    return te.compute(shape, element, name=name, tag="binarize_pack")


def binary_dense(data, weight):
    """The product of matrices of signs that :func:`binarize_pack` has packed: ``32 * words - 2 * differing bits``."""
    from ..tirx import popcount

    words = int(data.shape[1])
    k = te.reduce_axis((0, words), name="k")
    differing = te.compute([data.shape[0], weight.shape[0]], lambda i, j: te.sum(popcount(data(i, k) ^ weight(j, k)).astype("int32"), axis=k))
    return te.compute(differing.shape, lambda i, j: (32 * words - 2 * differing(i, j)).astype("float32"), tag="binary_dense")


def _power(exponent, count):
    """Two to the power of one of the numbers below ``count``."""
    result = _const(1, str(exponent.dtype))
    for step in range(1, count):
        result = te.Select(exponent == step, _const(1 << step, str(exponent.dtype)), result)
    return result


def bitpack(data, bits, pack_axis, bit_axis, pack_type, name="QuantizeInput"):
    """The bits of small integers in words: a plane for each bit along a new axis ``bit_axis``, neighbours along ``pack_axis`` in one word."""
    from .._core import DataType

    width = DataType(pack_type).bits
    if int(data.shape[pack_axis]) % width:
        raise ValueError(f"the length {data.shape[pack_axis]} of the axis {pack_axis} is no multiple of {width}")
    shape = [te.indexdiv(dim, width) if i == pack_axis else dim for i, dim in enumerate(data.shape)]
    shape.insert(bit_axis, bits)

    def element(*indices):
        plane = indices[bit_axis]
        rest = [index for i, index in enumerate(indices) if i != bit_axis]
        word = _const(0, pack_type)
        for k in range(width):
            places = [index * width + k if i == pack_axis else index for i, index in enumerate(rest)]
            value = data(*places).astype("int32")
            bit = te.indexmod(te.indexdiv(value, _power(plane.astype("int32"), bits)), 2)
            word = word * _const(2, pack_type) + bit.astype(pack_type)
        return word

    return te.compute(shape, element, name=name, tag="bitpack")


def _bit_products(x, w, unipolar, out_dtype):
    """The sum of products of bits of two words."""
    from ..tirx import popcount

    both = popcount(w & x).astype(out_dtype)
    return both - popcount((~w) & x).astype(out_dtype) if unipolar else both


def bitserial_dense(data, weight, data_bits, weight_bits, pack_dtype="uint32", out_dtype="int16", unipolar=True):
    """A product of matrices of small integers, bit by bit. Weights may be packed already; ``unipolar`` ones are -1 and 1."""
    x = bitpack(data, data_bits, 1, 1, pack_dtype)
    w = weight if len(weight.shape) == 3 else bitpack(weight, weight_bits, 1, 1, pack_dtype)
    words = x.shape[2]
    k, a, b = (te.reduce_axis((0, size), name=name) for size, name in ((words, "k"), (data_bits, "db"), (weight_bits, "wb")))

    def element(i, j):
        value = _bit_products(x(i, a, k), w(j, b, k), unipolar, out_dtype)
        return te.sum(value * _power((a * 1 + b * 1).astype(out_dtype), data_bits + weight_bits), axis=[b, a, k])

    return te.compute([data.shape[0], w.shape[0]], element, name="bitserial_dense")


def bitserial_conv2d_nchw(
    data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype="uint32", out_dtype="int16", unipolar=True
):
    """A convolution of small integers, bit by bit, ``NCHW`` by ``OIHW`` or packed weights."""
    from .nn import get_pad_tuple, pad

    packed = len(kernel.shape) == 5
    h, w = (int(dim) for dim in (kernel.shape[3:] if packed else kernel.shape[2:]))
    top, left, bottom, right = get_pad_tuple(padding, (h, w))
    sh, sw = _pair(stride)
    x = bitpack(data, activation_bits, 1, 2, pack_dtype)
    weights = kernel if packed else bitpack(kernel, weight_bits, 1, 2, pack_dtype)
    batch, words, _, height, width = (int(dim) for dim in x.shape)
    x = pad(x, [0, 0, 0, top, left], [0, 0, 0, bottom, right]) if any((top, left, bottom, right)) else x
    out_h, out_w = (height + top + bottom - h) // sh + 1, (width + left + right - w) // sw + 1
    sizes = ((words, "ci"), (h, "dh"), (w, "dw"), (weight_bits, "b1"), (activation_bits, "b2"))
    c, r, s, b1, b2 = (te.reduce_axis((0, size), name=name) for size, name in sizes)

    def element(n, o, y, z):
        value = _bit_products(x(n, c, b2, y * sh + r, z * sw + s), weights(o, c, b1, r, s), unipolar, out_dtype)
        return te.sum(value * _power((b1 * 1 + b2 * 1).astype(out_dtype), activation_bits + weight_bits), axis=[c, r, s, b2, b1])

    return te.compute([batch, weights.shape[0], out_h, out_w], element, name="Conv2dOutput", tag="bitserial_conv2d_nchw")


def bitserial_conv2d_nhwc(
    data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype="uint32", out_dtype="int16", unipolar=True
):
    """The same, ``NHWC`` by ``HWIO``."""
    if len(kernel.shape) != 4:
        raise NotImplementedError("bitserial_conv2d_nhwc takes weights that are not packed")
    turned = transpose(data, [0, 3, 1, 2])
    weights = transpose(kernel, [3, 2, 0, 1])
    made = bitserial_conv2d_nchw(turned, weights, stride, padding, activation_bits, weight_bits, pack_dtype, out_dtype, unipolar)
    return transpose(made, [0, 2, 3, 1])


__all__ = [name for name, value in list(globals().items()) if getattr(value, "__module__", "") == __name__ and name[0] != "_"]
