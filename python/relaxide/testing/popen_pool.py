"""What runs in the processes of tests of :mod:`relaxide.support.popen_pool`."""

import time

from ..ffi import get_global_func, register_global_func

TEST_GLOBAL_STATE_1 = 0
TEST_GLOBAL_STATE_2 = 0
TEST_GLOBAL_STATE_3 = 0


def initializer(test_global_state_1, test_global_state_2, test_global_state_3):
    """Keep three values in the process."""
    global TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3
    TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3 = test_global_state_1, test_global_state_2, test_global_state_3


def after_initializer():
    """The three values that the process keeps."""
    return TEST_GLOBAL_STATE_1, TEST_GLOBAL_STATE_2, TEST_GLOBAL_STATE_3


@register_global_func("testing.identity_py", override=True)
def identity_py(arg):
    """The argument."""
    return arg


def register_ffi():
    """Register a function in the process."""
    register_global_func("testing.nested_identity_py", identity_py, override=True)


def call_py_ffi(arg):
    """Call what :func:`register_ffi` registered."""
    return get_global_func("testing.nested_identity_py")(arg)


def call_cpp_ffi(arg):
    """Hand a value to the compiler's own code and back."""
    from . import echo

    return echo(arg)


def call_cpp_py_ffi(arg):
    """Call a function of Python by its registered name."""
    return get_global_func("testing.identity_py")(arg)


def timeout_job(seconds):
    """Do nothing for some seconds."""
    time.sleep(seconds)
