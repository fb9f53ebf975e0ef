"""The table of implementations: which function makes the statements of an operation on tiles, for a kind of target.

::

    @register_dispatch("copy", "cuda", variant="by_threads", priority=10)
    def copy_by_threads(call, context):
        if context.scope_kind != "thread":
            fail("a thread copies alone")
        @T.prim_func(private=True)
        def made():
            …
        return made

Of several, those of a higher priority are asked first. One that does not fit says why (:func:`fail`), and the next is asked.
"""

from dataclasses import dataclass, field

from .ops import get_tirx_op


class DispatchFail(RuntimeError):
    """An implementation does not fit a call, for the reason that this says."""


@dataclass
class Predicate:
    """A condition with a name: a function of the call, its context and ``kwargs``, which gives a bool, or a bool and a reason."""

    name: str
    fn: object
    kwargs: dict = field(default_factory=dict)

    def evaluate(self, op_call, sctx):
        """Whether it holds, and why not."""
        try:
            told = self.fn(op_call, sctx, **self.kwargs)
        except DispatchFail as error:
            return False, str(error)
        holds, reason = told if isinstance(told, tuple) else (told, None)
        return bool(holds), None if holds or reason is None else str(reason)


def predicate(name, fn, **kwargs):
    """A condition with a name, for ``when``."""
    return Predicate(name, fn, kwargs)


def fail(reason):
    """Say that an implementation does not fit, and why.

    Raises
    ------
    DispatchFail
        Always.
    """
    raise DispatchFail(reason)


@dataclass
class DispatchCase:
    """An implementation, under what name and conditions it is asked."""

    variant: str
    priority: int
    preds: list
    impl: object


#: The implementations by operation and kind of target.
_CASES = {}


def register_dispatch(op_name, target_kind, *, variant, priority=0, when=None):
    """Enter an implementation, a function of a call and its context that gives a kernel without parameters.

    Parameters
    ----------
    op_name : str
        The operation: ``"copy"``.
    target_kind : str
        For which kind of target: ``"cuda"``.
    variant : str
        Its name, which a call asks for by ``dispatch=``.
    priority : int
        Those of a higher one are asked first.
    when : list of Predicate, optional
        What must hold for it to be asked.
    """

    def enter(impl):
        case = DispatchCase(variant, priority, list(when or ()), impl)
        _CASES.setdefault((get_tirx_op(op_name), target_kind), []).append(case)
        return impl

    return enter


def list_registered_schedules():
    """The names of the implementations by operation and kind of target, those that are asked first in front."""
    listed = {}
    for (op, kind), cases in _CASES.items():
        ordered = sorted(cases, key=lambda case: (-case.priority, case.variant))
        listed.setdefault(op, {})[kind] = [case.variant for case in ordered]
    return listed


def run_dispatch(op_call, sctx):
    """The kernel that the first implementation that fits makes of a call.

    Raises
    ------
    RuntimeError
        None fits, for the reasons that it lists.
    """
    kind = getattr(getattr(sctx.target, "kind", None), "name", None)
    op = getattr(op_call.op, "name", op_call.op)
    cases = sorted(_CASES.get((op, kind), ()), key=lambda case: -case.priority)
    if op_call.dispatch is not None:
        cases = [case for case in cases if case.variant == op_call.dispatch]
    reasons = []
    for case in cases:
        made, reason = _asked(case, op_call, sctx)
        if made is not None:
            return made
        reasons.append(f"{case.variant}: {reason}")
    asked = "" if op_call.dispatch is None else f" called {op_call.dispatch!r}"
    listed = "".join(f"\n  {reason}" for reason in reasons) or f"\n  none{asked} is registered"
    raise RuntimeError(f"no implementation of {op} for the target {kind} fits:{listed}")


def _asked(case, op_call, sctx):
    for condition in case.preds:
        holds, reason = condition.evaluate(op_call, sctx)
        if not holds:
            return None, f"{condition.name} does not hold" + ("" if reason is None else f": {reason}")
    try:
        made = case.impl(op_call, sctx)
    except DispatchFail as error:
        return None, str(error)
    return made, "it gave no kernel; one that does not fit calls fail(reason)"


__all__ = ["DispatchCase", "DispatchFail", "Predicate", "fail", "list_registered_schedules", "predicate", "register_dispatch", "run_dispatch"]
