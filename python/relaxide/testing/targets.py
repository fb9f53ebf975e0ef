"""The targets that tests run for."""

import os

#: What tests run for where `TVM_TEST_TARGETS` names nothing else.
DEFAULT_TEST_TARGETS = ["llvm"]


def _wanted():
    text = os.environ.get("TVM_TEST_TARGETS", "")
    names = [name.strip() for name in text.split(";") if name.strip()]
    return names or DEFAULT_TEST_TARGETS


def _kinds():
    return {_kind(target) for target in _wanted()}


def _kind(target):
    if isinstance(target, dict):
        return target["kind"]
    return str(getattr(getattr(target, "kind", None), "name", None) or getattr(target, "kind", None) or target).split(" ")[0]


def device_enabled(target):
    """Whether tests shall run for a target: the environment names its kind, and its device is there."""
    from .. import runtime

    if not isinstance(target, (str, dict)) and not hasattr(target, "kind"):
        raise TypeError(f"a target is a text, a dictionary or a Target, not {type(target).__name__}")
    kind = _kind(target)
    if kind not in _kinds():
        return False
    try:
        return bool(runtime.device(kind, 0).exist)
    except (ValueError, RuntimeError, NotImplementedError):
        return False


def enabled_targets():
    """The targets that tests shall run for, each with its device: ``[(target, device)]``."""
    from .. import runtime

    return [(target, runtime.device(_kind(target), 0)) for target in _wanted() if device_enabled(target)]


def parametrize_targets(*args):
    """Run a test for each of some targets, those that are enabled where none are given.

    The test takes ``target`` and ``dev``.
    """
    import pytest

    def apply(function, targets):
        from .. import runtime

        marks = [
            pytest.param(
                target,
                runtime.device(_kind(target), 0) if device_enabled(target) else None,
                marks=[] if device_enabled(target) else pytest.mark.skip(reason=f"{target} is not enabled"),
                id=str(target),
            )
            for target in targets
        ]
        return pytest.mark.parametrize("target, dev", marks)(function)

    if len(args) == 1 and callable(args[0]):
        return apply(args[0], _wanted())
    return lambda function: apply(function, args)


def is_ampere_or_newer():
    """Whether there is an NVIDIA GPU of the generation Ampere or a newer one."""
    from . import env

    return env.has_cuda_compute(8)
