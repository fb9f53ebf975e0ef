"""Training loops over a compiled module."""

import numpy as np

from ... import runtime


class Trainer:
    """Holds weights and states, and steps::

        trainer = Trainer(mod, relax.VirtualMachine(tvm.compile(mod, "llvm"), device), device)
        trainer.xaiver_uniform_init_params()
        for images, labels in batches:
            loss = trainer.update(images, labels)

    Parameters
    ----------
    train_mod : IRModule
        What :func:`SetupTrainer` made.
    vm : VirtualMachine
        The machine that runs it.
    device : Device
        Where weights are.
    zero_init_param_state : bool
        Whether weights and states begin as zeros; else they are to be loaded.
    """

    BACKBONE_FUNC = "backbone"
    BACKBONE_LOSS_FUNC = "backbone_loss"
    ADJOINT_FUNC = "backbone_loss_adjoint"
    OPTIMIZER_FUNC = "optimizer"

    def __init__(self, train_mod, vm, device, zero_init_param_state=True):
        attrs = dict(train_mod.attrs or {})
        self.mod, self.vm, self.device = train_mod, vm, device
        self._counts = [int(attrs[name]) for name in ("input_num", "param_num", "state_num")]
        inputs, params, states = self._counts
        variables = list(train_mod[self.BACKBONE_FUNC].params)
        self._param_vars, self._state_vars = variables[inputs : inputs + params], variables[inputs + params :]
        self._params, self._states = [None] * params, [None] * states
        self._optim_states = [self._placed(value) for value in attrs["optim_state"]]
        if zero_init_param_state:
            self.zero_init_params()
            self.zero_init_states()

    def _placed(self, value):
        array = value.numpy() if isinstance(value, runtime.Tensor) else np.asarray(value)
        return runtime.tensor(array, self.device)

    def _filled(self, variables, make):
        values = []
        for var in variables:
            shape = [getattr(dim, "value", None) for dim in var.ty.shape.values]
            if None in shape:
                raise ValueError(f"{var.name_hint} has symbolic lengths ({var.ty}): load its value")
            values.append(self._placed(make(shape).astype(str(var.ty.dtype))))
        return values

    def zero_init_params(self):
        """Begin with weights of zero."""
        self._params = self._filled(self._param_vars, np.zeros)

    def zero_init_states(self):
        """Begin with states of zero."""
        self._states = self._filled(self._state_vars, np.zeros)

    def xaiver_uniform_init_params(self):
        """Begin with uniform random weights between ``±sqrt(6 / (fan in + fan out))``, and vectors of zeros.

        Source: `Understanding the difficulty of training deep feedforward neural networks`, Glorot and Bengio, 2010.
        """

        def make(shape):
            if len(shape) < 2:
                return np.zeros(shape)
            area = int(np.prod(shape[2:], dtype=int))
            bound = np.sqrt(6.0 / ((shape[0] + shape[1]) * area))
            return np.random.uniform(-bound, bound, shape)

        self._params = self._filled(self._param_vars, make)

    def _load(self, held, variables, values, what):
        names = [var.name_hint for var in variables]
        if isinstance(values, dict):
            unknown = [name for name in values if name not in names]
            if unknown:
                raise ValueError(f"there is no {what} {', '.join(unknown)}; there are {', '.join(names)}")
            pairs = [(names.index(name), value) for name, value in values.items()]
        elif len(values) == len(names):
            pairs = list(enumerate(values))
        else:
            raise ValueError(f"there are {len(names)} {what}s, got {len(values)}")
        for at, value in pairs:
            held[at] = self._placed(value)

    def load_params(self, params):
        """Take weights from a list of all of them, or some of them by name."""
        self._load(self._params, self._param_vars, params, "parameter")

    def load_states(self, states):
        """Take states from a list of all of them, or some of them by name."""
        self._load(self._states, self._state_vars, states, "state")

    def export_params(self):
        """The weights by name."""
        return {var.name_hint: value for var, value in zip(self._param_vars, self._params)}

    def export_states(self):
        """The states by name."""
        return {var.name_hint: value for var, value in zip(self._state_vars, self._states)}

    def _weights(self):
        pairs = zip([*self._param_vars, *self._state_vars], [*self._params, *self._states])
        missing = [var.name_hint for var, value in pairs if value is None]
        if missing:
            raise RuntimeError(f"the trainer has no value of {', '.join(missing)}: load them, or begin with zeros")
        return [*self._params, *self._states]

    def _inputs(self, values):
        values = values if isinstance(values, (list, tuple)) else [values]
        if len(values) != self._counts[0]:
            raise ValueError(f"the model takes {self._counts[0]} inputs, got {len(values)}")
        return [self._placed(value) for value in values]

    def predict(self, *input_instances):
        """The model's result on inputs."""
        out = self.vm[self.BACKBONE_FUNC](*self._inputs(input_instances), *self._weights())
        return out[0] if self._states else out

    def update(self, input_instances, targets):
        """One step: gradients of the loss, then the optimizer. Returns the loss before it."""
        targets = targets if isinstance(targets, (list, tuple)) else [targets]
        targets = [self._placed(value) for value in targets]
        loss, gradients = self.vm[self.ADJOINT_FUNC](*self._inputs(input_instances), *self._weights(), *targets)
        if self._states:
            loss, *self._states = loss
        params, states = self.vm[self.OPTIMIZER_FUNC](self._params, gradients, self._optim_states)
        self._params, self._optim_states = list(params), list(states)
        return loss


__all__ = ["Trainer"]
