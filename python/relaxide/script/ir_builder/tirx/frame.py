"""The frames of kernels and their parts.

A frame collects the statements that are written inside of it. Regions that a block does not say are found when the kernel is
finished, as they are where text is read.
"""

from ....ir import _api
from ....ir.expr import Var
from ....s_tir.stmt import MatchBufferRegion, SBlock, SBlockRealize
from ....tirx import AttrStmt, Evaluate, For, IfThenElse, PrimFunc, While, const, stmt_seq
from ....tirx.buffer import Buffer
from ..base import IRBuilder, IRBuilderFrame
from ..ir.ir import place_function


def _body(stmts):
    return stmt_seq(*stmts) if stmts else Evaluate(0)


def put(stmt):
    """Add a statement to the innermost frame that takes statements; without one, it is what the builder builds."""
    builder = IRBuilder.current()
    frame = builder.find(TIRFrame)
    if frame is None:
        builder.finish(named(stmt, builder._names))
    else:
        frame.stmts.append(stmt)


class TIRFrame(IRBuilderFrame):
    """What the frames of kernels share: the statements in them."""

    def __init__(self):
        super().__init__()
        self.stmts = []

    def body(self):
        """The statements as one."""
        return _body(self.stmts)


class PrimFuncFrame(TIRFrame):
    """A kernel: its parameters in the order of ``T.arg``, its attributes, buffers behind its handles."""

    def __init__(self, is_private, s_tir):
        super().__init__()
        self.is_private, self.s_tir = is_private, s_tir
        self.name, self.args, self.attrs, self.ret_type, self.buffer_map = None, [], {}, None, {}
        self.root_alloc_buffers, self.has_blocks = [], False

    def exit(self):
        """The kernel goes into the module, or is what the builder builds."""
        body = self.body()
        if self.root_alloc_buffers or (self.has_blocks and not _is_root(body)):
            block = SBlock([], [], [], "root", body, alloc_buffers=self.root_alloc_buffers)
            body = SBlockRealize([], True, block)
        attrs = dict(self.attrs)
        if self.name and not self.is_private:
            attrs.setdefault("global_symbol", self.name)
        if self.s_tir and not self.has_blocks and not self.root_alloc_buffers:
            attrs.setdefault("s_tir", True)
        func = PrimFunc(self.args, body, self.ret_type, attrs, buffer_map=self.buffer_map)
        place_function(self.name, named(func, IRBuilder.current()._names))


def _is_root(body):
    return isinstance(body, SBlockRealize) and not len(body.block.iter_vars)


def named(func, names):
    """A kernel, or a statement, whose variables and buffers have the names that were given to them."""
    variables = {old: Var(name, old.ty) for old, name in names.items() if isinstance(old, Var) and old.name != name}
    buffers = {}
    for old, name in names.items():
        if isinstance(old, Buffer) and old.name != name:
            buffers[old] = renamed_buffer(old, name)
            variables[old.data] = buffers[old].data
    if not variables and not buffers:
        return func
    return _api.tirx.Exchange(func, list(variables), list(variables.values()), list(buffers), list(buffers.values()))


def renamed_buffer(buffer, name):
    """A buffer of another name, with memory of its own."""
    parts = (None, list(buffer.strides), buffer.elem_offset, buffer.scope(), buffer.data_alignment, buffer.offset_factor)
    return _api.tirx.Buffer(name, buffer.dtype, list(buffer.shape), *parts)


class SBlockFrame(TIRFrame):
    """A block: axes and their values, regions, buffers inside, what sets the element in front of a reduction."""

    def __init__(self, name, no_realize):
        super().__init__()
        self.name, self.no_realize = name, no_realize
        self.iter_vars, self.iter_values, self.predicate = [], [], None
        self.reads, self.writes, self.init = None, None, None
        self.alloc_buffers, self.match_buffers, self.annotations = [], [], {}

    def exit(self):
        """The block at the values of its axes, where its predicate holds."""
        builder = IRBuilder.current()
        function = builder.find(PrimFuncFrame)
        if function is not None:
            function.has_blocks = True
        missing = (self.reads is None) + 2 * (self.writes is None)
        if missing and function is None:
            # What stands outside of a kernel is completed with it.
            self.annotations = {**self.annotations, "tirx.script_parsing_detect_access": const(missing, "int64")}
        block = self._block(self.reads or [], self.writes or [])
        if missing and function is not None:
            found = _api.s_tir.AccessRegions(block)
            block = self._block(*(said if said is not None else list(seen) for said, seen in zip((self.reads, self.writes), found)))
        put(block if self.no_realize else SBlockRealize(self.iter_values, const(True, "bool") if self.predicate is None else self.predicate, block))

    def _block(self, reads, writes):
        parts = (self.alloc_buffers, self.match_buffers, self.annotations)
        return SBlock(self.iter_vars, reads, writes, self.name, self.body(), self.init, *parts)

    def match(self, buffer, source):
        """See a region as a buffer."""
        self.match_buffers.append(MatchBufferRegion(buffer, source))


class BlockInitFrame(TIRFrame):
    """What sets the element in front of the first value of the reductions of a block."""

    def exit(self):
        """It becomes the block's."""
        block = IRBuilder.current().find(SBlockFrame)
        if block is None:
            raise ValueError("T.init stands in no block: open `with T.sblock(name):` first")
        if block.init is not None:
            raise ValueError(f"the block {block.name} has a T.init already")
        block.init = self.body()


class ForFrame(TIRFrame):
    """Loops inside of each other: ``as`` names their counters, one bare and several as a list."""

    def __init__(self, loops):
        """Each of ``loops`` is ``(counter, first, number, kind, thread, annotations, step)``."""
        super().__init__()
        self.loops = loops
        self.vars = [loop[0] for loop in loops]

    def _given(self):
        return self.vars[0] if len(self.vars) == 1 else self.vars

    def exit(self):
        """The loops around the statements."""
        body = self.body()
        for var, begin, extent, kind, thread, annotations, step in reversed(self.loops):
            body = For(var, begin, extent, kind, body, thread, annotations, step)
        put(body)


class AssertFrame(TIRFrame):
    """Statements behind a condition that must hold."""

    def __init__(self, check):
        super().__init__()
        self.check = check

    def exit(self):
        """The check, and the statements behind it."""
        if IRBuilder.current().find(TIRFrame) is None:
            return put(stmt_seq(self.check, *self.stmts))
        for stmt in (self.check, *self.stmts):
            put(stmt)


class AttrFrame(TIRFrame):
    """Statements under attributes."""

    def __init__(self, attrs, node=None):
        super().__init__()
        self.attrs, self.node = attrs, node

    def exit(self):
        """The attributes around the statements."""
        body = self.body()
        for key, value in reversed(self.attrs):
            body = AttrStmt(self.node, key, value, body)
        put(body)


class WhileFrame(TIRFrame):
    """Statements for as long as a condition holds."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def exit(self):
        """The loop."""
        put(While(self.condition, self.body()))


class IfFrame(IRBuilderFrame):
    """A choice between the statements of ``T.Then`` and ``T.Else``."""

    def __init__(self, condition):
        super().__init__()
        self.condition, self.then_stmts, self.else_stmts = condition, None, None

    def exit(self):
        """The choice; a ValueError where it has no ``T.Then``."""
        if self.then_stmts is None:
            raise ValueError("T.If has no T.Then")
        put(IfThenElse(self.condition, self.then_stmts, self.else_stmts))


class _BranchFrame(TIRFrame):
    def exit(self):
        """The statements become the choice's."""
        choice = IRBuilder.current().find(IfFrame)
        if choice is None:
            raise ValueError(f"T.{self._branch} stands in no T.If")
        slot = f"{self._branch.lower()}_stmts"
        if getattr(choice, slot) is not None:
            raise ValueError(f"T.If has a T.{self._branch} already")
        setattr(choice, slot, self.body())


class ThenFrame(_BranchFrame):
    """What is done where the condition holds."""

    _branch = "Then"


class ElseFrame(_BranchFrame):
    """What is done where it does not."""

    _branch = "Else"


__all__ = ["AssertFrame", "AttrFrame", "BlockInitFrame", "ElseFrame", "ForFrame", "IfFrame", "PrimFuncFrame", "SBlockFrame"]
__all__ += ["TIRFrame", "ThenFrame", "WhileFrame", "named", "put", "renamed_buffer"]
