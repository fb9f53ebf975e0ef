"""Attention of trees of tokens, of which several continuations are tried at once."""

from ._attention_kernels import attention_ragged, tree_attention


def tree_attn_cpu(h_kv, h_q, d, dtype, rope_scaling):
    """A kernel of attention within trees, for processors.

    It takes queries, where each sequence's begin, keys, values, where those begin, positions, where each tree begins, when a walk of the
    trees enters and leaves each node (``(nodes, 2)``), and where the outputs and their ``lse`` go; then the four numbers of positions and scores.

    Parameters
    ----------
    h_kv, h_q : int
        How many heads of keys and of queries there are.
    d : int
        The size of a head.
    dtype : str
        The element type.
    rope_scaling : dict
        See :func:`~relaxide.relax.frontend.nn.llm.position_embedding.switch_rope_freq_func`.
    """
    return attention_ragged(h_kv, h_q, d, d, dtype, rope_scaling, tree=True)


def tree_attn_with_paged_kv_cache_cpu(h_kv, h_q, d, dtype, rope_scaling):
    """As :func:`tree_attn_cpu`, with keys and values in a cache, which has what comes before the trees, too."""
    return tree_attention(h_kv, h_q, d, dtype, rope_scaling)


def _for_processors(target):
    kind = str(getattr(target.kind, "name", target.kind))
    if kind not in ("llvm", "c"):
        raise NotImplementedError(f"kernels of cached attention are for processors, and not for {kind}: compile the model for 'llvm'")


def tree_attn(h_kv, h_q, d, dtype, rope_scaling, target):
    """The kernel of :func:`tree_attn_cpu` for a target; a NotImplementedError for GPUs."""
    _for_processors(target)
    return tree_attn_cpu(h_kv, h_q, d, dtype, rope_scaling)


def tree_attn_with_paged_kv_cache(h_kv, h_q, d, dtype, rope_scaling, target):
    """The kernel of :func:`tree_attn_with_paged_kv_cache_cpu` for a target; a NotImplementedError for GPUs."""
    _for_processors(target)
    return tree_attn_with_paged_kv_cache_cpu(h_kv, h_q, d, dtype, rope_scaling)


__all__ = ["tree_attn", "tree_attn_cpu", "tree_attn_with_paged_kv_cache", "tree_attn_with_paged_kv_cache_cpu"]
