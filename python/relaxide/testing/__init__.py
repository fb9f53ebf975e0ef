"""What tests of programs use: comparisons, parameters over targets, and questions about the machine.

Nothing here is loaded with the package itself; pytest is needed only for what makes fixtures.
"""

import os

from .._parts import open_parts as _open_parts
from . import env, locking
from .boundary import echo, test_raise_error
from .expressions import assert_prim_expr_equal, check_bool_expr_is_true
from .fixtures import fixture, parameter, parameters
from .locking import run_with_gpu_lock
from .marks import main, skip_if_32bit, skip_if_wheel_test, slow
from .random import generate_random_array, ml_dtypes_dict, np_dtype_from_str
from .remote import local_run, rpc_run
from .request_hook import install_request_hook
from .targets import DEFAULT_TEST_TARGETS, device_enabled, enabled_targets, is_ampere_or_newer, parametrize_targets
from .values import assert_allclose, check_numerical_grads, strtobool
from .workers import identity_after, terminate_self

#: Whether the tests run where `CI` is set.
IS_IN_CI = bool(os.environ.get("CI"))
#: Whether tests that are marked as slow are left out.
SKIP_SLOW_TESTS = bool(os.environ.get("SKIP_SLOW_TESTS"))

_open_parts("relaxide", "testing")

__all__ = [
    "DEFAULT_TEST_TARGETS",
    "IS_IN_CI",
    "SKIP_SLOW_TESTS",
    "assert_allclose",
    "assert_prim_expr_equal",
    "check_bool_expr_is_true",
    "check_numerical_grads",
    "device_enabled",
    "echo",
    "enabled_targets",
    "env",
    "fixture",
    "generate_random_array",
    "identity_after",
    "install_request_hook",
    "is_ampere_or_newer",
    "local_run",
    "locking",
    "main",
    "ml_dtypes_dict",
    "np_dtype_from_str",
    "parameter",
    "parameters",
    "parametrize_targets",
    "rpc_run",
    "run_with_gpu_lock",
    "skip_if_32bit",
    "skip_if_wheel_test",
    "slow",
    "strtobool",
    "terminate_self",
    "test_raise_error",
]
