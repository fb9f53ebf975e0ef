"""Derivatives of operators that a program says itself."""

from ...ir.op import Op, register_op_attr

#: The level of the compiler's own derivatives.
_OWN_LEVEL = 10


def register_gradient(op_name, fgradient=None, level=10):
    """Say the derivative of an operator, for :func:`relaxide.relax.transform.Gradient`.

    Parameters
    ----------
    op_name : str
        The operator, such as ``"relax.nn.gelu"``.
    fgradient : function, optional
        Takes the variable of a call's result, the call, the gradient of the result and a block builder, and gives the gradients of the
        call's arguments, of which ``R.grad.no_grad(arg)`` or None stands for none. Without it, a decorator.
    level : int
        What is said with a higher level counts. The compiler's own derivatives have level 10.

    Raises
    ------
    ValueError
        The operator has a derivative of that level.
    """

    def register(func):
        op = Op.get(op_name)
        if level <= _OWN_LEVEL and op.has_own_gradient:
            raise ValueError(f"{op_name} has a derivative of level {_OWN_LEVEL}: a level above that takes its place")
        return register_op_attr(op_name, "FPrimalGradient", func, level)

    return register if fgradient is None else register(fgradient)


__all__ = ["register_gradient"]
