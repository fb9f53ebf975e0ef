"""The prelude: lists, options and trees, and the functions over them."""



from .module import IRModule


class Prelude:
    """The prelude in a module: its constructors and functions by name."""

    def __init__(self, mod=None):
        self.mod = IRModule() if mod is None else mod
        self.mod.import_from_std("prelude.rly")
        for function in self.mod.get_global_vars():
            setattr(self, function.name_hint, function)
        for data in self.mod.type_definitions.values():
            for constructor in data.constructors:
                setattr(self, constructor.name_hint.lower(), constructor)

    def get_type(self, name):
        """A data type with its constructors."""
        return self.mod.get_type(name)

    def get_ctor(self, type_name, ctor_name):
        """A constructor."""
        return next(ctor for ctor in self.mod.get_type(type_name)[1:] if ctor.name_hint == ctor_name)


__all__ = ["Prelude"]
