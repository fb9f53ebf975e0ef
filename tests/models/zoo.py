"""The networks that Relaxide is tested and measured on: where they are, and inputs for them.

Four come with packages from PyPI (text detection, recognition and orientation with ``rapidocr-onnxruntime``, file types
with ``magika``); ResNet-18 is built here with random weights.
"""

import functools
import importlib.util
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Callable

import numpy as np


def _package(name):
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"the package {name} is not installed: pip install {name.replace('_', '-')}")
    return pathlib.Path(spec.submodule_search_locations[0])


def _only(paths, what):
    paths = sorted(paths)
    if len(paths) != 1:
        raise FileNotFoundError(f"expected one {what}, found {[str(p) for p in paths]}")
    return paths[0]


@functools.cache
def _rapidocr(part):
    return _only((_package("rapidocr_onnxruntime") / "models").glob(f"*_{part}_infer.onnx"), f"{part} network")


@functools.cache
def _magika():
    return _only((_package("magika") / "models" / "standard_v3_3").glob("*.onnx"), "magika network")


@functools.cache
def _resnet18():
    import onnx

    import resnet18

    path = pathlib.Path(tempfile.mkdtemp(prefix="relaxide-models-")) / "resnet18.onnx"
    onnx.save(resnet18.build(), path)
    return path


def text_image(shape, seed=0):
    """White paper with printed lines, as float NCHW in -1..1, so that networks for text have something to find."""
    import cv2

    rng = np.random.default_rng(seed)
    n, _, height, width = shape
    batch = []
    for i in range(n):
        page = np.full((height, width, 3), 245, np.uint8)
        size = max(height / 160, 0.5)
        step = max(int(32 * size), 12)
        for row, y in enumerate(range(int(22 * size), height, step)):
            text = "".join(rng.choice(list("RELAXIDE tensor 0123456789 compiler"), 40))
            cv2.putText(page, text, (4 + 3 * row, y), cv2.FONT_HERSHEY_SIMPLEX, 0.7 * size, (20, 20, 30), 2)
        batch.append(page)
    noise = rng.normal(0, 2, (n, height, width, 3))
    pixels = np.clip(np.stack(batch) + noise, 0, 255).transpose(0, 3, 1, 2)
    return np.ascontiguousarray((pixels / 127.5 - 1).astype("float32"))


def random_bytes(shape, seed=0):
    """The head and tail of a file: byte values, 256 where there is none."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 257, shape, dtype="int32")


@dataclass(frozen=True)
class Model:
    """One network."""

    name: str
    #: Where its file is.
    locate: Callable[[], pathlib.Path]
    #: The name of its input.
    input: str
    #: Shapes that it is tested at.
    shapes: list
    #: Makes an input of a shape from a seed.
    make: Callable

    @property
    def path(self):
        return self.locate()

    def inputs(self):
        """One input for each shape."""
        return [self.make(shape, seed) for seed, shape in enumerate(self.shapes)]


MODELS = {
    model.name: model
    for model in [
        Model(
            "det",
            lambda: _rapidocr("det"),
            "x",
            [(1, 3, 96, 160), (1, 3, 320, 320), (2, 3, 64, 128), (1, 3, 192, 416), (1, 3, 480, 640)],
            text_image,
        ),
        Model(
            "rec",
            lambda: _rapidocr("rec"),
            "x",
            [(1, 3, 48, 96), (1, 3, 48, 160), (1, 3, 48, 320), (3, 3, 48, 200), (6, 3, 48, 320)],
            text_image,
        ),
        Model(
            "cls",
            lambda: _rapidocr("cls"),
            "x",
            [*((n, 3, 48, 192) for n in (1, 2, 3, 6, 7)), (1, 3, 32, 192), (2, 3, 33, 100)],
            text_image,
        ),
        Model("magika", _magika, "bytes", [(n, 2048) for n in (1, 2, 3, 5, 8)], random_bytes),
        Model(
            "resnet18",
            _resnet18,
            "x",
            [(1, 3, 224, 224), (2, 3, 224, 224), (1, 3, 160, 192), (1, 3, 97, 131), (3, 3, 64, 64)],
            text_image,
        ),
    ]
}
