"""Weights by name, saved as bytes in TVM's form."""

from pathlib import Path

from .. import _core
from ..ffi import Map


def save_param_dict(params):
    """The bytes of a dictionary from names to tensors."""
    return _core.save_params(params)


def save_param_dict_to_file(params, path):
    """Write a dictionary from names to tensors to a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict(param_bytes):
    """The dictionary from names to tensors that bytes hold."""
    return Map(_core.load_params(bytes(param_bytes)))


def load_param_dict_from_file(path):
    """The dictionary from names to tensors that a file holds."""
    return load_param_dict(Path(path).read_bytes())


def load_weights(path):
    """The dictionary from names to tensors that a file of weights holds: safetensors, or GGUF by its ending (``.gguf``).

    Numbers keep their type; what a GGUF file has in blocks of a few bits becomes float32.
    """
    return Map(_core.read_tensors(path))


__all__ = ["load_param_dict", "load_param_dict_from_file", "load_weights", "save_param_dict", "save_param_dict_to_file"]
