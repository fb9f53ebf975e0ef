"""Constructors of nodes, by their names behind a prefix, each looked up when it is first used."""

from .._core import get_global_func


class Api:
    """The global functions ``PREFIX.NAME`` as attributes."""

    def __init__(self, prefix):
        self._prefix = prefix

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        function = get_global_func(f"{self._prefix}.{name}")
        setattr(self, name, function)
        return function


ir, relax, prim, tirx, s_tir, target = map(Api, ("ir", "relax", "prim", "tirx", "s_tir", "target"))
