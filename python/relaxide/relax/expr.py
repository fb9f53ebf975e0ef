"""The nodes of Relax."""

from numbers import Integral, Real
from typing import Any

from .._core import set_kind_classes
from ..ffi import register_object
from ..ffi import dtype as _dtype
from ..ir import _api
from ..ir.base import Node, Scriptable, Span
from ..ir.expr import Call, Constant, Expr, ExprWithOp, GenericConst, GlobalVar, Tuple, TupleGetItem, Var, is_prim_expr
from ..ir.function import BaseFunc
from ..ir.prim import FloatImm, IntImm, StringImm
from ..ir.type import PrimType, check_dims


@register_object("relax.expr.DataflowVar")
class DataflowVar(Var):
    """A variable that ends with its dataflow block."""

    def __init__(self, name: str | None = None, ty: Any = None, span: Any = None, *, name_hint: str | None = None) -> None:
        name = name_hint if name is None else name
        if isinstance(ty, str):
            ty = PrimType(ty)
        self.__init_handle_by_constructor__(_api.relax.DataflowVar, name, ty, span)


@register_object("relax.expr.DataTypeImm")
class DataTypeImm(ExprWithOp):
    """An element type as a Relax value."""

    def __init__(self, value, span=None):
        self.__init_handle_by_constructor__(_api.relax.DataTypeImm, _dtype(value))


@register_object("relax.expr.ShapeExpr")
class ShapeExpr(ExprWithOp):
    """A shape: dimensions over symbolic variables in scope."""

    def __init__(self, values: Any, span: Any = None) -> None:
        values = list(values)
        check_dims(values)
        self.__init_handle_by_constructor__(_api.relax.ShapeExpr, values)

    def __getitem__(self, index):
        try:
            return self.values[index]
        except IndexError:
            raise IndexError(f"ShapeExpr index out of range: {index} of {len(self.values)}") from None

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return iter(self.values)


def make_shape(shape):
    """The shape of a list of dimensions."""
    return ShapeExpr(shape)


@register_object("relax.expr.If")
class If(ExprWithOp):
    """A choice by a condition; branches become sequences."""

    def __init__(self, cond, true_branch, false_branch, span=None):
        self.__init_handle_by_constructor__(_api.relax.If, cond, true_branch, false_branch)

    @property
    def cond(self):
        """The condition."""
        return self.condition


class Binding(Node, Scriptable):
    """The base of bindings."""


@register_object("relax.expr.VarBinding")
class VarBinding(Binding):
    """``var = value``"""

    def __init__(self, var, value, span=None):
        self.__init_handle_by_constructor__(_api.relax.VarBinding, var, value)


@register_object("relax.expr.MatchCast")
class MatchCast(Binding):
    """A check of a value's type at run time, which binds the symbolic variables that the type mentions first."""

    def __init__(self, var, value, ty, span=None):
        self.__init_handle_by_constructor__(_api.relax.MatchCast, var, value, ty)


@register_object("relax.expr.BindingBlock")
class BindingBlock(Node, Scriptable):
    """Bindings in order."""

    def __init__(self, bindings, span=None):
        self.__init_handle_by_constructor__(_api.relax.BindingBlock, list(bindings))


class DataflowBlock(BindingBlock):
    """Bindings without side effects or control flow. The node is a :class:`BindingBlock` that says so."""

    def __init__(self, bindings, span=None):
        self.__init_handle_by_constructor__(_api.relax.DataflowBlock, list(bindings))


set_kind_classes("relax.expr.BindingBlock", "dataflow", {True: DataflowBlock})


@register_object("relax.expr.SeqExpr")
class SeqExpr(ExprWithOp):
    """Bindings, then a result."""

    def __init__(self, blocks, body, span=None):
        self.__init_handle_by_constructor__(_api.relax.SeqExpr, list(blocks), body)


@register_object("relax.expr.Function")
class Function(BaseFunc, Scriptable):
    """A function. The type of its result follows from its body where none is given."""

    def __init__(self, params, body, ret_ty=None, is_pure=True, attrs=None, span=None):
        attrs = dict(attrs) if attrs else None
        self.__init_handle_by_constructor__(_api.relax.Function, list(params), body, ret_ty, bool(is_pure), attrs, span)

    @staticmethod
    def create_empty(params, ret_ty, is_pure=True, attrs=None, span=None):
        """A function whose body is yet to be written; it may be called already."""
        return Function(params, SeqExpr([], Tuple([])), ret_ty, is_pure, attrs, span)

    @property
    def is_pure(self):
        """Whether calls have no visible effect."""
        return self.pure

    def __call__(self, *args):
        return Call(self, args)

    def bind_symbolic_vars(self, binding_map):
        """The function with values for symbolic dimensions, given by name or variable."""
        from . import transform
        from ..ir import IRModule

        return _apply(transform.BindSymbolicVars, self, binding_map)

    def bind_params(self, binding_map):
        """The function with values for parameters, given by name or variable."""
        from . import transform

        return _apply(transform.BindParams, self, binding_map, by_name=True)


    def inline_functions(self, function_map):
        """The function with the bodies of others in the place of calls of them.

        Parameters
        ----------
        function_map : dict of str or GlobalVar to Function
            The functions by the names that they are called by.

        Raises
        ------
        ValueError
            A function is given twice, by its name and by a variable of that name, or calls itself.
        """
        from . import analysis, transform
        from ..ir import IRModule

        by_name = {}
        for key, func in function_map.items():
            name = getattr(key, "name_hint", key)
            if name in by_name:
                raise ValueError(f"the function {name} is given twice, by its name and by a variable: give it once")
            by_name[name] = func.without_attr("global_symbol")
        recursive = analysis.detect_recursion(IRModule(by_name))
        if recursive:
            groups = "; ".join(", ".join(var.name_hint for var in group) for group in recursive)
            raise ValueError(f"functions that call themselves, or each other, have no end when they are inlined: {groups}")
        own = "main"
        while own in by_name:
            own += "_"
        module = IRModule({own: self.with_attr("global_symbol", own), **by_name})
        inlined = transform.InlinePrivateFunctions()(module)[own]
        symbol = (self.attrs or {}).get("global_symbol")
        return inlined.without_attr("global_symbol") if symbol is None else inlined.with_attr("global_symbol", symbol)


def _apply(make, function, binding_map, by_name=False):
    from ..ir import IRModule

    if by_name:
        binding_map = {getattr(key, "name_hint", key): value for key, value in binding_map.items()}
    name = (function.attrs or {}).get("global_symbol", "main")
    module = make(name, binding_map)(IRModule({name: function})) if by_name else make(binding_map, name)(
        IRModule({name: function})
    )
    return module[name]


@register_object("relax.expr.ExternFunc")
class ExternFunc(BaseFunc, ExprWithOp):
    """A function outside the module, found by name when the program is loaded. ``ty`` is what it takes and gives, where that is known."""

    def __init__(self, global_symbol, ty=None, span=None):
        self.__init_handle_by_constructor__(_api.relax.ExternFunc, global_symbol, ty)

    @property
    def ty(self):
        """What it takes and gives."""
        return self._field("ty")

    def __call__(self, *args):
        return Call(self, args)


def extern(name, ty=None, span=None):
    """The function of a name outside the module."""
    return ExternFunc(name, ty, span)


def const(value: Any, dtype: Any = None) -> GenericConst:
    """A tensor constant of a number, of nested lists, of an array or of a tensor."""
    import numpy as np

    from ..runtime import Tensor, tensor
    from ..runtime._tensor import array_type

    if isinstance(value, Tensor):
        if dtype is not None and str(value.dtype) != str(dtype):
            value = tensor(value.numpy().astype(str(dtype)))
        return GenericConst(value)
    if dtype is None and isinstance(value, bool):
        dtype = "bool"
    elif dtype is None and isinstance(value, int):
        dtype = "int32"
    elif dtype is None and isinstance(value, float):
        dtype = "float32"
    array = np.asarray(value)
    if dtype is None and array.dtype == "float64":
        dtype = "float32"
    name = str(dtype) if dtype is not None else str(array.dtype)
    return GenericConst(tensor(array.astype(array_type(_dtype(name)))))


def prim_value(value: Any, dtype: Any = None) -> Any:
    """A number as a scalar expression: of type bool, int64 or float64 where no type is given. Scalars are values as they
    are."""
    if isinstance(value, (Integral, Real)) and not isinstance(value, Expr):
        value = value if isinstance(value, bool) else int(value) if isinstance(value, Integral) else float(value)
        dtype = dtype or ("bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float64")
        return _api.prim.const(value, _dtype(dtype))
    if not is_prim_expr(value):
        raise TypeError(f"Cannot convert {value} to a scalar: numbers and expressions of scalars are")
    return value if dtype is None else _api.prim.cast(_dtype(dtype), value)


def get_shape_of(expr: Any) -> Any:
    """The shape of a tensor: its dimensions where they are known, else a call that asks for them."""
    shape = getattr(expr.ty, "shape", None)
    if shape is not None:
        return shape
    from . import op

    return op.shape_of(expr)


def te_tensor(value, *, name="rxplaceholder"):
    """The input of a kernel that stands for a tensor of known shape."""
    from .. import te

    shape = getattr(value.ty, "shape", None)
    if shape is None:
        raise ValueError(f"the shape of {value} is not known to the compiler; give it one with match_cast")
    return te.placeholder(list(shape.values), value.ty.dtype, name)


def _update_type(expr, ty):
    """Note the type of an expression. Here it follows from the expression's parts, so that another one is a TypeError."""
    if expr.ty != ty:
        raise TypeError(f"the type of this expression is {expr.ty}, as its parts say, not {ty}")


__all__ = ["Binding", "BindingBlock", "Call", "Constant", "DataTypeImm", "DataflowBlock", "DataflowVar", "Expr", "ExternFunc"]
__all__ += ["FloatImm", "Function", "GenericConst", "GlobalVar", "If", "IntImm", "MatchCast", "SeqExpr"]
__all__ += ["ShapeExpr", "Span", "StringImm", "Tuple", "TupleGetItem", "Var", "VarBinding", "const", "extern"]
__all__ += ["get_shape_of", "make_shape", "prim_value", "te_tensor"]
