"""Patterns of what libraries often take as one call: products, convolutions and attention, with what follows them.

Each function gives ``(pattern, parts)``, where ``parts`` names the patterns of operands and of the call itself (``root``), as
:class:`~relaxide.relax.transform.FusionPattern` takes them.
"""

from ..dpl import is_op, wildcard


def _followed(pattern, parts, with_bias, activation, allow_reshape=False):
    """The pattern, with a bias that is added and a function that is called behind it."""
    if with_bias:
        parts["bias"] = bias = wildcard()
        if allow_reshape:
            bias = is_op("relax.reshape")(bias, wildcard(), varg_default_wildcard=True)
        pattern = is_op("relax.add")(pattern, bias)
    return (is_op(activation)(pattern) if activation else pattern), parts


def make_fused_bias_activation_pattern(op_name, with_bias=False, activation=None, allow_reshape=False):
    """A call of two operands (``lhs``, ``rhs``), such as ``"relax.nn.conv2d"``; with a bias, which may be reshaped, and a function."""
    lhs, rhs = wildcard(), wildcard()
    out = is_op(op_name)(lhs, rhs)
    return _followed(out, {"lhs": lhs, "rhs": rhs, "root": out}, with_bias, activation, allow_reshape)


def make_residual_block_pattern(node_output, binary_op="relax.add", activation=None):
    """What a pattern matches, added to another value (``residual``) on either side, with a function behind it.

    ``node_output`` is a pattern, or the pair that a function of this module gives. ``binary_op`` is the operator that adds.
    """
    node_output, parts = node_output if isinstance(node_output, tuple) else (node_output, {})
    residual, op = wildcard(), is_op(binary_op)
    output = op(node_output, residual) | op(residual, node_output)
    if activation is not None:
        output = is_op(activation)(output)
    return output, {**parts, "residual": residual}


def make_conv2d_pattern(with_bias=False, activation=None):
    """A convolution of images (``input``) by ``weight``; with a bias and a function."""
    image, weight = wildcard(), wildcard()
    root = is_op("relax.nn.conv2d")(image, weight)
    return _followed(root, {"input": image, "weight": weight, "root": root}, with_bias, activation)


def make_matmul_pattern(with_bias=False, activation=None, transposed_rhs=False):
    """A product of ``lhs`` and ``rhs``; with ``transposed_rhs`` the right one is exchanged (``permute_dims``) in front of it."""
    lhs, rhs = wildcard(), wildcard()
    root = is_op("relax.matmul")(lhs, is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs)
    return _followed(root, {"lhs": lhs, "rhs": rhs, "root": root}, with_bias, activation)


def make_attention_pattern(with_bias=False, var_len=False):
    """Attention of ``query``, ``key`` and ``value``; with a bias on the scores, or over sequences of several lengths."""
    query, key, value = wildcard(), wildcard(), wildcard()
    parts = {"query": query, "key": key, "value": value}
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.nn.attention_bias")(query, key, value, parts["bias"])
    elif var_len:
        names = ("seqstart_q", "seqstart_k", "max_seqlen_q", "max_seqlen_k")
        parts |= {name: wildcard() for name in names}
        out = is_op("relax.nn.attention_var_len")(query, key, value, *(parts[name] for name in names))
    else:
        out = is_op("relax.nn.attention")(query, key, value)
    return out, parts


def make_stacked_attention_pattern(start_op, with_bias=False, layout="BS3NH"):
    """Attention whose query, key and value are parts of one tensor, ``stacked_qkv``.

    ``start_op`` is ``"split"`` or ``"strided_slice"``, by which they are taken out; ``layout`` is ``"BS3NH"``, where the parts are
    reshaped, or ``"SBN3H"``, where their dimensions are exchanged. Anything else is a ValueError.
    """
    if start_op not in ("split", "strided_slice"):
        raise ValueError(f"the parts are taken out by split or strided_slice, not by {start_op}")
    if layout not in ("BS3NH", "SBN3H"):
        raise ValueError(f"the layout is BS3NH or SBN3H, not {layout}")
    stacked, parts = wildcard(), {}
    parts["stacked_qkv"] = stacked
    taken = is_op("relax.split")(stacked) if start_op == "split" else None
    values = []
    for index, name in enumerate(("query", "key", "value")):
        part = taken[index] if taken is not None else is_op("relax.strided_slice")(stacked, varg_default_wildcard=True)
        if layout == "BS3NH":
            parts[f"{name}_reshape_list"] = wildcard()
            part = is_op("relax.reshape")(part, parts[f"{name}_reshape_list"])
        else:
            part = is_op("relax.permute_dims")(part)
        values.append(part)
    if with_bias:
        parts["bias"] = wildcard()
        out = is_op("relax.nn.attention_bias")(*values, parts["bias"])
    else:
        out = is_op("relax.nn.attention")(*values)
    return (is_op("relax.permute_dims")(out) if layout == "SBN3H" else out), parts


def make_layer_norm_pattern():
    """A norm of rows with a scale and a shift."""
    return is_op("relax.nn.layer_norm")(wildcard(), wildcard(), wildcard()), {}


def make_rms_norm_pattern():
    """A norm of rows by the root of their mean square, with a scale."""
    return is_op("relax.nn.rms_norm")(wildcard(), wildcard()), {}


def _scaled_product(transposed_rhs):
    lhs, rhs = wildcard(), wildcard()
    root = is_op("relax.matmul")(lhs, is_op("relax.permute_dims")(rhs) if transposed_rhs else rhs)
    return root, {"lhs": lhs, "rhs": rhs, "root": root}


def make_matmul_dequantize_pattern(transposed_rhs=False):
    """A product whose result is dequantized by ``scale`` and zero point ``zp``."""
    root, parts = _scaled_product(transposed_rhs)
    parts["scale"], parts["zp"] = wildcard(), wildcard()
    return is_op("relax.dequantize")(root, parts["scale"], parts["zp"]), parts


def make_matmul_multiply_pattern(transposed_rhs=False):
    """A product whose result is multiplied by ``scaleA`` times ``scaleB`` and converted."""
    root, parts = _scaled_product(transposed_rhs)
    parts["scaleA"], parts["scaleB"] = wildcard(), wildcard()
    scale = is_op("relax.multiply")(parts["scaleA"], parts["scaleB"])
    return is_op("relax.astype")(is_op("relax.multiply")(root, scale)), parts




__all__ = [name for name in list(vars()) if name.startswith("make_")]
