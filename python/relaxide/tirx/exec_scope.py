"""Scopes of threads, and the variables that number their units."""

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Node

_KINDS = {2: "cluster", 3: "cta", 4: "warpgroup", 5: "warp", 6: "thread"}

#: The outer and the inner scope of each binding of scope ids, by its number.
_BINDINGS = {
    0: ("kernel", "cluster"),
    1: ("kernel", "cta"),
    2: ("cluster", "cta"),
    3: ("cta", "warpgroup"),
    4: ("cta", "warp"),
    5: ("warpgroup", "warp"),
    6: ("warp", "thread"),
    7: ("cta", "thread"),
    8: ("warpgroup", "thread"),
    9: ("cluster", "cta_pair"),
}


@register_object("tirx.ScopeIdDef")
class ScopeIdDef(Node):
    """Variables that number the units of a scope within another, along one axis or several.

    Parameters
    ----------
    def_ids : list of Var
        The variables.
    extents : list of Expr, optional
        How many units there are along each axis. Without, there is one variable, and the number follows from other scope ids.
    parent, cur : str
        Within what is counted, and what: ``"kernel"`` and ``"cta"``, ``"cta"`` and ``"warp"``, ``"warp"`` and ``"thread"`` …
    preferred_extents : list of Expr, optional
        How many units the kernel would like.

    Raises
    ------
    ValueError
        Nothing counts ``cur`` within ``parent``, or the numbers of variables and extents differ.
    """

    def __init__(self, def_ids, extents, parent, cur, preferred_extents=None):
        extents = None if extents is None else list(extents)
        preferred_extents = None if preferred_extents is None else list(preferred_extents)
        self.__init_handle_by_constructor__(_api.tirx.ScopeIdDef, list(def_ids), extents, parent, cur, preferred_extents)

    def __repr__(self):
        parent, cur = _BINDINGS[self.scope]
        return f"T.ScopeIdDef({list(self.def_ids)}, {self.extents}, {parent!r}, {cur!r})"

    __str__ = __repr__


@register_object("tirx.ExecScope")
class ExecScope(Node):
    """A scope of threads: ``"cluster"``, ``"cta"``, ``"warpgroup"``, ``"warp"`` or ``"thread"``. Another name is a ValueError."""

    def __init__(self, name):
        self.__init_handle_by_constructor__(_api.tirx.ExecScope, name)

    @property
    def name(self):
        """Its name."""
        return _KINDS[self.kind]

    def __repr__(self):
        return f'T.ExecScope("{self.name}")'

    __str__ = __repr__
