"""The Relay VM: compilation, executables, machines.

::

    exe = relay.vm.compile(mod, target="llvm", params=params)
    machine = runtime.vm.VirtualMachine(exe, tvm.cpu())
    machine.invoke("main", x)
"""

import re
import tempfile
import time
from pathlib import Path

from .. import _core
from .._core import Device, Module, Tensor
from ..ffi import register_object
from ..ir.base import Node
from ..ir.transform import PassContext
from ..runtime import BenchmarkResult, cpu, load_module, tensor
from ..runtime.params import load_param_dict_from_file
from ..target import Target
from . import _api
from .module import module_of


def bind_params(mod, params):
    """A module whose ``main`` has constants in the place of parameters, by name."""
    if not params:
        return mod
    values = {name: value if isinstance(value, Tensor) else tensor(value) for name, value in params.items()}
    bound = mod.clone()
    bound["main"] = _api.ir.BindParams(mod["main"], values)
    return bound


def target_of(target):
    """The target of a text, of a target, or of the ``with`` block around."""
    if target is None:
        return Target.current()
    if isinstance(target, dict):
        target = next(iter(target.values()))
    return target if isinstance(target, Target) else Target(target)


def compile(mod, target=None, target_host=None, params=None):
    """Compile a module for the Relay VM."""
    mod = bind_params(module_of(mod), params)
    context = PassContext.current()
    fallback = dict(context.config).get("relay.fallback_device_type")
    compiled = _core.relay_compile(mod._node, target_of(target), list(context.disabled_pass), fallback)
    return Executable(compiled)


class Executable:
    """A compiled program: bytecode, constants and native kernels."""

    def __init__(self, compiled, loaded=None):
        self._compiled, self._loaded = compiled, loaded

    @property
    def mod(self):
        """The module, with its kernels, ready to run."""
        if self._loaded is None:
            self._loaded = self._compiled.jit()
        return self._loaded

    @property
    def module(self):
        """The module."""
        return self.mod

    def _tell(self, name, *args):
        return self.mod[name](*args)

    def save(self):
        """``(bytes of the program, library of its kernels)``."""
        return bytes(self._tell("save")), self.lib

    @staticmethod
    def load_exec(bytecode, lib):
        """The executable of the bytes of a program and a library of its kernels, or the path of one."""
        load = _core.get_global_func("ffi.Module.load_from_bytes.VMExecutable")
        if isinstance(lib, str):
            lib = load_module(lib)
        module = load(bytes(bytecode))
        if lib is not None:
            module.import_module(lib)
        return Executable(None, module)

    def export_library(self, file_name, **_):
        """Write program and kernels as one shared library; :func:`load` reads it."""
        if self._compiled is None:
            raise ValueError("an executable that was loaded is in a file already")
        self._compiled.export_library(str(file_name))

    @property
    def lib(self):
        """The kernels."""
        return self._tell("get_lib")

    @property
    def bytecode(self):
        """The instructions as the document writes them."""
        return str(self._tell("get_bytecode"))

    @property
    def stats(self):
        """How many there are of what."""
        return str(self._tell("get_stats"))

    @property
    def constants(self):
        """The constants, one a line."""
        return str(self._tell("get_constants"))

    @property
    def primitive_ops(self):
        """The names of the kernels."""
        return [line.partition(": ")[2] for line in str(self._tell("get_primitives")).splitlines()]

    @property
    def virtual_devices(self):
        """The devices, one a line."""
        return str(self._tell("get_virtual_devices"))

    @property
    def primitives(self):
        """The kernels, one a line."""
        return str(self._tell("get_primitives"))

    @property
    def globals(self):
        """The names of the functions."""
        return re.findall(r"^VM Function\[\d+\]: ([^(]*)\(", self.bytecode, re.MULTILINE)

    def get_function_params(self, func_name):
        """The names of a function's parameters."""
        count = self._tell("get_function_arity", func_name)
        return [str(self._tell("get_function_param_name", func_name, i)) for i in range(count)]

    def move_late_bound_consts(self, path, byte_limit):
        """Write the constants of at least so many bytes to a file, to be bound when the program is loaded."""
        self._tell("move_late_bound_consts", str(path), byte_limit)

    def get_late_bound_consts(self, byte_limit):
        """Take the constants of at least so many bytes out: tensors by name, to be bound before the program runs."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "constants.params"
            self.move_late_bound_consts(path, byte_limit)
            return load_param_dict_from_file(path)

    def load_late_bound_consts(self, path):
        """Bind constants from the file that :meth:`move_late_bound_consts` wrote."""
        self._tell("load_late_bound_consts", str(path))

    def load_late_bound_consts_from_map(self, map):
        """Bind constants from tensors by name."""
        self._tell("load_late_bound_consts_from_map", map)

    def inspect_source(self, fmt=""):
        """The native code as text."""
        return self._compiled.inspect_source(fmt)


def load(path):
    """The executable of a library that :meth:`Executable.export_library` wrote."""
    return Executable(None, load_module(str(path)))


@register_object("relay.vm.ADT")
class ADT(Node):
    """A value of a data type, or a tuple, whose tag is 0."""

    def __init__(self, tag, fields):
        self.__init_handle_by_constructor__(_api.vm.MakeADT, tag, [value_of(field) for field in fields])

    @property
    def constructor_tag(self):
        """The tag of what made it."""
        return self.tag

    def __len__(self):
        return len(self.fields)

    def __getitem__(self, index):
        return self.fields[index]

    def __iter__(self):
        return iter(self.fields)

    def __repr__(self):
        return f"ADT(tag={self.tag}, {list(self.fields)!r})"

    __str__ = __repr__


@register_object("relay.vm.Ref")
class RefValue(Node):
    """A reference."""

    @property
    def value(self):
        """What it holds."""
        return _api.vm.RefGet(self)

    def __repr__(self):
        return "RefValue"


def tuple_object(fields=None):
    """A tuple of values."""
    return ADT(0, fields or [])


def value_of(value):
    """A value as programs take it: arrays and numbers become tensors, lists and tuples become tuples."""
    # Nearly all values are tensors; the questions below would take longer than a small kernel.
    if type(value) is Tensor:
        return value
    if isinstance(value, (list, tuple)) and not isinstance(value, ADT):
        return ADT(0, value)
    if isinstance(value, (int, float, bool)) and not hasattr(value, "dtype"):
        import numpy as np

        return tensor(np.array(value, dtype="bool" if isinstance(value, bool) else "int32" if isinstance(value, int) else "float32"))
    if hasattr(value, "__array__") and not isinstance(value, Tensor):
        return tensor(value)
    return value


class VirtualMachine:
    """Runs the functions of an executable."""

    NAIVE_ALLOCATOR, POOLED_ALLOCATOR = 1, 2

    def __init__(self, exe, device, memory_cfg=None):
        if not isinstance(exe, (Executable, Module)):
            raise TypeError(f"exe is expected to be the type of Executable, but received {type(exe)}")
        module = exe.mod if isinstance(exe, Executable) else exe
        self._exec = exe
        self.module = module["vm_load_executable"]()
        devices = list(device) if isinstance(device, (list, tuple)) else [device]
        if not any(dev.dlpack_device_type() == Device.CPU for dev in devices):
            devices.append(cpu())
        numbers = []
        for dev in devices:
            choice = memory_cfg.get(dev, "pooled") if isinstance(memory_cfg, dict) else memory_cfg or "pooled"
            if choice not in ("naive", "pooled"):
                raise ValueError(f"memory_cfg asks for allocator {choice!r} on {dev}; expected 'naive' or 'pooled'")
            numbers += [dev.dlpack_device_type(), dev.index, 1 if choice == "naive" else 2]
        self.module["init"](*numbers)
        self._invoke = self.module["invoke"]

    def _params(self, func_name):
        exe = self._exec if isinstance(self._exec, Executable) else Executable(None, self._exec)
        return exe.get_function_params(func_name)

    def _arguments(self, func_name, args, kwargs):
        if not kwargs:
            return [value_of(arg) for arg in args]
        names = self._params(func_name)
        for name in kwargs:
            if name not in names:
                raise ValueError(f"the function {func_name} has no parameter {name!r}; it has {', '.join(names)}")
        rest = [name for name in names if name not in kwargs]
        if len(rest) != len(args):
            raise ValueError(f"{func_name} takes {', '.join(rest)} besides, and {len(args)} arguments are given")
        values = {**dict(zip(rest, args)), **kwargs}
        return [value_of(values[name]) for name in names]

    def invoke(self, func_name, *args, **kwargs):
        """Call a function."""
        return self._invoke(func_name, *self._arguments(func_name, args, kwargs))

    def run(self, *args, **kwargs):
        """Call ``main``."""
        return self.invoke("main", *args, **kwargs)

    def set_input(self, func_name, *args, **kwargs):
        """Keep arguments for :meth:`invoke_stateful`."""
        self.module["set_input"](func_name, *self._arguments(func_name, args, kwargs))

    def set_one_input(self, func_name, *args, **kwargs):
        """Keep one argument, given by place or name."""
        (place, value) = args if args else next(iter(kwargs.items()))
        self.module["set_one_input"](func_name, place, value_of(value))

    def invoke_stateful(self, func_name):
        """Call a function on the arguments that were kept, and keep its result."""
        self.module["invoke_stateful"](func_name)

    def get_outputs(self):
        """The results that were kept."""
        output = self.module["get_output"]
        return [output(i) for i in range(self.module["get_num_outputs"]())]

    def invoke_with_outputs(self, func_name, input_args, output_args):
        """Call a function on arguments by name; its results are put into tensors that are there already."""
        result = self.invoke(func_name, **input_args)
        results = [result] if isinstance(result, Tensor) else list(result)
        if len(results) != len(output_args):
            raise ValueError(f"{func_name} has {len(results)} results, and {len(output_args)} tensors are given for them")
        for place, (output, found) in enumerate(zip(output_args, results)):
            if not isinstance(found, Tensor):
                raise TypeError(f"result {place} of {func_name} is no tensor, so it has no place in one")
            found.copyto(output)

    def benchmark(self, device, *args, func_name="main", repeat=5, number=5, **kwargs):
        """Time a function: a :class:`BenchmarkResult` of ``repeat`` measurements, each the mean of ``number`` calls.

        Arguments of the function may be given by name; the first call does not count.
        """
        arguments = self._arguments(func_name, args, kwargs)
        call = lambda: self._invoke(func_name, *arguments)
        call()
        took = []
        for _ in range(repeat):
            device.sync()
            begin = time.perf_counter()
            for _ in range(number):
                call()
            device.sync()
            took.append((time.perf_counter() - begin) / number)
        return BenchmarkResult(took)

    def get_input_index(self, input_name, func_name="main"):
        """The place of a parameter, or -1."""
        return self.module["get_input_index"](input_name, func_name)


class VMCompiler:
    """:func:`compile` in steps, as programs of the time call it."""

    def __init__(self):
        self._params, self._lowered = {}, None

    def set_params(self, params):
        """Keep values for parameters, by name."""
        self._params = dict(params)

    def get_params(self):
        """The values that are kept."""
        return dict(self._params)

    def optimize(self, mod, target=None, target_host=None, params=None):
        """``(module, values)``: the passes belong to :meth:`lower`, so the module stays as it is."""
        if params is not None:
            self.set_params(params)
        return module_of(mod), self.get_params()

    def lower(self, mod, target=None, target_host=None):
        """Compile a module, with the values that are kept."""
        self._lowered = compile(mod, target, target_host, self._params)

    def codegen(self):
        """Kernels have their machine code from :meth:`lower` on."""
        self.get_exec()

    def get_exec(self):
        """The executable."""
        if self._lowered is None:
            raise ValueError("nothing was compiled yet: call lower first")
        return self._lowered


__all__ = ["ADT", "Executable", "RefValue", "VMCompiler", "VirtualMachine"]
__all__ += ["bind_params", "compile", "load", "tuple_object"]
