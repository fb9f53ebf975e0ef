"""Modules as text in databases: base64 of a length and of the graph that ``save_json`` writes."""

import base64
import json
import struct

from ...ir import load_json, save_json


def to_text(mod):
    """A module as text."""
    graph = save_json(mod).encode()
    return base64.b64encode(struct.pack("<Q", len(graph)) + graph).decode()


def from_text(text):
    """The module of a text, which TVM may have written."""
    try:
        raw = base64.b64decode(text, validate=True)
        (length,) = struct.unpack_from("<Q", raw)
        graph = raw[8 : 8 + length].decode()
        is_of_tvm = "relaxide_version" not in json.loads(graph).get("metadata", {"relaxide_version": None})
    except (ValueError, struct.error, AttributeError) as error:
        raise ValueError(f"the module of a workload is base64 of its graph: {error}") from None
    if is_of_tvm:
        from ._tvm_graph import module_of

        return module_of(json.loads(graph))
    return load_json(graph)


__all__ = ["from_text", "to_text"]
