"""What backends ask of programs."""

from ...target import Target
from ..expr import DataflowVar
from ..expr_functor import PyExprMutator
from ..type import TensorType


class BackendDispatcher(PyExprMutator):
    """The base of mutators that replace calls by what a target's library does."""

    @staticmethod
    def is_gpu_target(target):
        """Whether a target is a GPU."""
        return "gpu" in target.keys

    @staticmethod
    def get_shape_dtype(expr):
        """``(shape, element type)`` of a tensor; a ValueError where it is none, or its shape is not known."""
        if not isinstance(expr.ty, TensorType):
            raise ValueError(f"a tensor is expected, but {expr} is of type {expr.ty}")
        if expr.ty.shape is None:
            raise ValueError(f"the shape of {expr} is not known: give it one with match_cast")
        return expr.ty.shape, expr.ty.dtype

    def _get_target(self, ty):
        """The target of the device that a value lives on, else the current one; a ValueError where there is neither."""
        device = getattr(ty, "vdevice", None)
        if device is not None:
            return device.target
        current = Target.current(allow_none=True)
        for field in getattr(ty, "fields", ()):
            target = self._get_target(field)
            if target != current:
                return target
        if current is None:
            raise ValueError("no target is known: annotate one in the module, or run this inside of `with target:`")
        return current


def has_leaking_intermediate_variables(context):
    """Whether a value inside of a match, other than its result, is used outside of it.

    ``context`` is what a check of a :class:`~relaxide.relax.transform.FusionPattern` is given.
    """
    inside = set(context.matched_bindings.keys())
    result = context.value_to_bound_var[context.matched_expr]
    between = [var for var in context.matched_bindings if var != result]
    if any(not isinstance(var, DataflowVar) for var in between):
        return True
    return any(user not in inside for var in between for user in context.var_usages[var])


__all__ = ["BackendDispatcher", "has_leaking_intermediate_variables"]
