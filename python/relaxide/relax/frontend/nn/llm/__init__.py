"""What language models need beyond layers: rotary positions, and caches of keys and values that many sequences share.

A cache is made in the model, and its values are appended and attended to by its methods::

    cache = llm.kv_cache.TIRPagedKVCache(...)
    ...
    out = cache.attention_with_fused_qkv(layer_id, qkv, num_qo_heads, sm_scale)

Its memory is managed by functions called ``vm.builtin.attention_kv_cache_…`` and ``vm.builtin.kv_state_…``, which are Python: they are there
in processes that import this package. The kernels are compiled with the model, for processors.
"""

from . import kv_cache, position_embedding
from .kv_cache import PagedKVCache
from .position_embedding import llama_rope
from .tree_attn import tree_attn

__all__ = ["PagedKVCache", "kv_cache", "llama_rope", "position_embedding", "tree_attn"]
