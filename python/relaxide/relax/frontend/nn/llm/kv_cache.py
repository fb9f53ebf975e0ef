"""Caches of keys and values as models see them."""

import enum
import math

from ....block_builder import BlockBuilder
from ....expr import ShapeExpr, Tuple, TupleGetItem, prim_value
from ....op import call_dps_packed, call_pure_packed, zeros
from ....type import AnyType, TensorType, TupleType
from .....ir.prim import StringImm
from ..core import Object, Tensor
from ._attention_kernels import attention_prefill, attention_ragged, merge_state
from ._page_kernels import compact_copy, copy_single_page, debug_get_kv, transpose_append
from .position_embedding import llama_rope_with_position_map
from .tree_attn import _for_processors, tree_attn, tree_attn_cpu, tree_attn_with_paged_kv_cache, tree_attn_with_paged_kv_cache_cpu

_BUILTIN = "vm.builtin.attention_kv_cache_"


class AttnKind(enum.IntEnum):
    """What a layer's attention is like."""

    MHA = 0
    MLA = 1
    LINEAR_ATTN = 2
    MHA_SLIDING = 3


class RopeMode(enum.IntEnum):
    """When rotary positions are put in: not at all, before keys are kept, or each time they are attended to."""

    NONE = 0
    NORMAL = 1
    INLINE = 2


class PagedKVCache(Object):
    """A cache of keys and values, which many sequences share. Tensors are ``(batch, length, heads, head size)``."""

    extern_mods = []

    def _call(self, name, args, out):
        """A call of a function that takes where its outputs go."""
        builder = BlockBuilder.current()
        return builder.emit(call_dps_packed(_BUILTIN + name, [self._expr, *args], out_ty=out))

    def attention_with_fused_qkv(self, layer_id, qkv, num_qo_heads, sm_scale):
        """Append a layer's keys and values, and attend to all that is kept.

        Parameters
        ----------
        layer_id : int
            The layer.
        qkv : Tensor
            Queries, keys and values, one after the other along the heads. Positions are put in here.
        num_qo_heads : int
            How many heads are queries.
        sm_scale : float
            The factor of scores.
        """
        b, s, heads, d = qkv._expr.ty.shape
        rows = qkv.reshape(b * s, heads, d)
        args = [prim_value(layer_id), prim_value(sm_scale), rows._expr]
        out = self._call("attention_with_fused_qkv", args, TensorType((b * s, num_qo_heads, d), qkv.dtype))
        return Tensor(_expr=out).reshape(b, s, num_qo_heads, d)

    def attention_with_shared_kv(self, source_layer_id, q, current_k, current_v, sm_scale):
        """Attend to what another layer keeps, which has been computed before in this pass."""
        b, s, heads, d = q._expr.ty.shape
        _, _, kv_heads, d_v = current_v._expr.ty.shape
        rows = [q.reshape(b * s, heads, d), current_k.reshape(b * s, kv_heads, d), current_v.reshape(b * s, kv_heads, d_v)]
        args = [prim_value(source_layer_id), prim_value(sm_scale), *(one._expr for one in rows)]
        out = self._call("attention_with_shared_kv", args, TensorType((b * s, heads, d_v), q.dtype))
        return Tensor(_expr=out).reshape(b, s, heads, d_v)

    def self_attention(self, layer_id, q, k, v, sm_scale):
        """Attend to the tokens of this pass alone: the output, and the logarithm (of base 2) of the sum of weights of each query."""
        b, s, heads, d = q._expr.ty.shape
        _, _, kv_heads, d_v = v._expr.ty.shape
        rows = [q.reshape(b * s, heads, d), k.reshape(b * s, kv_heads, d), v.reshape(b * s, kv_heads, d_v)]
        args = [prim_value(layer_id), prim_value(sm_scale), *(one._expr for one in rows)]
        return self._with_lse(self._call("self_attention", args, _outputs(b * s, heads, d_v, q.dtype)), (b, s, heads, d_v))

    def cross_attention(self, layer_id, q, v_head_dim, sm_scale):
        """Attend to what was kept before this pass. Caches of compressed keys have it, which are refused when they are made."""
        b, s, heads, d = q._expr.ty.shape
        args = [prim_value(layer_id), prim_value(sm_scale), q.reshape(b * s, heads, d)._expr]
        return self._with_lse(self._call("cross_attention", args, _outputs(b * s, heads, v_head_dim, q.dtype)), (b, s, heads, v_head_dim))

    @staticmethod
    def _with_lse(pair, shape):
        out, lse = (Tensor(_expr=BlockBuilder.current().emit(TupleGetItem(pair, at))) for at in (0, 1))
        return out.reshape(*shape), lse.reshape(*shape[:3])

    def append_mla_kv(self, layer_id, kv):
        """Append compressed keys. Caches of them are refused when they are made."""
        b, s, _, d = kv._expr.ty.shape
        args = [self._expr, prim_value(layer_id), kv.reshape(b * s, d)._expr]
        return PagedKVCache(_expr=call_pure_packed(_BUILTIN + "append_mla_kv", *args, ty_args=AnyType()), _name="paged_kv_cache")

    def merge_attn_output_inplace(self, o_self_attn, lse_self_attn, o_cross_attn, lse_cross_attn):
        """Two outputs for the same queries as one; the first two tensors are written over."""
        b, s, heads, d = o_self_attn._expr.ty.shape
        flat = [
            *(o_self_attn.reshape(b * s, heads, d), lse_self_attn.reshape(b * s, heads)),
            *(o_cross_attn.reshape(b * s, heads, d), lse_cross_attn.reshape(b * s, heads)),
        ]
        exprs = [one._expr for one in flat]
        types = TupleType([exprs[0].ty, exprs[1].ty])
        pair = BlockBuilder.current().emit(call_pure_packed(_BUILTIN + "merge_attn_output_inplace", self._expr, *exprs, ty_args=types))
        return self._with_lse(pair, (b, s, heads, d))

    def get_query_positions(self, total_length):
        """The position of each of the ``total_length`` tokens of this pass."""
        call = call_pure_packed(_BUILTIN + "get_query_positions", self._expr, ty_args=TensorType((total_length,), "int32"))
        return Tensor(_expr=BlockBuilder.current().emit(call))


def _outputs(rows, heads, d, dtype):
    return [TensorType((rows, heads, d), dtype), TensorType((rows, heads), "float32")]


class FlashInferPagedKVCache(PagedKVCache):
    """A cache whose kernels are FlashInfer's, which are for one vendor's GPUs."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("FlashInfer's kernels are not called: make a TIRPagedKVCache, whose kernels are compiled with the model")


class TIRPagedKVCache(PagedKVCache):
    """A cache whose kernels are compiled with the model, for processors.

    Parameters
    ----------
    attn_kind : str or list of str
        ``"mha"`` or ``"mha_sliding"`` for all layers or for each.
    max_batch_size, max_total_seq_len, prefill_chunk_size : Var
        How many sequences there are at most, how many tokens they have together, and how many a pass appends.
    page_size : int or Var
        How many tokens a page has: 16.
    support_sliding_window : Var
        Whether (1) windows may slide over sequences.
    layer_partition : ShapeExpr
        The first layer, and the one behind the last.
    num_hidden_layers, num_attention_heads, num_key_value_heads : int
        How many layers, heads of queries, and heads of keys there are.
    qk_head_dim, v_head_dim : int
        The size of a head: the same.
    mla_original_qk_head_dim, mla_original_v_head_dim : int
        Not used: compressed keys are refused.
    rope_mode : RopeMode
        When positions are put in.
    rope_scale, rope_theta : float
        A factor of positions, and the base of frequencies.
    rope_scaling : dict
        See :func:`~relaxide.relax.frontend.nn.llm.position_embedding.switch_rope_freq_func`.
    rope_ext_factors : Expr
        Factors of frequencies, for ``longrope``: a tensor; a null value or the number 0 for none.
    rotary_dim : int
        How many features of a head are turned.
    enable_disaggregation : bool
        False: caches are not sent to other machines.
    dtype : str
        The element type.
    target : Target
        What the model is compiled for; a NotImplementedError for GPUs.
    layer_sliding_window_size : int
        How many keys a query of a layer with a window sees.
    """

    def __init__(
        self,
        attn_kind,
        max_batch_size,
        max_total_seq_len,
        prefill_chunk_size,
        page_size,
        support_sliding_window,
        layer_partition,
        num_hidden_layers,
        num_attention_heads,
        num_key_value_heads,
        qk_head_dim,
        v_head_dim,
        mla_original_qk_head_dim,
        mla_original_v_head_dim,
        rope_mode,
        rope_scale,
        rope_theta,
        rope_scaling,
        rope_ext_factors,
        rotary_dim,
        enable_disaggregation,
        dtype,
        target,
        name="paged_kv_cache",
        *,
        layer_sliding_window_size=1024,
    ):
        _for_processors(target)
        each = list(attn_kind) if isinstance(attn_kind, (list, tuple)) else [attn_kind] * num_hidden_layers
        if unknown := [kind for kind in each if kind not in ("mha", "mha_sliding")]:
            raise ValueError(f"{unknown[0]} is not supported in TIR kernels: layers are 'mha' or 'mha_sliding'")
        scaling = _with_theta(rope_scaling, rope_theta)
        kernels = _kernels(
            num_hidden_layers, num_attention_heads, num_key_value_heads, qk_head_dim, dtype, scaling, layer_sliding_window_size, rope_theta, rope_scale, rotary_dim
        )  # fmt: skip
        config = [max_batch_size, max_total_seq_len, prefill_chunk_size, page_size, support_sliding_window, layer_sliding_window_size]
        numbers = [num_attention_heads, num_key_value_heads, qk_head_dim, v_head_dim]
        args = [
            *(ShapeExpr(config), layer_partition, *map(prim_value, numbers), ShapeExpr([int(AttnKind[kind.upper()]) for kind in each])),
            *(prim_value(int(bool(enable_disaggregation))), prim_value(int(rope_mode)), prim_value(rope_scale), prim_value(rope_theta)),
            *(rope_ext_factors, zeros((), dtype), *kernels),
        ]
        made = call_pure_packed("vm.builtin.paged_attention_kv_cache_create", *args, ty_args=AnyType())
        super().__init__(_expr=made, _name=name)


def _kernels(layers, heads, kv_heads, d, dtype, scaling, window, theta, scale, rotary_dim):
    """The kernels of a cache, as functions of the module that is built, in the order in which a cache is given them."""
    builder = BlockBuilder.current()

    def compiled(kernel, name):
        return builder.add_func(kernel, name)

    def tagged(kernel, name):
        return Tuple([StringImm("tirx"), compiled(kernel, name)])

    prefill = tagged(attention_prefill(kv_heads, heads, d, dtype, False, scaling), "tir_attention_prefill_cpu")
    sliding = tagged(attention_prefill(kv_heads, heads, d, dtype, True, scaling, sliding_window_size=window), "tir_attention_sliding_cpu")
    return [
        compiled(transpose_append(kv_heads, d, dtype), "kv_cache_transpose_append"),
        Tuple([]),
        tagged(attention_ragged(kv_heads, heads, d, d, dtype, scaling), "tir_attention_prefill_ragged_cpu"),
        *(prefill, prefill, sliding, sliding),
        tagged(tree_attn_with_paged_kv_cache_cpu(kv_heads, heads, d, dtype, scaling), "tir_attention_tree_cpu"),
        tagged(tree_attn_cpu(kv_heads, heads, d, dtype, scaling), "tir_attention_tree_ragged_cpu"),
        Tuple([]),
        Tuple([compiled(merge_state(dtype), "tir_attention_merge_state_cpu")]),
        compiled(llama_rope_with_position_map(theta, scale, d, heads, kv_heads, dtype, scaling, rotary_dim), "tir_split_rotary"),
        Tuple([]),
        compiled(debug_get_kv(layers, kv_heads, d, dtype), "kv_cache_debug_get_kv"),
        Tuple([]),
    ]


def _with_theta(rope_scaling, rope_theta):
    """The configuration of positions, with what YaRN computes of the base of frequencies."""
    scaling = dict(rope_scaling or {})
    if scaling.get("rope_type") == "yarn" and rope_theta is not None:
        scaling.setdefault("inv_theta_log_scale", 1.0 / (2 * math.log(float(rope_theta))))
    return scaling


def _attention_prefill_cpu(num_kv_heads, num_qo_heads, head_dim, dtype, sliding_window, rope_scaling, page_size=16, sliding_window_size=0):
    return attention_prefill(num_kv_heads, num_qo_heads, head_dim, dtype, sliding_window, rope_scaling, page_size, sliding_window_size)


def _attention_decode_cpu(num_kv_heads, num_qo_heads, head_dim, qkv_dtype, sliding_window, rope_scaling, page_size=16):
    return attention_prefill(num_kv_heads, num_qo_heads, head_dim, qkv_dtype, sliding_window, rope_scaling, page_size)


_attention_prefill_ragged_cpu, _merge_state_inplace_cpu = attention_ragged, merge_state
_kv_cache_transpose_append, _kv_cache_debug_get_kv = transpose_append, debug_get_kv
_copy_single_page_cpu, _compact_kv_copy_cpu = copy_single_page, compact_copy

__all__ = ["AttnKind", "FlashInferPagedKVCache", "PagedKVCache", "RopeMode", "TIRPagedKVCache", "llama_rope_with_position_map"]
__all__ += ["tree_attn", "tree_attn_cpu", "tree_attn_with_paged_kv_cache", "tree_attn_with_paged_kv_cache_cpu"]
