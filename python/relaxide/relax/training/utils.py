"""Passes of training: a loss behind a model; derivatives of kernels."""

from ...ffi import structural_equal
from ...ir.expr import Tuple
from ...ir.transform import module_pass
from ..expr import DataflowBlock, DataflowVar, Function, SeqExpr, VarBinding
from ..expr_functor import PyExprMutator
from ..type import TensorType
from ..utils import copy_with_new_vars


def AppendLoss(func_name, loss_function, num_backbone_outputs=1, new_func_name=None):
    """A pass that adds a function: a function of the module with a loss behind it.

    Parameters
    ----------
    func_name : str
        The function, of one dataflow block.
    loss_function : Function
        The loss: it takes the first results of the function, then arguments of its own, and returns a number.
    num_backbone_outputs : int
        How many results it takes. Results behind those are returned behind the loss.
    new_func_name : str, optional
        The name of the new function, ``func_name`` with ``_loss`` where nothing is said.
    """
    name = new_func_name or f"{func_name}_loss"

    @module_pass(opt_level=0, name="AppendLoss")
    def run(mod, _):
        backbone = copy_with_new_vars(mod[func_name])
        made = _joined(func_name, backbone, copy_with_new_vars(loss_function), num_backbone_outputs)
        out = mod.clone()
        out[name] = made.with_attr("global_symbol", name)
        return out

    return run


def _block(name, func):
    """The bindings of a function of one dataflow block."""
    blocks = [block for block in func.body.blocks if block.bindings]
    if len(blocks) > 1 or any(not isinstance(block, DataflowBlock) for block in blocks):
        raise RuntimeError(f"{name} is not of one dataflow block, which a function with a loss is")
    return list(blocks[0].bindings) if blocks else []


def _fields(expr):
    return list(expr.fields) if isinstance(expr, Tuple) else [expr]


def _joined(name, backbone, loss, count):
    results = _fields(backbone.body.body)
    if count < 1 or count > len(results) or count > len(loss.params):
        raise RuntimeError(f"{name} has {len(results)} results and the loss {len(loss.params)} parameters: {count} cannot be handed on")
    handed, rest = results[:count], results[count:]
    if not isinstance(loss.ret_ty, TensorType) or loss.ret_ty.ndim != 0:
        raise RuntimeError(f"a loss returns one number, got {loss.ret_ty}")
    for result, param in zip(handed, loss.params):
        if not structural_equal(result.ty, param.ty, map_free_vars=True):
            raise RuntimeError(f"{name} gives {result.ty}, and the loss takes {param.ty} as {param.name_hint}")
    mutator = PyExprMutator()
    bindings = []
    for binding in _block(name, backbone):
        var = binding.var
        if not isinstance(var, DataflowVar) and not any(var.same_as(kept) for kept in rest):
            inner = DataflowVar(var.name_hint, var.ty, var.span)
            mutator.set_var_remap(var, inner)
            var = inner
        bindings.append(VarBinding(var, mutator.visit_expr(binding.value)))
    for param, result in zip(loss.params, handed):
        mutator.set_var_remap(param, mutator.visit_expr(result))
    for binding in _block("the loss", loss):
        bindings.append(VarBinding(binding.var, mutator.visit_expr(binding.value)))
    out = loss.body.body
    body = Tuple([out, *rest]) if rest else out
    params = [*backbone.params, *loss.params[count:]]
    return Function(params, SeqExpr([DataflowBlock(bindings)], body), attrs=backbone.attrs)


#: The functions of kernels' derivatives, by their names.
_OF_KERNELS = {}


def register_te_gradient(te_grad_name, te_grad_func=None):
    """Say how the derivative of a kernel is computed, for calls that name it (``R.call_tir_with_grad(…, te_grad_name=name)``).

    Parameters
    ----------
    te_grad_name : str
        The name.
    te_grad_func : function, optional
        Takes the gradient of the call's result, the call's arguments and its ``te_grad_kwargs``, as tensors of :mod:`relaxide.te` and as
        values, and gives the gradients of the arguments, as tensors. Without it, a decorator.
    """

    def register(func):
        _OF_KERNELS[te_grad_name] = func
        return func

    return register if te_grad_func is None else register(te_grad_func)


def gradient_of_kernel(orig_var, orig_call, output_grad, ctx):
    """The gradients of the arguments of a ``call_tir_with_grad``, by what :func:`register_te_gradient` was told."""
    name = str(orig_call.attrs["te_grad_name"])
    if name not in _OF_KERNELS:
        raise ValueError(f"no derivative {name!r} is registered; there are {', '.join(_OF_KERNELS) or 'none'}: see register_te_gradient")
    args = list(orig_call.args[1].fields)
    further = dict(orig_call.attrs.get("te_grad_kwargs") or {})
    made = ctx.emit_te(_OF_KERNELS[name], output_grad, *args, **further, primfunc_name_hint=name)
    grads = Tuple([made]) if len(args) == 1 and isinstance(made.ty, TensorType) else made
    return [None, grads, *[None] * (len(orig_call.args) - 2)]


__all__ = ["AppendLoss", "gradient_of_kernel", "register_te_gradient"]
