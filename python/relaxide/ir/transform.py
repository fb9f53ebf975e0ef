"""Passes: functions from module to module, and the context that they run in.

::

    @tvm.transform.module_pass(opt_level=1)
    def keep_main(mod, ctx):
        return tvm.IRModule({"main": mod["main"]})

    with tvm.transform.PassContext(opt_level=3, instruments=[PassTimingInstrument()]):
        mod = tvm.transform.Sequential([keep_main, relax.transform.FuseOps()])(mod)
"""

import functools
import threading

from .. import _core
from ..error import PassError
from ..target import Target
from .pass_options import held as _held


class PassInfo:
    """What is known of a pass: its level, its name, and the passes that a sequence runs in front of it."""

    def __init__(self, opt_level, name, required=None, traceable=False):
        self.opt_level, self.name, self.required, self.traceable = opt_level, name, list(required or []), traceable

    def __repr__(self):
        return f"PassInfo(opt_level={self.opt_level}, name={self.name!r}, required={self.required})"


class UnknownOption(AttributeError, ValueError):
    """An option that no pass reads. An error of two kinds: TVM's is the first, and the second says what it is."""


class PassContext:
    """Level, options and instruments of the passes that run in its ``with`` block."""

    _of_thread = threading.local()

    def __init__(self, opt_level=2, required_pass=None, disabled_pass=None, instruments=None, config=None):
        for name, given in (("required_pass", required_pass), ("disabled_pass", disabled_pass)):
            if isinstance(given, str):
                raise TypeError(f"{name} is expected to be the type of list/tuple/set.")
        self.opt_level = opt_level
        self.required_pass, self.disabled_pass = list(required_pass or []), list(disabled_pass or [])
        self.instruments, self.config = list(instruments or []), _held(config or {})
        try:
            _core.check_pass_context(self)
        except ValueError as error:
            if set(self.config) <= set(self.list_configs()):
                raise
            raise UnknownOption(*error.args) from None

    @classmethod
    def _stack(cls):
        if not hasattr(cls._of_thread, "stack"):
            cls._of_thread.stack = [PassContext()]
        return cls._of_thread.stack

    @property
    def target(self):
        """What is compiled for: the target of the ``with`` block around, if there is one."""
        return Target.current()

    @staticmethod
    def current():
        """The context in force."""
        return PassContext._stack()[-1]

    @staticmethod
    def list_configs():
        """The options, with the type and meaning of each."""
        return {name: {"type": kind, "doc": doc} for name, kind, doc in _core.pass_options()}

    def __enter__(self):
        self._tell("enter_pass_ctx")
        PassContext._stack().append(self)
        return self

    def __exit__(self, kind, value, traceback):
        PassContext._stack().pop()
        self._tell("exit_pass_ctx")

    def _tell(self, method):
        for instrument in self.instruments:
            getattr(instrument, method, lambda: None)()

    def override_instruments(self, instruments):
        """Let the instruments go and have others."""
        self._tell("exit_pass_ctx")
        self.instruments = list(instruments or [])
        self._tell("enter_pass_ctx")


#: How the text begins that a pass refuses a program with.
_REFUSED = "error[E03"


class Pass:
    """A pass, callable on a module."""

    def __init__(self, handle, doc=None):
        self._handle = handle
        if doc:
            self.__doc__ = doc

    @property
    def info(self):
        """What is known of it."""
        return PassInfo(self._handle.opt_level, self._handle.name, self._handle.required)

    def __call__(self, mod, ctx=None):
        """The module that the pass makes of a module."""
        try:
            return self._handle.run(mod, PassContext.current())
        except ValueError as error:
            # What the compiler's passes refuse has a code of theirs; what a pass in Python raises stays as it is.
            if type(error) is ValueError and str(error).startswith(_REFUSED):
                raise PassError(str(error)) from None
            raise

    def __repr__(self):
        return f"{type(self).__name__}({self._handle.name})"


class ModulePass(Pass):
    """A pass of whole modules."""


class FunctionPass(Pass):
    """A pass of each Relax function by itself."""


class PrimFuncPass(Pass):
    """A pass of each kernel by itself."""


class DataflowBlockPass(Pass):
    """A pass of each dataflow block by itself."""


class Sequential(Pass):
    """Passes in order. Each runs only if the context lets it; the passes that it requires run in front of it."""

    def __init__(self, passes=None, opt_level=0, name="sequential", required=None, traceable=False):
        passes = list(passes or [])
        for one in passes:
            if not isinstance(one, Pass):
                raise TypeError(f"passes must be a list of pass objects, got {type(one).__name__}")
        self.passes = passes
        super().__init__(_core.sequential_pass(name, [one._handle for one in passes], opt_level))


def _from_python(kind, base, method):
    """A decorator of functions and classes that makes passes of one kind of them."""

    def decorate(pass_func=None, opt_level=None, name=None, required=None, traceable=False):
        if opt_level is None:
            if pass_func is None or not callable(pass_func):
                raise ValueError(f"Please provide opt_level for the {kind.replace('_', ' ')} pass.")
            opt_level = 0
        required = list(required or [])

        def make(func):
            label = name or func.__name__
            if not isinstance(func, type):
                if not callable(func):
                    raise TypeError(f"pass_func must be a callable, got {type(func).__name__}")
                return base(_core.python_pass(kind, func, label, opt_level, required), func.__doc__)

            class PythonPass(base):
                def __init__(self, *args, **kwargs):
                    inner = func(*args, **kwargs)
                    run = lambda *values: getattr(inner, method)(*values)  # noqa: E731
                    self._inner = inner
                    super().__init__(_core.python_pass(kind, run, label, opt_level, required))

                def __getattr__(self, attribute):
                    return getattr(self.__dict__["_inner"], attribute)

            functools.update_wrapper(PythonPass.__init__, func.__init__)
            PythonPass.__name__, PythonPass.__qualname__ = func.__name__, func.__qualname__
            PythonPass.__doc__, PythonPass.__module__ = func.__doc__, func.__module__
            return PythonPass

        return make if pass_func is None else make(pass_func)

    return decorate


module_pass = _from_python("module", ModulePass, "transform_module")
module_pass.__doc__ = "Make a pass of a function ``(mod, ctx) -> mod``, or of a class with the method ``transform_module``."
module_pass.__name__ = module_pass.__qualname__ = "module_pass"
_function_pass = _from_python("function", FunctionPass, "transform_function")
_prim_func_pass = _from_python("prim_func", PrimFuncPass, "transform_function")
_prim_func_pass.__doc__ = (
    "Make a pass of a function ``(func, mod, ctx) -> func`` of each kernel, or of a class with the method ``transform_function``."
)
_prim_func_pass.__name__ = _prim_func_pass.__qualname__ = "prim_func_pass"
_dataflowblock_pass = _from_python("dataflow_block", DataflowBlockPass, "transform_dataflowblock")


def PrintIR(header=""):
    """A pass that prints the module and returns it."""

    def print_module(mod, ctx):
        print(f"{header}\n{mod.script()}" if header else mod.script())
        return mod

    return module_pass(print_module, opt_level=0, name="PrintIR")


__all__ = ["DataflowBlockPass", "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential"]
__all__ += ["module_pass"]
