"""The voice detectors of silero-vad agree with ONNX Runtime: branches on ranks and rates, LSTMs, state from call to call."""

import importlib.util
import pathlib

import numpy as np
import onnx
import onnxruntime
import pytest

import relaxide as tvm

#: The package is found, not imported: it wants PyTorch, and its files are all that is needed.
DATA = pathlib.Path(importlib.util.find_spec("silero_vad").origin).parent / "data"

#: Of the largest output.
TOLERANCE = 1e-4

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape).astype("float32")


def rate(hertz):
    return np.array(hertz, "int64")


def frames(*shapes):
    return [{"input": numbers(b, n), "state": numbers(2, b, 128), "sr": rate(r)} for b, n, r in shapes]


MODELS = {
    "silero_vad": frames((1, 576, 16000), (4, 576, 16000), (2, 512, 16000), (1, 288, 8000), (3, 256, 8000)),
    "silero_vad_16k_op15": frames((1, 576, 16000), (3, 576, 16000), (2, 512, 16000)),
    "silero_vad_16k_sequence": [
        {"input": numbers(n, 576), "h": numbers(1, 1, 128), "c": numbers(1, 1, 128)} for n in (1, 2, 50)
    ],
    "silero_vad_half": frames((1, 576, 16000), (3, 576, 16000), (2, 512, 16000)),
    "silero_vad_op18_ifless": frames((1, 576, 16000), (4, 576, 16000), (1, 288, 8000), (3, 288, 8000)),
    "silero_vad_openvino_16k": frames((1, 576, 16000)),
}


@pytest.fixture(scope="module", params=MODELS)
def detector(request):
    path = str(DATA / f"{request.param}.onnx")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    executable = tvm.compile(tvm.relax.frontend.onnx.from_onnx(onnx.load(path)), target="llvm")
    return request.param, session, tvm.relax.VirtualMachine(executable, tvm.cpu())


def test_agrees_with_onnx_runtime(detector):
    name, session, machine = detector
    names = [i.name for i in session.get_inputs()]
    worst = 0.0
    for feed in MODELS[name]:
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
    feed = frames((1, 1024, 16000))[0]
    with pytest.raises(Exception, match="LSTM.*the input has 5 axes, not 3"):
        machine["main"](*[tvm.runtime.tensor(feed[n]) for n in ("input", "state", "sr")])
