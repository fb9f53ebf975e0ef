"""Programs of one product, for tests of what is done with products."""

from ... import relax
from ..op import add, matmul, permute_dims


def get_relax_matmul_module(
    x_shape,
    y_shape,
    in_dtype,
    out_dtype=None,
    transposed_y=False,
    bias_shape=None,
    activation=None,
    residual_bin_op=None,
    residual_activation=None,
):
    """A module whose ``main`` is a product of two tensors and what follows it.

    Parameters
    ----------
    x_shape, y_shape : list
        Dimensions of both.
    in_dtype, out_dtype : str
        Element types; the result's is that of the arguments where it is not given.
    transposed_y : bool
        Whether the second is given with its last two axes in the other order.
    bias_shape : list, optional
        Dimensions of what is added.
    activation : callable, optional
        An operator on the result.
    residual_bin_op : callable, optional
        An operator on the result and the first argument.
    residual_activation : callable, optional
        An operator on what that gives.
    """
    out_dtype = out_dtype or in_dtype
    if transposed_y:
        y_shape = [*y_shape[:-2], y_shape[-1], y_shape[-2]]
    x = relax.Var("x", relax.TensorType(list(x_shape), in_dtype))
    y = relax.Var("y", relax.TensorType(list(y_shape), in_dtype))
    params = [x, y]
    bias = None
    if bias_shape is not None:
        bias = relax.Var("bias", relax.TensorType(list(bias_shape), out_dtype))
        params.append(bias)
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            right = y
            if transposed_y:
                axes = [*range(len(y_shape) - 2), len(y_shape) - 1, len(y_shape) - 2]
                right = builder.emit(permute_dims(y, axes=axes))
            result = builder.emit(matmul(x, right, out_dtype=out_dtype))
            if bias is not None:
                result = builder.emit(add(result, bias))
            if activation is not None:
                result = builder.emit(activation(result))
            if residual_bin_op is not None:
                result = builder.emit(residual_bin_op(result, x))
                if residual_activation is not None:
                    result = builder.emit(residual_activation(result))
            output = builder.emit_output(result)
        builder.emit_func_output(output)
    return builder.get()
