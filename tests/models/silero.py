"""The voice detectors of silero-vad: where their files are, and speech-like noise for them."""

import importlib.util
import pathlib

import numpy as np


def path(name):
    """Where a detector's file is. The package is found, not imported: it wants PyTorch, and its files are all that is needed."""
    spec = importlib.util.find_spec("silero_vad")
    if spec is None:
        raise FileNotFoundError("the detectors come with a package: pip install --no-deps silero-vad")
    return pathlib.Path(spec.origin).parent / "data" / f"{name}.onnx"


_RNG = np.random.default_rng(0)


def numbers(*shape):
    return _RNG.standard_normal(shape).astype("float32")


def rate(hertz):
    return np.array(hertz, "int64")


def frames(*shapes):
    """Feeds of batch × samples at a rate, with a state."""
    return [{"input": numbers(b, n), "state": numbers(2, b, 128), "sr": rate(r)} for b, n, r in shapes]


#: Feeds for each detector.
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
