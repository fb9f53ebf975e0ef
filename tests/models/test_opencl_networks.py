"""Networks whose kernels are a device's of OpenCL: from the exported file, in a fresh process, they agree with ONNX Runtime.

Those in `QUICK` run always, the others under `RELAXIDE_DEEP=1`: a driver that makes a device of the processor compiles some kernels for
seconds.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

from networks import NETWORKS  # noqa: E402

#: Relative to 1 and the value.
TOLERANCE = 1e-4

QUICK = {"magika", "silero_vad_op18_ifless"}


def has_driver():
    """Asked of another process: a driver that was started here would not go on in processes that other tests fork."""
    program = "import sys, relaxide; sys.exit(not relaxide.opencl(0).exist)"
    return subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def export(model, path):
    """In a process of its own, as a user would."""
    program = (
        "import sys, onnx, relaxide\n"
        "module = relaxide.relax.frontend.onnx.from_onnx(onnx.load(sys.argv[1]))\n"
        "relaxide.compile(module, target='opencl').export_library(sys.argv[2])\n"
    )
    given = path.with_suffix(".onnx")
    given.write_bytes(model.SerializeToString())
    subprocess.run([sys.executable, "-c", program, given, path], check=True, timeout=900)
    given.unlink()


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_on_opencl_agrees_with_onnx_runtime(name, tmp_path):
    if name not in QUICK and not os.environ.get("RELAXIDE_DEEP"):
        pytest.skip("takes long: RELAXIDE_DEEP=1")
    if not has_driver():
        pytest.skip("there is no driver of OpenCL; `scripts/setup test-tools` installs one")
    model, feeds = NETWORKS[name]()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    # Some detectors do not read all that they are handed.
    feeds = [{i.name: feed[i.name] for i in session.get_inputs()} for feed in feeds]
    export(model, tmp_path / "model.so")
    given, results = tmp_path / "feeds.npz", tmp_path / "results.npz"
    np.savez(given, **{f"{n}/{place}": x for n, feed in enumerate(feeds) for place, x in enumerate(feed.values())})
    command = [sys.executable, HERE / "run_feeds.py", tmp_path / "model.so", "opencl", given, results]
    subprocess.run(command, check=True, timeout=900)

    worst, faults = 0.0, []
    with np.load(results) as found:
        for number, feed in enumerate(feeds):
            shapes = [x.shape for x in feed.values()]
            for place, theirs in enumerate(session.run(None, feed)):
                ours = found[f"{number}/{place}"]
                if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                    faults.append(f"{shapes}: {ours.dtype}{ours.shape}, not {theirs.dtype}{theirs.shape}")
                    continue
                error = (np.abs(ours - theirs) / (1 + np.abs(theirs))).max(initial=0)
                worst = max(worst, error)
                if not error <= TOLERANCE:
                    faults.append(f"{shapes}, output {place}: off by {error:.2e}")
    assert not faults, "\n".join(faults)
    print(f"{name}: off by {worst:.1e} at most, {len(feeds)} feeds")
