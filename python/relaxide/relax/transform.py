"""The passes by name: ``transform.FuseOps()(mod)``; ``transform.names()`` lists them."""

from .. import _core


class Pass:
    """A pass, callable on a module."""

    def __init__(self, name):
        self.name = name
        self.__doc__ = _core.pass_doc(name)

    def __call__(self, mod):
        return _core.run_passes(mod, [self.name])

    def __repr__(self):
        return f"Pass({self.name})"


class Sequential(Pass):
    """Passes in order."""

    def __init__(self, passes, name="sequential"):
        self.passes = list(passes)
        self.name = name

    def __call__(self, mod):
        return _core.run_passes(mod, [p.name for p in self.passes])


def names():
    """The names of all passes."""
    return _core.pass_names()


def __getattr__(name):
    if name in _core.pass_names():
        return lambda: Pass(name)
    raise AttributeError(f"there is no pass {name!r}; transform.names() lists the passes")
