"""The graph executor: programs without control flow, as JSON beside a library of kernels."""

from .. import _core
from .._core import Module, Tensor
from ..runtime import tensor


def create(graph_json_str, libmod, device):
    """An executor of a graph's JSON. ``libmod`` is a library of its kernels, or functions by the names that nodes call."""
    # The loader registers the executor's functions.
    make = _core.get_global_func("tvm.graph_executor.create")
    if isinstance(device, (list, tuple)):
        if len(device) != 1:
            raise ValueError("a graph runs on one device here: programs for several run in the Relay VM")
        device = device[0]
    functions = dict(libmod) if isinstance(libmod, dict) else libmod
    return GraphModule(make(str(graph_json_str), functions, device.dlpack_device_type(), device.index))


class GraphModule:
    """An executor: set inputs, run, get outputs."""

    def __init__(self, module):
        if not isinstance(module, Module):
            raise TypeError(f"an executor's module is expected, not {type(module).__name__}")
        self.module = module
        self._set_input, self._run = module["set_input"], module["run"]
        self._get_output = module["get_output"]

    def set_input(self, key=None, value=None, **params):
        """Copy tensors or arrays into inputs, by name or place."""
        if key is not None:
            self._set_input(key, value if isinstance(value, Tensor) else tensor(value))
        for name, given in params.items():
            self._set_input(name, given if isinstance(given, Tensor) else tensor(given))

    def run(self, **input_dict):
        """Run every node."""
        if input_dict:
            self.set_input(**input_dict)
        self._run()

    def get_num_outputs(self):
        """How many results there are."""
        return self.module["get_num_outputs"]()

    def get_num_inputs(self):
        """How many inputs there are, weights included."""
        return self.module["get_num_inputs"]()

    def get_input(self, index, out=None):
        """An input's tensor."""
        return _into(self.module["get_input"](index), out)

    def get_input_index(self, name):
        """The place of an input, or -1."""
        return self.module["get_input_index"](name)

    def get_output(self, index, out=None):
        """A result: a tensor of its own."""
        return _into(self._get_output(index), out)

    def debug_get_output(self, node, out=None):
        """The first result of a node, by name or place."""
        return _into(self.module["debug_get_output"](node), out)

    def load_params(self, params_bytes):
        """Set the inputs that a dictionary of weights names."""
        self.module["load_params"](bytes(params_bytes))

    def benchmark(self, device, func_name="run", repeat=5, number=5, **options):
        """Times of runs."""
        return self.module.time_evaluator(func_name, device, repeat=repeat, number=number, **options)()

    def __getitem__(self, key):
        return self.module[key]


def _into(value, out):
    if out is None:
        return value
    value.copyto(out)
    return out


__all__ = ["GraphModule", "create"]
