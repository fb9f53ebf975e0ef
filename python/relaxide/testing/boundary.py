"""Values and errors that cross between Python and the compiler's own code."""

import builtins

from .. import error
from ..ffi import convert


def echo(value):
    """A value, as it comes back from the compiler's own code."""
    return convert(value)


def test_raise_error(kind, message=""):
    """Raise an error of a kind by its name, such as ``"OpNotImplemented"``.

    ``kind`` may hold both, as ``"ValueError: too large"``. A name that stands for no error is a RuntimeError that says it.
    """
    name, _, rest = kind.partition(":")
    raised = getattr(error, name, getattr(builtins, name, None))
    if not (isinstance(raised, type) and issubclass(raised, BaseException)):
        raise RuntimeError(f"{kind}: {message}" if message else kind)
    raise raised(message or rest.strip())


# It is no test, though pytest would take its name for one.
test_raise_error.__test__ = False
