"""Questions about kernels."""

import re

from ..ir import _api, prim
from ..ir.base import structural_equal
from ..ir.expr import Expr, Var
from ..ir.module import IRModule
from ._walk import children, scalars, walk, walk_scalar
from .function import PrimFunc
from .stmt import AllocBuffer, Bind, Evaluate, For


def expr_deep_equal(lhs, rhs):
    """Whether two scalars are the same operation on the same variables. No rule of arithmetic is used: ``x + 1`` is not ``1 + x``."""
    return structural_equal(lhs, rhs, map_free_vars=False)


def _defined(stmt):
    """The variables that a statement defines itself."""
    from ..s_tir.stmt import SBlock

    if isinstance(stmt, For):
        return [stmt.loop_var]
    if isinstance(stmt, Bind):
        return [stmt.var]
    if isinstance(stmt, SBlock):
        return [axis.var for axis in stmt.iter_vars] + [buffer.data for buffer in stmt.alloc_buffers]
    return [stmt.buffer.data] if isinstance(stmt, AllocBuffer) else []


def verify_ssa(func):
    """Whether every variable of a kernel is defined once."""
    seen, values = set(func._handles), {}
    for stmt in walk(func.body):
        for var in _defined(stmt):
            if var in seen:
                return False
            seen.add(var)
        for scalar in scalars(stmt):
            for part in walk_scalar(scalar):
                if isinstance(part, prim.Let):
                    # One name of one value may stand in several places.
                    if part.var in seen or not structural_equal(values.setdefault(part.var, part.value), part.value):
                        return False
    return True


def verify_memory(func):
    """Whether a kernel touches memory of its target's device only inside of loops that the device's threads execute.

    A kernel without a target, and one for the host, may touch memory anywhere.
    """
    target = (func.attrs or {}).get("target")
    kind = getattr(getattr(target, "kind", None), "name", None) or str(target or "").split(" ")[0]
    if kind in ("", "llvm", "c"):
        return True

    def outside(stmt):
        if isinstance(stmt, For) and stmt.thread_binding is not None:
            return False
        touches = hasattr(stmt, "indices") or any(
            isinstance(part, prim.BufferLoad) for scalar in scalars(stmt) for part in walk_scalar(scalar)
        )
        return touches or any(outside(part) for part in children(stmt))

    return not outside(func.body)


def undefined_vars(node, defs=None):
    """The variables that a statement or scalar uses and does not define, in the order of their first use, without those of ``defs``.

    Addresses of buffers are variables too, and so are lengths, strides and offsets of buffers that are declared.
    """
    defined, used = set(defs or ()), {}
    stmt = Evaluate(node) if isinstance(node, Expr) else node

    def use(scalar):
        for part in walk_scalar(scalar):
            if isinstance(part, prim.Let):
                defined.add(part.var)
            elif isinstance(part, Var):
                used.setdefault(part)
            elif isinstance(part, prim.BufferLoad):
                use_buffer(part.buffer)

    def use_buffer(buffer):
        used.setdefault(buffer.data)
        for scalar in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            use(scalar)

    for part in walk(stmt):
        for scalar in scalars(part):
            use(scalar)
        if hasattr(part, "buffer"):
            use_buffer(part.buffer)
        defined.update(_defined(part))
    return [var for var in used if var not in defined]


def used_buffers(stmt):
    """The buffers that a statement reads or writes and does not allocate, in the order of their first use."""
    own, found = set(), {}
    for part in walk(stmt):
        own.update(part.alloc_buffers if hasattr(part, "alloc_buffers") else [part.buffer] if isinstance(part, AllocBuffer) else [])
        loads = [load for scalar in scalars(part) for load in walk_scalar(scalar) if isinstance(load, prim.BufferLoad)]
        for access in [*loads, *([part] if hasattr(part, "indices") else [])]:
            if access.buffer not in own:
                found.setdefault(access.buffer)
    return list(found)


def _problem(func):
    return _api.tirx.Verify(func)


def verify_well_formed(obj, assert_mode=True):
    """Whether a kernel, or every kernel of a module, is well-formed: what is used is in scope, nothing is defined twice, types fit.

    With ``assert_mode`` what is not is a ValueError that says the reason.
    """
    kernels = [func for func in obj.functions.values() if isinstance(func, PrimFunc)] if isinstance(obj, IRModule) else [obj]
    owner = {}
    for kernel in kernels:
        problem = _shared(kernel, owner) or _counted_outside(kernel.body, {}, 0) or _reason(_problem(kernel), kernel)
        if problem:
            if assert_mode:
                raise ValueError(f"TIR is ill-formed, {problem}")
            return False
    return True


def _reason(problem, kernel):
    undefined = re.match(r"variable `(.+?)` is used where it is not defined, in `(.+)`", problem or "")
    if undefined:
        name, use = undefined.groups()
        ended = next((stmt for stmt in walk(kernel.body) if any(var.name == name for var in _defined(stmt))), None)
        if ended is not None:
            return f"since Invalid use of undefined variable {name} at `{use}`: it was defined at {_place(ended)}, and is no longer in-scope."
    return problem and f"since {problem}"


def _counted_outside(stmt, loops, depth, block=None):
    """Whether a block with axes uses the counter of a loop around it otherwise than by the values of its axes."""
    from ..s_tir.stmt import SBlock

    for scalar in scalars(stmt):
        for part in walk_scalar(scalar):
            if isinstance(part, Var) and loops.get(part, depth) < depth:
                return f"since the counter {part.name} of a loop around the block `{block.name_hint}` is used inside of the block, which has axes"
    if isinstance(stmt, For):
        loops = {**loops, stmt.loop_var: depth}
    elif isinstance(stmt, SBlock) and stmt.iter_vars:
        depth, block = depth + 1, stmt
    return next(filter(None, (_counted_outside(part, loops, depth, block) for part in children(stmt))), None)


def _shared(kernel, owner):
    """What is defined in more than one kernel, or twice in one."""
    own = dict.fromkeys(kernel._handles, "the parameters")
    for stmt in walk(kernel.body):
        for var in _defined(stmt):
            # A loop may count by the variable of an earlier one; what a name is bound to holds until the end of its block.
            if var in own and isinstance(stmt, Bind):
                return (
                    f"due to multiple nested definitions of variable {var.name}. It was first defined at {own[var]}, and was re-defined at "
                    f"{_place(stmt)}"
                )
            own.setdefault(var, _place(stmt))
    for var in own:
        if owner.setdefault(var, kernel) is not kernel:
            return f"due to multiple definitions of variable {var.name}: it is defined in two kernels"
    return None


def _place(stmt):
    """The first line of a statement, which says where something is defined."""
    if isinstance(stmt, Bind):
        return f"`{stmt.var.name} = {stmt.value}`"
    return f"a statement of kind {type(stmt).__name__}"


def verify_tirx_well_formed(obj, assert_mode=True, device_func=False):
    """The same as :func:`verify_well_formed`; kernels of devices have no rules of their own here."""
    return verify_well_formed(obj, assert_mode)


__all__ = ["expr_deep_equal", "undefined_vars", "used_buffers", "verify_memory", "verify_ssa", "verify_tirx_well_formed"]
__all__ += ["verify_well_formed"]
