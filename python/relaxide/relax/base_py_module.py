"""Modules with methods in Python: kernels, Relax functions and Python functions that call each other.

::

    @I.ir_module
    class Model(relax.BasePyModule):
        @I.pyfunc
        def main(self, x):
            return self.softmax(self.call_tir("scale", [x], relax.TensorType((8,), "float32")))

        @I.pyfunc
        def softmax(self, x):
            return np.exp(x) / np.exp(x).sum()

        @T.prim_func
        def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            ...

    model = Model(tvm.cpu())
    model.main(x)

Arrays come back as what was given: torch tensors for torch tensors, numpy arrays for numpy arrays, else tensors of the runtime.
"""

import functools
import inspect
import sys


def _is_torch(value):
    return type(value).__module__.partition(".")[0] == "torch"


def _is_numpy(value):
    return type(value).__module__ == "numpy" and hasattr(value, "__array_interface__")


def _kind_of(values):
    """What arrays are given back as: the kind of the first array among some values."""
    for value in values:
        if isinstance(value, (tuple, list)):
            kind = _kind_of(value)
            if kind is not None:
                return kind
        elif _is_torch(value):
            return "torch"
        elif _is_numpy(value):
            return "numpy"
    return None


def _to_runtime(value):
    from ..runtime import tensor

    if isinstance(value, (tuple, list)):
        return type(value)(_to_runtime(item) for item in value)
    if _is_numpy(value):
        return tensor(value)
    if _is_torch(value):
        return tensor(value.detach().cpu().contiguous().numpy())
    return value


def _from_runtime(value, kind):
    from ..runtime import Tensor

    if isinstance(value, Tensor):
        if kind == "numpy":
            return value.numpy()
        if kind == "torch":
            import torch

            return torch.from_dlpack(value)
        return value
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return value
    return [_from_runtime(item, kind) for item in value]


class BasePyModule:
    """A compiled module whose functions are attributes, beside functions of Python.

    ``device`` is where it runs; ``target`` what it is compiled for, by default the device's processor. A module that cannot be
    compiled raises what the compiler raises.
    """

    def __init__(self, ir_mod, device, target=None):
        from .. import ir, tirx
        from ..compiler import compile
        from .expr import Function
        from .vm import VirtualMachine

        self.ir_mod, self.device, self.target = ir_mod, device, target
        self.functions, self.attrs = ir_mod.functions, ir_mod.attrs
        self.pyfuncs, self.compiled_tir_funcs, self.extern_funcs = {}, {}, {}
        self.tir_func_names, self.relax_func_names, self.relax_vm = [], [], None
        kernels = {}
        for var, func in ir_mod.functions_items():
            if isinstance(func, tirx.PrimFunc):
                self.tir_func_names.append(var.name_hint)
                kernels[var] = func
            elif isinstance(func, Function):
                self.relax_func_names.append(var.name_hint)
        if kernels:
            made = compile(ir.IRModule(kernels), target)
            for name in self.tir_func_names:
                self.compiled_tir_funcs[name] = made[name]
                setattr(self, name, self.compiled_tir_funcs[name])
        if self.relax_func_names:
            self.relax_vm = VirtualMachine(compile(ir_mod, target), device)
            self.relax_vm.set_strided_results(False)
            for name in self.relax_func_names:
                setattr(self, name, self._relax_function(name))

    def _relax_function(self, name):
        def call(*args):
            # Python functions are known to programs by their names alone, and another module may have one of that name.
            self._register()
            return _from_runtime(self.relax_vm[name](*_to_runtime(args)), _kind_of(args))

        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"The Relax function {name}."
        return call

    def _register(self):
        from ..ffi import get_global_func

        register = get_global_func("vm.builtin.register_py_func")
        for name, func in self.pyfuncs.items():
            register(name, self._for_programs(func))

    def _for_programs(self, func):
        """A Python function as programs call it: it gets torch tensors where torch is in use, else numpy arrays."""

        def call(*args):
            kind = "torch" if "torch" in sys.modules else "numpy"
            return _to_runtime(self._bound(func)(*(_from_runtime(arg, kind) for arg in args)))

        return call

    def _bound(self, func):
        takes_self = next(iter(inspect.signature(func).parameters), None) == "self"
        return functools.partial(func, self) if takes_self else func

    def _outputs(self, out_ty, args):
        import numpy as np

        from ..runtime import tensor

        made = []
        for ty in out_ty if isinstance(out_ty, list) else [out_ty]:
            shape, dtype = (ty, "float32") if isinstance(ty, tuple) else (ty.shape, str(ty.dtype))
            made.append(tensor(np.zeros(self._infer_concrete_shape_from_args(shape, args), dtype)))
        return made

    @staticmethod
    def _infer_concrete_shape_from_args(shape, in_args):
        """A shape whose symbolic dimensions are those of the first argument of that rank."""
        dims = [getattr(dim, "value", dim) if isinstance(getattr(dim, "value", dim), int) else None for dim in shape]
        if None not in dims:
            return dims
        for arg in in_args:
            given = getattr(arg, "shape", None)
            if given is not None and len(given) == len(dims):
                return [int(known) if dim is None else dim for dim, known in zip(dims, given)]
        raise ValueError(
            "Cannot infer concrete output shape from symbolic shape and inputs. Please provide a concrete `out_ty`"
        )

    @staticmethod
    def _convert_pytorch_to_tvm(tensors):
        """A torch tensor, or a list of them, as tensors of the compiler that share their memory."""
        return [_to_runtime(tensor) for tensor in tensors] if isinstance(tensors, (list, tuple)) else _to_runtime(tensors)

    @staticmethod
    def _convert_tvm_to_pytorch(tensors):
        """A tensor of the compiler, or a list of them, as torch tensors that share their memory."""
        if isinstance(tensors, (list, tuple)):
            return [_from_runtime(tensor, "torch") for tensor in tensors]
        return _from_runtime(tensors, "torch")

    def _into_outputs(self, func, args, out_ty):
        args = list(args) if isinstance(args, (tuple, list)) else [args]
        outputs = self._outputs(out_ty, args)
        func(*_to_runtime(args), *outputs)
        outputs = [_from_runtime(output, _kind_of(args)) for output in outputs]
        return outputs[0] if len(outputs) == 1 else outputs

    def call_tir(self, tir_func, args, out_ty):
        """What a kernel of the module, given by name or variable or as it is, writes: outputs of types that ``out_ty`` gives.

        A name that is no kernel's is a ValueError.
        """
        name = tir_func if isinstance(tir_func, str) else getattr(tir_func, "name_hint", getattr(tir_func, "__name__", ""))
        given = [known for known, func in self.compiled_tir_funcs.items() if func is tir_func]
        name = given[0] if given else name
        if name not in self.compiled_tir_funcs:
            known = ", ".join(self.compiled_tir_funcs)
            raise ValueError(f"Could not resolve or find compiled TIR function: {tir_func}; there are: {known}")
        return self._into_outputs(self.compiled_tir_funcs[name], args, out_ty)

    def call_dps_packed(self, func_name, args, out_ty):
        """What a registered function that takes its outputs writes, or what a method of that name returns.

        A name that is neither is a ValueError.
        """
        from ..ffi import get_global_func

        method = getattr(self, func_name, None)
        if callable(method):
            return method(*args)
        if func_name not in self.extern_funcs:
            func = get_global_func(func_name, allow_missing=True)
            if func is None:
                raise ValueError(f"Function '{func_name}' not found as a global function")
            self.extern_funcs[func_name] = func
        return self._into_outputs(self.extern_funcs[func_name], args, out_ty)

    def call_py_func(self, func_name, args):
        """What a Python function of the module returns; a ValueError where there is none of that name."""
        if func_name not in self.pyfuncs:
            raise ValueError(f"Python function '{func_name}' not found in module pyfuncs")
        return self._bound(self.pyfuncs[func_name])(*args)

    def add_python_function(self, name, func):
        """Make a Python function an attribute that programs can call; a first parameter ``self`` is the module."""
        self.pyfuncs[name] = func
        setattr(self, name, functools.wraps(func)(lambda *args, **kwargs: self._bound(func)(*args, **kwargs)))

    def get_function(self, name):
        """A function by name; ``None`` where there is none."""
        if name in self.compiled_tir_funcs:
            return self.compiled_tir_funcs[name]
        if name in self.extern_funcs:
            return self.extern_funcs[name]
        return getattr(self, name, None) if name in self.relax_func_names else None

    def list_functions(self):
        """The names of functions by kind."""
        return {"tirx": self.tir_func_names, "relax": self.relax_func_names, "extern": list(self.extern_funcs)}

    def script(self, **options):
        """The program part as TVMScript; Python functions are not part of it."""
        return self.ir_mod.script(**options)

    def show(self, *args, **options):
        """Print the program part."""
        self.ir_mod.show(*args, **options)


class ModuleFactory:
    """What a class with Python methods becomes: a call with a device makes a module of it."""

    def __init__(self, ir_module, original_class):
        self.ir_module, self.original_class = ir_module, original_class
        members = vars(original_class).items()
        self.pyfunc_methods = [name for name, value in members if getattr(value, "dispatch_token", "") == "pyfunc"]
        self.__name__ = original_class.__name__

    def __call__(self, device=None, target=None):
        from ..runtime import cpu

        made = BasePyModule(self.ir_module, cpu(0) if device is None else device, target)
        for name in self.pyfunc_methods:
            made.add_python_function(name, vars(self.original_class)[name])
        return made

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.ir_module, name)


__all__ = ["BasePyModule", "ModuleFactory"]
