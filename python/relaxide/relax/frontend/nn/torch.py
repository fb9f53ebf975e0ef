"""Models called with tensors of PyTorch."""

from ....runtime import ShapeTuple, Tensor, from_dlpack
from . import spec as _spec


def _torch():
    try:
        import torch
    except ImportError as error:
        raise ImportError('models with `out_format="torch"` need PyTorch; without it take `out_format="tvm"`') from error
    return torch


class TorchModule:
    """A loaded model: ``model["forward"](x)`` takes tensors of PyTorch and ints and gives tensors of PyTorch.

    Parameters
    ----------
    spec : ModuleSpec
        Its methods.
    vm : VirtualMachine
        The machine that runs them.
    params : list of Tensor
        The parameters' values.
    """

    def __init__(self, spec, vm, params):
        self.spec, self.vm, self.params = spec, vm, params
        #: The state of caches and output, None where there are none.
        self.effects = vm["_initialize_effect"]() if vm.module.implements_function("_initialize_effect") else None

    def __getitem__(self, method_name):
        if method_name not in self.spec.method_names:
            raise ValueError(f"Method `{method_name}` is not found in the module spec. {self.spec}")
        method_spec = self.spec.method_specs[self.spec.method_names.index(method_name)]
        method = self.vm[method_name]

        def call(*args):
            names = method_spec.arg_names
            if len(args) != len(names):
                raise TypeError(f"Argument length mismatch: {method_spec} takes {len(names)} arguments, got {len(args)}")
            given = [_given(name, spec, arg) for name, spec, arg in zip(names, method_spec.arg_specs, args)]
            if self.effects is None:
                return _returned(method(*given, *self.params))
            out, self.effects = method(*given, *self.effects, *self.params)
            return _returned(out)

        call.__name__ = method_name
        return call


def _returned(value):
    if isinstance(value, Tensor):
        return _torch().utils.dlpack.from_dlpack(value)
    if isinstance(value, ShapeTuple):
        return list(value)
    return [_returned(item) for item in value]


def _given(name, spec, value):
    if isinstance(spec, _spec.Tuple):
        return [_given(f"{name}[{at}]", item, value[at]) for at, item in enumerate(spec.elements)]
    if isinstance(spec, _spec.Int):
        if not isinstance(value, int):
            raise TypeError(f"Expected argument `{name}` to be `int`, but got {type(value)}")
        return ShapeTuple([value])
    if isinstance(spec, _spec.Tensor):
        if not isinstance(value, _torch().Tensor):
            raise TypeError(f"Expected argument `{name}` to be `torch.Tensor`, but got {type(value)}")
        return from_dlpack(value.detach().contiguous())
    return value


__all__ = ["TorchModule"]
