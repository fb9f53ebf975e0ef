"""The frame of a module."""

from ....ir.module import IRModule
from ..base import IRBuilder, IRBuilderFrame


class IRModuleFrame(IRBuilderFrame):
    """A module that is being written. Functions whose blocks end inside of it belong to it."""

    def __init__(self):
        super().__init__()
        self.functions, self.global_vars, self.attrs, self.global_infos = {}, {}, {}, {}

    def exit(self):
        """The module of the functions; declared ones must have been defined."""
        absent = [name for name, func in self.functions.items() if func is None]
        if absent:
            raise ValueError(f"functions were declared and not defined: {', '.join(absent)}")
        functions = {self.global_vars[name]: func for name, func in self.functions.items()}
        module = IRModule(functions, attrs=self.attrs or None, global_infos=self.global_infos or None)
        IRBuilder.current().finish(module)


__all__ = ["IRModuleFrame"]
