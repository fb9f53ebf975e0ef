"""The parts of statements and scalars, in the order in which they are executed."""

from ..ir import prim
from . import stmt as statements

#: The scalars that a statement holds, by class: names of fields.
_SCALARS = (
    (statements.For, ("min", "extent")),
    (statements.While, ("condition",)),
    (statements.IfThenElse, ("condition",)),
    (statements.Bind, ("value",)),
    (statements.AssertStmt, ("condition",)),
    (statements.AttrStmt, ("value",)),
    (statements.DeclBuffer, ("data",)),
    (statements.Return, ("value",)),
    (statements.Evaluate, ("value",)),
)


def children(stmt):
    """The statements inside of one; the block of a realized block is one of them, and so is what it begins with."""
    from ..s_tir.stmt import SBlock, SBlockRealize

    if isinstance(stmt, statements.SeqStmt):
        return list(stmt.seq)
    if isinstance(stmt, statements.IfThenElse):
        return [stmt.then_case] if stmt.else_case is None else [stmt.then_case, stmt.else_case]
    if isinstance(stmt, SBlockRealize):
        return [stmt.block]
    if isinstance(stmt, SBlock):
        return [stmt.body] if stmt.init is None else [stmt.init, stmt.body]
    if isinstance(stmt, (statements.For, statements.While, statements.AttrStmt)):
        return [stmt.body]
    return []


def scalars(stmt):
    """The scalars that a statement holds itself."""
    from ..s_tir.stmt import SBlock, SBlockRealize

    if isinstance(stmt, statements.BufferStore):
        return [*stmt.indices, stmt.value]
    if isinstance(stmt, SBlockRealize):
        return [*stmt.iter_values, stmt.predicate]
    if isinstance(stmt, SBlock):
        return [bound for axis in stmt.iter_vars for bound in (axis.min, axis.extent)]
    for kind, names in _SCALARS:
        if isinstance(stmt, kind):
            step = getattr(stmt, "step", None)
            return [getattr(stmt, name) for name in names] + ([] if step is None else [step])
    return []


def operands(scalar):
    """The operands of a scalar."""
    if isinstance(scalar, prim.Let):
        return [scalar.value, scalar.body]
    if isinstance(scalar, prim.BufferLoad):
        return list(scalar.indices)
    if isinstance(scalar, prim.PrimCall):
        return list(scalar.args)
    if isinstance(scalar, prim.BinaryOpExpr):
        return [scalar.a, scalar.b]
    if isinstance(scalar, prim.Not):
        return [scalar.a]
    if isinstance(scalar, (prim.Cast, prim.Broadcast)):
        return [scalar.value]
    if isinstance(scalar, prim.Select):
        return [scalar.condition, scalar.true_value, scalar.false_value]
    if isinstance(scalar, prim.Ramp):
        return [scalar.base, scalar.stride]
    return []


def walk(stmt):
    """A statement and all inside of it, the outer ones first."""
    pending = [stmt]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(reversed(children(one)))


def walk_scalar(scalar):
    """A scalar and all inside of it, the outer ones first."""
    pending = [scalar]
    while pending:
        one = pending.pop()
        yield one
        pending.extend(reversed(operands(one)))


def rebuilt(stmt, change):
    """A statement with what ``change`` gives in the place of each statement inside, outer ones first; nothing keeps one."""
    made = change(stmt)
    if made is not None:
        return made
    if isinstance(stmt, statements.SeqStmt):
        parts = [rebuilt(part, change) for part in stmt.seq]
        return stmt if _same(parts, stmt.seq) else statements.SeqStmt([p for one in parts for p in statements.stmt_list(one)])
    if isinstance(stmt, statements.IfThenElse):
        parts = [None if case is None else rebuilt(case, change) for case in (stmt.then_case, stmt.else_case)]
        return stmt if _same(parts, (stmt.then_case, stmt.else_case)) else statements.IfThenElse(stmt.condition, *parts)
    if not isinstance(stmt, (statements.For, statements.While, statements.AttrStmt)):
        return stmt
    body = rebuilt(stmt.body, change)
    if body.same_as(stmt.body):
        return stmt
    if isinstance(stmt, statements.While):
        return statements.While(stmt.condition, body)
    if isinstance(stmt, statements.AttrStmt):
        return statements.AttrStmt(stmt.node, stmt.attr_key, stmt.value, body)
    return statements.For(stmt.loop_var, stmt.min, stmt.extent, stmt.kind, body, stmt.thread_tag or None, stmt.annotations)


def _same(made, stmts):
    return all((a is None and b is None) or (a is not None and a.same_as(b)) for a, b in zip(made, stmts))


__all__ = ["children", "operands", "rebuilt", "scalars", "walk", "walk_scalar"]
