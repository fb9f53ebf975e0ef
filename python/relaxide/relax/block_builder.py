"""The block builder: functions written binding by binding."""

from .. import _core
from ..ir.expr import Expr, GlobalVar, Tuple, Var
from .expr import BindingBlock, Function


class FunctionScope:
    """The scope of a function that is being written."""

    def __init__(self, block_builder, name, params, attrs, is_pure):
        self._bb, self._name, self._params, self._attrs, self._is_pure = block_builder, name, params, attrs, is_pure
        self._done = False

    def __enter__(self):
        self._bb._enter_function(self)

    def __exit__(self, kind, value, traceback):
        self._bb._exit_function(kind is not None)


class DataflowScope:
    """The scope of a dataflow block."""

    def __init__(self, block_builder):
        self._bb = block_builder

    def __enter__(self):
        self._bb._begin_dataflow()

    def __exit__(self, kind, value, traceback):
        self._bb._end_dataflow()


class BlockBuilder(_core.BlockBuilder):
    """Writes functions binding by binding::

        bb = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType([n, 4], "float32"))
        with bb.function("main", [x]):
            with bb.dataflow():
                y = bb.emit(relax.op.add(x, x))
                out = bb.emit_output(relax.op.nn.relu(y))
            bb.emit_func_output(out)
        mod = bb.get()

    Values are brought to normal form: operands that are computations get variables of their own.
    """

    _stack = []

    def __init__(self, mod=None):
        self._functions = []

    @staticmethod
    def current():
        """The builder whose function is being written."""
        return BlockBuilder._stack[-1] if BlockBuilder._stack else None

    def function(self, name, params=None, attrs=None, pure=True, private=False):
        """A scope in which a function is written; :meth:`emit_func_output` ends it."""
        if isinstance(params, Var):
            params = [params]
        elif isinstance(params, (list, tuple)):
            params = list(params)
            for param in params:
                if not isinstance(param, Var):
                    raise TypeError(f"each element of function parameters must be of type tvm.relax.Var, but got: {type(param)}")
        attrs = dict(attrs or {})
        # The parser derives the symbol from the name, as here.
        if not private:
            attrs.setdefault("global_symbol", name)
        return FunctionScope(self, name, params, attrs, pure)

    def dataflow(self):
        """A scope in which a dataflow block is written."""
        return DataflowScope(self)

    def _begin_binding_block(self):
        """Begin a block by itself, outside of any function; :meth:`_end_block` gives it."""
        self._begin_scope()

    def _begin_dataflow_block(self):
        """Begin a dataflow block by itself, perhaps within one that was begun before."""
        self._begin_scope()
        self._begin_dataflow()

    def _end_block(self):
        """The block that was begun last."""
        if self.current_block_is_dataflow():
            self._end_dataflow()
        blocks = self._end_scope(Tuple([])).blocks
        return blocks[-1] if len(blocks) else BindingBlock([])

    def testing_scope(self, def_vars):
        """A scope to try operators in, where symbolic variables are known."""
        params = [] if isinstance(def_vars, Var) else list(def_vars)
        return TestingScope(self, params)

    def _enter_function(self, scope):
        BlockBuilder._stack.append(self)
        self._functions.append(scope)
        self._begin_scope()
        for param in scope._params or ():
            self._reserve(param.name)

    def _exit_function(self, failed):
        scope = self._functions.pop()
        BlockBuilder._stack.pop()
        if scope._done:
            return
        self._drop_scope()
        if not failed:
            raise RuntimeError("emit_func_output must be called in a relax function.")

    def _normalize_python_tuple(self, expr):
        if isinstance(expr, (list, tuple)):
            return Tuple([self._normalize_python_tuple(item) for item in expr])
        if expr is None:
            from . import op

            return op.null_value()
        return expr

    def emit(self, expr, name_hint=""):
        """Bind a value to a fresh variable, which is returned."""
        return self._emit(self._normalize_python_tuple(expr), name_hint)

    def emit_output(self, output, name_hint=""):
        """In a dataflow block, bind a value to a variable that lives on behind the block."""
        return self._emit_output(self._normalize_python_tuple(output), name_hint)

    def match_cast(self, value, ty, name_hint=""):
        """Check at run time that a value has a type; symbolic variables that the type mentions first are bound."""
        return self._match_cast(value, ty, name_hint)

    def emit_func_output(self, output, params=None):
        """End the function with its result; returns its variable."""
        scope = self._functions[-1] if self._functions else None
        if scope is None:
            raise RuntimeError("emit_func_output must be called in a relax function.")
        if scope._done:
            raise RuntimeError("emit_func_output must be called exactly once in a relax function.")
        if scope._params is not None and params is not None:
            raise RuntimeError("function parameters have been initialized in the function with scope.")
        if scope._params is None and params is None:
            raise RuntimeError("Relax function must have parameter.")
        if params is not None:
            scope._params = [params] if isinstance(params, Var) else list(params)
        scope._done = True
        body = self._end_scope(self._normalize_python_tuple(output))
        func = Function(scope._params, body, is_pure=scope._is_pure, attrs=scope._attrs)
        return self.add_func(func, scope._name)

    def call_te(self, func, *args, **kwargs):
        """A call of a kernel that a function of :mod:`relaxide.te` describes; the call is not bound."""
        from .te_call import call_te

        return call_te(self, func, args, kwargs)

    def call_te_with_grad(self, func, *args, te_grad_name, te_grad_kwargs=None, **kwargs):
        """As :meth:`call_te`, with a derivative: ``te_grad_name`` says which, ``te_grad_kwargs`` what it is told
        (:func:`relaxide.relax.training.utils.register_te_gradient`)."""
        from .te_call import call_te_with_grad

        return call_te_with_grad(self, func, args, kwargs, te_grad_name, te_grad_kwargs)

    def emit_te(self, func, *args, **kwargs):
        """As :meth:`call_te`, with the call bound to a fresh variable.

        Arguments that are tensors become inputs of the kernel, everything else is given to ``func`` as it is.
        ``primfunc_name_hint`` names the kernel; ``primfunc_attrs`` are attributes of it.
        """
        name_hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def normalize(self, expr):
        """An expression in normal form with its type known; what must be bound is bound in the open block."""
        return self._normalize(expr)

    def finalize(self):
        """The finished module."""
        return self.get()

    def begin_scope(self, params=None):
        """Begin a sequence."""
        self._begin_scope()
        for param in params or ():
            self._reserve(param.name)

    def end_scope(self):
        """Forget the sequence that was begun last."""
        self._drop_scope()

    @staticmethod
    def is_function(value):
        """Whether a value stands for a function of the module."""
        return isinstance(value, (GlobalVar, Function))


class TestingScope:
    """A scope to try operators in, where symbolic variables are known."""

    def __init__(self, block_builder, def_vars):
        for var in def_vars:
            if not isinstance(var, Var):
                raise ValueError(f"def_vars can only contain Vars, not {type(var).__name__}")
        self._builder, self._variables = block_builder, def_vars

    def __enter__(self):
        self._builder.begin_scope(self._variables)
        self._builder._begin_dataflow()

    def __exit__(self, kind, value, traceback):
        self._builder.end_scope()


__all__ = ["BlockBuilder", "DataflowScope", "Expr", "FunctionScope", "TestingScope"]
