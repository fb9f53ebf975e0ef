"""An instrument of the virtual machine that compares the kernels of two libraries while a program runs."""

import numpy as np

from ...runtime import Module, tensor


class LibCompareVMInstrument:
    """Calls each kernel of a second library beside the one that the program calls, and compares what both give.

    Parameters
    ----------
    mod : Module
        The second library.
    device : Device
        Where its kernels run.
    verbose : bool
        Whether each comparison is printed.
    rtol, atol : float
        How far apart values may be.
    """

    def __init__(self, mod, device, verbose=True, rtol=1e-5, atol=1e-5):
        self.mod = mod if isinstance(mod, Module) else mod.jit() if hasattr(mod, "jit") else mod
        self.device, self.verbose, self.rtol, self.atol = device, verbose, rtol, atol
        self.counter = 0

    def compare(self, name, ref_args, new_args, ret_indices):
        """Compare arguments of both calls, those at ``ret_indices``; raise an AssertionError where they differ."""
        for at in ret_indices:
            ref, new = (args[at].numpy() for args in (ref_args, new_args))
            np.testing.assert_allclose(new, ref, rtol=self.rtol, atol=self.atol, err_msg=f"argument {at} of {name}")
        if self.verbose:
            print(f"[{self.counter}] {name}: equal")

    def skip_instrument(self, func, name, before_run, ret_val, *args):
        """Whether a call is not compared; for classes that derive from this one."""
        return False

    def __call__(self, func, name, before_run, ret_val, *args):
        if before_run or name.startswith("vm.builtin.") or not any(hasattr(arg, "numpy") for arg in args):
            return
        if self.skip_instrument(func, name, before_run, ret_val, *args):
            return
        try:
            other = self.mod.get_function(name, query_imports=True)
        except AttributeError:
            return
        given = [tensor(arg.numpy(), self.device) if hasattr(arg, "numpy") else arg for arg in args]
        other(*given)
        self.compare(name, args, given, [at for at, arg in enumerate(args) if hasattr(arg, "numpy")])
        self.counter += 1


__all__ = ["LibCompareVMInstrument"]
