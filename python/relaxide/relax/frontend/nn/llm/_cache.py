"""The memory of a cache of keys and values, and the functions of the virtual machine that work on it.

A cache has *places*, one for the keys and values of a token in every layer. A sequence is the list of its tokens' places. Sequences that
begin alike share places: a place is free again when no sequence has it. So nothing is copied when a sequence is forked, when tokens are
taken back, when a window slides over a sequence, or when one branch of a tree of guesses is accepted.

What a model does with it, for each batch of sequences::

    begin_forward(cache, sequences, how many tokens each gets)      # finds places and positions
        attention_with_fused_qkv(cache, layer, ...)                 # for each layer: appends, then attends
    end_forward(cache)                                              # lets windows slide
"""

from ..... import runtime
from .....ffi import register_global_func

#: Kinds of attention of a layer, and how positions get into queries and keys: the numbers of ``AttnKind`` and ``RopeMode``.
_MLA, _SLIDING = 1, 3
_NORMAL, _INLINE = 1, 2


class _Sequence:
    """The tokens of a sequence: where each is; and the last of them that are a tree which is not decided yet."""

    def __init__(self, places=()):
        self.places = list(places)
        self.window, self.sink = 0, 0
        #: How many tokens the last pass appended.
        self.appended = 0
        #: For each token of the tree, which other it follows; -1 for a root.
        self.parents = []


class _Batch:
    """What is computed once for all layers of a forward pass."""

    def __init__(self, cache, sequences, lengths, is_tree):
        self.is_tree, self.rows = is_tree, sum(lengths)
        places, indptr, queries = [], [0], [0]
        new, positions = [], []
        for sequence, length in zip(sequences, lengths):
            places += sequence.places
            indptr.append(len(places))
            queries.append(queries[-1] + length)
            new += sequence.places[len(sequence.places) - length :]
            positions += _positions(sequence, length)
        self.query_indptr, self.place_indptr, self.places = (cache.ints(values) for values in (queries, indptr, places))
        self.new, self.positions = cache.ints(new), cache.ints(positions)
        self.key_offset = cache.ints([0] * len(sequences))
        if is_tree:
            orders = [_tree_order(sequence.parents) for sequence in sequences]
            counts = [0]
            for order in orders:
                counts.append(counts[-1] + len(order))
            flat = [number for order in orders for pair in order for number in pair]
            self.tree_indptr, self.tree_order = cache.ints(counts), cache.ints(flat, (len(flat) // 2, 2))


def _positions(sequence, length):
    """The positions of a sequence's last tokens: in a tree, those at one depth have the same."""
    tokens = len(sequence.places)
    if not sequence.parents:
        return list(range(tokens - length, tokens))
    depths = []
    for parent in sequence.parents:
        depths.append(0 if parent < 0 else depths[parent] + 1)
    before = tokens - len(depths)
    return [before + depth for depth in depths[len(depths) - length :]]


def _tree_order(parents):
    """When a walk of a tree enters and leaves each node."""
    children = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    order, clock = [None] * len(parents), 0
    pending = [(node, False) for node in reversed(children.get(-1, []))]
    entered = {}
    while pending:
        node, leave = pending.pop()
        if leave:
            order[node] = (entered[node], clock)
        else:
            entered[node] = clock
            pending.append((node, True))
            pending += [(child, False) for child in reversed(children.get(node, []))]
        clock += 1
    return order


class PagedAttentionKVCache:
    """A cache for many sequences; see the module. Tensors are ``(length, heads, head size)``."""

    def __init__(self, config, layers, heads, dims, attn_kinds, rope, init, kernels):
        self._sequences_limit, tokens, self._chunk, self._page_size, self._sliding = config[:5]
        first, last = layers
        self._first_layer, self._kinds = first, list(attn_kinds)
        self._heads, self._kv_heads = heads
        self._head_dim, self._v_dim = dims
        self._rope_mode, self._rope_scale, self._rope_theta, self._factors = rope
        self._dtype, self._device, self._kernels = init.dtype, init.device, kernels
        if any(kind == _MLA for kind in self._kinds) or self._head_dim != self._v_dim:
            raise ValueError("caches of compressed keys (MLA), and of values of another size than keys, are not supported")
        if self._rope_mode == _NORMAL and self._sliding:
            raise ValueError("windows slide over keys without positions: the RoPE mode is NONE or INLINE where sliding windows are supported")
        # A page more for each sequence: windows slide when a forward pass is over.
        pages = -(-tokens // self._page_size) + self._sequences_limit
        shape = (pages, 2, self._kv_heads, self._page_size, self._head_dim)
        self._pages = [runtime.empty(shape, self._dtype, self._device) for _ in range(last - first)]
        self._places = pages * self._page_size
        self.clear()

    def clear(self):
        """Forget all sequences."""
        self._sequences, self._uses, self._batch, self._running = {}, {}, None, ()
        self._free = list(range(self._places - 1, -1, -1))

    def ints(self, values, shape=None):
        """A tensor of 32-bit integers."""
        import numpy as np

        return runtime.tensor(np.array(values, "int32").reshape(shape or (len(values),)), self._device)

    def _sequence(self, seq_id):
        if seq_id not in self._sequences:
            raise ValueError(f"The sequence {seq_id} cannot be found in KV cache; there are {sorted(self._sequences)}")
        return self._sequences[seq_id]

    def add_sequence(self, seq_id):
        """Add an empty sequence."""
        if seq_id in self._sequences:
            raise ValueError(f"The sequence {seq_id} is already in the KV cache.")
        if len(self._sequences) == self._sequences_limit:
            raise ValueError(f"the KV cache is for {self._sequences_limit} sequences: remove one before another is added")
        self._sequences[seq_id] = _Sequence()

    def remove_sequence(self, seq_id):
        """Forget a sequence."""
        self._release(self._sequence(seq_id).places)
        del self._sequences[seq_id]

    def fork_sequence(self, parent_id, child_id, position=-1):
        """Add a sequence that begins as another does: with its first tokens, all of them for -1."""
        parent = self._sequence(parent_id)
        if parent.parents:
            raise ValueError(f"the sequence {parent_id} ends in a tree: accept one of its branches before it is forked")
        count = len(parent.places) if position == -1 else position
        if not 0 <= count <= len(parent.places):
            raise ValueError(f"the sequence {parent_id} has {len(parent.places)} tokens and cannot be forked behind {position}")
        self.add_sequence(child_id)
        child = self._sequences[child_id]
        child.places = parent.places[:count]
        for place in child.places:
            self._uses[place] += 1

    def enable_sliding_window(self, seq_id, window, sink):
        """Let a window slide over a sequence: ``window`` tokens stay, among them the first ``sink`` ones."""
        if not self._sliding:
            raise ValueError("The KV cache does not support sliding window.")
        if not 0 <= sink < window:
            raise ValueError(f"a window of {window} tokens cannot keep the first {sink}: expected fewer")
        sequence = self._sequence(seq_id)
        if sequence.window:
            raise ValueError(f"A sliding window has been enabled for the sequence {seq_id} already.")
        sequence.window, sequence.sink = window, sink

    def popn(self, seq_id, count):
        """Take back the last tokens of a sequence."""
        sequence = self._sequence(seq_id)
        if not 0 <= count <= len(sequence.places):
            raise ValueError(f"the sequence {seq_id} has {len(sequence.places)} tokens, of which {count} cannot be popped")
        keep = len(sequence.places) - count
        self._release(sequence.places[keep:])
        del sequence.places[keep:]
        if sequence.parents:
            del sequence.parents[max(0, len(sequence.parents) - count) :]

    def is_empty(self):
        """Whether no token is kept."""
        return len(self._free) == self._places

    def available_pages(self):
        """How many pages are left."""
        return len(self._free) // self._page_size

    def total_length(self):
        """How many tokens all sequences have together."""
        return sum(len(sequence.places) for sequence in self._sequences.values())

    def begin_forward(self, seq_ids, lengths, parents=None):
        """Make room for the tokens that each sequence of a batch gets; ``parents`` says, for all of them, which token of the tree each
        follows."""
        if len(seq_ids) != len(lengths) or len(set(seq_ids)) != len(seq_ids):
            raise ValueError(f"sequences {list(seq_ids)} and lengths {list(lengths)} do not fit: expected a length for each sequence, once")
        if any(length <= 0 for length in lengths):
            raise ValueError(f"lengths to append are {list(lengths)}: expected positive ones")
        total, sequences = sum(lengths), [self._sequence(seq_id) for seq_id in seq_ids]
        if parents is not None and len(parents) != total:
            raise ValueError(f"{len(parents)} parents are given for {total} tokens")
        if total > len(self._free):
            raise ValueError(f"The KV cache is full: {total} tokens are to be appended, and there is room for {len(self._free)}")
        if parents is not None and self._rope_mode == _INLINE:
            raise ValueError("trees of tokens need the RoPE mode NORMAL or NONE: keys of one depth have one position")
        self._check_parents(sequences, lengths, parents)
        taken = 0
        for sequence, length in zip(sequences, lengths):
            if parents is None and sequence.parents:
                raise ValueError("a sequence ends in a tree: accept one of its branches before it gets more tokens")
            if parents is not None:
                sequence.parents += parents[taken : taken + length]
            taken += length
            sequence.places += self._take(length)
            sequence.appended = length
        self._running, self._batch = sequences, _Batch(self, sequences, lengths, parents is not None)

    @staticmethod
    def _check_parents(sequences, lengths, parents):
        taken = 0
        for sequence, length in zip(sequences, lengths) if parents is not None else ():
            known = len(sequence.parents)
            for at, parent in enumerate(parents[taken : taken + length]):
                if not -1 <= parent < known + at:
                    raise ValueError(f"token {known + at} of a tree follows {parent}: expected an earlier one, or -1")
            taken += length

    def _take(self, count):
        places = [self._free.pop() for _ in range(count)]
        self._uses.update(dict.fromkeys(places, 1))
        return places

    def _release(self, places):
        for place in places:
            self._uses[place] -= 1
            if self._uses[place] == 0:
                del self._uses[place]
                self._free.append(place)

    def end_forward(self):
        """End a forward pass: windows slide."""
        for sequence in self._running:
            surplus = len(sequence.places) - sequence.window
            if sequence.window and surplus > 0:
                gone = slice(sequence.sink, sequence.sink + surplus)
                self._release(sequence.places[gone])
                del sequence.places[gone]
        self._running, self._batch = (), None

    def commit_tree(self, seq_ids, leaves):
        """Of what the last pass appended to each sequence keep the path to a node; -1 keeps nothing.

        Nodes are counted among these tokens. Those of a tree that earlier passes appended stay, as in TVM.
        """
        for seq_id, leaf in zip(seq_ids, leaves):
            sequence = self._sequence(seq_id)
            appended = min(sequence.appended, len(sequence.parents))
            if not -1 <= leaf < appended:
                raise ValueError(f"the last pass appended {appended} tokens of a tree to the sequence {seq_id}, and no token {leaf}")
            before, path = len(sequence.places) - appended, []
            while leaf != -1:
                path.append(leaf)
                leaf = sequence.parents[leaf]
            tree = sequence.places[before:]
            kept = [tree[node] for node in reversed(path)]
            self._release([place for node, place in enumerate(tree) if node not in set(path)])
            sequence.places[before:] = kept
            sequence.parents = []

    def _forward(self):
        if self._batch is None:
            raise ValueError("attention is computed between begin_forward and end_forward")
        return self._batch

    def _layer(self, layer_id):
        if not 0 <= layer_id - self._first_layer < len(self._pages):
            raise ValueError(f"the KV cache has the layers {self._first_layer} to {self._first_layer + len(self._pages) - 1}, not {layer_id}")
        return self._pages[layer_id - self._first_layer]

    def attention_with_fused_qkv(self, layer_id, sm_scale, qkv, output):
        """Append the keys and values of a layer, and attend to all of the sequence."""
        batch, pages = self._forward(), self._layer(layer_id)
        if qkv.shape[0] != batch.rows:
            raise ValueError(f"qkv has {qkv.shape[0]} tokens, but {batch.rows} were announced to begin_forward")
        shapes = [(batch.rows, heads, self._head_dim) for heads in (self._heads, self._kv_heads, self._kv_heads)]
        q, k, v = (runtime.empty(shape, self._dtype, self._device) for shape in shapes)
        last = self._factors if self._factors is not None else int(self._rope_mode == _NORMAL)
        self._kernels["split_rotary"](qkv, batch.positions, q, k, v, last)
        self._kernels["append"](pages, k, v, batch.new)
        self._attend(layer_id, sm_scale, q, output)

    def attention_with_shared_kv(self, layer_id, sm_scale, q, output):
        """Attend to the keys and values of a layer that has been computed in this pass. Positions are put in as for that layer."""
        batch = self._forward()
        if self._rope_mode == _NORMAL:
            shapes = [(batch.rows, heads, self._head_dim) for heads in (self._heads, self._kv_heads, self._kv_heads)]
            turned, k, v = (runtime.empty(shape, self._dtype, self._device) for shape in shapes)
            fused = runtime.empty((batch.rows, self._heads + 2 * self._kv_heads, self._head_dim), self._dtype, self._device)
            fused.copyfrom(_padded(q.numpy(), fused.shape))
            self._kernels["split_rotary"](fused, batch.positions, turned, k, v, 1 if self._factors is None else self._factors)
            q = turned
        self._attend(layer_id, sm_scale, q, output)

    def _attend(self, layer_id, sm_scale, q, output, lse=None):
        batch, pages = self._forward(), self._layer(layer_id)
        lse = runtime.empty((batch.rows, self._heads), "float32", self._device) if lse is None else lse
        where = (q, batch.query_indptr, pages, batch.place_indptr, batch.places, batch.positions, output, lse)
        how = (int(self._rope_mode == _INLINE), float(self._rope_scale), float(self._rope_theta), float(sm_scale))
        sliding = self._kinds[layer_id] == _SLIDING
        if batch.is_tree:
            if sliding:
                raise ValueError(f"the layer {layer_id} has a sliding window, which trees of tokens do not go with")
            self._kernels["tree"](*where, *how, batch.tree_indptr, batch.tree_order)
        else:
            self._kernels["prefill_sliding" if sliding else "prefill"](*where, 1, *how)

    def self_attention(self, layer_id, sm_scale, q, k, v, output, lse):
        """Attend to the tokens of this pass alone."""
        batch = self._forward()
        how = (int(self._rope_mode == _INLINE), float(self._rope_scale), float(self._rope_theta), float(sm_scale))
        offsets = self.ints([len(one.places) for one in self._running])
        indptr = batch.query_indptr
        starts = self.ints([int(total - rows) for total, rows in zip(offsets.numpy(), indptr.numpy()[1:] - indptr.numpy()[:-1])])
        self._kernels["ragged"](q, indptr, k, v, indptr, batch.positions, starts, output, lse, 1, *how)

    def query_positions(self):
        """The position of each token of this pass."""
        return self._forward().positions

    def debug_get_kv(self, seq_id, start, end, k, v):
        """Read the keys and values of a sequence's tokens, those of all layers."""
        places = self._sequence(seq_id).places
        if not 0 <= start <= end <= len(places):
            raise ValueError(f"the sequence {seq_id} has {len(places)} tokens, not those from {start} to {end}")
        at = self.ints(places[start:end])
        for layer, pages in enumerate(self._pages):
            self._kernels["debug_get_kv"](pages, at, k, v, layer)


def _padded(q, shape):
    import numpy as np

    fused = np.zeros(shape, q.dtype)
    fused[:, : q.shape[1]] = q
    return fused


def _kernel(given):
    """The function of a kernel that comes with the name of how it was made, or alone; None where there is none."""
    if given is None or callable(given):
        return given
    given = list(given)
    if given and str(given[0]) != "tirx":
        raise ValueError(f"kernels of {given[0]} are not supported: expected ones that are compiled with the model, 'tirx'")
    return given[-1] if given else None


def _create(config, layers, heads, kv_heads, qk_dim, v_dim, attn_kinds, transfer, rope_mode, rope_scale, rope_theta, factors, init, *kernels):
    """Make a cache; ``kernels`` are in the order of TVM's builtin of that name."""
    if transfer:
        raise ValueError("caches are not sent to other machines: give enable_disaggregation=False")
    names = "append append_mla ragged prefill decode prefill_sliding decode_sliding tree tree_ragged mla merge split_rotary copy_page"
    names = [*names.split(), "debug_get_kv", "compact"]
    if len(kernels) != len(names):
        raise ValueError(f"a cache takes {len(names)} kernels, and {len(kernels)} are given")
    found = {name: _kernel(kernel) if name != "merge" else list(kernel)[0] for name, kernel in zip(names, kernels)}
    # Programs say "no factors" by a null value or by the number zero.
    if not isinstance(factors, runtime.Tensor):
        if factors not in (None, 0):
            raise TypeError(f"rope_ext_factors is a tensor, or 0 for none, not {factors!r}")
        factors = None
    rope = (int(rope_mode), rope_scale, rope_theta, factors)
    return PagedAttentionKVCache(
        list(config), list(layers), (heads, kv_heads), (qk_dim, v_dim), attn_kinds, rope, init, found
    )  # fmt: skip


_state, _cache = "vm.builtin.kv_state_", "vm.builtin.attention_kv_cache_"


def _begin(cache, seq_ids, lengths, parents=None):
    cache.begin_forward(list(seq_ids), list(lengths), None if parents is None else list(parents))


def _merge(cache, o_self, lse_self, o_cross, lse_cross):
    cache._kernels["merge"](o_self, lse_self, o_cross, lse_cross)
    return [o_self, lse_self]


def _no_mla(cache, *_):
    raise ValueError("caches of compressed keys (MLA) are not supported")


_FUNCTIONS = {
    "vm.builtin.paged_attention_kv_cache_create": _create,
    _state + "clear": lambda cache: cache.clear(),
    _state + "add_sequence": lambda cache, seq_id: cache.add_sequence(seq_id),
    _state + "remove_sequence": lambda cache, seq_id: cache.remove_sequence(seq_id),
    _state + "fork_sequence": lambda cache, parent, child, position=-1: cache.fork_sequence(parent, child, position),
    _state + "popn": lambda cache, seq_id, count: cache.popn(seq_id, count),
    _state + "begin_forward": _begin,
    _state + "end_forward": lambda cache: cache.end_forward(),
    _cache + "enable_sliding_window_for_seq": lambda cache, *args: cache.enable_sliding_window(*args),
    _cache + "commit_accepted_token_tree_nodes": lambda cache, ids, leaves: cache.commit_tree(list(ids), list(leaves)),
    _cache + "empty": lambda cache: cache.is_empty(),
    _cache + "get_num_available_pages": lambda cache: cache.available_pages(),
    _cache + "get_total_sequence_length": lambda cache: cache.total_length(),
    _cache + "get_query_positions": lambda cache: cache.query_positions(),
    _cache + "debug_get_kv": lambda cache, *args: cache.debug_get_kv(*args),
    _cache + "attention_with_fused_qkv": lambda cache, *args: cache.attention_with_fused_qkv(*args),
    _cache + "attention_with_shared_kv": lambda cache, layer, scale, q, k, v, out: cache.attention_with_shared_kv(layer, scale, q, out),
    _cache + "self_attention": lambda cache, *args: cache.self_attention(*args),
    _cache + "cross_attention": _no_mla,
    _cache + "append_mla_kv": _no_mla,
    _cache + "merge_attn_output_inplace": _merge,
}
for _name, _function in _FUNCTIONS.items():
    register_global_func(_name, _function, override=True)

__all__ = ["PagedAttentionKVCache"]
