"""Types that are made later: what stands for the type of a name such as ``R.Tensor``, with or without arguments."""


class TypeProxy:
    """A type with the arguments that it is made of. ``as_ty()`` makes it, also by the class alone where no argument is needed."""

    #: The name in :mod:`relaxide.script.relax` of the function that makes the type.
    _maker = ""

    def __init__(self, *args, **kwargs):
        self._args, self._kwargs = args, kwargs

    def as_ty(self, dict_globals=None):
        """The type; names of symbolic dimensions among the arguments are looked up in ``dict_globals``, then made."""
        from . import relax

        args = self._args
        if dict_globals and args and isinstance(args[0], (list, tuple)):
            args = ([dict_globals.get(dim, dim) if isinstance(dim, str) else dim for dim in args[0]], *args[1:])
        args = [arg.as_ty() if isinstance(arg, TypeProxy) else arg for arg in args]
        return getattr(relax, self._maker)(*args, **self._kwargs)

    def asobject(self):
        """The type, where a value is asked for."""
        return self.as_ty()

    def get_symbolic_vars(self):
        """The names of the symbolic dimensions that stand in the arguments as text."""
        dims = self._args[0] if self._args and isinstance(self._args[0], (list, tuple)) else ()
        return {dim for dim in dims if isinstance(dim, str) and dim.isidentifier()}


class AnyProxy(TypeProxy):
    """The type of any value."""

    _maker = "Any"


class ObjectProxy(AnyProxy):
    """The type of any value, under its older name."""


class TensorProxy(TypeProxy):
    """The type of tensors: shape, element type, device, number of dimensions."""

    _maker = "Tensor"


class ShapeProxy(TypeProxy):
    """The type of shapes: lengths, number of dimensions."""

    _maker = "Shape"


class TupleProxy(TypeProxy):
    """The type of tuples: fields."""

    _maker = "Tuple"


class CallableProxy(TypeProxy):
    """The type of functions: parameters, result, whether it is pure."""

    _maker = "Callable"


class PackedCallableProxy(CallableProxy):
    """The type of functions of which only the result is known."""


class PrimProxy(TypeProxy):
    """The type of scalars: element type."""

    _maker = "Prim"


def type_of(value):
    """The type that a proxy, or the class of one, stands for; anything else as it is."""
    if isinstance(value, type) and issubclass(value, TypeProxy):
        value = value()
    return value.as_ty() if isinstance(value, TypeProxy) else value
