"""Specifications of the methods to export: their arguments, and how parameters and effects are handed to them."""

import inspect

_PARAM_MODES = ("plain", "packed", "none")


class Int:
    """An integer, which becomes a symbolic dimension."""

    def __repr__(self):
        return "int"


class Tensor:
    """A tensor.

    Parameters
    ----------
    shape : sequence of int or str
        The dimensions; equal names in one method are equal lengths.
    dtype : str
        The element type.
    """

    def __init__(self, shape, dtype):
        self.shape, self.dtype = list(shape), dtype

    def __repr__(self):
        return f"Tensor([{', '.join(str(dim) for dim in self.shape)}], '{self.dtype}')"


class Object:
    """A value of a class of :class:`~relaxide.relax.frontend.nn.core.Object`."""

    def __init__(self, object_type):
        self.object_type = object_type

    def __repr__(self):
        return "object"


class Tuple:
    """Several values in one argument, as a list or a tuple."""

    def __init__(self, name, elements):
        if not isinstance(elements, (tuple, list)):
            raise TypeError(f"the elements of {name} are a list or a tuple, got {type(elements).__name__}")
        self.name, self.elements = name, elements

    def __repr__(self):
        return f"({', '.join(map(repr, self.elements))})"


def _argument(spec, name):
    """The specification of an argument in full form."""
    if spec is int:
        return Int()
    if isinstance(spec, str) and spec == "int":
        return Int()
    if isinstance(spec, (Int, Tensor, Object)):
        return spec
    if isinstance(spec, Tuple):
        return Tuple(name, type(spec.elements)(_argument(item, f"{name}_{at}") for at, item in enumerate(spec.elements)))
    if isinstance(spec, (tuple, list)):
        return Tuple(name, type(spec)(_argument(item, f"{name}_{at}") for at, item in enumerate(spec)))
    raise TypeError(f"Invalid spec for argument {name}: {spec}; write `int`, a `spec.Tensor`, a `spec.Object` or a list of these")


class MethodSpec:
    """What a method takes.

    Parameters
    ----------
    method : callable
        The method.
    arg_names, arg_specs : list
        Its arguments and what they are.
    param_mode : str
        ``"plain"``: one parameter of the function for each weight; ``"packed"``: one tuple of all; ``"none"``: without weights.
    effect_mode : str
        The same for effects.
    """

    def __init__(self, method, arg_names, arg_specs, param_mode, effect_mode):
        for mode, what in ((param_mode, "param_mode"), (effect_mode, "effect_mode")):
            if mode not in _PARAM_MODES:
                raise ValueError(f"Invalid {what}: {mode}; it is one of {', '.join(_PARAM_MODES)}")
        self.method, self.arg_names, self.arg_specs = method, arg_names, arg_specs
        self.param_mode, self.effect_mode = param_mode, effect_mode

    def _as_text(self, name):
        arguments = ", ".join(f"{arg}: {spec}" for arg, spec in zip(self.arg_names, self.arg_specs))
        return f"{name}({arguments})"

    def __repr__(self):
        return self._as_text("MethodSpec")

    @staticmethod
    def from_raw(spec, method):
        """From ``{argument: specification}``, with the modes under ``"$"``."""
        if isinstance(spec, MethodSpec):
            return spec
        modes = {"param_mode": "plain", "effect_mode": "plain", **spec.get("$", {})}
        names = [name for name in spec if name != "$"]
        return MethodSpec(method, names, [_argument(spec[name], name) for name in names], **modes)

    @staticmethod
    def from_torch(args, method):
        """From examples of the arguments: tensors of PyTorch and ints."""
        names = list(inspect.signature(method).parameters)
        if len(names) != len(args):
            raise TypeError(f"Expected {len(names)} arguments, but got {len(args)} arguments")
        return MethodSpec(method, names, [_of_torch(arg) for arg in args], "plain", "plain")


def _of_torch(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return Int()
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return Tensor([int(dim) for dim in value.shape], str(value.dtype).rsplit(".", maxsplit=1)[-1])
    raise TypeError(f"Unsupported argument type: {type(value)}")


class ModuleSpec:
    """The methods of a module to export."""

    def __init__(self, module, method_names, method_specs):
        self.module, self.method_names, self.method_specs = module, method_names, method_specs

    @staticmethod
    def from_raw(spec, module):
        """From ``{method: specification}``; a list of examples (of PyTorch) stands for a method too."""
        if isinstance(spec, ModuleSpec):
            return spec
        methods = []
        for name, method_spec in spec.items():
            method = getattr(module, name, None)
            if method is None:
                raise AttributeError(f"{type(module).__name__} has no method {name!r} to export")
            if isinstance(method_spec, (list, tuple)):
                methods.append(MethodSpec.from_torch(list(method_spec), method))
            else:
                methods.append(MethodSpec.from_raw(method_spec, method))
        return ModuleSpec(module, list(spec), methods)

    def __repr__(self):
        lines = [f"  {method._as_text(name)}" for name, method in zip(self.method_names, self.method_specs)]
        return "\n".join(["ModuleSpec:", *lines])


__all__ = ["Int", "MethodSpec", "ModuleSpec", "Object", "Tensor", "Tuple"]
