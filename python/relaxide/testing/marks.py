"""Marks of tests."""

import os
import struct
import sys


def skip_if_32bit(reason):
    """Leave a test out where addresses have 32 bits."""
    import pytest

    return pytest.mark.skipif(struct.calcsize("P") == 4, reason=reason)


def slow(*args):
    """Leave a test out where ``SKIP_SLOW_TESTS`` is set."""
    import pytest

    mark = pytest.mark.skipif(bool(os.environ.get("SKIP_SLOW_TESTS")), reason="SKIP_SLOW_TESTS is set")
    return mark(args[0]) if args else mark


def skip_if_wheel_test(*args):
    """Leave a test out where ``WHEEL_TEST`` is set: the package under test is an installed one."""
    import pytest

    wheel = os.environ.get("WHEEL_TEST", "").lower() in ("1", "true", "yes")
    mark = pytest.mark.skipif(wheel, reason="WHEEL_TEST is set")
    return mark(args[0]) if args else mark


def main():
    """Run the tests of the file that calls this, with the arguments of the command line, and end the process."""
    import pytest

    caller = sys._getframe(1).f_globals["__file__"]
    sys.exit(pytest.main([caller, *sys.argv[1:]]))


__all__ = ["main", "skip_if_32bit", "skip_if_wheel_test", "slow"]
