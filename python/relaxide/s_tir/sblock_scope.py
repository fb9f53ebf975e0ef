"""References to the blocks and loops of a module that is scheduled, and what flows between the blocks of a scope."""

from enum import IntEnum

from ..tirx import For, SeqStmt
from .stmt import SBlock, SBlockRealize

#: The fields in which a statement holds others.
_INSIDE = ("body", "then_case", "else_case", "init")


def _inside(stmt):
    """The statements directly inside of one, with their places where they stand in a sequence."""
    if isinstance(stmt, SeqStmt):
        return [(part, at) for at, part in enumerate(stmt.seq)]
    if isinstance(stmt, SBlockRealize):
        return [(stmt.block, -1)]
    parts = (getattr(stmt, field, None) for field in _INSIDE)
    return [(part, -1) for part in parts if part is not None]


def walk(stmt, parent=None, place=-1):
    """All blocks and loops of a statement, each with the one around it and its place in a sequence, in order of the text."""
    is_node = isinstance(stmt, (For, SBlock))
    if is_node:
        yield stmt, parent, place
    for part, at in _inside(stmt):
        inner = at if isinstance(stmt, SeqStmt) else (place if isinstance(stmt, SBlockRealize) else -1)
        yield from walk(part, stmt if is_node else parent, inner)


class StmtSRef:
    """Refers to a block or a loop of a schedule's module. ``stmt`` is None once it is no longer there."""

    def __init__(self, schedule, stmt, mark=None):
        self._schedule, self._stmt, self._mark = schedule, stmt, mark

    @classmethod
    def _of(cls, schedule, stmt):
        return cls(schedule, stmt)

    def _row(self):
        if self._mark is not None:
            return None
        for function in self._schedule.mod.functions.values():
            for row in walk(getattr(function, "body", None)):
                if _same(row[0], self._stmt):
                    return row
        return None

    @property
    def stmt(self):
        """The block or loop."""
        row = self._row()
        return None if row is None else row[0]

    @property
    def parent(self):
        """A reference to the block or loop around it; None for the root block."""
        row = self._row()
        return None if row is None or row[1] is None else StmtSRef(self._schedule, row[1])

    @property
    def seq_index(self):
        """Its place in the sequence that it stands in; -1 where it stands alone."""
        row = self._row()
        return -1 if row is None else row[2]

    @staticmethod
    def inline_mark():
        """Stands for no block or loop: a block is to be inlined."""
        return _INLINE

    @staticmethod
    def root_mark():
        """Stands for no block or loop: a block is to stay where it is."""
        return _ROOT

    def _follow(self, reuse):
        """Refer to what took the place of the block, by pairs of old and new ones."""
        self._stmt = next((new for old, new in reuse if _same(old, self._stmt)), self._stmt)

    def same_as(self, other):
        """Whether the other refers to the same block or loop."""
        return self == other

    def __eq__(self, other):
        if not isinstance(other, StmtSRef):
            return NotImplemented
        return self._mark == other._mark and (self._mark is not None or _same(self._stmt, other._stmt))

    def __hash__(self):
        return hash(self._mark)

    def __repr__(self):
        return f"s_tir.StmtSRef({self._mark or getattr(self._stmt, 'name_hint', None) or self._stmt.loop_var.name})"


_INLINE, _ROOT = StmtSRef(None, None, "inline"), StmtSRef(None, None, "root")


def _same(one, other):
    """The same block, or loops of the same counter."""
    if isinstance(one, For) and isinstance(other, For):
        return one.loop_var.same_as(other.loop_var)
    return type(one) is type(other) and one.same_as(other)


class DepKind(IntEnum):
    """How a block depends on an earlier one."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


class Dependency:
    """``dst`` depends on ``src``: it reads (``RAW``) or overwrites (``WAW``) what ``src`` writes."""

    def __init__(self, src, dst, kind):
        self.src, self.dst, self.kind = src, dst, kind

    def __repr__(self):
        return f"s_tir.Dependency(src={self.src}, dst={self.dst}, kind={int(self.kind)})"


class SBlockScope:
    """The blocks directly inside of a block, and what flows between them."""

    def __init__(self, schedule, block):
        children = []
        inside = [(part, None) for part, _ in _inside(block)]
        for part, _ in inside:
            children += _outermost_blocks(part)
        self._deps = []
        for at, dst in enumerate(children):
            for kind, regions in ((DepKind.RAW, dst.reads), (DepKind.WAW, dst.writes)):
                for region in regions:
                    for src in children[:at]:
                        if any(written.buffer.same_as(region.buffer) for written in src.writes):
                            self._add(schedule, src, dst, kind)

    def _add(self, schedule, src, dst, kind):
        src, dst = StmtSRef(schedule, src), StmtSRef(schedule, dst)
        if not any((dep.src, dep.dst, dep.kind) == (src, dst, kind) for dep in self._deps):
            self._deps.append(Dependency(src, dst, kind))

    def get_deps_by_src(self, block):
        """What depends on a block."""
        return [dep for dep in self._deps if dep.src == block]

    def get_deps_by_dst(self, block):
        """What a block depends on."""
        return [dep for dep in self._deps if dep.dst == block]


def _outermost_blocks(stmt):
    if isinstance(stmt, SBlockRealize):
        return [stmt.block]
    return [block for part, _ in _inside(stmt) for block in _outermost_blocks(part)]


__all__ = ["DepKind", "Dependency", "SBlockScope", "StmtSRef"]
