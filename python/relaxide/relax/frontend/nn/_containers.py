"""Containers of modules and of parameters: lists and dictionaries whose members are part of the model."""

from collections import OrderedDict

from ._module import Effect, Module
from ._values import Parameter


class _List(Module):
    """A list that is a module."""

    _holds = (object,)

    def __init__(self, items):
        self._items = [self._checked(item) for item in items or ()]

    def _checked(self, item):
        if not isinstance(item, self._holds):
            raise TypeError(f"a {type(self).__name__} holds objects of {self._holds[0].__name__}, got {type(item).__name__}")
        return item

    def _entries(self):
        return ((str(at), item) for at, item in enumerate(self._items))

    def __iter__(self):
        return iter(self._items)

    def __getitem__(self, idx):
        return self._items[idx]

    def __setitem__(self, idx, item):
        self._items[idx] = self._checked(item)

    def __len__(self):
        return len(self._items)

    def append(self, item):
        """Add one at the end."""
        self._items.append(self._checked(item))


class _Dict(Module):
    """A dictionary that is a module; entries keep the order in which they were set."""

    _holds = (object,)

    def __init__(self, items):
        self._items = OrderedDict()
        self.update(items or {})

    def _entries(self):
        return iter(self._items.items())

    def __iter__(self):
        # Modules are gone through by what they are, parameters by their names, as PyTorch's containers were when TVM took them over.
        return iter(self._items.values())

    def __getitem__(self, key):
        return self._items[key]

    def __setitem__(self, key, item):
        if not isinstance(key, str):
            raise TypeError(f"the entries of a {type(self).__name__} have names, got {key!r}")
        if not isinstance(item, self._holds):
            raise TypeError(f"a {type(self).__name__} holds objects of {self._holds[0].__name__}, got {type(item).__name__}")
        self._items[key] = item

    def __len__(self):
        return len(self._items)

    def __contains__(self, key):
        return key in self._items

    def keys(self):
        """The names."""
        return self._items.keys()

    def values(self):
        """What the names stand for."""
        return self._items.values()

    def items(self):
        """Names with what they stand for."""
        return self._items.items()

    def get(self, key, default=None):
        """What ``key`` stands for, or ``default``."""
        return self._items.get(key, default)

    def update(self, items):
        """Set several entries."""
        for key, item in items.items():
            self[key] = item

    def clear(self):
        """Forget all entries."""
        self._items.clear()

    def pop(self, key):
        """Remove an entry, which is returned."""
        return self._items.pop(key)


class ModuleList(_List):
    """A list of modules; called, it calls one after the other."""

    _holds = (Module, Effect, Parameter)

    def __init__(self, modules):
        super().__init__(modules)

    @property
    def modules(self):
        """The modules, as a list."""
        return self._items

    def forward(self, x):
        """The result of the last module on that of the one before, and so on."""
        for module in self._items:
            x = module(x)
        return x


class ModuleDict(_Dict):
    """Modules by name."""

    _holds = (Module, Effect, Parameter)

    def __init__(self, modules=None):
        super().__init__(modules)

    @property
    def modules(self):
        """The modules by name."""
        return self._items


class ParameterList(_List):
    """A list of parameters."""

    _holds = (Parameter,)

    def __init__(self, params=None):
        super().__init__(params)

    @property
    def params(self):
        """The parameters, as a list."""
        return self._items

    def extend(self, params):
        """Add several at the end."""
        for param in params:
            self.append(param)


class ParameterDict(_Dict):
    """Parameters by name."""

    _holds = (Parameter,)

    def __init__(self, params=None):
        super().__init__(params)

    def __iter__(self):
        return iter(self._items)

    @property
    def params(self):
        """The parameters by name."""
        return self._items


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList"]
