"""Executables built by hand."""

from contextlib import contextmanager

from .. import _core
from ..error import ExecutableError
from ..ffi import Shape
from .executable import VMExecutable


class ExecBuilder(_core.ExecBuilder):
    """Builds an executable instruction by instruction::

        ib = relax.ExecBuilder()
        with ib.function("main", num_inputs=1):
            ib.emit_call("test.vm.add", args=[ib.r(0), ib.r(0)], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
        executable = ib.get()
    """

    _made = None

    def function(self, func_name, num_inputs=0, param_names=None):
        """A scope for the instructions of a function."""
        if param_names is not None and len(param_names) != num_inputs:
            raise ValueError(f"{func_name} has {num_inputs} inputs but {len(param_names)} names")
        self._begin(func_name, num_inputs, param_names)
        return VMFuncScope(self._end)

    def emit_call(self, name, args=None, dst=None):
        """Call a function; tensors, shapes and dtypes among the arguments become constants."""
        words = [self.convert_constant(arg) if not isinstance(arg, int) else arg for arg in map(_shape, args or ())]
        self._emit_call(name, words, dst)

    def get(self):
        """The executable; nothing can be added afterwards.

        A program that the machine would refuse to run is an :class:`~relaxide.error.ExecutableError`.
        """
        if self._made is None:
            with _refusals():
                self._made = VMExecutable(self._get())
        return self._made


def _shape(arg):
    return Shape(arg) if isinstance(arg, tuple) else arg


class VMFuncScope:
    """The scope of a function's instructions, which calls a function at its end."""

    #: The scopes that are open, the innermost last.
    stack = []

    def __init__(self, exit_callback):
        self.exit_callback = exit_callback

    def __enter__(self):
        VMFuncScope.stack.append(self)
        return self

    def __exit__(self, kind, value, traceback):
        VMFuncScope.stack.pop()
        if kind is None:
            with _refusals():
                self.exit_callback()


@contextmanager
def _refusals():
    """What the machine would refuse to run."""
    try:
        yield
    except ValueError as error:
        raise ExecutableError(str(error)) from None
