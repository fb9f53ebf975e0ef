"""Modules whose functions are made when they are first asked for."""

from types import ModuleType


class OnDemand(ModuleType):
    """The operators under a prefix; ``make`` gives the function of a whole name, or ``None`` where there is no such operator."""

    def __init__(self, package, prefix, make):
        super().__init__(f"{package}.{prefix}", f"Operators whose names begin with ``{prefix}.``.")
        self._prefix, self._make = prefix, make

    def __getattr__(self, name):
        function = None if name.startswith("__") else self._make(f"{self._prefix}.{name}")
        if function is None:
            raise AttributeError(f"there is no operator {self._prefix}.{name}")
        setattr(self, name, function)
        return function
