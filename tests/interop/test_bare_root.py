"""The command in a root that holds nothing but itself and the libraries it is linked to: no compiler, linker or shell."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "models"))

import zoo  # noqa: E402

COMMAND = HERE.parents[1] / "build" / "relaxide"


def enter(root):
    """What puts a command into a root: root may, others may within a namespace of their own where the system allows it."""
    plain = [shutil.which("chroot") or "/usr/sbin/chroot", str(root)]
    if os.geteuid() == 0:
        return plain
    allowed = subprocess.run(["unshare", "--map-root-user", "true"], capture_output=True).returncode == 0
    return [shutil.which("unshare"), "--map-root-user", *plain] if allowed else pytest.skip("neither root nor namespaces are allowed here")


def bare_root(root):
    """Fills a folder with the command and its libraries, at the places where the loader looks for them."""
    linked = subprocess.run(["ldd", COMMAND], capture_output=True, text=True, check=True).stdout
    for library in map(pathlib.Path, re.findall(r"(/\S+) \(", linked)):
        place = root / library.relative_to("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library.resolve(), place)
    shutil.copy(COMMAND.resolve(), root / "relaxide")
    programs = [path for path in root.rglob("*") if path.is_file() and ".so" not in path.name]
    assert programs == [root / "relaxide"]


@pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)")
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
