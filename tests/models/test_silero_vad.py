"""The voice detectors of silero-vad agree with ONNX Runtime: branches on ranks and rates, LSTMs, state from call to call."""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import relaxide as tvm

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import silero  # noqa: E402

#: Of the largest output.
TOLERANCE = 1e-4


@pytest.fixture(scope="module", params=silero.MODELS)
def detector(request):
    path = str(silero.path(request.param))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    executable = tvm.compile(tvm.relax.frontend.onnx.from_onnx(onnx.load(path)), target="llvm")
    return request.param, session, tvm.relax.VirtualMachine(executable, tvm.cpu())


def test_agrees_with_onnx_runtime(detector):
    name, session, machine = detector
    names = [i.name for i in session.get_inputs()]
    worst = 0.0
    for feed in silero.MODELS[name]:
        wanted = session.run(None, {n: feed[n] for n in names})
        got = machine["main"](*[tvm.runtime.tensor(feed[n]) for n in names])
        for g, w in zip(got, wanted, strict=True):
            assert g.numpy().shape == w.shape
            worst = max(worst, np.abs(g.numpy() - w).max() / np.abs(w).max())
    print(f"{name}: off by {worst:.1e} of the largest output")
    assert worst <= TOLERANCE


def test_frames_that_the_network_cannot_take_fail_with_the_operator_and_the_reason(detector):
    name, _, machine = detector
    if name not in ("silero_vad", "silero_vad_16k_op15"):
        return
    feed = silero.frames((1, 1024, 16000))[0]
    with pytest.raises(Exception, match="LSTM.*the input has 5 axes, not 3"):
        machine["main"](*[tvm.runtime.tensor(feed[n]) for n in ("input", "state", "sr")])
