"""Calls of kernels that functions of ``te`` describe."""

from .. import _core
from ..ir import _api
from ..ir.expr import Expr, GenericConst, Tuple, is_prim_expr
from .expr import ShapeExpr
from .op import call_tir, call_tir_with_grad
from .type import TensorType

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class _Inputs:
    """The tensors of a call, and the kernel's inputs that stand for them."""

    def __init__(self):
        self.exprs, self.tensors = [], []

    def input(self, expr):
        """The kernel's input for a tensor; one that is given twice is one input twice."""
        from .. import te

        ty = expr.ty
        shape = getattr(ty, "shape", None)
        if shape is None:
            raise ValueError(f"the shape of {expr} is not known to the compiler; give it one with match_cast")
        at = len(self.tensors)
        name = _LETTERS[at] if at < len(_LETTERS) else f"in{at}"
        tensor = te.placeholder(list(shape.values), ty.dtype, name)
        self.exprs.append(expr)
        self.tensors.append(tensor)
        return tensor

    def convert(self, value):
        """An argument as the describing function takes it."""
        if isinstance(value, (ShapeExpr,)):
            return [self.convert(dim) for dim in value.values]
        if isinstance(value, Tuple):
            return [self.convert(field) for field in value.fields]
        if isinstance(value, Expr) and not is_prim_expr(value) and not hasattr(value, "global_symbol"):
            ty = value.ty
            if isinstance(ty, TensorType):
                return self.input(value)
            fields = getattr(ty, "fields", None)
            if fields is not None:
                return [self.convert(value[at]) for at in range(len(fields))]
            dims = getattr(ty, "values", None)
            if dims is not None:
                return list(dims)
            raise TypeError(f"an argument of type {ty} cannot be an input of a kernel")
        if isinstance(value, _core.Tensor):
            return self.input(GenericConst(value))
        if isinstance(value, (tuple, list)):
            return [self.convert(item) for item in value]
        if isinstance(value, dict):
            return {key: self.convert(item) for key, item in value.items()}
        return value


def describe(func, args, kwargs):
    """``(kernel, tensor arguments, output types, scalars)`` of what ``func`` describes."""
    from ..s_tir import renew_defs
    from ..te import _sizes_are

    name = getattr(func, "__name__", "te_func")
    inputs = _Inputs()
    operands = [inputs.convert(arg) for arg in args]
    with _sizes_are("int64"):
        outputs = func(*operands, **{key: inputs.convert(arg) for key, arg in kwargs.items()})
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    for output in outputs:
        if not isinstance(output, _core.TeTensor):
            raise TypeError(f"{name} must return tensors of te, got {type(output).__name__}")
    kernel, scalars = _core.te_make_kernel(name, inputs.tensors, outputs)
    device = _device_of(args)
    types = [TensorType(list(output.shape), output.dtype, device) for output in outputs]
    # A kernel has symbolic dimensions of its own, bound by the shapes of its tensors, as one that an operator is lowered to.
    return renew_defs(kernel), inputs.exprs, types, scalars


def _device_of(value):
    """The device of the first tensor among arguments that lies on one: what is made of them lies there too."""
    if isinstance(value, Expr) and isinstance(value.ty, TensorType):
        return value.ty.vdevice
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((device for device in map(_device_of, value) if device is not None), None)
    return None


def _added(builder, func, args, kwargs):
    """``(kernel, operands, types)`` of a call of the kernel that ``func`` describes, which is added to the module."""
    kwargs = dict(kwargs)
    name = kwargs.pop("primfunc_name_hint", None) or getattr(func, "__name__", "te_func")
    attrs = kwargs.pop("primfunc_attrs", None)
    if name == "<lambda>":
        name = "te_func"
    kernel, tensors, types, scalars = describe(func, args, kwargs)
    if attrs:
        kernel = _api.ir.WithAttrs(kernel, dict(attrs))
    gvar = builder.add_func(kernel, name)
    return gvar, [*tensors, *scalars], types if len(types) > 1 else types[0]


def call_te(builder, func, args, kwargs):
    """A call of the kernel that ``func`` describes, which is added to the module."""
    return call_tir(*_added(builder, func, args, kwargs))


def call_te_with_grad(builder, func, args, kwargs, te_grad_name, te_grad_kwargs):
    """The same call with a derivative."""
    return call_tir_with_grad(*_added(builder, func, args, kwargs), te_grad_name, te_grad_kwargs)


__all__ = ["call_te", "call_te_with_grad", "describe"]
