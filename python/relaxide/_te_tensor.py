"""Tensors of the compute language as values: their operators, their slices, and what computes them."""

import abc

from ._core import TeTensor as Tensor
from ._extend import methods_of
from .tirx import IterVar


class TensorOpBase(metaclass=abc.ABCMeta):
    """What a tensor can be operated with: other tensors and scalars, element by element, as operators of ``topi``."""

    def astype(self, dtype, span=None):
        """Its elements converted to ``dtype``."""
        from .topi import cast

        return cast(self, dtype)

    def equal(self, other, span=None):
        """Whether the one element of a tensor without dimensions is ``other``, as an expression."""
        return self().equal(other() if isinstance(other, Tensor) else other)


def _as_operator(name, reflected):
    def operate(self, other=None):
        from . import topi

        operands = (self,) if name == "negative" else (other, self) if reflected else (self, other)
        return getattr(topi, name)(*operands)

    return operate


for _name, _operator in (
    ("add", "add"),
    ("sub", "subtract"),
    ("mul", "multiply"),
    ("truediv", "divide"),
    ("floordiv", "floor_divide"),
    ("mod", "floor_mod"),
):
    setattr(TensorOpBase, f"__{_name}__", _as_operator(_operator, False))
    setattr(TensorOpBase, f"__r{_name}__", _as_operator(_operator, True))
TensorOpBase.__neg__ = _as_operator("negative", False)

# Tensors are the compiler's, so they are given what their base would hand on.
TensorOpBase.register(Tensor)
for _name, _member in list(vars(TensorOpBase).items()):
    if callable(_member) and getattr(_member, "__module__", None) == __name__:
        setattr(Tensor, _name, _member)


@methods_of(Tensor)
class _Methods:
    def __getitem__(self, indices):
        return TensorSlice(self, indices if isinstance(indices, tuple) else (indices,))._done()

    @property
    def op(self):
        """What computes it."""
        return _FORMS[self._stage_form](self)

    def expr_ty(self):
        """The type of its elements."""
        return self.dtype


class Operation:
    """What computes a tensor: its ``name``, and the axes of its elements."""

    def __init__(self, tensor):
        self._tensor = tensor

    @property
    def name(self):
        """The name of the stage."""
        return self._tensor._stage_name

    @property
    def axis(self):
        """The axes over the elements."""
        shape = self._tensor.shape
        return [IterVar((0, extent), var, IterVar.DataPar) for var, extent in zip(self._tensor._axes, shape)]

    @property
    def tag(self):
        """What kind of compute it is said to be; empty where nothing is said."""
        return self._tensor._stage_tag

    @property
    def attrs(self):
        """What is said of it, which its block has as annotations."""
        return self._tensor._stage_attrs

    @property
    def reduce_axis(self):
        """The axes that elements are combined over."""
        return self._tensor._reduce_axes

    @property
    def num_outputs(self):
        """How many tensors it computes."""
        return 1

    @property
    def input_tensors(self):
        """The tensors that it reads, each once; of a scan those that give its first elements."""
        return list(self._tensor._stage_inputs)

    def output(self, index):
        """A tensor that it computes, by its number."""
        if index != 0:
            raise IndexError(f"{self.name} has one output, not one of number {index}")
        return self._tensor

    def __repr__(self):
        return f"{type(self).__name__}({self.name})"


class PlaceholderOp(Operation):
    """What gives an input of a kernel."""


class BaseComputeOp(Operation):
    """What computes elements one by one."""


class ComputeOp(BaseComputeOp):
    """What computes elements by an expression: :func:`relaxide.te.compute`."""

    @property
    def body(self):
        """What an element is: an expression for each tensor, or the reduction of all."""
        return self._tensor._stage_body


class ScanOp(Operation):
    """What computes elements from those before them: :func:`relaxide.te.scan`."""


class ExternOp(Operation):
    """What computes tensors by a statement: :func:`relaxide.te.extern`."""

    @property
    def input_placeholders(self):
        """The buffers that the statement has for its inputs."""
        return self._tensor._written_over[0]

    @property
    def output_placeholders(self):
        """The buffers that the statement has for its outputs."""
        return self._tensor._written_over[1]


_FORMS = {"placeholder": PlaceholderOp, "compute": ComputeOp, "scan": ScanOp, "extern": ExternOp}


class TensorSlice:
    """A tensor with some of its indices: ``A[i][j]`` is ``A[i, j]``. With all of them it is the element."""

    def __init__(self, tensor, indices):
        self.tensor, self.indices = tensor, indices

    @property
    def dtype(self):
        """The type of the element."""
        return self.tensor.dtype

    def expr_ty(self):
        """The type of the element."""
        return self.tensor.dtype

    def asobject(self):
        """The element, for what takes expressions."""
        return self.tensor(*self.indices)

    def astype(self, dtype, span=None):
        """The element converted."""
        return self.asobject().astype(dtype)

    def equal(self, other, span=None):
        """Whether the element is ``other``, as an expression."""
        return self.asobject().equal(other.asobject() if isinstance(other, TensorSlice) else other)

    def _done(self):
        return self.tensor(*self.indices) if len(self.indices) == self.tensor.ndim else self

    def __getitem__(self, indices):
        return TensorSlice(self.tensor, self.indices + (indices if isinstance(indices, tuple) else (indices,)))._done()


__all__ = ["BaseComputeOp", "ComputeOp", "ExternOp", "Operation", "PlaceholderOp", "ScanOp", "Tensor", "TensorOpBase", "TensorSlice"]
