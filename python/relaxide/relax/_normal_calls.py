"""Calls as their operators want them: what mutators, and whoever asks whether a program is well-formed, take for the normal form.

An operator that a program added may have a rule, ``FNormalize``, a function of a block builder and a call that gives the call to put in its
place. Calls of kernels name their arguments in a tuple that is written there.
"""

from ..ir.expr import Call, Tuple, TupleGetItem
from ..ir.op import Op

#: Operators whose second argument is a tuple of a kernel's arguments.
_OF_KERNELS = frozenset(f"relax.call_tir{kind}" for kind in ("", "_inplace", "_with_grad"))


def normal_call(builder, call):
    """The call that an expression ought to be; the expression itself where it is one already, or no call."""
    if not isinstance(call, Call) or not isinstance(call.op, Op):
        return call
    rule = call.op.get_attr("FNormalize")
    if rule is not None:
        return rule(builder, call)
    args = list(call.args)
    if call.op.name not in _OF_KERNELS or len(args) < 2 or isinstance(args[1], Tuple):
        return call
    value = builder.lookup_binding(args[1])
    if isinstance(value, Tuple):
        args[1] = value
    else:
        count = len(args[1].ty.fields)
        args[1] = Tuple([builder.emit(TupleGetItem(args[1], at)) for at in range(count)])
    return Call(call.op, args, call.attrs, list(call.ty_args) or None, call.span)


def problems(function, name):
    """Lines that say which calls of a function their operators would have otherwise."""
    from .analysis import post_order_visit
    from .block_builder import BlockBuilder

    found = []

    def look(expr):
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.get_attr("FNormalize") is not None:
            if not normal_call(BlockBuilder(), expr).same_as(expr):
                found.append(f"in function `{name}`: the operator `{expr.op.name}` wants this call in another form (FNormalize): {expr}")

    post_order_visit(function, look)
    return found
