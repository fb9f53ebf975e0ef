"""Losses: functions of a program from predictions and targets to a number."""

from .. import op
from ..block_builder import BlockBuilder
from ..expr import Var
from ..type import TensorType


class Loss:
    """The base of losses. Called with types (or variables) of predictions, targets and perhaps weights, it writes the function.

    Parameters
    ----------
    loss_name : str
        The function's name.
    num_backbone_outputs : int
        How many of its arguments the model gives.
    reduction : str
        ``"mean"``, ``"sum"`` or ``"none"``.
    """

    _valid_reductions = ["mean", "sum", "none"]

    def __init__(self, loss_name, num_backbone_outputs, reduction="mean"):
        if reduction not in self._valid_reductions:
            raise ValueError(f"the reduction is one of {', '.join(self._valid_reductions)}, got {reduction!r}")
        self._loss_name, self._num_backbone_outputs, self._reduction = loss_name, num_backbone_outputs, reduction

    @property
    def num_backbone_outputs(self):
        """How many of the function's arguments the model gives."""
        return self._num_backbone_outputs

    def _reduced(self, expr):
        return expr if self._reduction == "none" else getattr(op, self._reduction)(expr)

    def _write(self, names, types, compute):
        """The function of arguments with these types; those that are not given are left out."""
        params = [_variable(name, ty) for name, ty in zip(names, types) if ty is not None]
        builder = BlockBuilder()
        with builder.function(self._loss_name, params):
            with builder.dataflow():
                out = builder.emit_output(compute(*params))
            builder.emit_func_output(out)
        return builder.get()[self._loss_name]


def _variable(name, ty):
    if isinstance(ty, Var):
        return Var(ty.name_hint, ty.ty)
    if not isinstance(ty, TensorType):
        raise TypeError(f"{name} of a loss is given as a TensorType or a variable, got {type(ty).__name__}")
    return Var(name, ty)


class L1Loss(Loss):
    """The absolute difference."""

    def __init__(self, reduction="mean"):
        super().__init__("l1_loss", 1, reduction)

    def __call__(self, predictions, targets):
        def compute(x, y):
            return self._reduced(op.abs(op.subtract(x, y)))

        return self._write(("predictions", "targets"), (predictions, targets), compute)


class MSELoss(Loss):
    """The square of the difference."""

    def __init__(self, reduction="mean"):
        super().__init__("mse_loss", 1, reduction)

    def __call__(self, predictions, targets):
        def compute(x, y):
            difference = op.subtract(x, y)
            return self._reduced(op.multiply(difference, difference))

        return self._write(("predictions", "targets"), (predictions, targets), compute)


class CrossEntropyLoss(Loss):
    """The cross entropy of logits and classes.

    Parameters
    ----------
    reduction : str
        See :class:`Loss`.
    ignore_index : int
        The class that does not count.
    """

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__("cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions, targets, weights=None):
        def compute(x, y, *weights):
            how = {"reduction": self._reduction, "ignore_index": self.ignore_index}
            return op.nn.nll_loss(op.nn.log_softmax(x), y, *weights, **how)

        return self._write(("predictions", "targets", "weights"), (predictions, targets, weights), compute)


class CategoricalCrossEntropyLoss(Loss):
    """The cross entropy of logits and distributions over the classes, of the predictions' shape: of all elements.

    With an ``ignore_index`` that is not negative, the likeliest class of each distribution is its only one, and that one does not
    count. Weights are a factor for each class.
    """

    def __init__(self, reduction="mean", ignore_index=-100):
        super().__init__("categorical_cross_entropy_loss", 1, reduction)
        self.ignore_index = ignore_index

    def __call__(self, predictions, targets, weights=None):
        ty = targets.ty if isinstance(targets, Var) else targets
        if not str(ty.dtype).startswith(("int", "uint", "float")):
            raise TypeError(f"targets are numbers, got {ty.dtype}")

        def compute(x, y, *weights):
            logs = op.nn.log_softmax(x)
            if self.ignore_index >= 0:
                how = {"reduction": self._reduction, "ignore_index": self.ignore_index}
                return op.nn.nll_loss(logs, op.argmax(y, axis=1), *weights, **how)
            terms = op.multiply(op.negative(logs), op.astype(y, str(logs.ty.dtype)))
            return self._reduced(op.multiply(terms, weights[0]) if weights else terms)

        return self._write(("predictions", "targets", "weights"), (predictions, targets, weights), compute)


__all__ = ["CategoricalCrossEntropyLoss", "CrossEntropyLoss", "L1Loss", "Loss", "MSELoss"]
