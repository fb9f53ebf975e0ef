"""Changes to the tree of modules: replace modules, parameters and effects by others."""

from . import _tree
from ._containers import ModuleDict, ModuleList, ParameterDict, ParameterList
from ._module import Effect, Module
from ._values import Parameter

# Containers are modules: the narrower classes come first.
_VISITS = (
    (ParameterDict, "visit_parameterdict"),
    (ParameterList, "visit_parameterlist"),
    (ModuleDict, "visit_moduledict"),
    (ModuleList, "visit_modulelist"),
    (Module, "visit_module"),
    (Effect, "visit_effect"),
    (Parameter, "visit_param"),
)


class Mutator:
    """Goes through a model and puts what its methods return in the place of what they were given.

    A subclass overrides the method of the kind that it changes; each gets the name from the root, joined by dots, and the node.
    Those that are not overridden go on into the node (:meth:`visit`)::

        class Quantize(nn.Mutator):
            def visit_module(self, name, node):
                return QuantizedLinear(node) if isinstance(node, nn.Linear) else self.visit(name, node)

        model = Quantize().visit("", model)
    """

    def visit_module(self, name, node):
        """What stands in the place of a module."""
        return self.visit(name, node)

    def visit_effect(self, name, node):
        """What stands in the place of an effect."""
        return self.visit(name, node)

    def visit_param(self, name, node):
        """What stands in the place of a parameter."""
        return self.visit(name, node)

    def visit_moduledict(self, name, node):
        """What stands in the place of a dictionary of modules."""
        return self.visit(name, node)

    def visit_modulelist(self, name, node):
        """What stands in the place of a list of modules."""
        return self.visit(name, node)

    def visit_parameterdict(self, name, node):
        """What stands in the place of a dictionary of parameters."""
        return self.visit(name, node)

    def visit_parameterlist(self, name, node):
        """What stands in the place of a list of parameters."""
        return self.visit(name, node)

    def visit(self, name, node):
        """Visit all that a node holds, and return the node."""
        for key, value in _tree.members(node):
            for kind, method in _VISITS:
                if isinstance(value, kind):
                    _set(node, key, getattr(self, method)(_tree.joined(name, key), value))
                    break
        return node


def _set(node, key, value):
    if isinstance(node, (ModuleList, ParameterList)):
        node[int(key)] = value
    elif isinstance(node, (ModuleDict, ParameterDict)):
        node[key] = value
    else:
        setattr(node, key, value)


__all__ = ["Mutator"]
