"""``relay.build``: programs without control flow for the graph executor."""

from .. import _core
from ..ir.transform import PassContext
from .module import module_of
from .vm import bind_params, target_of


class GraphExecutorFactoryModule:
    """Graph, weights and kernels: ``factory["default"](dev)`` gives an executor.

    As TVM's it unpacks into the graph's JSON, the library and the weights.
    """

    def __init__(self, compiled, libmod_name):
        self._compiled, self.libmod_name, self._module = compiled, libmod_name, None

    @property
    def module(self):
        """The module."""
        if self._module is None:
            self._module = self._compiled.jit()
        return self._module

    def __getitem__(self, name):
        return self.module[name]

    def get_graph_json(self):
        """The graph's JSON."""
        return str(self.module["get_graph_json"]())

    get_executor_config = get_graph_json

    @property
    def graph_json(self):
        """The graph's JSON."""
        return self.get_graph_json()

    def get_params(self):
        """The weights by name."""
        return {str(name): value for name, value in self.module["get_graph_params"]().items()}

    @property
    def params(self):
        """The weights by name."""
        return self.get_params()

    def get_lib(self):
        """The kernels."""
        return self.module["get_lib"]()

    @property
    def lib(self):
        """The kernels."""
        return self.get_lib()

    def export_library(self, file_name, fcompile=None, **_):
        """Write graph, weights and kernels as one shared library, which ``runtime.load_module`` reads."""
        self._compiled.export_library(str(file_name))

    def __iter__(self):
        return iter((self.get_graph_json(), self.get_lib(), self.get_params()))


def build(ir_mod, target=None, target_host=None, params=None, mod_name="default", executor=None, runtime=None):
    """Compile a module for the graph executor. Weights in ``params`` become part of the result.

    Programs with control flow, data types or shapes that the run shows are refused: :func:`relaxide.relay.vm.compile` takes
    them.
    """
    kind = getattr(executor, "name", executor)
    if kind not in (None, "graph"):
        raise ValueError(f"the executor {kind!r} is not there; there is 'graph'")
    mod = bind_params(module_of(ir_mod), params)
    disabled = list(PassContext.current().disabled_pass)
    compiled = _core.relay_build(mod._node, mod_name or "default", target_of(target), disabled)
    return GraphExecutorFactoryModule(compiled, mod_name or "default")


__all__ = ["GraphExecutorFactoryModule", "build"]
