"""``create_executor``: a program as a function of Python; ``build``: a program for the graph executor."""

from .. import _core
from ..runtime import cpu
from .module import module_of
from .vm import VirtualMachine, bind_params, compile, value_of


class Executor:
    """Runs programs; :meth:`evaluate` gives what calls one."""

    def __init__(self, mod, device, target, params=None):
        self.mod, self.device, self.target = bind_params(mod, params), device, target

    def evaluate(self, expr=None, binds=None):
        """``main`` as a function; with an expression, that in the module: its value, or the function that it is."""
        from .expr import Function, GlobalVar, bind

        if expr is None:
            return self._function(self.mod, "main")
        if isinstance(expr, GlobalVar):
            return self._function(self.mod, expr.name_hint)
        mod = self.mod.clone()
        function = expr if isinstance(expr, Function) else Function([], expr)
        mod["main"] = bind(function, binds) if binds else function
        found = self._function(mod, "main")
        return found if isinstance(expr, Function) else found()


def _arguments(params, args, kwargs):
    rest = [name for name in params if name not in kwargs]
    unknown = [name for name in kwargs if name not in params]
    if unknown:
        raise ValueError(f"there is no parameter {unknown[0]!r}; there are {', '.join(params)}")
    if len(rest) != len(args):
        raise ValueError(f"{len(rest)} arguments are taken ({', '.join(rest)}), and {len(args)} are given")
    values = {**dict(zip(rest, args)), **kwargs}
    return [value_of(values[name]) for name in params]


class Interpreter(Executor):
    """The reference interpreter: a program as it is written, operator by operator."""

    def _function(self, mod, name):
        interpreter = _core.RelayInterpreter(mod._node)
        params = [str(var.name_hint) for var in mod[name].params]
        return lambda *args, **kwargs: interpreter.run(name, tuple(_arguments(params, args, kwargs)))


class VMExecutor(Executor):
    """The Relay VM."""

    def _function(self, mod, name):
        machine = VirtualMachine(compile(mod, self.target), self.device)
        return lambda *args, **kwargs: machine.invoke(name, *args, **kwargs)


class GraphExecutor(Executor):
    """The graph executor."""

    def _function(self, mod, name):
        from ..contrib.graph_executor import GraphModule
        from .build_module import build

        if name != "main":
            raise ValueError("the graph executor runs main")
        graph = GraphModule(build(mod, self.target)["default"](self.device))
        params = [str(var.name_hint) for var in mod["main"].params]

        def run(*args, **kwargs):
            for param, value in zip(params, _arguments(params, args, kwargs)):
                graph.set_input(param, value)
            graph.run()
            outputs = [graph.get_output(i) for i in range(graph.get_num_outputs())]
            return outputs[0] if len(outputs) == 1 else outputs

        return run


_KINDS = {"debug": Interpreter, "vm": VMExecutor, "graph": GraphExecutor}


def create_executor(kind="debug", mod=None, device=None, target="llvm", params=None):
    """An executor: ``"debug"`` interprets, ``"vm"`` compiles for the Relay VM, ``"graph"`` for the graph executor."""
    if kind not in _KINDS:
        raise RuntimeError(f"unknown execution strategy: {kind}; there are {', '.join(_KINDS)}")
    from .module import IRModule

    mod = IRModule() if mod is None else module_of(mod)
    return _KINDS[kind](mod, device or cpu(), target, params)


__all__ = ["Executor", "GraphExecutor", "Interpreter", "VMExecutor", "create_executor"]
