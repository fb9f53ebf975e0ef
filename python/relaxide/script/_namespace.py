"""Names that only have to exist, because the source they stand in is parsed and not run."""


class Inert:
    """Stands for any name of TVMScript; attributes, calls and operators of it stand for more."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Inert(f"{self._name}.{name}")

    def __call__(self, *args, **kwargs):
        if len(args) == 1 and not kwargs and (callable(args[0]) and not isinstance(args[0], Inert)):
            return args[0]
        return Inert(f"{self._name}(...)")

    def __getitem__(self, item):
        return Inert(f"{self._name}[...]")

    def __repr__(self):
        return self._name

    def __add__(self, other):
        return Inert(f"({self._name} ...)")

    __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __floordiv__ = __mod__ = __add__


class Signature(Inert):
    """Stands for a name of TVMScript whose arguments are known: a call in Python is checked, as where it is read."""

    def __init__(self, name, check):
        super().__init__(name)
        self._check = check

    def __call__(self, *args, **kwargs):
        self._check(*args, **kwargs)
        return super().__call__(*args, **kwargs)
