"""The tree of modules: what a module or container holds, by name."""

from ._values import Parameter


def members(node):
    """``(key, value)`` of what a module or container holds directly: attributes, items, entries."""
    entries = getattr(node, "_entries", None)
    if entries is not None:
        return list(entries())
    return list(vars(node).items())


def joined(prefix, key):
    """The name of a member of the node called ``prefix``."""
    return f"{prefix}.{key}" if prefix else str(key)


def find(root, prefix, wanted):
    """``(name, value)`` of all that ``wanted`` takes below a module, depth first, in the order in which it was set."""
    from ._module import Module

    for key, value in members(root):
        name = joined(prefix, key)
        if wanted(value):
            yield name, value
        elif isinstance(value, Module):
            yield from find(value, name, wanted)


def parameters(root, prefix=""):
    """``(name, parameter)`` below a module."""
    return find(root, prefix, lambda value: isinstance(value, Parameter))


__all__ = ["find", "joined", "members", "parameters"]
