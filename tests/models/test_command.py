"""Every network that comes with a package: compiled by the command, run by it in fresh processes from the library alone.

The ONNX file is gone by the time that the library runs, and whatever the compiler kept is not named to it: results are those of the library
and of nothing else. They agree with ONNX Runtime's at several shapes.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

HERE = pathlib.Path(__file__).parent
COMMAND = HERE.parents[1] / "build" / "relaxide"
sys.path.insert(0, str(HERE))

from networks import NETWORKS  # noqa: E402

#: Of the largest number of an output.
TOLERANCE = 1e-4

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)")


#: Those whose files or weights come with a package.
PACKAGED = [name for name in NETWORKS if name not in ("resnet18", "mobilenetv2", "llama")]


def relaxide(*arguments):
    """Runs the command, which must succeed."""
    # Kernels that other tests compiled are for the compiler alone.
    names = ("PATH", "HOME", "RELAXIDE_CACHE")[: 3 if arguments[0] == "compile" else 2]
    environment = {name: os.environ[name] for name in names if name in os.environ}
    result = subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=600, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


@pytest.mark.parametrize("name", PACKAGED)
def test_the_exported_file_alone_agrees_with_onnx_runtime(name, tmp_path):
    model, feeds = NETWORKS[name]()
    onnx.save(model, tmp_path / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", options, providers=["CPUExecutionProvider"])
    relaxide("compile", tmp_path / "model.onnx", "-o", tmp_path / "model.so", "-q")
    (tmp_path / "model.onnx").unlink()

    worst, faults = 0.0, []
    for number, feed in enumerate(feeds):
        # Some detectors do not read all that they are handed.
        feed = {i.name: feed[i.name] for i in session.get_inputs()}
        given = []
        for place, x in enumerate(feed.values()):
            np.save(tmp_path / f"{place}.npy", x)
            given += ["--input", tmp_path / f"{place}.npy"]
        result = tmp_path / f"{number}.npz"
        relaxide("run", tmp_path / "model.so", *given, "--output", result)
        shapes = [x.shape for x in feed.values()]
        with np.load(result) as got:
            assert sorted(got) == sorted(output.name for output in session.get_outputs())
            for output, theirs in zip(session.get_outputs(), session.run(None, feed), strict=True):
                ours = got[output.name]
                if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                    faults.append(f"{shapes}: {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}")
                    continue
                error = np.abs(ours - theirs).max() / np.abs(theirs).max()
                worst = max(worst, error)
                if not error <= TOLERANCE:
                    faults.append(f"{shapes}: off by {error:.2e} of the largest number")
    assert not faults, "\n".join(faults)
    print(f"{name}: off by {worst:.1e} of the largest number, {len(feeds)} shapes")
