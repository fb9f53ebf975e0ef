"""Networks as they are run whole from their exported files, with several feeds each, whose shapes differ."""

import pathlib
import sys

import numpy as np
import onnx

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "examples" / "sentence_embedding")]

import llama  # noqa: E402
import minilm  # noqa: E402
import mobilenetv2  # noqa: E402
import silero  # noqa: E402
import zoo  # noqa: E402


def of_zoo(name):
    model = zoo.MODELS[name]
    return onnx.load(model.path), [{model.input: x} for x in model.inputs()]


def of_silero(name):
    return onnx.load(silero.path(name)), silero.MODELS[name]


def of_minilm():
    """Texts of several lengths, padded to the longest."""
    rng, feeds = np.random.default_rng(0), []
    for batch, length in ((1, 1), (1, 9), (3, 32), (5, 17), (2, 128)):
        ids = rng.integers(0, 30_000, (batch, length))
        lengths = np.maximum(rng.integers(1, length + 1, (batch, 1)), length if batch == 1 else 1)
        mask = (np.arange(length) < lengths).astype("int64")
        feeds.append({"input_ids": ids * mask, "token_type_ids": 0 * ids, "attention_mask": mask})
    return minilm.build(), feeds


def of_mobilenetv2():
    shapes = ((1, 3, 96, 96), (2, 3, 64, 96), (1, 3, 71, 133))
    return mobilenetv2.build(), [{"x": zoo.text_image(shape, seed)} for seed, shape in enumerate(shapes)]


#: Functions of nothing that give a network as a model of ONNX, and what it is called with: dicts of arrays by name.
NETWORKS = {
    **{name: lambda name=name: of_zoo(name) for name in zoo.MODELS},
    **{name: lambda name=name: of_silero(name) for name in silero.MODELS},
    "minilm": of_minilm,
    "mobilenetv2": of_mobilenetv2,
    "llama": lambda: (llama.build(), llama.feeds()),
}
