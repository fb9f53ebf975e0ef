"""What kernels are compiled for."""

import json
import platform
import threading

from .._core import Target
from .._extend import methods_of
from ..error import InternalError
from ..ir import _api

__all__ = ["Target", "TargetKind", "detect_target_from_device", "list_tags", "register_device_target_detector", "register_tag"]

_entered = threading.local()

#: How the target of a device is found, by the device's kind.
_DETECTORS = {}
#: The kinds that targets have.
_KINDS = ["c", "cuda", "ext_dev", "hexagon", "llvm", "metal", "opencl", "rocm", "vulkan", "webgpu"]


#: What is known of the devices of a kind where their target does not say it.
_OF_DEVICES = {
    "cuda": {"max_num_threads": 1024, "thread_warp_size": 32},
    "metal": {"max_num_threads": 256, "thread_warp_size": 16},
    "opencl": {"max_num_threads": 256, "thread_warp_size": 1},
    "rocm": {"max_num_threads": 256, "thread_warp_size": 64},
    "vulkan": {"max_num_threads": 256, "thread_warp_size": 1},
    "webgpu": {"max_num_threads": 256, "thread_warp_size": 1},
}
#: What targets of a kind can do where they do not say it.
_OF_KINDS = {("test", "is_test"): True}
#: Options that are lists.
_LISTS = ("cl-opt", "keys", "libs", "mattr")


class _NoTarget(InternalError, ValueError):
    """No target is set where one is needed: an error of both kinds, since TVM's is the first and the second says what it is."""


def _of_this_processor(device):
    machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    system = {"Linux": "unknown-linux-gnu", "Darwin": "apple-darwin", "Windows": "pc-windows-msvc"}.get(platform.system())
    return Target("llvm" if system is None else {"kind": "llvm", "mtriple": f"{machine}-{system}"})


def register_device_target_detector(device_type, detector):
    """Have ``detector`` find the target of devices of a kind, such as ``"cuda"``: it is given the device."""
    _DETECTORS[device_type] = detector


register_device_target_detector("cpu", _of_this_processor)


def detect_target_from_device(dev):
    """The target of a device of this machine, or of its name.

    Raises
    ------
    ValueError
        The machine has no such device, or nobody has said how its target is found.
    """
    from ..runtime import device

    dev = device(dev) if isinstance(dev, str) else dev
    name = str(dev).partition(":")[0]
    if name not in _DETECTORS:
        known = ", ".join(sorted(_DETECTORS))
        raise ValueError(f"the target of a device of kind {name} cannot be detected (known: {known}): give Target({name!r}) with its options")
    if not dev.exist:
        raise ValueError(f"this machine has no device {dev}, so its target cannot be detected")
    return _DETECTORS[name](dev)


def _number(value):
    return int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value


def _plain(said):
    """A target's dictionary with numbers and lists as such."""
    listed = {name: value.split(",") for name, value in said.items() if name in _LISTS and isinstance(value, str)}
    host = {"host": _plain(said["host"])} if isinstance(said.get("host"), dict) else {}
    return {name: _number(value) for name, value in said.items()} | listed | host


def list_tags():
    """The tags that stand for targets, such as ``"nvidia/nvidia-a100"``, and the target of each."""
    return {name: Target(name) for name in _api.target.tag_names()}


def register_tag(name, config, override=False):
    """Let a tag stand for a target.

    Parameters
    ----------
    name : str
        The tag, such as ``"nvidia/gtx1080ti"``.
    config : dict of str to Any
        What the target is made of, with its ``kind``.
    override : bool
        Whether the tag may stand for something already.

    Returns
    -------
    Target

    Raises
    ------
    ValueError
        The tag stands for a target already, or the configuration makes none.
    """
    if not override and name in _api.target.tag_names():
        raise ValueError(f"the tag {name!r} stands for {Target(name)} already; override=True replaces it")
    _api.target.add_tag(name, json.dumps(config))
    return Target(name)


class TargetKind(str):
    """The kind of a target: its name, as text and as ``name``."""

    @property
    def name(self):
        """The name."""
        return str(self)

    @property
    def options(self):
        """The options of targets of this kind: their types by name."""
        return TargetKind.options_from_name(str(self))

    @staticmethod
    def options_from_name(kind_name):
        """The options of targets of a kind. What a target of the kind says counts; a ValueError where there is no such kind."""
        said = Target(kind_name).export()
        return {name: type(_number(value)).__name__ for name, value in said.items() if name not in ("kind", "keys", "tag", "host")}


#: The extensions of ARM's small processors, and which have them.
_OF_CORTEX_M = {
    "has_dsp": ("cortex-m4", "cortex-m7", "cortex-m33", "cortex-m35p", "cortex-m55", "cortex-m85"),
    "has_mve": ("cortex-m55", "cortex-m85"),
}


class TargetFeatures:
    """What a target can do: ``target.features.has_avx2``; ``None`` for what it does not say."""

    def __init__(self, target):
        self._target = target

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        said = self._target.attrs.get(f"feature.{name}", self._target.attrs.get(name))
        said = _OF_KINDS.get((str(self._target.kind), name)) if said is None else said
        if said is None and name in _OF_CORTEX_M:
            said = self._has_extension(name)
        if said is None and name.startswith("has_"):
            options = str(self._target.attrs.get("mattr", "")).replace("[", "").replace("]", "").split(",")
            return True if f"+{name[4:]}" in [option.strip(" '\"") for option in options] else None
        return said

    def _has_extension(self, name):
        """Whether a small processor of ARM's has an extension that its options do not take away; ``None`` for other processors."""
        attrs = self._target.attrs
        processor, *taken = str(attrs.get("mcpu", "")).split("+")
        if not processor.startswith("cortex-m"):
            return None
        taken += [option.lstrip("+") for option in attrs.get("mattr", ())]
        return processor in _OF_CORTEX_M[name] and f"no{name.removeprefix('has_')}" not in taken


_kind = Target.kind


@methods_of(Target)
class _Methods:
    @property
    def kind(self):
        """What makes code for it, such as ``"llvm"``."""
        return TargetKind(_kind.__get__(self))

    @property
    def attrs(self):
        """The options by name, numbers as such; without kind, keys, tag and host."""
        said = {**_OF_DEVICES.get(self.kind, {}), **self.export()}
        if "devices" in said:
            said["devices"] = [Target(device) for device in said["devices"]]
        return {name: value for name, value in said.items() if name not in ("kind", "keys", "tag", "host")}

    @property
    def tag(self):
        """The tag that it was made from; empty where it was made from none."""
        return str(self.export().get("tag", ""))

    @property
    def features(self):
        """What it can do (:class:`TargetFeatures`)."""
        return TargetFeatures(self)

    def __hash__(self):
        return hash(str(self))

    def get_kind_attr(self, attr_name):
        """What is known of its kind: ``is_external_codegen`` and the like; ``None`` for what is not."""
        return None

    def __enter__(self):
        """Compile for this target where no other is given, until the ``with`` block ends."""
        _entered.__dict__.setdefault("stack", []).append(self)
        return self

    def __exit__(self, *_):
        _entered.stack.pop()

    @staticmethod
    def current(allow_none=True):
        """The target of the innermost ``with`` block around."""
        stack = getattr(_entered, "stack", None)
        if stack:
            return stack[-1]
        if allow_none:
            return None
        # Programs look for the words in parentheses in what they catch.
        raise _NoTarget(
            "no target is set: write `with Target(...):` around, or pass one "
            "(Check failed: (allow_not_defined) is false: Target context required)"
        )

    @staticmethod
    def target_or_current(target):
        """The target if one is given, else that of the ``with`` block around.

        Raises
        ------
        ValueError
            There is neither.
        """
        return Target.current(allow_none=False) if target is None else target

    @staticmethod
    def from_device(device):
        """The target of a device of this machine; see :func:`detect_target_from_device`."""
        return detect_target_from_device(device)

    @staticmethod
    def list_kinds():
        """The kinds that targets have."""
        return list(_KINDS)

    def export(self):
        """The target as a dictionary, which makes the same target."""
        text = str(self)
        if text.startswith("{"):
            return _plain(json.loads(text))
        kind, *options = text.split()
        pairs = (option.lstrip("-").partition("=")[::2] for option in options)
        return _plain({"kind": kind, **dict(pairs)})

    def with_host(self, host=None):
        """The same target with another host."""
        return Target({**self.export(), "host": (host if isinstance(host, Target) else Target(host)).export()})


def __getattr__(name):
    # Questions about code generation are asked by few.
    if name == "codegen":
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
