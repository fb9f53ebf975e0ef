"""Rules of the user's for operators: what ``custom_convert_map`` has."""

from ._torch import torch


class Importer:
    """What a rule is given beside its node.

    Attributes
    ----------
    block_builder : relax.BlockBuilder
        The program under construction.
    env : dict of torch.fx.Node to relax.Expr
        What the node's arguments stand for.
    """

    def __init__(self, block_builder, env):
        self.block_builder = block_builder
        self.env = env

    def retrieve_args(self, node):
        """The node's arguments, expressions in the place of nodes."""
        return self._retrieve_args(node.args)

    def _retrieve_args(self, value):
        if isinstance(value, torch().fx.Node):
            return self.env[value]
        if isinstance(value, tuple):
            return tuple(map(self._retrieve_args, value))
        if isinstance(value, list):
            return list(map(self._retrieve_args, value))
        if isinstance(value, dict):
            return {self._retrieve_args(key): self._retrieve_args(item) for key, item in value.items()}
        return value

    @staticmethod
    def shape_of(tensor):
        """The dimensions of a tensor of the program, or of PyTorch's."""
        from ....ir import Expr

        return tensor.ty.shape if isinstance(tensor, Expr) else tensor.shape

    @staticmethod
    def _convert_data_type(dtype, env=None):
        """The name of an element type of PyTorch's."""
        return str((env or {}).get(dtype, dtype)).removeprefix("torch.")


class _Arguments(dict):
    """The arguments of a node, with an error that says what else there is not."""

    def __missing__(self, node):
        names = ", ".join(str(key) for key in self) or "none"
        raise KeyError(f"`{node}` is no argument of the node that is converted; its arguments are: {names}")


class Converters:
    """The rules for the nodes of a program.

    Parameters
    ----------
    table : dict
        Functions of a node and an :class:`Importer`. An operator is named as TVM names it (``"my_op.default"``), with its library
        (``"my_lib::my_op.default"``), by either without the overload, or is given itself (``torch.ops.my_lib.my_op.default``).
    graph_module : torch.fx.GraphModule
        The graph, whose nodes are found by their places.
    """

    def __init__(self, table, graph_module):
        self.nodes = {}
        self.raised = None
        self._find(table, graph_module, "")

    def _find(self, table, graph_module, path):
        module = torch()
        for node in graph_module.graph.nodes:
            if node.op == "get_attr":
                inner = graph_module
                for part in node.target.split("."):
                    inner = getattr(inner, part, None)
                if isinstance(inner, module.fx.GraphModule):
                    self._find(table, inner, f"{path}{node.target}/")
            elif node.op == "call_function":
                rule = rule_of(table, node.target)
                if rule is not None:
                    self.nodes[path + node.name] = (node, rule)

    def __call__(self, block_builder, place, given):
        node, rule = self.nodes[place]
        env = _Arguments({argument: given[argument.name] for argument in node.all_input_nodes if argument.name in given})
        try:
            result = rule(node, Importer(block_builder, env))
        except Exception as error:
            self.raised = self.raised or error
            raise
        return list(result) if isinstance(result, (list, tuple)) else [result]


def names_of(target):
    """What an operator may be called in a table, the most exact first."""
    names = [target, getattr(target, "__name__", None)]
    packet = getattr(target, "overloadpacket", None)
    if packet is not None:
        space, name = target._schema.name.split("::", 1)
        overload = target._overloadname
        names += [f"{space}::{name}.{overload}", f"{space}.{name}.{overload}"]
        names += [packet, f"{space}::{name}", f"{space}.{name}", name]
    return [name for name in names if name is not None]


def rule_of(table, target):
    """The rule of an operator, if a table has one."""
    return next((table[name] for name in names_of(target) if name in table), None)


def check(table):
    """Refuse a table that is none."""
    for name, rule in table.items():
        if isinstance(name, type):
            raise NotImplementedError(
                f"custom_convert_map: rules for whole modules ({name.__name__}) are not supported, since a program is exported as "
                "operators; make the module call an operator of its own (`torch.library.custom_op`), and give that a rule"
            )
        if not callable(rule):
            raise TypeError(f"custom_convert_map[{name!r}] is {rule!r}; expected a function of a node and an importer")
