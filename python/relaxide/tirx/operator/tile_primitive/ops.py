"""Operations on tiles by name: ``Copy(dst, src)`` is the call of ``tirx.tile.copy``.

Each takes the arguments of the operation in its order, and by name what calls have beside them: ``workspace``, ``config``,
``dispatch`` and ``scope``.
"""

from ...tile_primitive import TilePrimitiveCall

#: The classes of calls, and the operations that they call.
_NAMES = {
    "Add": "add", "BinaryChain": "binary_chain", "BinaryReduce": "binary_reduce", "Cast": "cast", "Copy": "copy", "CopyAsync": "copy_async",
    "Exp": "exp", "Exp2": "exp2", "FDiv": "fdiv", "FMA": "fma", "Fill": "fill", "Gemm": "gemm", "GemmAsync": "gemm_async", "Log2": "log2",
    "Max": "max", "Maximum": "maximum", "Memset": "memset", "Min": "min", "Minimum": "minimum", "Mul": "mul",
    "PermuteLayout": "permute_layout", "Reciprocal": "reciprocal", "ReduceNegate": "reduce_negate", "Select": "select", "SiLU": "silu",
    "Sqrt": "sqrt", "Sub": "sub", "Sum": "sum", "UnaryReduce": "unary_reduce", "Zero": "zero",
}  # fmt: skip


def get_tirx_op(op_name):
    """The full name of an operation on tiles.

    Raises
    ------
    TypeError
        The name is no text.
    """
    if not isinstance(op_name, str):
        raise TypeError(f"an operation on tiles is named by a text, got {type(op_name).__name__}")
    return f"tirx.tile.{op_name.removeprefix('tirx.tile.')}"


def _call_of(name, op_name):
    def make(*args, workspace=None, config=None, dispatch=None, scope=None):
        op = get_tirx_op(op_name)
        return TilePrimitiveCall(*args, op=op, workspace=workspace, config=config, dispatch=dispatch, scope=scope)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The call of ``tirx.tile.{op_name}``."
    return make


globals().update({name: _call_of(name, op_name) for name, op_name in _NAMES.items()})

__all__ = [*_NAMES, "get_tirx_op"]
