"""The examples run, and what they compute is right."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import relaxide as tvm

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
for folder in ("decoder", "dynamic_batch", "sentence_embedding", "voice_activity"):
    sys.path.append(str(EXAMPLES / folder))


def run(*command, **environment):
    """What a command prints; it must succeed."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ | environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def machine(path):
    return tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """The folder in which the example of dynamic batches leaves its model."""
    folder = tmp_path_factory.mktemp("classifier")
    printed = run(sys.executable, EXAMPLES / "dynamic_batch" / "dynamic_batch.py", "--build", folder)
    assert "batch of 64" in printed and "(64, 10)" in printed
    return folder


@pytest.fixture(scope="module")
def of_grey(classifier):
    """ONNX Runtime's classes of two grey images."""
    session = onnxruntime.InferenceSession(classifier / "classifier.onnx", providers=["CPUExecutionProvider"])
    return session.run(None, {"image": np.full((2, 3, 32, 32), 0.5, "float32")})[0]


def test_one_file_serves_every_batch(classifier):
    session = onnxruntime.InferenceSession(classifier / "classifier.onnx", providers=["CPUExecutionProvider"])
    main = machine(classifier / "classifier.so")["main"]
    for batch in (1, 3, 16):
        images = np.random.default_rng(batch).random((batch, 3, 32, 32), "float32")
        ours, theirs = main(tvm.runtime.tensor(images)).numpy(), session.run(None, {"image": images})[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_a_program_in_c_runs_the_file(classifier, of_grey, tmp_path):
    run("cargo", "build", "--quiet", "--release", "--package", "relaxide-capi", "--manifest-path", ROOT / "Cargo.toml")
    libraries, program = ROOT / "target" / "release", tmp_path / "classify"
    flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-I", ROOT / "crates" / "capi" / "include"]
    source = EXAMPLES / "c" / "classify.c"
    run("cc", *flags, "-o", program, source, "-L", libraries, "-lrelaxide_runtime")
    printed = run(program, classifier / "classifier.so", LD_LIBRARY_PATH=str(libraries))
    assert printed == f"class {of_grey[0].argmax()} of 10, with {of_grey[0].max():.3f}\n"


def test_a_program_in_rust_compiles_and_runs(classifier, of_grey, tmp_path):
    llvm = run(ROOT / "scripts" / "llvm-version").strip()
    # As `make test` builds it: for the crate alone, cargo would compile all that it stands on once more.
    built = ["--workspace", "--example", "compile_and_run", "--no-default-features", "--features", f"llvm{llvm}"]
    prefix = {f"LLVM_SYS_{llvm}1_PREFIX": f"/usr/lib/llvm-{llvm}"}
    run("cargo", "build", "--quiet", "--release", *built, "--manifest-path", ROOT / "Cargo.toml", **prefix)
    program = ROOT / "target" / "release" / "examples" / "compile_and_run"
    printed = run(program, classifier / "classifier.onnx", tmp_path / "classifier.so")
    shape, values = printed.strip().split("] [")
    assert shape == "[2, 10"
    np.testing.assert_allclose(np.fromstring(values.rstrip("]"), sep=","), of_grey.ravel(), rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def embedding(tmp_path_factory):
    """The folder in which the example of sentences leaves its model."""
    folder = tmp_path_factory.mktemp("embedding")
    printed = run(sys.executable, EXAMPLES / "sentence_embedding" / "embed.py", "--build", folder)
    lines = printed.splitlines()
    train = next(i for i, line in enumerate(lines) if "Our train was" in line)
    assert "The railway apologises" in lines[train + 1]
    return folder


def test_sentences_agree_with_onnx_runtime(embedding):
    session = onnxruntime.InferenceSession(embedding / "minilm.onnx", providers=["CPUExecutionProvider"])
    main = machine(embedding / "minilm.so")["main"]
    rng = np.random.default_rng(0)
    for batch, length in ((1, 5), (3, 17), (2, 128), (7, 1)):
        ids = rng.integers(1000, 30000, (batch, length))
        counts = (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype("int64")
        feed = {"input_ids": ids, "token_type_ids": np.zeros_like(ids), "attention_mask": counts}
        ours, theirs = main(*map(tvm.runtime.tensor, feed.values())).numpy(), session.run(None, feed)[0]
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4 * np.abs(theirs).max())


def test_speech_is_found_where_onnx_runtime_finds_it(tmp_path):
    import detect

    printed = run(sys.executable, EXAMPLES / "voice_activity" / "detect.py", "--build", tmp_path)
    session = onnxruntime.InferenceSession(detect.network_file(), providers=["CPUExecutionProvider"])

    def theirs(frame, state, rate):
        feed = {"input": frame.numpy(), "state": state.numpy(), "sr": rate.numpy()}
        return [tvm.runtime.tensor(result) for result in session.run(None, feed)]

    samples, rate = detect.read(EXAMPLES / "voice_activity" / "speech.wav")
    ours = detect.probabilities(detect.compiled(tmp_path), samples, rate)
    expected = detect.probabilities(theirs, samples, rate)
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-4)
    assert printed.count("speech from") == len(detect.pieces(expected)) > 1


def test_a_cache_changes_nothing_but_the_work():
    import decoder

    config = decoder.Config(layers=2, longest=64)
    module = decoder.Decoder(config, decoder.weights(config)).build()
    main = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())["main"]
    text = np.random.default_rng(1).integers(0, config.vocabulary, 12)
    whole, *_ = main(tvm.runtime.tensor(text), *decoder.empty(config))
    logits, *caches = main(tvm.runtime.tensor(text[:7]), *decoder.empty(config))
    for token in text[7:]:
        logits, *caches = main(tvm.runtime.tensor(np.array([token])), *caches)
    assert caches[0].numpy().shape == (config.kv_heads, len(text), config.head)
    np.testing.assert_allclose(logits.numpy(), whole.numpy(), rtol=1e-4, atol=1e-5)
