"""Models written as modules, in the manner of PyTorch's, and exported as programs of Relax.

A module is a class with parameters and modules as attributes; its methods compute with :mod:`~relaxide.relax.frontend.nn.op` on
tensors whose shapes are known (symbolic where a specification names them)::

    from relaxide.relax.frontend import nn

    class Net(nn.Module):
        def __init__(self):
            self.fc1 = nn.Linear(784, 256)
            self.fc2 = nn.Linear(256, 10)

        def forward(self, x):
            return self.fc2(nn.op.relu(self.fc1(x)))

    mod, params = Net().export_tvm({"forward": {"x": nn.spec.Tensor(["n", 784], "float32")}})
"""

from . import op, spec
from .core import Effect, Module, ModuleDict, ModuleList, Object, Parameter, ParameterDict, ParameterList, Tensor
from .core import get_default_dtype, set_default_dtype, wrap_nested
from .exporter import add_extern
from .extern import ExternModule, ObjectModule, SourceModule
from .modules import Conv1D, Conv2D, Conv3D, ConvTranspose1D, Embedding, GELU, GroupNorm, IOEffect, KVCache, LayerNorm, Linear
from .modules import RMSNorm, ReLU, SiLU
from .op import *  # noqa: F403
from .op import __all__ as _operators
from .subroutine import SubroutineMixin
from .visitor import Mutator

__all__ = [
    *_operators,
    "Conv1D",
    "Conv2D",
    "Conv3D",
    "ConvTranspose1D",
    "Effect",
    "Embedding",
    "ExternModule",
    "GELU",
    "GroupNorm",
    "IOEffect",
    "KVCache",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Mutator",
    "Object",
    "ObjectModule",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "ReLU",
    "SiLU",
    "SourceModule",
    "SubroutineMixin",
    "Tensor",
    "add_extern",
    "get_default_dtype",
    "op",
    "set_default_dtype",
    "spec",
    "wrap_nested",
]
