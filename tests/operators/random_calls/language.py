"""Calls of values of the language."""

from .elementwise import unary


def view(g):
    return (
        f"R.memory.view({g.tensor([8, 4], 'float32')}, {g.pick('R.shape([4, 4])', 'R.shape([16, 2])', 'R.shape([9, 4])', 'R.tuple()')}, "
        f"{g.pick('R.tuple()', 'R.dtype(' + repr('int32') + ')', 'R.dtype(' + repr('float16') + ')', 'R.dtype(' + repr('float64') + ')')}, "
        f"{g.pick('R.tuple()', 'R.prim_value(0)', 'R.prim_value(16)')})"
    )


def inspect(name):
    return lambda g: f"R.inspect.{name}({g.tensor(g.shape(), g.dtype('*'))})"


def inspect_axis(name):
    def call(g):
        shape = g.shape(g.int(1, 3))
        return f"R.inspect.{name}({g.tensor(shape)}, R.prim_value({g.int(-1, len(shape))}))"

    return call


def layout_transform(g):
    text, ndim = g.pick(("lambda i, j: (j, i)", 2), ("lambda i, j: (i, j // 4, j % 4)", 2), ("lambda i: (i // 3, i % 3)", 1), ("lambda i, j, k: (k, i, j)", 3))
    pad = g.pick("None", "T.float32(2.0)")
    return f"R.layout_transform({g.tensor([g.dim() if g.chance(0.4) else g.pick(8, 12, 14) for _ in range(ndim)])}, index_map=T.index_map({text}), pad_value={pad})"


CALLS = {
    "wrap_param": lambda g: f'R.wrap_param({g.tensor(g.shape())}, dtype="{g.dtype("f")}")', "shape_of": unary("shape_of"),
    "size": unary("size"), "tensor_to_shape": lambda g: f"R.tensor_to_shape({g.tensor(g.shape(1), 'int64')})",
    "shape_to_tensor": lambda g: f"R.shape_to_tensor({g.shape_arg([g.int(1, 4) for _ in range(g.int(0, 3))])})", "memory.view": view,
    "layout_transform": layout_transform,
    **{f"inspect.{name}": inspect(name) for name in "tensor_ndim tensor_dtype_code tensor_dtype_bits tensor_dtype_lanes tensor_byte_offset tensor_elem_offset".split()},
    **{f"inspect.{name}": inspect_axis(name) for name in ("tensor_shape_i", "tensor_stride_i")}, "grad.no_grad": unary("grad.no_grad"),
    "grad.start_checkpoint": unary("grad.start_checkpoint"), "grad.end_checkpoint": unary("grad.end_checkpoint"),
}
