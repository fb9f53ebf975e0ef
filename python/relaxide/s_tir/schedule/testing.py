"""Comparisons that tests of schedules make."""

from ...ir import IRModule, assert_structural_equal
from .schedule import Schedule


def assert_structural_equal_ignore_global_symbol(func1, func2, *args, **kwargs):
    """Fail unless two functions, or two modules, are equal up to the names under which they are known.

    Parameters
    ----------
    func1, func2 : PrimFunc or IRModule
        What came and what was wanted.
    args, kwargs
        As :func:`tvm.ir.assert_structural_equal` takes them.
    """
    assert_structural_equal(_nameless(func1), _nameless(func2), *args, **kwargs)


def _nameless(what):
    if isinstance(what, IRModule):
        return IRModule({var: _nameless(func) for var, func in what.functions_items()}, what.attrs, what.global_infos)
    attrs = what.attrs
    if attrs is not None and "global_symbol" in attrs:
        return what.with_attr("global_symbol", "")
    return what


def verify_trace_roundtrip(sch, mod, *, debug_mask="all", text_format=("python", "json")):
    """Fail unless the trace of a schedule, written and read again, leads to the same program.

    Parameters
    ----------
    sch : Schedule
        The schedule.
    mod : PrimFunc or IRModule
        What it began with.
    debug_mask : str or int
        As for :class:`Schedule`.
    text_format : str or sequence of str
        How the trace is written: ``"python"``, ``"json"`` or both.

    Returns
    -------
    Schedule
        The one that the last trace was applied to.
    """
    formats = (text_format,) if isinstance(text_format, str) else tuple(text_format)
    again = None
    for form in formats:
        again = Schedule(mod=mod, debug_mask=debug_mask)
        if form == "json":
            again.trace.apply_json_to_schedule(sch.trace.as_json(), again)
        elif form == "python":
            steps = "\n".join(sch.trace.as_python())
            exec(steps, _names(), {"sch": again})  # noqa: S102 the text is what the schedule itself wrote
        else:
            raise ValueError(f"text_format is {form!r}; known are 'python' and 'json'")
        assert_structural_equal_ignore_global_symbol(again.mod, sch.mod)
    if again is None:
        raise ValueError("text_format names no form")
    before, after = "\n".join(sch.trace.as_python()), "\n".join(again.trace.as_python())
    if before != after:
        raise AssertionError(f"the trace reads otherwise after it was applied:\n{before}\n--- and then\n{after}")
    return again


def _names():
    from ... import s_tir, tirx
    from ...script import tirx as script

    return {"s_tir": s_tir, "tirx": tirx, "T": script}
