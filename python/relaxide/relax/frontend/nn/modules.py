"""The modules that models are built from: layers with weights, activations, and those of diffusion models."""

from . import op
from ._containers import ModuleList
from ._module import Module
from ._values import Parameter
from .effects import IOEffect, KVCache


class Identity(Module):
    """Its argument."""

    def forward(self, x):
        return x


class ReLU(Module):
    """:func:`op.relu`."""

    def forward(self, x):
        return op.relu(x)


class SiLU(Module):
    """:func:`op.silu`."""

    def forward(self, x):
        return op.silu(x)


class GELU(Module):
    """:func:`op.gelu`."""

    def forward(self, x):
        return op.gelu(x)


class Linear(Module):
    """``x @ weight.T + bias``.

    Parameters
    ----------
    in_features, out_features : int, str or expression
        The lengths of a row before and after; ``weight`` is of shape ``[out_features, in_features]``.
    bias : bool
        Whether a vector is added.
    dtype : str, optional
        The element type of the weight.
    out_dtype : str, optional
        That of products and bias, where it differs.
    """

    def __init__(self, in_features, out_features, bias=True, dtype=None, out_dtype=None):
        self.in_features, self.out_features, self.out_dtype = in_features, out_features, out_dtype
        self.weight = Parameter((out_features, in_features), dtype)
        self.bias = Parameter((out_features,), out_dtype or dtype) if bias else None

    def forward(self, x):
        product = op.matmul(x, op.permute_dims(self.weight), out_dtype=self.out_dtype)
        return product if self.bias is None else product + self.bias

    def to(self, dtype=None):
        self.weight.to(dtype=dtype)
        if self.bias is not None and self.out_dtype is None:
            self.bias.to(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype


def _each(value, count):
    return [value] * count if isinstance(value, int) else list(value)


class _Convolution(Module):
    """What convolutions have in common."""

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups):
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel_size
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups

    def _make(self, weight, bias, dtype):
        self.weight = Parameter(weight, dtype)
        self.bias = Parameter((self.out_channels,), dtype) if bias else None

    def _places(self):
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}


class Conv1D(_Convolution):
    """:func:`op.conv1d` with weights ``[out_channels, in_channels / groups, kernel_size]``."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, dtype=None
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self._make((out_channels, in_channels // groups, kernel_size), bias, dtype)

    def forward(self, x):
        return op.conv1d(x, self.weight, self.bias, **self._places())


class Conv2D(_Convolution):
    """:func:`op.conv2d` with weights ``[out_channels, in_channels / groups, height, width]``."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        dtype=None,
        data_layout="NCHW",
    ):
        super().__init__(in_channels, out_channels, _each(kernel_size, 2), stride, padding, dilation, groups)
        self.data_layout = data_layout
        self._make((out_channels, in_channels // groups, *self.kernel_size), bias, dtype)

    def forward(self, x):
        return op.conv2d(x, self.weight, self.bias, data_layout=self.data_layout, **self._places())


class Conv3D(_Convolution):
    """:func:`op.conv3d` with weights ``[out_channels, in_channels / groups, depth, height, width]``."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        dtype=None,
        data_layout="NCDHW",
    ):
        super().__init__(in_channels, out_channels, _each(kernel_size, 3), stride, padding, dilation, groups)
        self.data_layout = data_layout
        self._make((out_channels, in_channels // groups, *self.kernel_size), bias, dtype)

    def forward(self, x):
        return op.conv3d(x, self.weight, self.bias, data_layout=self.data_layout, **self._places())


class ConvTranspose1D(_Convolution):
    """:func:`op.conv1d_transpose` with weights ``[in_channels, out_channels / groups, kernel_size]``."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        dilation=1,
        groups=1,
        bias=True,
        dtype=None,
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups)
        self.output_padding = output_padding
        self._make((in_channels, out_channels // groups, kernel_size), bias, dtype)

    def forward(self, x):
        return op.conv1d_transpose(x, self.weight, self.bias, output_padding=self.output_padding, **self._places())


class LayerNorm(Module):
    """:func:`op.layer_norm` over the last dimension."""

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, dtype=None):
        self.normalized_shape, self.eps, self.elementwise_affine = normalized_shape, eps, elementwise_affine
        self.weight = Parameter((normalized_shape,), dtype) if elementwise_affine else None
        self.bias = Parameter((normalized_shape,), dtype) if elementwise_affine else None

    def forward(self, x):
        return op.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(Module):
    """:func:`op.rms_norm`, and a vector that is added where ``bias`` asks for it."""

    def __init__(self, hidden_size, axes, epsilon=1e-5, bias=True, dtype=None):
        self.epsilon, self.axes = epsilon, axes
        self.weight = Parameter((hidden_size,), dtype)
        self.bias = Parameter((hidden_size,), dtype) if bias else None

    def forward(self, x):
        y = op.rms_norm(x, self.weight, self.axes, self.epsilon)
        return y if self.bias is None else op.add(y, self.bias)


class GroupNorm(Module):
    """:func:`op.group_norm`."""

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, dtype=None):
        self.num_groups, self.num_channels, self.eps = num_groups, num_channels, eps
        self.weight = Parameter((num_channels,), dtype) if affine else None
        self.bias = Parameter((num_channels,), dtype) if affine else None

    def forward(self, x, channel_axis=1, axes=None):
        return op.group_norm(x, self.num_groups, self.weight, self.bias, self.eps, channel_axis, axes)


class Embedding(Module):
    """Rows of a table: ``[num, dim]`` at indices of any shape."""

    def __init__(self, num, dim, dtype=None):
        self.num, self.dim = num, dim
        self.weight = Parameter((num, dim), dtype)

    def forward(self, x):
        if x.ndim == 1:
            return op.take(self.weight, x, axis=0)
        rows = op.take(self.weight, op.reshape(x, [-1]), axis=0)
        return op.reshape(rows, [*x.shape, self.dim])


class TimestepEmbedding(Module):
    """Two linear layers on the embedding of a time step, with a condition added before them.

    Parameters
    ----------
    in_channels, time_embed_dim : int
        The lengths of a row before and after.
    act_fn : str
        The activation between the layers: ``"silu"``.
    out_dim : int, optional
        The length of a row of the result, ``time_embed_dim`` where nothing is said.
    post_act_fn : str, optional
        The activation behind the layers: ``"silu"``.
    cond_proj_dim : int, optional
        The length of a condition's row.
    """

    def __init__(self, in_channels, time_embed_dim, act_fn="silu", out_dim=None, post_act_fn=None, cond_proj_dim=None):
        for name in (act_fn, post_act_fn):
            if name not in ("silu", None) or act_fn is None:
                raise ValueError(f"Only SiLU activations are supported, got {name!r}")
        self.linear_1 = Linear(in_channels, time_embed_dim)
        self.cond_proj = None if cond_proj_dim is None else Linear(cond_proj_dim, in_channels, bias=False)
        self.act = SiLU()
        self.linear_2 = Linear(time_embed_dim, time_embed_dim if out_dim is None else out_dim)
        self.post_act = None if post_act_fn is None else SiLU()

    def forward(self, sample, condition=None):
        if condition is not None:
            if self.cond_proj is None:
                raise ValueError("the embedding takes a condition where it was made with `cond_proj_dim`")
            sample = sample + self.cond_proj(condition)
        sample = self.linear_2(self.act(self.linear_1(sample)))
        return sample if self.post_act is None else self.post_act(sample)


class Timesteps(Module):
    """:func:`op.get_timestep_embedding`."""

    def __init__(self, num_channels, flip_sin_to_cos=False, downscale_freq_shift=1):
        self.num_channels, self.flip_sin_to_cos = num_channels, flip_sin_to_cos
        self.downscale_freq_shift = downscale_freq_shift

    def forward(self, x):
        return op.get_timestep_embedding(
            x,
            embedding_dim=self.num_channels,
            flip_sin_to_cos=self.flip_sin_to_cos,
            downscale_freq_shift=self.downscale_freq_shift,
        )


class Attention(Module):
    """Attention of diffusion models, to the states themselves or to those of an encoder.

    Parameters
    ----------
    query_dim : int
        The length of a row of the states.
    cross_attention_dim : int, optional
        That of the encoder's states.
    heads, dim_head : int
        The number of heads and the size of each.
    bias, out_bias : bool
        Whether the projections of queries, keys and values, and that of the result, add a vector.
    norm_num_groups : int, optional
        The groups of channels of a norm before the projections.
    scale_qk : bool
        Whether products are scaled by one over the root of the size.
    """

    def __init__(
        self,
        query_dim,
        cross_attention_dim=None,
        heads=8,
        dim_head=64,
        bias=False,
        norm_num_groups=None,
        out_bias=True,
        scale_qk=True,
    ):
        self.query_dim, self.heads, self.dim_head, self.bias = query_dim, heads, dim_head, bias
        self.cross_attention_dim = query_dim if cross_attention_dim is None else cross_attention_dim
        self.norm_num_groups, self.out_bias, self.scale_qk = norm_num_groups, out_bias, scale_qk
        self.scale = dim_head**-0.5 if scale_qk else 1.0
        self.inner_dim = dim_head * heads
        self.to_q = Linear(query_dim, self.inner_dim, bias=bias)
        self.to_k = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.to_v = Linear(self.cross_attention_dim, self.inner_dim, bias=bias)
        self.group_norm = None if norm_num_groups is None else GroupNorm(norm_num_groups, query_dim)
        self.to_out = ModuleList([Linear(self.inner_dim, query_dim, bias=out_bias)])

    def forward(self, hidden_states, encoder_hidden_states=None, attention_mask=None, **cross_attention_kwargs):
        if cross_attention_kwargs:
            raise TypeError(f"attention does not know {', '.join(cross_attention_kwargs)}")
        if self.group_norm is not None:
            hidden_states = self.group_norm(hidden_states, channel_axis=2, axes=[1])
        source = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        query, key, value = self.to_q(hidden_states), self.to_k(source), self.to_v(source)
        batch, length = hidden_states.shape[0], hidden_states.shape[1]
        query = op.reshape(query, [batch, length, self.heads, self.dim_head])
        key, value = (op.reshape(x, [batch, source.shape[1], self.heads, self.dim_head]) for x in (key, value))
        scale = None if self.scale_qk else self.scale
        states = op.scaled_dot_product_attention(query, key, value, attn_mask=attention_mask, scale=scale)
        return self.to_out[0](op.reshape(states, [batch, length, self.inner_dim]))


__all__ = [
    "Attention",
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Embedding",
    "GELU",
    "GroupNorm",
    "IOEffect",
    "Identity",
    "KVCache",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "TimestepEmbedding",
    "Timesteps",
]
