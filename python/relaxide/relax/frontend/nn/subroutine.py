"""Modules that become functions of the program: ``define_subroutine = True`` in a class."""

import inspect
import re
from collections import OrderedDict
from contextlib import nullcontext

from ....ffi import structural_equal
from ....ir.expr import is_prim_expr
from ...block_builder import BlockBuilder
from ...expr import Expr, ShapeExpr, Var, const
from ...type import TupleType
from ...utils import copy_with_new_vars


def _snake(name):
    """``LlamaMLP`` as ``llama_mlp``."""
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def _argument(builder, arg):
    """``(expression, how the function's parameter is handed to forward)`` of an argument of a call."""
    from ._values import Object, Tensor
    from ._values import _unwrap

    if isinstance(arg, Tensor):
        return arg._expr, lambda var: Tensor(_expr=var)
    if isinstance(arg, Object):
        return arg._expr, lambda var: type(arg)(_expr=var, _name=var.name_hint)
    if isinstance(arg, (list, tuple)) and not all(is_prim_expr(item) or isinstance(item, int) for item in arg):
        return builder.normalize(_unwrap(arg)), lambda var: [Tensor(_expr=var[at]) for at in range(len(arg))]
    if isinstance(arg, (list, tuple)):
        return builder.normalize(ShapeExpr(list(arg))), lambda var: list(var.ty.values)
    if isinstance(arg, (int, float)) and not isinstance(arg, bool):
        return const(arg), lambda var: var
    return builder.normalize(arg), lambda var: var


class SubroutineMixin:
    """What makes calls of a module calls of a function, where its class says so."""

    #: Whether calls of the module become calls of a function of their own.
    define_subroutine = False

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        forward = vars(cls).get("forward")
        if forward is not None and not hasattr(forward, "_inlined"):
            cls.forward = _dispatching(forward)


def _dispatching(inlined):
    """``forward`` that calls a function where its module is a subroutine, and is written in place elsewhere."""
    signature = inspect.signature(inlined)

    def forward(self, *args, **kwargs):
        builder = BlockBuilder.current()
        if not self.define_subroutine or builder is None or getattr(self, "_is_being_defined", False):
            return inlined(self, *args, **kwargs)
        bound = signature.bind(self, *args, **kwargs).arguments
        named = OrderedDict((name, arg) for name, arg in list(bound.items())[1:] if arg is not None)
        return _call(self, builder, inlined, named)

    forward._inlined = inlined
    forward.__name__, forward.__doc__ = inlined.__name__, inlined.__doc__
    forward.__signature__ = signature
    forward.__wrapped__ = inlined
    return forward


def _call(module, builder, inlined, named):
    """A call of the function that stands for a module, which is written where no equal one is there."""
    from ._module import Module
    from ._values import wrap_nested

    arguments = {name: _argument(builder, arg) for name, arg in named.items()}
    # Modules of `relax.testing.nn` are of plain variables.
    weights = [getattr(parameter, "_expr", parameter) for parameter in module.parameters()]
    operands = [expr for expr, _ in arguments.values()] + weights
    name = _snake(type(module).__name__)
    gvar = _function(module, builder, inlined, arguments, weights, name)
    from ....ir.expr import Call

    call = Call(gvar, operands)
    return wrap_nested(call, f"{name}_output") if isinstance(module, Module) else builder.emit(call)


def _function(module, builder, inlined, arguments, weights, name):
    """The function of a class for types of arguments and weights, and the kind of block it is called from."""
    types = TupleType([expr.ty for expr, _ in arguments.values()] + [weight.ty for weight in weights])
    dataflow = builder.current_block_is_dataflow()
    # The functions of a program live as long as the builder that writes it.
    known = vars(builder).setdefault("_subroutines", {}).setdefault((inlined, tuple(arguments), dataflow, _constants(module)), [])
    for seen, gvar in known:
        if structural_equal(seen, types, map_free_vars=True):
            return gvar
    params = {arg: Var(arg, expr.ty) for arg, (expr, _) in arguments.items()}
    handed = {arg: arguments[arg][1](var) for arg, var in params.items()}
    gvar = _write(module, builder, inlined, handed, [*params.values(), *weights], name, dataflow)
    known.append((types, gvar))
    return gvar


def _constants(module):
    """The numbers and texts of a module and those in it: two of one class with others of them are two functions."""
    from . import _tree
    from ._module import Module

    found = []
    for key, value in _tree.members(module):
        if isinstance(value, Module):
            found.append((key, type(value), _constants(value)))
        elif isinstance(value, (bool, int, float, str, type(None))):
            found.append((key, value))
        elif isinstance(value, (list, tuple)) and all(isinstance(item, (bool, int, float, str)) for item in value):
            found.append((key, tuple(value)))
    return tuple(found)


def _write(module, builder, inlined, handed, params, name, dataflow):
    from ._values import _unwrap

    module._is_being_defined = True
    try:
        with builder.function(name, params, private=True):
            with builder.dataflow() if dataflow else nullcontext():
                out = inlined(module, **handed)
                out = out if isinstance(out, Expr) else _unwrap(out)
                out = builder.emit_output(out) if dataflow else out
            gvar = builder.emit_func_output(out)
    finally:
        del module._is_being_defined
    # Weights and symbolic dimensions are those of the caller: the function gets its own.
    builder.update_func(gvar, copy_with_new_vars(builder.get()[gvar]))
    return gvar


__all__ = ["SubroutineMixin"]
