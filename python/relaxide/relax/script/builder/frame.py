"""The frames of Relax functions and their parts.

Bindings go through a :class:`relaxide.relax.BlockBuilder`, which brings values to normal form. A block whose variables get other
names, or live on behind it, is written once more when it ends, with those variables in the place of the first.
"""

from ....script.ir_builder.base import IRBuilder, IRBuilderFrame
from ....script.ir_builder.ir.ir import place_function
from ... import block_builder
from ...expr import DataflowBlock, DataflowVar, Function, If, SeqExpr, Var
from ...expr_functor import PyExprMutator


class RelaxFrame(IRBuilderFrame):
    """What the frames of Relax share."""


class SeqExprFrame(RelaxFrame):
    """Bindings, and the value of the whole."""

    def __init__(self):
        super().__init__()
        self.output = None

    def enter(self):
        """Begin a sequence."""
        function = IRBuilder.current().find(FunctionFrame)
        if function is None:
            raise ValueError(f"{type(self).__name__} stands in no FunctionFrame: open `with R.function():` first")
        self.function = function
        self.function.block_builder.begin_scope()

    def end(self, body):
        """The sequence that ends with a value."""
        return self.function.block_builder._end_scope(body)

    def abandon(self):
        """Forget the sequence."""
        self.function.block_builder.end_scope()


class FunctionFrame(SeqExprFrame):
    """A function: its parameters in the order of ``R.arg``, its attributes, and what ``R.func_ret_value`` says."""

    def __init__(self, is_pure, is_private):
        super().__init__()
        self.is_pure, self.is_private = bool(is_pure), bool(is_private)
        self.name, self.params, self.attrs, self.ret_ty = None, [], {}, None
        self.block_builder, self.function = block_builder.BlockBuilder(), self

    def enter(self):
        """Begin the function."""
        outer = self._builder.frames[:-1]
        if any(isinstance(frame, FunctionFrame) for frame in outer):
            raise ValueError("a function is written inside of another: end the first one's block before")
        self.block_builder.begin_scope()

    def exit(self):
        """The function goes into the module, or is what the builder builds."""
        if self.output is None:
            self.abandon()
            raise ValueError("the function has no result: say R.func_ret_value in it")
        attrs = dict(self.attrs)
        if not self.is_private and self.name:
            attrs.setdefault("global_symbol", self.name)
        function = Function(self.params, self.end(self.output), self.ret_ty, self.is_pure, attrs)
        place_function(self.name, renamed(function, IRBuilder.current()._names))


class BindingBlockFrame(RelaxFrame):
    """A dataflow block. ``output_vars`` are, when it has ended, the variables that live on behind it."""

    def __init__(self):
        super().__init__()
        self.output_vars, self._outputs = [], None

    def enter(self):
        """Begin the block."""
        self.function = IRBuilder.current().find(FunctionFrame)
        if self.function is None:
            raise ValueError("R.dataflow stands in no FunctionFrame: open `with R.function():` first")
        self.function.block_builder.begin_scope()
        self.function.block_builder._begin_dataflow()

    def say_output(self, variables):
        """Say which variables live on behind the block."""
        if self._outputs is not None:
            raise ValueError("R.output was said in this dataflow block before: give it all variables at once")
        self._outputs = list(variables)

    def exit(self):
        """The block, with variables that live on in the place of those that were said."""
        builder = self.function.block_builder
        bindings = [binding for block in builder._end_scope(_nothing()).blocks for binding in block.bindings]
        bound = {binding.var for binding in bindings}
        mapped = {}
        names = IRBuilder.current()._names
        for var in self._outputs or ():
            if var not in bound:
                raise ValueError(f"R.output names {getattr(var, 'name', var)}, which is not bound in this dataflow block")
            outside = Var(names.get(var, var.name), var.ty)
            mapped[var] = outside
        self.output_vars = list(mapped.values())
        builder._begin_dataflow()
        for binding in _Replaced(mapped).bindings(bindings):
            builder.emit_normalized(binding)
        builder._end_dataflow()

    def abandon(self):
        """Forget the block."""
        self.function.block_builder.end_scope()


class IfFrame(RelaxFrame):
    """A choice between the values of two branches. ``var``, when it has ended, holds the value."""

    def __init__(self, condition):
        super().__init__()
        self.condition, self.branches, self.var, self.var_name = condition, {}, None, ""

    def exit(self):
        """Bind the choice."""
        absent = [name for name in ("Then", "Else") if name not in self.branches]
        if absent:
            raise ValueError(f"R.If has no branch {absent[0]}: both are needed")
        function = IRBuilder.current().find(FunctionFrame)
        choice = If(self.condition, self.branches["Then"], self.branches["Else"])
        self.var = function.block_builder.emit(choice, self.var_name)


class _BranchFrame(SeqExprFrame):
    def exit(self):
        """The branch's value is that of its last binding."""
        choice = IRBuilder.current().find(IfFrame)
        if choice is None:
            raise ValueError(f"R.{self._branch} stands in no R.If")
        if choice.branches.get(self._branch) is not None:
            raise ValueError(f"R.If has a branch {self._branch} already")
        if self.output is None:
            raise ValueError(f"R.{self._branch} binds nothing: its value is that of its last binding")
        choice.var_name = choice.var_name or IRBuilder.current()._names.get(self.output, "")
        choice.branches[self._branch] = self.end(self.output)


class ThenFrame(_BranchFrame):
    """What the choice is where the condition holds."""

    _branch = "Then"


class ElseFrame(_BranchFrame):
    """What the choice is where the condition does not hold."""

    _branch = "Else"


def _nothing():
    from ....ir.expr import Tuple

    return Tuple([])


class _Replaced(PyExprMutator):
    """Other variables in the place of some, where they are bound and where they are used."""

    def __init__(self, mapped):
        super().__init__()
        for old, new in mapped.items():
            self.set_var_remap(old, new)

    def bindings(self, bindings):
        """The bindings of a dataflow block, with the others."""
        block = self.visit_with_new_scope(SeqExpr([DataflowBlock(bindings)], _nothing()))
        return [binding for part in block.blocks for binding in part.bindings]


def renamed(function, names):
    """A function whose variables have the names that were given to them."""
    from ...analysis import all_vars

    mapped = {}
    for var in all_vars(function):
        name = names.get(var)
        if name is not None and name != var.name:
            mapped[var] = (DataflowVar if isinstance(var, DataflowVar) else Var)(name, var.ty)
    return _Replaced(mapped).visit_expr(function) if mapped else function


__all__ = ["BindingBlockFrame", "ElseFrame", "FunctionFrame", "IfFrame", "RelaxFrame", "SeqExprFrame", "ThenFrame"]
