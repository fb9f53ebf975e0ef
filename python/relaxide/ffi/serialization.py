"""Values as JSON and back. What is shared stays shared: the text describes a graph."""

from . import _ffi_api


def to_json_graph_str(obj, metadata=None):
    """The text of a value, and of all that it refers to."""
    return _ffi_api.ToJSONGraphString(obj, metadata)


def from_json_graph_str(json_str):
    """The value of a text."""
    return _ffi_api.FromJSONGraphString(json_str)


__all__ = ["from_json_graph_str", "to_json_graph_str"]
