from typing import Any

from . import common as common, nn as nn, onnx as onnx, torch as torch
from .common import detach_params as detach_params

def __getattr__(name: str) -> Any: ...
