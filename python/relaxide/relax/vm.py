"""The virtual machine."""

import enum
from numbers import Number

from .._core import Device, Function, Module, Object, Tensor, load_virtual_machine
from ..ffi import get_global_func
from ..runtime import cpu, tensor
from ..runtime._tensor import _REMOTE
from ..runtime.profiling import Report
from .executable import VMExecutable


class VMInstrumentReturnKind(enum.IntEnum):
    """What an instrument says before a call: go on, or skip it."""

    NO_OP = 0
    SKIP_RUN = 1


class VirtualMachine:
    """Runs the functions of an executable.

    Parameters
    ----------
    rt_mod : Module or VMExecutable
        What to run.
    device : Device or list of Device
        Where; a CPU is added for shapes if the last is none.
    memory_cfg : "naive", "pooled" or a dict from Device to one of these, optional
        How memory is allocated; pooled where nothing is said.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(self, rt_mod, device, memory_cfg=None):
        if isinstance(rt_mod, VMExecutable):
            rt_mod = rt_mod.jit()
        if not isinstance(rt_mod, Module):
            raise ValueError(f"Expect the rt_mod to be an runtime.Module, got {type(rt_mod).__name__}")
        devices = list(device) if isinstance(device, (list, tuple)) else [device]
        for dev in devices:
            if not isinstance(dev, Device):
                raise TypeError(f"dev is expected to be Device or List[Device], got {type(dev).__name__}")
        if not devices or devices[-1].dlpack_device_type() % _REMOTE != Device.CPU:
            devices.append(cpu())
        self.module = load_virtual_machine(rt_mod, [(dev, self._allocator(memory_cfg, dev)) for dev in devices])
        if all(dev.dlpack_device_type() < _REMOTE for dev in devices):
            self.set_strided_results(True)

    def _allocator(self, memory_cfg, dev):
        kinds = {"naive": self.NAIVE_ALLOCATOR, "pooled": self.POOLED_ALLOCATOR}
        if memory_cfg is not None and not isinstance(memory_cfg, (str, dict)):
            raise TypeError(f"memory_cfg is expected be string or dictionary, but received {type(memory_cfg)}")
        choice = memory_cfg.get(dev, "pooled") if isinstance(memory_cfg, dict) else memory_cfg or "pooled"
        choice = kinds.get(choice, choice)
        if choice not in kinds.values():
            raise ValueError(f"memory_cfg asks for allocator {choice!r} on {dev}; expected 'naive' or 'pooled'")
        return choice

    def __getitem__(self, key):
        return self.module[key]

    def output_names(self, func_name="main"):
        """The names of what a function returns, in order: those of the ONNX model for ``main``; empty if the file has none.

        Relaxide's own.
        """
        return [str(name) for name in self.module["get_output_names"](func_name)]

    def invoke_closure(self, closure, *args):
        """Call a closure that a function returned."""
        return self.module["invoke_closure"](closure, *args)

    def save_function(self, func_name, saved_name, *args, include_return=True, **kwargs):
        """Bind arguments to a function under a new name, to be called without any."""
        args = self._arguments(func_name, args, kwargs)
        self.module["save_function"](func_name, saved_name, int(include_return), *args)

    def set_input(self, func_name, *args, **kwargs):
        """Keep arguments for :meth:`invoke_stateful`."""
        self.module["set_input"](func_name, *self._arguments(func_name, args, kwargs))

    def invoke_stateful(self, func_name):
        """Call a function with the arguments of :meth:`set_input` and keep its result."""
        self.module["invoke_stateful"](func_name)

    def get_outputs(self, func_name):
        """The result that :meth:`invoke_stateful` kept; tuples nest."""
        arity = self.module["get_output_arity"]
        output = self.module["get_output"]

        def at(*path):
            count = arity(func_name, *path)
            if count < 0:
                return output(func_name, *path)
            return tuple(at(*path, i) for i in range(count))

        return at()

    def set_instrument(self, instrument):
        """Call ``instrument(func, name, before_run, ret_value, *args)`` around every call of the virtual machine."""
        self.module["set_instrument"](instrument)

    def set_limits(self, instructions=None, memory=None, milliseconds=None, depth=None):
        """Limit what a call may use: instructions, bytes of its tensors and stack, time, functions inside each other.

        A call that reaches a limit ends in an error that names it. Without arguments nothing is limited. Relaxide's own.
        """
        self.module["set_limits"](instructions, memory, milliseconds, depth)

    def set_strided_results(self, allowed):
        """Say whether results may have strides, which they may unless another machine runs them.

        What a program lengthens and gives back, as a decoder does its caches of keys and values, grows where it is then: the result of one call
        and that of the next share memory, and the next writes nothing where the first has elements. ``numpy()`` of such a result is a compact
        copy; what shares its memory by DLPack has gaps, and must not be written to. Relaxide's own.
        """
        self.module["set_strided_results"](bool(allowed))

    def profile(self, func_name, *args):
        """Call a function and report what each function of the program took: a ``runtime.profiling.Report``."""
        report = self.module["profile_report"](func_name, *args)
        if self.module.kind != "rpc":
            return Report(report)
        return Report(report, get_global_func("rpc.SessionOf")(self.module).get_function)

    def time_evaluator(
        self,
        func_name,
        dev,
        number=10,
        repeat=1,
        min_repeat_ms=0,
        cooldown_interval_ms=0,
        repeats_to_cooldown=1,
        f_preproc="",
    ):
        """A function that times ``func_name`` as :meth:`Module.time_evaluator` does."""
        return self.module.time_evaluator(
            func_name,
            dev,
            number=number,
            repeat=repeat,
            min_repeat_ms=min_repeat_ms,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
            f_preproc=f_preproc,
        )

    def _arguments(self, func_name, args, kwargs):
        return [_convert(arg) for arg in (self._in_order(func_name, args, kwargs) if kwargs else args)]

    def _in_order(self, func_name, args, kwargs):
        """Named arguments at their parameters' places, the others at the places that are left."""
        name_of = self.module["get_function_param_name"]
        names = [name_of(func_name, i) for i in range(self.module["get_function_arity"](func_name))]
        for name in kwargs.keys() - set(names):
            import warnings

            warnings.warn(f'Keyword argument "{name}" is unused in {func_name}', stacklevel=4)
        rest = [name for name in names if name not in kwargs]
        if len(rest) != len(args):
            given = f"{len(args)} arguments are given beside the named ones"
            raise ValueError(f"{func_name} takes {', '.join(rest) or 'nothing'} besides {', '.join(kwargs)}, but {given}")
        values = dict(zip(rest, args), **kwargs)
        return [values[name] for name in names]


def _convert(arg):
    """An argument as functions of the virtual machine take it: arrays and numbers become tensors on the CPU."""
    if isinstance(arg, (Tensor, Object, Function, str, tuple)) and type(arg) is not tuple:
        return arg
    if isinstance(arg, (tuple, list)):
        return tuple(_convert(item) for item in arg)
    if isinstance(arg, (Number, bool)) and not hasattr(arg, "dtype"):
        import numpy as np

        return tensor(np.array(arg, dtype="int32" if isinstance(arg, int) else "float32"))
    if hasattr(arg, "__array__"):
        return tensor(arg)
    raise TypeError(f"Unsupported type: {type(arg)}")
