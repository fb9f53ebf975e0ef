"""From Python source to programs."""

from .. import _core


def from_source(text, path="<string>"):
    """Parse TVMScript text into a module."""
    return _core.parse_script(text, path, 1)


def ir_module(cls=None, *, check_well_formed=True):
    """Make the functions of a class a module."""
    if cls is None:
        return lambda inner: ir_module(inner, check_well_formed=check_well_formed)
    if not isinstance(cls, type):
        raise TypeError(f"ir_module decorates a class, got {type(cls).__name__}")
    text, path, line = _source_of(cls)
    return _core.parse_script(text, path, line)


def _source_of(cls):
    # Only a program that is written in Python needs these, and they take as long to import as the package.
    import inspect
    import linecache
    import textwrap

    try:
        lines, line = inspect.getsourcelines(cls)
    except (OSError, TypeError) as error:
        raise OSError(
            f"the source of class {cls.__name__} is not to be had: {error}. Write the module in a file, or parse its text "
            "with script.from_source"
        ) from error
    path = inspect.getsourcefile(cls) or "<unknown>"
    linecache.checkcache(path)
    return textwrap.dedent("".join(lines)), path, line
