"""Programs of attention, for tests of what is done with it."""

from ... import relax


def get_relax_attention_module(
    q_shape, k_shape, v_shape, *, dtype, bias_shape=None, qk_scale=None, causal_mask=None, window_size=None
):
    """A module whose ``main`` is the attention of ``q``, ``k`` and ``v``, ``[batch, length, heads, width]``, with a ``bias`` where it has a
    shape. The other parameters are those of ``relax.op.nn.attention``."""
    names = [("q", q_shape), ("k", k_shape), ("v", v_shape), *([("bias", bias_shape)] if bias_shape is not None else [])]
    params = [relax.Var(name, relax.TensorType(list(shape), dtype)) for name, shape in names]
    bias = params[3] if bias_shape is not None else None
    return _module(params, lambda: relax.op.nn.attention(*params[:3], bias, _number(qk_scale), causal_mask, window_size))


def _number(scale):
    from ...ir.prim import FloatImm

    return FloatImm("float32", scale) if isinstance(scale, (int, float)) else scale


def _module(params, make):
    builder = relax.BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(make())
        builder.emit_func_output(result)
    return builder.get()


def get_relax_stacked_attention_module(
    qkv, b, s, n, h, h_v, op, bias=None, qk_scale=None, single_shape=False, layout="BS3NH", causal_mask=None
):
    """A module whose ``main`` takes the three operands of attention in one tensor.

    Parameters
    ----------
    qkv : array
        What the tensor is like: its shape and type count.
    b, s, n, h, h_v : int
        Batch, length, heads, and the widths of keys and of values.
    op : str
        How it is taken apart: ``"split"`` or ``"strided_slice"``.
    bias : array, optional
        What is added, of which shape and type count.
    single_shape : bool
        Whether the three shapes are one value.
    layout : str
        ``"BS3NH"`` or ``"SBN3H"``.
    """
    if layout not in ("BS3NH", "SBN3H"):
        raise ValueError(f"layout is BS3NH or SBN3H, got {layout}")
    dtype = str(qkv.dtype)
    params = [relax.Var("qkv", relax.TensorType(list(qkv.shape), dtype))]
    if bias is not None:
        params.append(relax.Var("bias", relax.TensorType(list(bias.shape), dtype)))

    def make():
        data = params[0]
        if layout == "SBN3H":
            data = relax.op.reshape(data, [s, b, n, 3, h])
            parts = [relax.op.strided_slice(data, [3], [index], [index + 1]) for index in range(3)]
            parts = [relax.op.permute_dims(relax.op.reshape(part, [s, b, n, h]), [1, 0, 2, 3]) for part in parts]
        else:
            ends = [n * h, n * h * 2, n * h * 2 + n * h_v]
            if op == "split":
                split = relax.op.split(data, ends[:2], axis=2)
                parts = [relax.TupleGetItem(split, index) for index in range(3)]
            elif op == "strided_slice":
                parts = [relax.op.strided_slice(data, [2], [begin], [end], [1]) for begin, end in zip([0, *ends], ends)]
            else:
                raise ValueError(f"op is split or strided_slice, got {op}")
            widths = (h, h, h if single_shape else h_v)
            parts = [relax.op.reshape(part, [b, s, n, width]) for part, width in zip(parts, widths)]
        found = relax.op.nn.attention(*parts, params[1] if bias is not None else None, _number(qk_scale), causal_mask)
        return relax.op.permute_dims(found, [1, 0, 2, 3]) if layout == "SBN3H" else found

    return _module(params, make)


__all__ = ["get_relax_attention_module", "get_relax_stacked_attention_module"]
