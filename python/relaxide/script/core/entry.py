"""Reading a program."""

WELL_FORMED_ERROR_MESSAGE = (
    "Program is not well-formed. If this is deliberate, consider setting check_well_formed in the top-level decorator to False (e.g., "
    "@I.ir_module(check_well_formed=False) or @R.function(check_well_formed=False))"
)


def parse(program, extra_vars=None, check_well_formed=True, s_tir=False, absent_params=None):
    """The module or function of a program: a text, a tree of :mod:`.doc_core`, a function or a class.

    ``extra_vars`` are values by the names that the text uses.
    """
    from ... import from_source
    from .diagnostics import Source

    text = program if isinstance(program, str) else Source(program).source
    return from_source(text, extra_vars, check_well_formed=check_well_formed)


def scan_macro(program, extra_vars=None):
    """``(source, names)`` of a macro: its text with its place, and what it sees."""
    from .diagnostics import Source
    from .utils import inspect_function_capture

    names = inspect_function_capture(program) if extra_vars is None and callable(program) else dict(extra_vars or {})
    return Source(program), names


__all__ = ["WELL_FORMED_ERROR_MESSAGE", "parse", "scan_macro"]
