"""Roots that hold next to nothing: no compiler, linker or shell.

In one the command compiles and runs a model, with itself and the libraries that it is linked to. In the others a compiled model
runs alone: as one static program, without even a loader, and as a library with the runtime's and what these two are linked to.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent / "models"), str(ROOT / "examples" / "sentence_embedding")]

import minilm  # noqa: E402
import zoo  # noqa: E402

COMMAND = ROOT / "build" / "relaxide"
built = pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)")


def enter(root):
    """What puts a command into a root: root may, others may within a namespace of their own where the system allows it."""
    plain = [shutil.which("chroot") or "/usr/sbin/chroot", str(root)]
    if os.geteuid() == 0:
        return plain
    allowed = subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True).returncode == 0
    return [shutil.which("unshare"), "--map-root-user", *plain] if allowed else pytest.skip("neither root nor namespaces are allowed here")


def copy_linked(program, root):
    """Copies what a program is linked to, at the places where the loader looks for it."""
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for library in map(pathlib.Path, re.findall(r"(/\S+) \(", linked)):
        place = root / library.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.resolve(), place)


def bare_root(root):
    """Fills a folder with the command and its libraries."""
    copy_linked(COMMAND, root)
    shutil.copy(COMMAND.resolve(), root / "relaxide")
    programs = [path for path in root.rglob("*") if path.is_file() and ".so" not in path.name]
    assert programs == [root / "relaxide"]


@built
def test_a_model_is_compiled_and_run_without_tools(tmp_path):
    root, model = tmp_path / "root", zoo.MODELS["cls"]
    root.mkdir()
    bare_root(root)
    shutil.copy(model.path, root / "model.onnx")
    x = model.inputs()[0]
    np.save(root / "x.npy", x)

    def relaxide(*arguments):
        run = [*enter(root), "/relaxide", *arguments]
        result = subprocess.run(run, capture_output=True, text=True, timeout=300, env={"PATH": "/nowhere"})
        assert result.returncode == 0, result.stderr[-3000:]

    relaxide("compile", "/model.onnx", "--output", "/model.so")
    relaxide("run", "/model.so", "--input", "/x.npy", "--output", "/y")
    session = onnxruntime.InferenceSession(model.path, providers=["CPUExecutionProvider"])
    [expected] = session.run(None, {model.input: x})
    np.testing.assert_allclose(np.load(root / "y.npy"), expected, rtol=1e-4, atol=1e-5)


def call(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-1000:] + result.stderr[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def runtime():
    """The folder with the runtime's libraries."""
    call("cargo", "build", "--quiet", "--release", "--package", "relaxide-capi", "--manifest-path", ROOT / "Cargo.toml")
    return ROOT / "target" / "release"


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    """MiniLM as a file, with feeds of several shapes and what ONNX Runtime makes of them."""
    path = tmp_path_factory.mktemp("sentences") / "minilm.onnx"
    onnx.save(minilm.build(), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    rng, cases = np.random.default_rng(0), []
    for batch, length in ((1, 7), (3, 33), (2, 128)):
        ids = rng.integers(0, 30_000, (batch, length))
        mask = (np.arange(length) < rng.integers(1, length + 1, (batch, 1))).astype("int64")
        feed = {"input_ids": ids, "token_type_ids": 0 * ids, "attention_mask": mask}
        cases.append((feed, session.run(None, feed)[0]))
    return path, cases


def check_in_root(root, command, cases):
    """Runs a runner in a root once for each case and compares what it writes."""
    (root / "results").mkdir()
    for feed, expected in cases:
        words = []
        # By name, so that their order does not matter.
        for name, x in sorted(feed.items()):
            np.save(root / f"{name}.npy", x)
            words.append(f"{name}=/{name}.npy")
        printed = call(*enter(root), *command, "-t", "1", "-o", "/results", *words)
        assert printed == f"wrote /results/embedding.npy: {expected.size} elements\n"
        got = np.load(root / "results" / "embedding.npy")
        assert got.shape == expected.shape and got.dtype == expected.dtype
        assert np.abs(got - expected).max() <= 1e-4 * np.abs(expected).max()


FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-I", ROOT / "crates" / "capi" / "include", ROOT / "examples" / "c" / "run.c"]


@built
@pytest.mark.parametrize("weights", ["inside", "beside", "elsewhere"])
def test_a_model_is_one_static_program_in_an_empty_root(weights, tmp_path, runtime, sentences):
    path, cases = sentences
    root = tmp_path / "root"
    root.mkdir()
    place = [] if weights == "inside" else ["--weights", "safetensors"]
    call(COMMAND, "compile", path, "-o", tmp_path / "model.o", "--prefix", "model_", "--quiet", *place)
    model = [tmp_path / "model.o", runtime / "librelaxide_runtime.a", "-lm"]
    call("cc", "-static", "-s", '-DMODEL="model_"', *FLAGS, *model, "-o", root / "sentences")
    assert os.listdir(root) == ["sentences"]
    command = ["/sentences"]
    if weights != "inside":
        assert (root / "sentences").stat().st_size < 20_000_000
        shutil.move(tmp_path / "model.safetensors", root / ("model.safetensors" if weights == "beside" else "weights"))
    if weights == "elsewhere":
        command += ["-w", "/weights"]
    assert "not a dynamic executable" in subprocess.run(["ldd", root / "sentences"], capture_output=True, text=True).stderr
    check_in_root(root, command, cases)


@built
def test_a_model_needs_the_runtime_and_nothing_else(tmp_path, runtime, sentences):
    path, cases = sentences
    root = tmp_path / "root"
    root.mkdir()
    call(COMMAND, "compile", path, "-o", root / "model.so", "--quiet")
    libraries = root / "usr" / "lib"
    libraries.mkdir(parents=True)
    shutil.copy(runtime / "librelaxide_runtime.so", libraries)
    call("cc", *FLAGS, f"-L{libraries}", "-lrelaxide_runtime", "-o", root / "relaxide-run")
    for program in ("relaxide-run", "model.so", "usr/lib/librelaxide_runtime.so"):
        copy_linked(root / program, root)
    names = {re.split(r"[.-]", path.name)[0] for path in root.rglob("*") if path.is_file()}
    assert names <= {"relaxide", "model", "librelaxide_runtime", "libc", "libm", "libgcc_s", "ld"}, names
    check_in_root(root, ["/relaxide-run", "/model.so"], cases)
