"""Values of modules: tensors, parameters, and other objects, each a handle of an expression of Relax."""

import numpy as np

from .... import runtime
from ....ir.expr import is_prim_expr
from ...block_builder import BlockBuilder
from ...expr import IntImm, Var, const
from ...type import AnyType, TensorType

_default_dtype = "float32"


def get_default_dtype():
    """The element type of parameters and caches that are made without one."""
    return _default_dtype


def set_default_dtype(dtype):
    """Set the element type of parameters and caches that are made without one."""
    global _default_dtype
    _default_dtype = dtype


def _dimension(dim):
    """A dimension as types take it: a name becomes a symbolic variable."""
    from ....tirx import Var as SymbolicVar

    if isinstance(dim, str):
        return SymbolicVar(dim, "int64")
    if isinstance(dim, (int, IntImm)):
        dim = int(dim)
        if dim < 0:
            raise ValueError(f"a dimension cannot be negative, got {dim}")
        return dim
    if not is_prim_expr(dim):
        raise TypeError(f"a dimension is an int, a name or an expression of int64, got {type(dim).__name__}")
    if str(dim.dtype) != "int64":
        raise TypeError(f"a symbolic dimension has the type int64, got {dim.dtype} of {dim}")
    return dim


class _Arithmetic:
    """The operators of Python on tensors; a number is a constant of the tensor's element type."""

    def _scalar(self, other):
        if isinstance(other, Tensor):
            return other
        value = getattr(other, "value", other)
        if isinstance(value, (int, float)):
            return Tensor.from_scalar(value, self.dtype)
        raise TypeError(f"a tensor and a {type(other).__name__} have no common operators")

    def astype(self, dtype):
        """The elements converted to ``dtype``."""
        from . import op

        return op.astype(self, dtype)

    def reshape(self, *shape):
        """The elements in another shape, given as one sequence or as numbers."""
        from . import op

        return op.reshape(self, shape)

    def permute_dims(self, *axes):
        """The dimensions in the order ``axes``, given as one sequence or as numbers."""
        from . import op

        return op.permute_dims(self, axes or None)

    def repeat(self, repeats, axis=None):
        """Each element ``repeats`` times along ``axis``, or of the flat tensor."""
        from . import op

        return op.repeat(self, repeats, axis)


def _method(name, reflected):
    def apply(self, other):
        from . import op

        pair = (self, self._scalar(other))
        # Sums and products are written with the tensor first.
        turned = reflected and name in ("subtract", "divide")
        return getattr(op, name)(*(reversed(pair) if turned else pair))

    return apply


for _name, _member in (
    ("add", "__add__"),
    ("subtract", "__sub__"),
    ("multiply", "__mul__"),
    ("divide", "__truediv__"),
    ("less", "__lt__"),
    ("less_equal", "__le__"),
    ("greater", "__gt__"),
    ("greater_equal", "__ge__"),
    ("maximum", "maximum"),
    ("minimum", "minimum"),
):
    setattr(_Arithmetic, _member, _method(_name, False))
for _name, _member in (("add", "__radd__"), ("subtract", "__rsub__"), ("multiply", "__rmul__"), ("divide", "__rtruediv__")):
    setattr(_Arithmetic, _member, _method(_name, True))


class Tensor(_Arithmetic):
    """A tensor of a program that is being written: its shape and element type are known, its elements are not.

    Operators of :mod:`~relaxide.relax.frontend.nn.op` make tensors; users make them by :meth:`from_const`, :meth:`from_scalar`
    and, as the result of an external function, :meth:`placeholder`.
    """

    def __init__(self, *, _expr):
        ty = _expr.ty
        if not isinstance(ty, TensorType) or ty.shape is None:
            raise TypeError(f"a tensor of a module has a known shape, got an expression of type {ty}")
        self._expr = _expr

    @staticmethod
    def from_const(data):
        """A constant of the elements of a NumPy array or a tensor of the runtime."""
        return Tensor(_expr=const(data))

    @staticmethod
    def from_scalar(data, dtype):
        """A constant without dimensions."""
        return Tensor(_expr=const(data, dtype))

    @staticmethod
    def from_ty(ty, name="tensor"):
        """A fresh variable of a type of Relax."""
        return Tensor(_expr=Var(name, ty))

    @staticmethod
    def placeholder(shape, dtype, name="tensor"):
        """A fresh variable; names in ``shape`` are symbolic dimensions."""
        return Tensor.from_ty(TensorType([_dimension(dim) for dim in shape], dtype), name)

    @property
    def shape(self):
        """The dimensions: ints, and expressions where they are symbolic."""
        return [dim.value if isinstance(dim, IntImm) else dim for dim in self._expr.ty.shape.values]

    @property
    def ndim(self):
        """The number of dimensions."""
        return len(self._expr.ty.shape.values)

    @property
    def dtype(self):
        """The element type, as text."""
        return str(self._expr.ty.dtype)

    def __repr__(self):
        return f'Tensor({self.shape}, "{self.dtype}")'


class Parameter(Tensor):
    """A weight of a module, with or without a value (:attr:`data`).

    Parameters
    ----------
    shape : sequence of int, str or expression
        The dimensions; names are symbolic.
    dtype : str, optional
        The element type, :func:`get_default_dtype` where nothing is said.
    """

    def __init__(self, shape, dtype=None):
        super().__init__(_expr=Tensor.placeholder(shape, dtype or get_default_dtype(), "param")._expr)
        self._data = None
        #: Anything that loaders or quantizers want to remember of this weight.
        self.attrs = {}

    @property
    def data(self):
        """The value, a tensor of the runtime, or ``None``.

        It is set from such a tensor, a NumPy array or anything that speaks DLPack (not copied where that is possible); its shape
        and element type must be those of the parameter, else ``ValueError``.
        """
        return self._data

    @data.setter
    def data(self, data):
        if data is None:
            self._data = None
            return
        if isinstance(data, np.ndarray):
            data = runtime.tensor(data)
        elif not isinstance(data, runtime.Tensor):
            data = _from_dlpack(data)
        if tuple(data.shape) != tuple(self.shape):
            raise ValueError(f"Shape mismatch: expected {tuple(self.shape)}, got {tuple(data.shape)}")
        if str(data.dtype) != self.dtype:
            raise ValueError(f"Dtype mismatch: expected {self.dtype}, got {data.dtype}")
        self._data = data

    def to(self, dtype=None):
        """Change the element type of a parameter that has no value; with one that is a ``ValueError``."""
        if dtype is None:
            return
        if self._data is not None:
            raise ValueError(f"the parameter has a value of {self.dtype}: convert the value, then set it anew")
        self._expr = Tensor.placeholder(self.shape, dtype, "param")._expr


class Object:
    """A value that is no tensor, such as a cache: an expression of any type."""

    def __init__(self, *, _expr, _name):
        if not isinstance(_expr, Var):
            _expr = BlockBuilder.current().emit(_expr, _name)
        if not isinstance(_expr.ty, AnyType):
            raise TypeError(f"{_name} is of type {_expr.ty}, which is no object")
        self._expr = _expr


def _from_dlpack(value):
    """A tensor of another library as one of the runtime."""
    if not hasattr(value, "__dlpack__"):
        raise TypeError(f"expected a tensor or array, got {type(value).__name__}")
    # Libraries refuse to export what they differentiate.
    value = value.detach() if hasattr(value, "detach") else value
    return runtime.from_dlpack(value)


def _unwrap(value):
    """The expression of a value of a module; sequences become tuples."""
    from ....ir.expr import Tuple

    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (list, tuple)):
        return Tuple([_unwrap(item) for item in value])
    raise TypeError(f"a module returns tensors, objects, and sequences of those, got {type(value).__name__}")


def wrap_nested(expr, name):
    """Bind an expression to a variable called ``name``; the fields of a tuple get variables of their own.

    Returns
    -------
    Tensor or tuple of Tensor
    """
    from ....ir.expr import TupleGetItem
    from ...type import TupleType

    builder = BlockBuilder.current()
    if builder is None:
        # Outside of an exported method an operator's result cannot be bound.
        raise RuntimeError(f"the operator {name!r} is called outside of a method that is being exported (`export_tvm`, `jit`)")
    expr = expr if isinstance(expr, Var) else builder.emit(expr, name)
    if isinstance(expr.ty, TensorType):
        return Tensor(_expr=expr)
    if isinstance(expr.ty, TupleType):
        return tuple(wrap_nested(TupleGetItem(expr, at), f"{name}_{at}") for at in range(len(expr.ty.fields)))
    raise TypeError(f"{name} is of type {expr.ty}; operators of modules return tensors and tuples of tensors")


__all__ = ["Object", "Parameter", "Tensor", "get_default_dtype", "set_default_dtype", "wrap_nested"]
