"""Caches of keys and values, in a compiled model, against attention that is written out."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.relax.frontend import nn
from relaxide.relax.frontend.nn.llm.kv_cache import FlashInferPagedKVCache, PagedKVCache, RopeMode, TIRPagedKVCache
from relaxide.relax.frontend.nn.llm.position_embedding import llama_rope, switch_rope_freq_func

HEADS, KV_HEADS, D, SCALE = 4, 2, 8, 8**-0.5
_NO_PARAMETERS = {"$": {"param_mode": "none", "effect_mode": "none"}}


def _cache(rope_mode, *numbers, factors=None):
    factors = relax.op.null_value() if factors is None else factors
    return TIRPagedKVCache(
        "mha", *numbers, relax.ShapeExpr([0, 1]), 1, HEADS, KV_HEADS, D, D, 0, 0, rope_mode, 1, 10000, {}, factors, D, False,
        "float32", tvm.target.Target("llvm"),
    )  # fmt: skip


class Attention(nn.Module):
    def create_1(self, max_batch, max_total, chunk, page, sliding):
        return _cache(RopeMode.NORMAL, max_batch, max_total, chunk, page, sliding)

    def create_2(self, max_batch, max_total, chunk, page, sliding):
        return _cache(RopeMode.INLINE, max_batch, max_total, chunk, page, sliding)

    def create_with_zero_for_factors(self, max_batch, max_total, chunk, page, sliding):
        return _cache(RopeMode.NORMAL, max_batch, max_total, chunk, page, sliding, factors=tvm.tirx.IntImm("int64", 0))

    def attend(self, qkv, cache):
        return cache.attention_with_fused_qkv(0, qkv, HEADS, SCALE)


@pytest.fixture(scope="module")
def machine():
    numbers = {name: int for name in ("max_batch", "max_total", "chunk", "page", "sliding")}
    qkv = nn.spec.Tensor(["b", "n", HEADS + 2 * KV_HEADS, D], "float32")
    spec = {
        **{f"create_{mode}": {**numbers, **_NO_PARAMETERS} for mode in (RopeMode.NORMAL, RopeMode.INLINE, "with_zero_for_factors")},
        "attend": {"qkv": qkv, "cache": nn.spec.Object(object_type=PagedKVCache), **_NO_PARAMETERS},
    }
    mod, _ = Attention().export_tvm(spec)
    return relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())


def _state(name):
    return tvm.get_global_func(f"vm.builtin.kv_state_{name}")


def _cache_function(name):
    return tvm.get_global_func(f"vm.builtin.attention_kv_cache_{name}")


def _turned(x, positions):
    frequency = 1e4 ** -(np.arange(0, D, 2) / D)
    angle = np.concatenate([np.outer(positions, frequency)] * 2, axis=1)[:, None]
    half = np.concatenate([-x[..., D // 2 :], x[..., : D // 2]], axis=-1)
    return np.cos(angle) * x + np.sin(angle) * half


class Sequences:
    """A cache, and beside it all keys and values as arrays."""

    def __init__(self, machine, mode, sliding=0):
        self.machine, self.rng = machine, np.random.default_rng(0)
        self.cache = machine[f"create_{mode}"](*(tvm.runtime.ShapeTuple([number]) for number in (8, 64, 32, 16, sliding)))
        self.kept, self.mode = {}, mode

    def add(self, *ids):
        for one in ids:
            _state("add_sequence")(self.cache, one)
            self.kept[one] = np.zeros((0, 2 * KV_HEADS, D))

    def step(self, lengths, parents=None):
        """Append tokens, and compare the outputs."""
        _state("begin_forward")(self.cache, tvm.runtime.ShapeTuple(list(lengths)), tvm.runtime.ShapeTuple(list(lengths.values())), parents)
        qkv = self.rng.standard_normal((1, sum(lengths.values()), HEADS + 2 * KV_HEADS, D)).astype("float32")
        out = self.machine["attend"](tvm.runtime.tensor(qkv), self.cache).numpy()[0]
        _state("end_forward")(self.cache)
        at = 0
        for one, length in lengths.items():
            part, before = qkv[0, at : at + length], len(self.kept[one])
            self.kept[one] = np.concatenate([self.kept[one], part[:, HEADS:]])
            sees, depth = _visible(before, length, parents[at : at + length] if parents is not None else None)
            expected = self._attention(part[:, :HEADS], self.kept[one], before + depth[before:] - before, depth, sees)
            np.testing.assert_allclose(out[at : at + length], expected, rtol=1e-4, atol=1e-4)
            at += length

    def _attention(self, q, kept, positions, key_positions, sees):
        q, k = _turned(q, positions), _turned(kept[:, :KV_HEADS], key_positions)
        k, v = (np.repeat(x, HEADS // KV_HEADS, axis=1) for x in (k, kept[:, KV_HEADS:]))
        scores = np.where(sees[None], np.einsum("qhd,khd->hqk", q, k) * SCALE, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("hqk,khd->qhd", weights / weights.sum(-1, keepdims=True), v)


def _visible(before, length, parents):
    """What each new token sees, and the positions of all."""
    sees = np.tril(np.ones((length, before + length), bool), before)
    positions = np.arange(before + length)
    if parents is not None:
        sees[:, before:] = np.eye(length, dtype=bool)
        for at, parent in enumerate(parents):
            if parent >= 0:
                sees[at, before:] |= sees[parent, before:]
            positions[before + at] = before if parent < 0 else positions[before + parent] + 1
    return sees, positions


@pytest.mark.parametrize("mode", [RopeMode.NORMAL, RopeMode.INLINE])
def test_sequences_of_a_batch_attend_to_their_own_tokens(machine, mode):
    sequences = Sequences(machine, mode)
    sequences.add(0, 1)
    for lengths in ({0: 5}, {1: 3, 0: 2}, {0: 1, 1: 1}):
        sequences.step(lengths)


def test_zero_stands_for_no_factors_of_positions(machine):
    sequences = Sequences(machine, "with_zero_for_factors")
    sequences.add(0)
    for count in (5, 1):
        sequences.step({0: count})


def test_forks_share_places_and_popped_tokens_are_gone(machine):
    sequences = Sequences(machine, RopeMode.NORMAL)
    sequences.add(0)
    sequences.step({0: 6})
    _state("fork_sequence")(sequences.cache, 0, 1, 4)
    sequences.kept[1] = sequences.kept[0][:4]
    sequences.step({0: 2, 1: 3})
    assert _cache_function("get_total_sequence_length")(sequences.cache) == 15
    _state("popn")(sequences.cache, 1, 2)
    sequences.kept[1] = sequences.kept[1][:-2]
    _state("remove_sequence")(sequences.cache, 0)
    sequences.step({1: 1})
    _state("remove_sequence")(sequences.cache, 1)
    assert _cache_function("empty")(sequences.cache)


def test_the_accepted_branch_of_a_tree_stays(machine):
    sequences = Sequences(machine, RopeMode.NORMAL)
    sequences.add(0)
    sequences.step({0: 3})
    sequences.step({0: 5}, tvm.runtime.ShapeTuple([-1, 0, 0, 1, 2]))
    with pytest.raises(ValueError, match="accept one of its branches"):
        _state("begin_forward")(sequences.cache, tvm.runtime.ShapeTuple([0]), tvm.runtime.ShapeTuple([1]), None)
    _cache_function("commit_accepted_token_tree_nodes")(sequences.cache, tvm.runtime.ShapeTuple([0]), tvm.runtime.ShapeTuple([4]))
    sequences.kept[0] = sequences.kept[0][[0, 1, 2, 3, 5, 7]]
    sequences.step({0: 2})


def test_a_window_slides_and_the_first_tokens_stay(machine):
    sequences = Sequences(machine, RopeMode.INLINE, sliding=1)
    sequences.add(0)
    _cache_function("enable_sliding_window_for_seq")(sequences.cache, 0, 6, 2)
    for length in (4, 5, 1, 3):
        sequences.step({0: length})
        kept = sequences.kept[0]
        sequences.kept[0] = np.concatenate([kept[:2], kept[2 + max(0, len(kept) - 6) :]])


def test_what_does_not_fit_is_refused_and_changes_nothing(machine):
    sequences = Sequences(machine, RopeMode.NORMAL)
    sequences.add(0)
    begin = _state("begin_forward")
    with pytest.raises(ValueError, match="The KV cache is full: 1000 tokens"):
        begin(sequences.cache, tvm.runtime.ShapeTuple([0]), tvm.runtime.ShapeTuple([1000]), None)
    with pytest.raises(ValueError, match="sequence 3 cannot be found"):
        begin(sequences.cache, tvm.runtime.ShapeTuple([0, 3]), tvm.runtime.ShapeTuple([1, 1]), None)
    with pytest.raises(ValueError, match="already in the KV cache"):
        sequences.add(0)
    with pytest.raises(ValueError, match="does not support sliding window"):
        _cache_function("enable_sliding_window_for_seq")(sequences.cache, 0, 6, 2)
    with pytest.raises(NotImplementedError, match="make a TIRPagedKVCache"):
        FlashInferPagedKVCache()
    sequences.step({0: 2})


def test_rotary_positions_of_a_layer():
    class Rope(nn.Module):
        def forward(self, qkv, total):
            return llama_rope(qkv, total, 1e4, 1.0, 2, 1, {"rope_type": "default"})

    shape = nn.spec.Tensor([1, 3, 4, D], "float32")
    mod, _ = Rope().export_tvm({"forward": {"qkv": shape, "total": int, **_NO_PARAMETERS}})
    qkv = np.random.default_rng(1).standard_normal((1, 3, 4, D)).astype("float32")
    q, k, v = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())["forward"](tvm.runtime.tensor(qkv), tvm.runtime.ShapeTuple([10]))
    np.testing.assert_allclose(q.numpy()[0], _turned(qkv[0, :, :2], np.arange(7, 10)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(k.numpy()[0], _turned(qkv[0, :, 2:3], np.arange(7, 10)), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(v.numpy()[0], qkv[0, :, 3:])


def test_positions_are_scaled_as_models_say():
    _LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    for scaling in (
        {"rope_type": "llama3", **_LLAMA3},
        {"rope_type": "llama4", **_LLAMA3},
        {"rope_type": "gptj"},
        {"rope_type": "longrope", "max_position_embeddings": 64, "original_max_position_embeddings": 32},
        {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 32, "beta_fast": 32, "beta_slow": 1, "inv_theta_log_scale": 0.05},
    ):
        cos, sin, values = switch_rope_freq_func(scaling)(tvm.tirx.Var("s", "float32"), tvm.tirx.Var("d", "int32"), 64, 1e4, "float32")
        assert str(cos.dtype) == str(sin.dtype) == "float32" and values
    with pytest.raises(ValueError, match="Unsupported RoPE scaling type: su"):
        switch_rope_freq_func({"rope_type": "su"})
    with pytest.raises(ValueError, match="needs low_freq_factor"):
        switch_rope_freq_func({"rope_type": "llama3", "factor": 8.0})
