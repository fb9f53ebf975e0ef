"""Edits of a dataflow block, binding by binding."""

from ..ir import _api


class DataflowBlockRewrite:
    """A dataflow block under edit, and the function around it.

    Programs never change: :meth:`mutated_dfb` and :meth:`mutated_root_fn` are the block and the function after the edits, and
    :meth:`mutate_irmodule` puts the function into a module.

    ::

        rewrite = DataflowBlockRewrite(func.body.blocks[0], func)
        rewrite.add(relax.op.add(x, x), name="y", is_dfvar=True)
        rewrite.remove_all_unused()
        func = rewrite.mutated_root_fn()

    A block that is not one of the function's is a ValueError.
    """

    def __init__(self, dfb, root_fn):
        self._original, self.dfb, self.root_fn = root_fn, dfb, root_fn
        self._edit("New")

    def _edit(self, name, *args):
        edited = getattr(_api.relax, f"BlockRewrite{name}")(self.dfb, self.root_fn, *args)
        self.dfb, self.root_fn = edited

    def replace_all_uses(self, old_var, new_var):
        """Use one variable in the place of another, everywhere in the function; one that it does not have is a RuntimeError."""
        self._edit("ReplaceAllUses", old_var, new_var)

    def add_binding(self, binding):
        """Add a binding to the block, right behind those that it needs, or behind the first one."""
        self._edit("AddBinding", binding)

    def add(self, expr, name=None, is_dfvar=False):
        """Bind a value in the block, right behind what it needs, or behind the first binding.

        The variable is called ``name``, or ``tmp``, ``tmp1`` … where none is given; with ``is_dfvar`` it ends with the block.
        """
        self._edit("Add", expr, name, is_dfvar)

    def remove_unused(self, var, allow_undef=False):
        """Remove the binding of a variable.

        A variable that is used is a RuntimeError, and so is one that the block does not bind, unless ``allow_undef``.
        """
        self._edit("RemoveUnused", var, allow_undef)

    def remove_all_unused(self):
        """Remove all bindings that nothing uses, in the whole function."""
        self._edit("RemoveAllUnused")

    def mutated_dfb(self):
        """The block after the edits."""
        return self.dfb

    def mutated_root_fn(self):
        """The function after the edits."""
        return self.root_fn

    def mutate_irmodule(self, irmodule):
        """The module with the function after the edits in the place of the one before; a KeyError where it is not there."""
        for var, func in irmodule.functions.items():
            if func.same_as(self._original):
                changed = irmodule.clone()
                changed[var] = self.root_fn
                return changed
        raise KeyError("the function is not in the module")


__all__ = ["DataflowBlockRewrite"]
