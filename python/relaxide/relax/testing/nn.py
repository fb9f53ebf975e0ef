"""Small models that emit into the block builder around them, and marks of what training computes twice."""

import numpy as np

from ... import relax, topi
from ...runtime import tensor
from ..frontend.nn.subroutine import SubroutineMixin
from ..op.grad import end_checkpoint, start_checkpoint


def _builder():
    builder = relax.BlockBuilder.current()
    if builder is None:
        raise RuntimeError("no block builder is open: write `with builder.function(...):` around")
    return builder


def emit(expr, name_hint=""):
    """A variable for an expression, in the builder around."""
    return _builder().emit(expr, name_hint=name_hint)


def emit_te(func, *args, **kwargs):
    """A variable for what a function of tensors computes, in the builder around."""
    return _builder().emit_te(func, *args, **kwargs)


def _each(function, value):
    """A function of an expression, of each where there are several; other values stay."""
    if isinstance(value, (list, tuple)):
        return [_each(function, item) for item in value]
    return function(value) if isinstance(value, relax.Expr) else value


def checkpoint(func, *args, **kwargs):
    """What a function gives, marked so that training keeps its arguments and computes the rest again."""
    args = [_each(start_checkpoint, value) for value in args]
    kwargs = {name: _each(start_checkpoint, value) for name, value in kwargs.items()}
    return _each(end_checkpoint, func(*args, **kwargs))


def emit_checkpoint(func, *args, **kwargs):
    """As :func:`checkpoint`, with a variable for each mark, named after what is marked with ``_scp`` or ``_ecp`` behind."""
    builder = _builder()

    def begin(value):
        return builder.emit(start_checkpoint(value), f"{value.name}_scp") if isinstance(value, relax.Var) else value

    def end(value):
        value = value if isinstance(value, relax.Var) else builder.emit(value)
        return builder.emit(end_checkpoint(value), f"{value.name}_ecp")

    return _each(end, func(*map(begin, args), **{name: begin(value) for name, value in kwargs.items()}))


def emit_checkpoint_sequential(functions, segments, input, checkpoint_last=False):
    """Functions one after the other, in segments of which training keeps the inputs only.

    ``segments`` is how many there are, of equal length, or where each begins. The last is computed as it is unless ``checkpoint_last``.
    """
    count = len(functions)
    bounds = list(segments) if isinstance(segments, list) else list(range(0, count, max(count // segments, 1)))
    bounds = bounds if bounds and bounds[-1] == count else [*bounds, count]
    for begin, end in zip(bounds, bounds[1:]):

        def run(value, chosen=functions[begin:end]):
            for function in chosen:
                value = function(value)
            return value

        input = emit_checkpoint(run, input) if end != count or checkpoint_last else run(input)
    return input if isinstance(input, relax.Var) else emit(input)


def _variable_type(shape, dtype):
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"the shape is a list or a tuple, not {type(shape).__name__}")
    return relax.TensorType(list(shape), dtype)


def _new_name(name):
    """The name, made unique by the builder around where there is one."""
    builder = relax.BlockBuilder.current()
    return name if builder is None else builder.get_unique_name(name)


class Placeholder(relax.Var):
    """A variable for what a model is given."""

    def __init__(self, shape, dtype="float32", name="data"):
        super().__init__(_new_name(name), _variable_type(shape, dtype))


class Parameter(relax.Var):
    """A variable for a weight."""

    def __init__(self, shape, dtype="float32", name="param"):
        super().__init__(_new_name(name), _variable_type(shape, dtype))


def _parameters(value):
    if isinstance(value, Parameter):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [parameter for item in items for parameter in _parameters(item)]


class Module(SubroutineMixin):
    """A part of a model. Where ``define_subroutine`` is set, calls of it are calls of a function of their own."""

    define_subroutine = False

    def parameters(self):
        """The weights of it and of its parts."""
        return _parameters(vars(self))

    def forward(self, input):
        """What it computes."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)


class Sequential(Module):
    """Modules one after the other."""

    def __init__(self, *modules):
        self.modules = modules

    def forward(self, input):
        """What they compute."""
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    """Zero where the input is below it."""

    def forward(self, input):
        """What it computes."""
        return emit_te(topi.nn.relu, input)


class LogSoftmax(Module):
    """The logarithm of the softmax."""

    def forward(self, input):
        """What it computes."""
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """A product with a weight of shape (in, out), and a bias unless there shall be none."""

    def __init__(self, in_features, out_features, bias=True):
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input):
        """What it computes."""
        product = emit_te(topi.matmul, input, self.weight)
        return product if self.bias is None else emit_te(topi.add, product, self.bias)


def init_params(mod):
    """Zeros for the parameters of ``main`` whose names do not begin with ``data``."""
    made = []
    for var in mod["main"].params:
        if var.name.startswith("data"):
            continue
        shape = getattr(var.ty, "shape", None)
        dims = [None] if shape is None else [getattr(dim, "value", None) for dim in shape]
        if None in dims:
            raise TypeError(f"the shape of {var.name} is not known: {var.ty}")
        made.append(tensor(np.zeros(dims, "float32")))
    return made


__all__ = ["Linear", "LogSoftmax", "Module", "Parameter", "Placeholder", "ReLU", "Sequential", "checkpoint", "emit", "emit_checkpoint"]
__all__ += ["emit_checkpoint_sequential", "emit_te", "init_params"]
