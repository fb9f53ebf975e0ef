"""Optimizers: functions of a program from parameters, gradients and a state to new parameters and a new state."""

import numpy as np

from ... import runtime
from .. import op
from ..block_builder import BlockBuilder
from ..expr import Tuple, TupleGetItem, Var, const
from ..type import TensorType, TupleType


class Optimizer:
    """The base: :meth:`init` says which parameters there are, :meth:`get_function` writes the function.

    Attributes
    ----------
    state : list of Tensor
        The first state.
    """

    #: What is held of each parameter, by the ends of the names of its variables.
    _own = ()

    def __init__(self, name):
        self.name, self.param_list, self.dtype, self.state = name, None, None, None

    def init(self, params):
        """Say which parameters are optimized: variables of tensors of one float type and of known shape.

        Returns
        -------
        Optimizer
            The optimizer itself.
        """
        params = [params] if isinstance(params, Var) else params
        if not isinstance(params, (list, tuple)) or not params or not all(isinstance(param, Var) for param in params):
            raise ValueError(f"an optimizer takes a variable or a list of variables, got {params}")
        params = list(params)
        names = [param.name_hint for param in params]
        for param in params:
            if not isinstance(param.ty, TensorType) or param.ty.shape is None or not str(param.ty.dtype).startswith("float"):
                raise ValueError(f"the parameter {param.name_hint} is of type {param.ty}; a tensor of floats of known shape is optimized")
        dtypes = sorted({str(param.ty.dtype) for param in params})
        if len(set(names)) != len(names) or len(dtypes) != 1:
            raise ValueError(f"parameters have names of their own and one element type, got {names} of {dtypes}")
        self.param_list, self.dtype = params, dtypes[0]
        self.state = [runtime.tensor(np.array(0, "int64")), *self._first_state()]
        return self

    def _first_state(self):
        """The state behind the number of steps."""
        return []

    def _zeros(self):
        for param in self.param_list:
            yield runtime.tensor(np.zeros([int(dim) for dim in param.ty.shape.values], self.dtype))

    def _const(self, value):
        return const(value, self.dtype)

    def get_function(self):
        """The function of the program: ``(params, gradients, optim_states)`` to ``(new params, new states)``, each a tuple."""
        if self.param_list is None:
            raise RuntimeError("Please call init() for the optimizer before calling get_function(): it does not know its parameters")
        types = TupleType([param.ty for param in self.param_list])
        states = TupleType([TensorType(list(value.shape), str(value.dtype)) for value in self.state])
        given = [Var("params", types), Var("gradients", types), Var("optim_states", states)]
        builder = BlockBuilder()
        with builder.function(self.name, given):
            with builder.dataflow():
                params, held = self._step(builder, *given)
                params, held = builder.emit_output(Tuple(params), "params_new"), builder.emit_output(Tuple(held), "optim_states_new")
            builder.emit_func_output(Tuple([params, held]))
        return builder.get()[self.name]

    def _step(self, builder, params, gradients, states):
        """``(new parameters, new state)``."""
        steps = builder.emit(TupleGetItem(states, 0), "num_steps")
        steps = builder.emit(op.add(steps, const(1, "int64")), "num_steps_new")
        shared = self._shared(builder, states)
        made, kept = [], []
        for at, param in enumerate(self.param_list):
            name = param.name_hint
            value = builder.emit(TupleGetItem(params, at), name)
            gradient = builder.emit(TupleGetItem(gradients, at), f"{name}_grad")
            places = range(1 + len(shared) + at, len(self.state), len(self.param_list))
            held = [builder.emit(TupleGetItem(states, i), f"{name}_{own}") for i, own in zip(places, self._own)]
            if self.weight_decay:
                decay = op.multiply(self._const(self.weight_decay), value)
                gradient = builder.emit(op.add(decay, gradient), f"{name}_grad_new")
            direction, own = self._direction(builder, name, gradient, held, shared)
            change = op.multiply(self._const(self.lr), direction)
            made.append(builder.emit(op.subtract(value, change), f"{name}_new"))
            kept.append(own)
        columns = [list(column) for column in zip(*kept)]
        return made, [steps, *shared, *(value for column in columns for value in column)]

    def _shared(self, builder, states):
        """The new state that all parameters share, behind the number of steps."""
        return []

    def _direction(self, builder, name, gradient, held, shared):
        """``(what is subtracted from a parameter, times the rate; its new state)``."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it steps")


class SGD(Optimizer):
    """Stochastic gradient descent: ``p - lr * (g + weight_decay * p)``."""

    def __init__(self, lr, weight_decay=0):
        super().__init__("SGD")
        self.lr, self.weight_decay = float(lr), float(weight_decay)

    def _direction(self, builder, name, gradient, held, shared):
        return gradient, []


class MomentumSGD(Optimizer):
    """Descent with momentum: ``v = momentum * v + (1 - dampening) * g``, ``p - lr * v``; Nesterov's variant looks ahead.

    Source: `On the importance of initialization and momentum in deep learning`, Sutskever et al., 2013.
    """

    _own = ("v",)

    def __init__(self, lr, momentum, dampening=0, weight_decay=0, nesterov=False):
        super().__init__("MomentumSGD")
        self.lr, self.momentum, self.weight_decay = float(lr), float(momentum), float(weight_decay)
        self.dampening, self.nesterov = float(dampening), nesterov

    def _first_state(self):
        return list(self._zeros())

    def _direction(self, builder, name, gradient, held, shared):
        kept = op.multiply(self._const(self.momentum), held[0])
        added = op.multiply(self._const(1 - self.dampening), gradient) if self.dampening else gradient
        speed = builder.emit(op.add(kept, added), f"{name}_v_new")
        if not self.nesterov:
            return speed, [speed]
        ahead = op.multiply(self._const(self.momentum), speed)
        return builder.emit(op.add(gradient, ahead), f"{name}_g_nest"), [speed]


class Adam(Optimizer):
    """`Adam: A Method for Stochastic Optimization`, Kingma and Ba, 2015."""

    _own = ("m", "v")

    def __init__(self, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0):
        super().__init__("Adam")
        self.lr, self.betas = float(lr), (float(betas[0]), float(betas[1]))
        self.eps, self.weight_decay = float(eps), float(weight_decay)

    def _first_state(self):
        ones = [runtime.tensor(np.array(1, self.dtype)) for _ in self.betas]
        return [*ones, *self._zeros(), *self._zeros()]

    def _shared(self, builder, states):
        products = []
        for at, beta in enumerate(self.betas):
            product = builder.emit(TupleGetItem(states, at + 1), f"beta_{at}_prod")
            products.append(builder.emit(op.multiply(product, self._const(beta)), f"beta_{at}_prod"))
        return products

    def _direction(self, builder, name, gradient, held, shared):
        means = []
        for mean, beta, letter in zip(held, self.betas, self._own):
            kept = op.multiply(self._const(beta), mean)
            value = gradient if letter == "m" else op.multiply(gradient, gradient)
            added = op.multiply(self._const(1 - beta), value)
            means.append(builder.emit(op.add(kept, added), f"{name}_{letter}_new"))
        first, second = (
            builder.emit(op.divide(mean, op.subtract(self._const(1), product)), f"{name}_{letter}_hat")
            for mean, product, letter in zip(means, shared, "mv")
        )
        return op.divide(first, op.add(op.sqrt(second), self._const(self.eps))), means


__all__ = ["Adam", "MomentumSGD", "Optimizer", "SGD"]
