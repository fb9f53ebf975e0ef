"""Rotary positions: pairs of features are turned by an angle that grows with the position.

The functions ``rope_freq_…`` give, for a position and a feature, the cosine and the sine of the angle, and what variables in them stand
for. They differ in how the angle's frequency is changed for sequences longer than a model was trained with.
"""

import math
from functools import partial

from ..... import tirx
from .....ir.prim import Let
from .....script.ir_builder import IRBuilder
from .....script.ir_builder import tirx as T


def _angle(position, frequency, dtype, scale=None):
    """The cosine and the sine of what a position and a frequency make, with a variable for the angle."""
    angle = tirx.Var("freq", "float32")
    cos, sin = tirx.cos(angle), tirx.sin(angle)
    if scale is not None:
        cos, sin = cos * _const(scale), sin * _const(scale)
    return cos.astype(dtype), sin.astype(dtype), {angle: position * frequency}


def _const(value):
    return tirx.const(value, "float32") if isinstance(value, (int, float)) else value


def _exponent(feature, d_range):
    """How far a feature is along the frequencies, from 0 to 1; both features of a pair are as far."""
    return (feature * 2 % d_range).astype("float32") / _const(d_range)


def _in_pairs(feature, d_range):
    """The same where neighbours are a pair."""
    return (feature // 2 * 2 % d_range).astype("float32") / _const(d_range)


def _inverse(theta, exponent):
    return _const(1.0) / tirx.power(_const(theta), exponent)


def rope_freq_default(s, d, d_range, theta, dtype):
    """The angle of a position.

    Parameters
    ----------
    s : PrimExpr
        The position.
    d : PrimExpr
        The feature.
    d_range : int
        How many features are turned.
    theta : float
        The base of the frequencies.
    dtype : str
        The element type of what is returned.

    Returns
    -------
    (PrimExpr, PrimExpr, dict of Var to PrimExpr)
        The cosine, the sine, and the values of variables in them.
    """
    return _angle(s, _inverse(theta, _exponent(d, d_range)), dtype)


def rope_freq_gptj(s, d, d_range, theta, dtype):
    """As :func:`rope_freq_default`, with neighbours as pairs."""
    return _angle(s, _inverse(theta, _in_pairs(d, d_range)), dtype)


def _smoothed(frequency, factor, low, high, original):
    """Low frequencies divided by a factor, high ones as they are, and in between a mixture."""
    if high == low:
        wavelength = _const(2 * math.pi) / frequency
        return tirx.if_then_else(wavelength > _const(original / low), frequency / _const(factor), frequency)
    turns = frequency * _const(original / (2 * math.pi))
    share = tirx.max(_const(0.0), tirx.min(_const(1.0), (turns - _const(low)) / _const(high - low)))
    return (_const(1.0) - share) * frequency / _const(factor) + share * frequency


def rope_freq_llama3(s, d, d_range, theta, dtype, factor, low_freq_factor, high_freq_factor, original_max_position_embeddings):
    """As :func:`rope_freq_default`, with low frequencies divided by ``factor``, as Llama 3 has them."""
    return _scaled(s, _inverse(theta, _exponent(d, d_range)), dtype, factor, low_freq_factor, high_freq_factor, original_max_position_embeddings)


def rope_freq_llama4(s, d, d_range, theta, dtype, factor, low_freq_factor, high_freq_factor, original_max_position_embeddings):
    """As :func:`rope_freq_llama3`, with neighbours as pairs; a sharp step where both factors are equal."""
    return _scaled(s, _inverse(theta, _in_pairs(d, d_range)), dtype, factor, low_freq_factor, high_freq_factor, original_max_position_embeddings)


def _scaled(s, frequency, dtype, *scaling):
    plain = tirx.Var("orig_freq", "float32")
    cos, sin, values = _angle(s, _smoothed(plain, *scaling), dtype)
    return cos, sin, {**values, plain: frequency}


def rope_freq_longrope(s, d, d_range, theta, dtype, max_position_embeddings, original_max_position_embeddings, ext_factors=None):
    """As :func:`rope_freq_default`, with a factor for each frequency in a buffer, and longer vectors for longer sequences."""
    longer = max_position_embeddings / original_max_position_embeddings
    scale = math.sqrt(1 + math.log(longer) / math.log(original_max_position_embeddings)) if longer > 1 else 1.0
    frequency = _inverse(theta, _exponent(d, d_range))
    if ext_factors is not None:
        frequency = frequency / ext_factors[d % (d_range // 2)]
    return _angle(s, frequency, dtype, scale)


def yarn_find_correction_dim(num_rotations, d, max_position_embeddings, inv_theta_log_scale=None):
    """The feature that turns so often over the length that a model was trained with."""
    return d * math.log(max_position_embeddings / (num_rotations * 2 * math.pi)) * inv_theta_log_scale


def yarn_find_correction_range(low_rot, high_rot, d, max_position_embeddings, inv_theta_log_scale=None):
    """The features between which YaRN mixes, by how often they turn."""
    low, high = (yarn_find_correction_dim(turns, d, max_position_embeddings, inv_theta_log_scale) for turns in (low_rot, high_rot))
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        return max(low, 0), min(high, d - 1)
    return tirx.max(low, 0), tirx.min(high, d - 1)


def rope_freq_yarn(
    s, d, d_range, theta, dtype, original_max_position_embeddings, scaling_factor, beta_fast, beta_slow, inv_theta_log_scale=None
):
    """As :func:`rope_freq_default`, with frequencies divided by ``scaling_factor`` the more, the lower they are, as YaRN has them."""
    low, high = yarn_find_correction_range(beta_fast, beta_slow, d_range, original_max_position_embeddings, inv_theta_log_scale)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)):
        low, high = _const(float(low)), _const(float(high + 0.001 if low == high else high))
    else:
        high = tirx.if_then_else(low == high, high + 0.001, high)
    kept = _const(1.0) - tirx.max(tirx.min((d.astype("float32") - low) / (high - low), _const(1.0)), _const(0.0))
    frequency = _inverse(theta, _exponent(d, d_range))
    return _angle(s, frequency / _const(scaling_factor) * (_const(1.0) - kept) + frequency * kept, dtype)


#: The functions by ``rope_type``, with what each takes of the configuration.
_FACTORS = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
_KINDS = {
    "gptj": (rope_freq_gptj, ()),
    "llama3": (rope_freq_llama3, _FACTORS),
    "llama4": (rope_freq_llama4, _FACTORS),
    "longrope": (rope_freq_longrope, ("max_position_embeddings", "original_max_position_embeddings")),
    "yarn": (rope_freq_yarn, ("original_max_position_embeddings", "beta_fast", "beta_slow", "inv_theta_log_scale")),
}


def switch_rope_freq_func(rope_scaling):
    """The function that a model's configuration of its positions asks for.

    Parameters
    ----------
    rope_scaling : dict
        As models have it: ``rope_type`` names the way, and further entries are its numbers. ``yarn`` needs ``inv_theta_log_scale``, which is
        ``1 / (2 * log(theta))``.
    """
    rope_scaling = rope_scaling or {}
    kind = rope_scaling.get("rope_type")
    if kind is None or kind == "default":
        return rope_freq_default
    if kind not in _KINDS:
        raise ValueError(f"Unsupported RoPE scaling type: {kind}; known are {', '.join(_KINDS)}")
    function, needed = _KINDS[kind]
    missing = [name for name in needed if rope_scaling.get(name) is None]
    if missing:
        raise ValueError(f"the RoPE scaling {kind!r} needs {', '.join(missing)}")
    given = {name: rope_scaling[name] for name in needed}
    if kind == "yarn":
        if rope_scaling.get("factor") is None:
            raise ValueError("the RoPE scaling 'yarn' needs factor")
        given["scaling_factor"] = rope_scaling["factor"]
    return partial(function, **given)


def rotated(element, position, d, rotary_dim, theta, rope_scaling, **more):
    """A feature at a position, as a ``float32``; ``element(feature)`` is the feature before."""
    cos, sin, values = switch_rope_freq_func(rope_scaling)(position, d, rotary_dim, theta, "float32", **more)
    of = lambda feature: element(feature).astype("float32")  # noqa: E731
    if (rope_scaling or {}).get("rope_type") in ("gptj", "llama4"):
        other = tirx.if_then_else(d % 2 == 0, -of(d + 1), of(d - 1))
    else:
        half = rotary_dim // 2
        other = tirx.if_then_else(d < half, -of(d + half), of(d - half))
    turned = cos * of(d) + sin * other
    for var, value in values.items():
        turned = Let(var, value, turned)
    return turned


def _split(q, k, v, qkv, at, h, d, heads, kv_heads, turn):
    """Write what stands at a head and a feature of ``qkv`` to where it belongs; ``turn`` turns queries and keys."""
    with T.If(h < heads):
        with T.Then():
            T.buffer_store(q, turn(), [*at, h, d])
        with T.Else():
            with T.If(h < heads + kv_heads):
                with T.Then():
                    T.buffer_store(k, turn(), [*at, h - heads, d])
                with T.Else():
                    T.buffer_store(v, qkv[(*at, h, d)], [*at, h - (heads + kv_heads), d])


def _buffers(names, shapes, dtype):
    handles = [T.arg(name, T.handle()) for name in names]
    return [T.match_buffer(handle, shape, dtype) for handle, shape in zip(handles, shapes)]


def llama_rope(qkv, total_seq_len, theta, scale, num_q_heads, num_kv_heads, rope_scaling, rotary_dim=None):
    """Queries, keys and values out of one tensor, with positions put into queries and keys.

    Parameters
    ----------
    qkv : nn.Tensor
        ``(batch, length, num_q_heads + 2 * num_kv_heads, head size)``.
    total_seq_len : Var
        The length with what came before: the first position is this less the tensor's length.
    theta, scale : float
        The base of the frequencies, and a factor of positions.
    num_q_heads, num_kv_heads : int
        How many heads are queries, and how many are keys (and as many values).
    rope_scaling : dict
        See :func:`switch_rope_freq_func`.
    rotary_dim : int, optional
        How many features of a head are turned; all where nothing is said.

    Returns
    -------
    (nn.Tensor, nn.Tensor, nn.Tensor)
        Queries, keys and values, ``(batch, length, heads, head size)`` each.
    """
    from .. import op
    from ..core import Tensor

    batch, length, fused, head_dim = qkv.shape
    if fused != num_q_heads + 2 * num_kv_heads:
        raise ValueError(f"qkv has {fused} heads, but {num_q_heads} queries and {num_kv_heads} keys and values are {num_q_heads + 2 * num_kv_heads}")
    rotary_dim, dtype, kernel = rotary_dim or head_dim, qkv.dtype, "fused_rope"
    with IRBuilder() as builder:
        with T.prim_func(is_private=True, s_tir=True):
            T.func_name(kernel)
            T.func_attr({"op_pattern": 8, "tirx.noalias": True})
            b, s = tirx.Var("batch_size", "int64"), tirx.Var("seq_len", "int64")
            shapes = [(b, s, heads, head_dim) for heads in (fused, num_q_heads, num_kv_heads, num_kv_heads)]
            x, q, k, v = _buffers(("var_qkv", "var_q", "var_k", "var_v"), shapes, dtype)
            total = T.arg("total_seq_len", tirx.Var("total_seq_len", "int64"))
            with T.grid(b, s, fused, head_dim) as loops:
                with T.sblock("llama_fused_rope"):
                    vb, vs, vh, vd = T.axis.remap("SSSS", loops)
                    position = (vs + total - s).astype("float32") * _const(scale)

                    def turn():
                        turned = rotated(lambda f: x[vb, vs, vh, f], position, vd, rotary_dim, theta, rope_scaling).astype(dtype)
                        return turned if rotary_dim == head_dim else tirx.if_then_else(vd < rotary_dim, turned, x[vb, vs, vh, vd])

                    _split(q, k, v, x, (vb, vs), vh, vd, num_q_heads, num_kv_heads, turn)
    outs = tuple(Tensor.placeholder((batch, length, heads, head_dim), dtype) for heads in (num_q_heads, num_kv_heads, num_kv_heads))
    return op.tensor_ir_op(builder.get(), "llama_rope", args=[qkv, total_seq_len], out=outs)


def llama_rope_with_position_map(theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim=None):
    """A kernel that takes queries, keys and values apart, and puts the positions of a map into queries and keys.

    Parameters are as in :func:`llama_rope`. The kernel takes ``qkv`` of shape ``(length, heads, head_dim)``, the position of each token, and
    where queries, keys and values go; last of all whether there is anything to turn (0: not), or with ``longrope`` a buffer of
    ``rotary_dim`` factors, those of long sequences first.
    """
    rope_scaling = rope_scaling or {}
    fused, rotary_dim = num_q_heads + 2 * num_kv_heads, rotary_dim or head_dim
    long_range = rope_scaling.get("rope_type") == "longrope"
    original = rope_scaling.get("original_max_position_embeddings", 0) if long_range else 0
    with IRBuilder() as builder:
        with T.prim_func(s_tir=True):
            T.func_name("fused_rope_longrope_scaling" if long_range else "fused_rope")
            T.func_attr({"op_pattern": 8, "tirx.noalias": True})
            length = tirx.Var("seq_len", "int64")
            handles = [T.arg(name, T.handle()) for name in ("var_qkv", "var_position_map", "var_q", "var_k", "var_v")]
            x = T.match_buffer(handles[0], (length, fused, head_dim), dtype)
            places = T.match_buffer(handles[1], (length,), "int32")
            heads = (num_q_heads, num_kv_heads, num_kv_heads)
            q, k, v = (T.match_buffer(handle, (length, count, head_dim), dtype) for handle, count in zip(handles[2:], heads))
            if long_range:
                factors = T.arg("ext_factors", T.Buffer((rotary_dim,), "float32"))
                first = tirx.if_then_else(length > original, 0, rotary_dim // 2)
                more = {"ext_factors": _Half(factors, first)}
                applied = None
            else:
                applied, more = T.arg("apply_rope", tirx.Var("apply_rope", "int64")), {}
            with T.grid(length, fused, head_dim) as loops:
                with T.sblock("llama_fused_rope"):
                    s, h, d = T.axis.remap("SSS", loops)
                    position = places[s].astype("float32") * _const(scale)

                    def turn():
                        turned = rotated(lambda f: x[s, h, f], position, d, rotary_dim, theta, rope_scaling, **more).astype(dtype)
                        which = [] if rotary_dim == head_dim else [d < rotary_dim]
                        which += [] if applied is None else [applied > 0]
                        return tirx.if_then_else(tirx.all(*which), turned, x[s, h, d]) if which else turned

                    _split(q, k, v, x, (s,), h, d, num_q_heads, num_kv_heads, turn)
    return builder.get()


class _Half:
    """One half of a buffer of factors."""

    def __init__(self, buffer, first):
        self._buffer, self._first = buffer, first

    def __getitem__(self, index):
        return self._buffer[index + self._first]


def llama4_rope_with_position_map(theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, rope_scaling, rotary_dim=None):
    """As :func:`llama_rope_with_position_map`, with neighbours as pairs."""
    kind = (rope_scaling or {}).get("rope_type")
    if kind not in (None, "default", "llama4", "gptj"):
        raise ValueError(f"pairs of neighbours are turned as 'llama4' or 'gptj' say, not as {kind!r}")
    pairs = {**(rope_scaling or {}), "rope_type": "llama4" if kind == "llama4" else "gptj"}
    return llama_rope_with_position_map(theta, scale, head_dim, num_q_heads, num_kv_heads, dtype, pairs, rotary_dim)


__all__ = ["llama4_rope_with_position_map", "llama_rope", "llama_rope_with_position_map", "rope_freq_default", "rope_freq_gptj"]
__all__ += ["rope_freq_llama3", "rope_freq_llama4", "rope_freq_longrope", "rope_freq_yarn", "switch_rope_freq_func"]
__all__ += ["yarn_find_correction_dim", "yarn_find_correction_range"]
