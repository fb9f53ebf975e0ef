"""A model made ready for training: its loss, the gradients of that, and the optimizer's step."""

from ...ir.transform import module_pass
from .. import transform
from .utils import AppendLoss


def SetupTrainer(loss, optimizer, loss_args, legalize=True):
    """A pass that adds what :class:`Trainer` calls to a module with a function ``backbone``.

    The module says by its attributes ``param_num`` and ``state_num`` how many of ``backbone``'s last parameters are weights and
    states (weights stand before states). The functions that are added are ``backbone_loss``, ``backbone_loss_adjoint`` and
    ``optimizer``; the attributes ``input_num`` and ``optim_state``.

    Parameters
    ----------
    loss : Loss
        The loss.
    optimizer : Optimizer
        The optimizer.
    loss_args : list of TensorType
        The types of the loss's arguments.
    legalize : bool
        Whether operators become kernels.
    """

    @module_pass(opt_level=0, name="SetupTrainer")
    def run(mod, _):
        attrs = dict(mod.attrs or {})
        for name in ("param_num", "state_num"):
            if name not in attrs:
                raise ValueError(f"the module does not say its {name}: set it as an attribute of the module")
        params = list(mod["backbone"].params)
        param_num, state_num = int(attrs["param_num"]), int(attrs["state_num"])
        input_num = len(params) - param_num - state_num
        if input_num < 0 or param_num < 1:
            raise ValueError(f"backbone has {len(params)} parameters, of which {param_num} cannot be weights and {state_num} states")
        weights = params[input_num : input_num + param_num]
        mod = AppendLoss("backbone", loss(*loss_args), loss.num_backbone_outputs, "backbone_loss")(mod)
        trained = list(mod["backbone_loss"].params)[input_num : input_num + param_num]
        mod = transform.Gradient("backbone_loss", require_grads=trained)(mod)
        optimizer.init(weights)
        out = mod.clone()
        out["optimizer"] = optimizer.get_function().with_attr("global_symbol", "optimizer")
        out = out.with_attrs({"input_num": input_num, "optim_state": list(optimizer.state)})
        return transform.LegalizeOps()(out) if legalize else out

    return run


__all__ = ["SetupTrainer"]
