"""Quantized operators, as ``relay.qnn.op``."""

from .op import qnn as op

__all__ = ["op"]
