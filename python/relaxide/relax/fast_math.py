"""Functions that are computed by cheap approximations, in an expression."""

from .. import topi
from ..ir.op import Op
from .expr_functor import PyExprMutator, mutator

_APPROXIMATE = {"relax.exp": "fast_exp", "relax.erf": "fast_erf", "relax.tanh": "fast_tanh"}


@mutator
class FastMathCodeGenerator(PyExprMutator):
    """Puts approximations in the place of exponentials, error functions, tangents and softmax.

    Parameters
    ----------
    mod : IRModule
        The module of what is visited.
    """

    def __init__(self, mod):
        super().__init__(mod)

    def visit_call_(self, call):
        """A call of the kernel of an approximation; any other call as it is."""
        name = call.op.name if isinstance(call.op, Op) else None
        if name == "relax.nn.softmax":
            return self.builder_.call_te(topi.nn.fast_softmax, call.args[0], call.attrs.axis)
        if name in _APPROXIMATE:
            return self.builder_.call_te(getattr(topi, _APPROXIMATE[name]), call.args[0])
        return super().visit_call_(call)


__all__ = ["FastMathCodeGenerator"]
