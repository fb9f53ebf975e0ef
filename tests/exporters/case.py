"""A file of an exporter with inputs for it, kept in a folder between the program that writes it and the one that tries it.

The tools that write files need much that the tests of every change do not have, so they run in a Python of their own. Inputs are
JSON: for each run by name an element type, a shape and the elements, or a map.
"""

import json
from pathlib import Path

import numpy as np


def _written(value):
    if isinstance(value, dict):
        return {"map": value}
    value = np.asarray(value)
    kind = "str" if value.dtype.kind in "OUS" else str(value.dtype)
    return {"dtype": kind, "shape": list(value.shape), "data": value.ravel().tolist()}


def _read(value):
    if "map" in value:
        return value["map"]
    kind = object if value["dtype"] == "str" else value["dtype"]
    return np.array(value["data"], dtype=kind).reshape(value["shape"])


def _bare(message):
    """Takes out what only says where a model was written: texts for people, and places in the source."""
    for field, value in message.ListFields():
        if field.name in ("doc_string", "metadata_props"):
            message.ClearField(field.name)
        elif field.message_type:
            for part in [value] if hasattr(value, "ListFields") else value:
                _bare(part)


def save(folder, name, model, feeds):
    """Keeps a model (bytes, or a message of `onnx`) and inputs by name, each for one run."""
    import onnx

    model = onnx.load_from_string(model) if isinstance(model, bytes) else model
    _bare(model)
    model = model.SerializeToString()
    Path(folder).mkdir(parents=True, exist_ok=True)
    Path(folder, f"{name}.onnx").write_bytes(model)
    written = [{key: _written(value) for key, value in feed.items()} for feed in feeds]
    Path(folder, f"{name}.json").write_text(json.dumps(written))


def load(folder):
    """Names, models and inputs of a folder."""
    for path in sorted(Path(folder).glob("*.onnx")):
        feeds = json.loads(path.with_suffix(".json").read_text())
        yield path.stem, path.read_bytes(), [{key: _read(value) for key, value in feed.items()} for feed in feeds]
