"""What models are made of, under the name of TVM's module."""

from ._containers import ModuleDict, ModuleList, ParameterDict, ParameterList
from ._module import Effect, Module
from ._values import Object, Parameter, Tensor, get_default_dtype, set_default_dtype, wrap_nested

__all__ = [
    "Effect",
    "Module",
    "ModuleDict",
    "ModuleList",
    "Object",
    "Parameter",
    "ParameterDict",
    "ParameterList",
    "Tensor",
    "get_default_dtype",
    "set_default_dtype",
    "wrap_nested",
]
