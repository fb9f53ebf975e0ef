"""ONNX models in Relay: the one importer there is gives Relax, which becomes Relay (:func:`from_relax`)."""

from ...relax.frontend.onnx import from_onnx as _to_relax
from .relax import from_relax


def from_onnx(model, shape=None, dtype="float32", opset=None, freeze_params=True, convert_config=None, **options):
    """``(module, weights)`` of an ONNX model. Weights are constants unless ``freeze_params`` is false.

    What the importer writes in operators that Relay does not have is refused, with their names.
    """
    known = {name: list(dims) for name, dims in (shape or {}).items()}
    program = _to_relax(model, known, opset=opset, **options)
    return from_relax(program, constants=freeze_params)


__all__ = ["from_onnx"]
