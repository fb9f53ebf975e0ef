"""A decoder whose caches are handed from run to run, on ONNX Runtime's interface: the values are ONNX Runtime's, whichever way they are handed on."""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import relaxide.onnxruntime as door

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
import llama  # noqa: E402

TOKENS = 12


@pytest.fixture(scope="module")
def model():
    return llama.build().SerializeToString()


def begun(batch):
    caches = np.random.default_rng(batch).standard_normal((2 * llama.LAYERS, batch, llama.KV_HEADS, 5, llama.HEAD)).astype("float32")
    names = [f"past_{part}{layer}" for layer in range(llama.LAYERS) for part in ("key", "value")]
    return dict(zip(names, caches))


def tokens(batch, step):
    return np.full((batch, 1), (7 * step + 3) % llama.VOCABULARY, "int64")


def by_arrays(runtime, session, batch):
    feed, names = begun(batch), [output.name for output in session.get_outputs()]
    for step in range(TOKENS):
        logits, *caches = session.run(None, {"tokens": tokens(batch, step), **feed})
        feed = {f"past_{name}": cache for name, cache in zip(names[1:], caches)}
        yield logits, caches


def by_values(runtime, session, batch):
    value, names = runtime.OrtValue.ortvalue_from_numpy, [output.name for output in session.get_outputs()]
    feed = {name: value(cache) for name, cache in begun(batch).items()}
    for step in range(TOKENS):
        logits, *caches = session.run_with_ort_values(names, {"tokens": value(tokens(batch, step)), **feed})
        feed = {f"past_{name}": cache for name, cache in zip(names[1:], caches)}
        yield logits.numpy(), [cache.numpy() for cache in caches]


def by_binding(runtime, session, batch):
    value, names = runtime.OrtValue.ortvalue_from_numpy, [output.name for output in session.get_outputs()]
    feed = {name: value(cache) for name, cache in begun(batch).items()}
    for step in range(TOKENS):
        binding = session.io_binding()
        binding.bind_cpu_input("tokens", tokens(batch, step))
        for name, cache in feed.items():
            binding.bind_ortvalue_input(name, cache)
        for name in names:
            binding.bind_output(name)
        session.run_with_iobinding(binding)
        logits, *caches = binding.get_outputs()
        feed = {f"past_{name}": cache for name, cache in zip(names[1:], caches)}
        yield logits.numpy(), [cache.numpy() for cache in caches]


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("way", [by_arrays, by_values, by_binding])
def test_caches_are_those_of_onnx_runtime(model, way, batch):
    ours, theirs = (runtime.InferenceSession(model, providers=["CPUExecutionProvider"]) for runtime in (door, onnxruntime))
    for (logits, caches), (logits_there, caches_there) in zip(way(door, ours, batch), way(onnxruntime, theirs, batch)):
        np.testing.assert_allclose(logits, logits_there, rtol=1e-3, atol=1e-4)
        for cache, there in zip(caches, caches_there):
            np.testing.assert_allclose(cache, there, rtol=1e-3, atol=1e-4)


def test_a_cache_whose_memory_is_asked_for_is_compact_and_its_own(model):
    session = door.InferenceSession(model, providers=["CPUExecutionProvider"])
    value, names = door.OrtValue.ortvalue_from_numpy, [output.name for output in session.get_outputs()]
    feed = {name: value(cache) for name, cache in begun(2).items()}
    _, first, *rest = session.run_with_ort_values(names, {"tokens": value(tokens(2, 0)), **feed})
    before = first.numpy()
    shared = np.from_dlpack(first)
    assert shared.flags.c_contiguous and first.data_ptr() == shared.ctypes.data
    first.update_inplace(np.zeros_like(before))
    feed = {f"past_{name}": cache for name, cache in zip(names[1:], [first, *rest])}
    _, longer, *_ = session.run_with_ort_values(names, {"tokens": value(tokens(2, 1)), **feed})
    assert not longer.numpy()[:, :, :-1].any()
