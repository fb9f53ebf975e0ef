"""Functions that programs in tests call by name. They are registered when this module is imported."""

import numpy as np

from ... import runtime
from ...ffi import register_global_func


@register_global_func("test.vm.move")
def move(src):
    """What it is given."""
    return src


@register_global_func("test.vm.add")
def add(a, b):
    """The sum of two tensors."""
    return runtime.tensor(a.numpy() + b.numpy())


@register_global_func("test.vm.mul")
def mul(a, b):
    """The product of two tensors, element by element."""
    return runtime.tensor(a.numpy() * b.numpy())


@register_global_func("test.vm.equal_zero")
def equal_zero(a):
    """Whether all elements are zero, as a tensor without dimensions."""
    return runtime.tensor((a.numpy() == 0).all())


@register_global_func("test.vm.subtract_one")
def subtract_one(a):
    """A tensor with each element less one."""
    return runtime.tensor(np.subtract(a.numpy(), 1))


@register_global_func("test.vm.identity")
def identity_packed(a, b):
    """Writes a tensor into another."""
    b[:] = runtime.tensor(a.numpy())


@register_global_func("test.vm.tile")
def tile_packed(a, b):
    """Writes a tensor, twice in each dimension of a matrix, into another."""
    b[:] = runtime.tensor(np.tile(a.numpy(), (1, 2)))


@register_global_func("test.vm.add_scalar")
def add_scalar(a, b):
    """The sum of two numbers."""
    return a + b


@register_global_func("test.vm.get_device_id")
def get_device_id(device):
    """The number of a device."""
    return device.index


@register_global_func("test.vm.check_if_defined")
def check_if_defined(obj):
    """Whether there is an object."""
    return runtime.tensor(np.array(obj is not None))


def check_saved_func(vm, func_name, *inputs):
    """What a function of a machine gives, once its arguments are saved under a name and it is called by that.

    Parameters
    ----------
    vm : VirtualMachine
        The machine.
    func_name : str
        The function.
    inputs
        Its arguments.
    """
    saved = f"{func_name}_saved"
    vm.save_function(func_name, saved, *inputs)
    return vm[saved]()
