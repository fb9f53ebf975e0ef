"""Kernels of attention for processors: queries of many sequences, each to its own keys and values.

All are one computation, which differs in where keys and values are and in which of them a query sees::

    for each sequence and head of keys:
        gather its keys (turned to their positions, if that is asked for) and values
        for each query of a head that goes with it:
            weights = 2 ** (scores - the largest)       # of what the query sees
            output = weights @ values / sum(weights)
            lse = log2(sum(weights)) + the largest

In a cache, ``places`` has a number for each token of a sequence: the page times the length of a page, and where the token is in it.
"""

import math

from ..... import tirx
from .....script.ir_builder import IRBuilder
from .....script.ir_builder import tirx as T
from .position_embedding import rotated

#: What no score is below.
_LOWEST = -5e4


def _int(name):
    return tirx.Var(name, "int32")


def _number(name, dtype):
    return T.arg(name, tirx.Var(name, dtype))


def _array(name, shape, dtype="int32"):
    return T.match_buffer(T.arg(name, T.handle()), shape, dtype)


class _Rotary:
    """The arguments that say whether, and how, positions are put into queries and keys on the way."""

    def __init__(self, rope_scaling, d):
        self._scaling, self._d = rope_scaling or {}, d

    def declare(self):
        """Make them the kernel's next parameters, with the scores' factor behind them."""
        self._mode = _number("rotary_mode", "int32")
        self._scale, self._theta = _number("rope_scale", "float32"), _number("rope_theta", "float32")
        self.sm_scale = _number("sm_scale", "float32")

    def store(self, buffer, indices, element, position, d):
        """Store a feature, turned to its position if that is asked for."""
        turned = rotated(element, position.astype("float32") * self._scale, d, self._d, self._theta, self._scaling)
        T.buffer_store(buffer, tirx.if_then_else(self._mode == 1, turned, element(d).astype("float32")), indices)


class _Sequence:
    """One sequence of a batch, as the kernel's expressions: its queries, and how many keys it has."""

    def __init__(self, q_indptr, b, key_count):
        self.b, self.first = b, T.bind(q_indptr[b])
        self.rows, self.length = T.bind(q_indptr[b + 1] - self.first), T.bind(key_count)


def _attend(sequence, heads, kv_heads, dims, rotary, q, output, lse, dtype, *, key, value, key_position, query_position, visible):
    """The computation for one sequence."""
    d, d_v = dims
    group, length = heads // kv_heads, sequence.length
    with T.serial(kv_heads) as head:
        keys = T.alloc_buffer((d, length), "float32")
        values = T.alloc_buffer((length, d_v), "float32")
        with T.serial(length) as j:
            with T.serial(d) as f:
                rotary.store(keys, [f, j], lambda feature: key(j, head, feature), key_position(j), f)
            with T.serial(d_v) as f:
                T.buffer_store(values, value(j, head, f).astype("float32"), [j, f])
        query, weights = T.alloc_buffer((d,), "float32"), T.alloc_buffer((length,), "float32")
        result, state = T.alloc_buffer((d_v,), "float32"), T.alloc_buffer((2,), "float32")
        with T.grid(sequence.rows, group) as (row, member):
            at, of = T.bind(sequence.first + row), T.bind(head * group + member)
            with T.serial(d) as f:
                rotary.store(query, [f], lambda feature: q[at, of, feature], query_position(at), f)
            with T.serial(length) as j:
                T.buffer_store(weights, 0.0, [j])
            with T.grid(d, length) as (f, j):
                T.buffer_store(weights, weights[j] + query[f] * keys[f, j], [j])
            _weigh(weights, state, length, rotary.sm_scale, lambda j: visible(row, j))
            with T.serial(d_v) as f:
                T.buffer_store(result, 0.0, [f])
            with T.grid(length, d_v) as (j, f):
                T.buffer_store(result, result[f] + weights[j] * values[j, f], [f])
            # A query that sees nothing has no output, and weighs nothing in what it is merged with.
            with T.serial(d_v) as f:
                share = tirx.if_then_else(state[1] > 0.0, result[f] / state[1], tirx.const(0.0, "float32"))
                T.buffer_store(output, share.astype(dtype), [at, of, f])
            T.buffer_store(lse, tirx.if_then_else(state[1] > 0.0, state[0] + tirx.log2(state[1]), tirx.const(_LOWEST, "float32")), [at, of])


def _weigh(weights, state, length, sm_scale, visible):
    """Make scores weights; ``state`` is the largest score and the weights' sum."""
    T.buffer_store(state, _LOWEST, [0])
    T.buffer_store(state, 0.0, [1])
    with T.serial(length) as j:
        T.buffer_store(weights, weights[j] * sm_scale * math.log2(math.e), [j])
        with T.If(visible(j)):
            with T.Then():
                T.buffer_store(state, tirx.max(state[0], weights[j]), [0])
    with T.serial(length) as j:
        T.buffer_store(weights, tirx.if_then_else(visible(j), tirx.exp2(weights[j] - state[0]), tirx.const(0.0, "float32")), [j])
        T.buffer_store(state, state[1] + weights[j], [1])


def _name(symbol):
    T.func_name(symbol)
    T.func_attr({"tirx.is_scheduled": True, "global_symbol": symbol})


def _paged(symbol, h_kv, h_q, d, dtype, rope_scaling, page_size, *, causal, tree, window):
    """Attention to the keys and values of a cache."""
    rotary = _Rotary(rope_scaling, d)
    with IRBuilder() as builder:
        with T.prim_func():
            _name(symbol)
            batch, rows, pages, count = _int("batch_plus_1"), _int("total_len"), _int("num_pages"), _int("num_places")
            q = _array("q", (rows, h_q, d), dtype)
            q_indptr = _array("q_indptr", (batch,))
            cache = _array("pages", (pages, 2, h_kv, page_size, d), dtype)
            place_indptr, places = _array("place_indptr", (batch,)), _array("places", (count,))
            q_position = _array("q_rope_position", (rows,))
            output, lse = _array("output", (rows, h_q, d), dtype), _array("lse", (rows, h_q), "float32")
            masked = _number("causal", "int32") if causal else None
            rotary.declare()
            if tree:
                tree_indptr = _array("tree_order_indptr", (batch,))
                order = _array("tree_order", (_int("tree_len"), 2))
            with T.serial(batch - 1) as b:
                first = T.bind(place_indptr[b])
                one = _Sequence(q_indptr, b, place_indptr[b + 1] - first)
                before = T.bind(one.length - one.rows)
                if tree:
                    start = T.bind(tree_indptr[b])
                    nodes = T.bind(tree_indptr[b + 1] - start)

                def visible(row, j):
                    if tree:
                        return _is_ancestor(order, start, one.length - nodes, before + row, j)
                    seen = [tirx.any(masked == 0, j <= before + row)]
                    return tirx.all(*seen, j > before + row - window) if window else seen[0]

                def element(which):
                    return lambda j, head, f: cache[places[first + j] // page_size, which, head, places[first + j] % page_size, f]

                _attend(
                    one, h_q, h_kv, (d, d), rotary, q, output, lse, dtype, key=element(0), value=element(1),
                    key_position=lambda j: j, query_position=lambda at: q_position[at], visible=visible,
                )  # fmt: skip
    return builder.get()


def _is_ancestor(order, start, before, row, j):
    """Whether a token comes before the tree, or is a node that the row's node is below, or that node itself.

    ``order`` has for each node when a walk of the tree enters and leaves it.
    """
    node, mine = start + tirx.max(j - before, 0), start + tirx.max(row - before, 0)
    inside = tirx.all(order[node, 0] <= order[mine, 0], order[mine, 1] <= order[node, 1])
    return tirx.any(j < before, inside)


def attention_prefill(h_kv, h_q, d, dtype, sliding_window, rope_scaling, page_size=16, sliding_window_size=0):
    """Attention of many queries a sequence. With ``sliding_window``, a query sees the last ``sliding_window_size`` keys, itself among
    them; 0 are all."""
    symbol = "batch_prefill_paged_kv_cpu" + ("_sliding_window" if sliding_window else "")
    window = sliding_window_size if sliding_window else 0
    return _paged(symbol, h_kv, h_q, d, dtype, rope_scaling, page_size, causal=True, tree=False, window=window)


def tree_attention(h_kv, h_q, d, dtype, rope_scaling, page_size=16):
    """Attention of the nodes of a tree of tokens, which see their ancestors and what comes before the tree."""
    return _paged("tree_attn_paged_kv_cpu", h_kv, h_q, d, dtype, rope_scaling, page_size, causal=False, tree=True, window=0)


def attention_ragged(h_kv, h_q, d_qk, d_v, dtype, rope_scaling, *, tree=False):
    """Attention to keys and values that lie one sequence after the other, without a cache."""
    rotary = _Rotary(rope_scaling, d_qk)
    with IRBuilder() as builder:
        with T.prim_func():
            _name("batch_tree_attn" if tree else "batch_prefill_ragged_kv")
            batch, rows, count = _int("batch_plus_1"), _int("qo_len"), _int("kv_len")
            q = _array("q", (rows, h_q, d_qk), dtype)
            q_indptr = _array("q_indptr", (batch,))
            k, v = _array("k", (count, h_kv, d_qk), dtype), _array("v", (count, h_kv, d_v), dtype)
            kv_indptr = _array("kv_indptr", (batch,))
            q_position = _array("q_rope_position", (rows,))
            if tree:
                tree_indptr, order = _array("mn_indptr", (batch,)), _array("mask", (_int("tree_size"), 2))
            else:
                k_offset = _array("k_rope_pos_offset", (batch - 1,))
            output, lse = _array("output", (rows, h_q, d_v), dtype), _array("lse", (rows, h_q), "float32")
            masked = None if tree else _number("causal", "int32")
            rotary.declare()
            with T.serial(batch - 1) as b:
                first = T.bind(kv_indptr[b])
                one = _Sequence(q_indptr, b, kv_indptr[b + 1] - first)
                before = T.bind(one.length - one.rows)
                start = T.bind(tree_indptr[b]) if tree else None

                def visible(row, j):
                    if tree:
                        return _is_ancestor(order, start, 0, before + row, j)
                    return tirx.any(masked == 0, j <= before + row)

                _attend(
                    one, h_q, h_kv, (d_qk, d_v), rotary, q, output, lse, dtype,
                    key=lambda j, head, f: k[first + j, head, f], value=lambda j, head, f: v[first + j, head, f],
                    key_position=lambda j: q_position[first + j] if tree else k_offset[b] + j,
                    query_position=lambda at: q_position[at], visible=visible,
                )  # fmt: skip
    return builder.get()


def merge_state(dtype):
    """Two outputs of attention for the same queries as one: the first is written over."""
    with IRBuilder() as builder:
        with T.prim_func():
            _name("merge_state_inplace_cpu")
            n, h, d = _int("N"), _int("H"), _int("D")
            v, s = _array("v", (n, h, d), dtype), _array("s", (n, h), "float32")
            other, other_s = _array("v_other", (n, h, d), dtype), _array("s_other", (n, h), "float32")
            with T.grid(n, h) as (row, head):
                largest = T.bind(tirx.max(s[row, head], other_s[row, head]))
                mine, theirs = (T.bind(tirx.exp2(one[row, head] - largest)) for one in (s, other_s))
                total = T.bind(mine + theirs)
                with T.serial(d) as f:
                    parts = ((value[row, head, f].astype("float32"), part) for value, part in ((v, mine), (other, theirs)))
                    both = sum(value * part for value, part in parts)
                    T.buffer_store(v, (both / total).astype(dtype), [row, head, f])
                T.buffer_store(s, tirx.log2(total) + largest, [row, head])
    return builder.get()


__all__ = ["attention_prefill", "attention_ragged", "merge_state", "tree_attention"]
