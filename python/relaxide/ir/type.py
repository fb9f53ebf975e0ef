"""Types: what expressions evaluate to, as far as the compiler knows."""

from collections.abc import Sequence
from typing import Any

from ..ffi import dtype as _dtype
from ..ffi import register_object
from . import _api
from .base import Node, Scriptable, structural_equal, structural_hash


class Type(Node, Scriptable):
    """The base of all types. Two types are equal if they have the same structure."""

    @staticmethod
    def missing():
        """The type of what inference has not visited."""
        return _api.ir.MissingType()

    Missing = missing

    @property
    def span(self):
        """Where it stands in a source; types keep none."""
        return None

    def is_missing(self):
        """Whether inference has not visited it."""
        return isinstance(self, MissingType)

    def __eq__(self, other):
        return isinstance(other, Type) and bool(structural_equal(self, other))

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return structural_hash(self, True)

    def is_base_of(self, derived):
        """Whether every value of the other type is one of this type."""
        from ..relax.analysis import BaseCheckResult, type_base_check

        return type_base_check(self, derived) == BaseCheckResult.PASS


@register_object("ir.MissingType")
class MissingType(Type):
    """The type of what inference has not visited."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_api.ir.MissingType)


@register_object("ir.PrimType")
class PrimType(Type):
    """The type of a scalar."""

    def __init__(self, dtype: Any) -> None:
        self.__init_handle_by_constructor__(_api.ir.PrimType, _dtype(dtype))

    def matches_code(self, *codes):
        """Whether its elements are of one of the codes of DLPack (0 signed, 1 unsigned, 2 floating)."""
        return any(self.dtype.type_code == int(code) for code in codes)

    def matches_element_type(self, code, bits):
        """Whether its elements are of a code of DLPack and a number of bits."""
        return self.dtype.type_code == int(code) and self.dtype.bits == bits

    def is_scalar(self):
        """Whether it has one lane."""
        return self.dtype.lanes == 1

    def __str__(self):
        return str(self.dtype)

    __hash__ = Type.__hash__


@register_object("ir.StringType")
class StringType(Type):
    """The type of text."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_api.ir.StringType)


@register_object("ir.PointerType")
class PointerType(Type):
    """The type of a pointer to elements in a memory scope."""

    def __init__(self, element_type: "Type", storage_scope: str = "") -> None:
        self.__init_handle_by_constructor__(_api.ir.PointerType, element_type, storage_scope or "global")

    @property
    def element_type(self):
        """What it points to."""
        return self.element

    @property
    def storage_scope(self):
        """The memory it points into."""
        return self.scope


@register_object("ir.TupleType")
class TupleType(Type):
    """The type of a tuple."""

    def __init__(self, fields: Sequence["Type"], span: Any = None) -> None:
        self.__init_handle_by_constructor__(_api.ir.TupleType, list(fields))

    def script(self, **options):
        """The type as TVMScript; one of scalars alone is a type of kernels."""
        text = super().script(**options)
        scalars = len(self.fields) and all(isinstance(field, PrimType) for field in self.fields)
        return text.replace("R.Tuple(", "T.Tuple(", 1) if scalars else text


@register_object("relax.AnyType")
class AnyType(Type):
    """The type of any value."""

    def __init__(self, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_api.relax.AnyType)


@register_object("relax.ShapeType")
class ShapeType(Type):
    """The type of a shape: its dimensions where they are known, or how many there are."""

    def __init__(self, values: Any = None, ndim: int = -1, span: Any = None) -> None:
        if isinstance(values, (int, float)):
            raise TypeError(f"the dimensions of a shape are a list, not {values}: give ndim= for how many there are")
        if values is not None and ndim != -1:
            raise ValueError("a shape has its dimensions (values) or how many there are (ndim), not both")
        check_dims(values)
        self.__init_handle_by_constructor__(_api.relax.ShapeType, values, ndim)


def _of_variable(shape, ndim):
    """Of a variable that holds a shape a tensor's type keeps what the variable's type says: the dimensions, or how many there are."""
    ty = getattr(shape, "ty", None)
    if not isinstance(ty, ShapeType) or getattr(type(shape), "__tvm_ffi_type_key__", "") not in ("ir.Var", "relax.expr.DataflowVar"):
        return shape, ndim
    if ndim not in (-1, ty.ndim) and ty.ndim != -1:
        raise ValueError(f"ndim is {ndim}, but the shape {shape.name} has {ty.ndim} dimensions")
    return ty.values, ty.ndim if ndim == -1 else ndim


def check_dims(values):
    """An InternalError where a dimension is no number of 64 bits, as TVM has it; literals are whatever they are written as."""
    from ..error import InternalError

    for value in values or ():
        dtype = None if isinstance(value, int) or hasattr(value, "value") else str(getattr(value, "dtype", "int64"))
        if dtype not in (None, "int64"):
            raise InternalError(f"the value in ShapeType can only have dtype of int64, but {value} is of {dtype}")


@register_object("relax.TensorType")
class TensorType(Type):
    """The type of a tensor: shape, element type and device, each where it is known.

    ``shape`` may be a variable that holds a shape, of which the type keeps what is known when it is made.
    """

    def __init__(self, shape: Any = None, dtype: Any = "float32", vdevice: Any = None, ndim: int = -1, span: Any = None) -> None:
        dtype = None if dtype is None or dtype == "" else _dtype(dtype)
        shape, ndim = _of_variable(shape, ndim)
        if isinstance(shape, (list, tuple)):
            check_dims(shape)
        self.__init_handle_by_constructor__(_api.relax.TensorType, shape, dtype, vdevice, ndim)

    @property
    def shape(self):
        """The dimensions as a shape expression; ``None`` where they are unknown."""
        values = self._field("shape")
        return None if values is None else _api.relax.ShapeExpr(values)


@register_object("relax.FuncType")
class FuncType(Type):
    """The type of a function."""

    def __init__(self, params: Sequence["Type"], ret: "Type", purity: bool = True, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_api.relax.FuncType, list(params), ret, purity)

    @staticmethod
    def opaque_func(*, ret=None, derive_func=None, purity=False, span=None):
        """The type of a function of any arguments.

        Parameters
        ----------
        ret : Type, optional
            The type of every call's result.
        derive_func : str or EnvFunc, optional
            In place of `ret`: a registered function that takes a call and a block builder (None where there is none), and gives the
            type of the call.
        purity : bool
            Whether calls have no visible effect.
        """
        if derive_func is not None:
            if ret is not None:
                raise ValueError("the type of a call is told by ret= or by derive_func=, not by both")
            return _api.relax.FuncTypeDerivedFunc(getattr(derive_func, "name", derive_func), purity)
        return _api.relax.FuncTypeOpaqueFunc(ret or AnyType(), purity)

    @property
    def purity(self):
        """Whether calls have no visible effect."""
        return self.pure

    @property
    def arg_types(self):
        """The types of the parameters."""
        return self.params

    @property
    def ret_type(self):
        """The type of the result."""
        return self.ret

    @property
    def derive_func(self):
        """The registered function that tells the type of a call, as an ``EnvFunc``; None where `ret` says it."""
        from .env_func import EnvFunc

        return None if self.derive is None else EnvFunc(self.derive)

    def is_opaque(self):
        """Whether it takes any arguments."""
        return self.params is None


class PackedFuncType(FuncType):
    """The type of a function of any arguments and any result."""

    def __new__(cls, span=None):
        return FuncType.opaque_func()

    def __init__(self, span: Any = None) -> None:
        pass


ObjectType = AnyType
