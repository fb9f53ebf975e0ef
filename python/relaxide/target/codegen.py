"""What the code generator for processors knows: instruction sets, processors and their features, functions of LLVM."""

import platform

from ..ir import _api
from . import Target

_STEPS = {}  # numbers of LLVM's functions by name, and the names in order
_NAMES = []


def build_module(mod, target):
    """Kernels as a compiled module; see :func:`relaxide.build`."""
    from ..compiler import build

    return build(mod, target).mod


def llvm_lookup_intrinsic_id(name):
    """A number for one of LLVM's functions, ``"llvm.sqrt"``, for ``call_llvm_intrin``; 0 for what cannot be one's name.

    The number stands for the name in this process only: programs are written with names.
    """
    if not name.startswith("llvm."):
        return 0
    if name not in _STEPS:
        _NAMES.append(name)
        _STEPS[name] = len(_NAMES)
    return _STEPS[name]


def llvm_get_intrinsic_name(intrin_id):
    """The name that :func:`llvm_lookup_intrinsic_id` gave a number for.

    Raises
    ------
    ValueError
        It gave no such number.
    """
    if not 0 < intrin_id <= len(_NAMES):
        raise ValueError(f"{intrin_id} is no number of a function of LLVM here: ask llvm_lookup_intrinsic_id for one by name")
    return _NAMES[intrin_id - 1]


def llvm_version_major(allow_none=False):
    """The version of LLVM that this build compiles with."""
    return int(_api.target.llvm_version())


def llvm_get_targets():
    """The instruction sets that are known, by their names in triples.

    Kernels are compiled for all but ``arm``, ``riscv32`` and ``riscv64``, about whose processors the functions of this module answer only.
    """
    return list(map(str, _api.target.llvm_architectures()))


def llvm_get_system_triple():
    """The triple of this machine: instruction set, vendor, system."""
    return str(_api.target.llvm_host("triple"))


def llvm_get_system_cpu():
    """LLVM's name of this machine's processor."""
    return str(_api.target.llvm_host("cpu"))


def llvm_get_system_x86_vendor():
    """Who made this machine's x86 processor: ``"intel"``, ``"amd"`` or ``"unknown"``."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            said = next((line for line in lines if line.startswith("vendor_id")), "")
    except OSError:
        said = platform.processor()
    return next((vendor for vendor, text in (("intel", "Intel"), ("amd", "AMD")) if text in said), "unknown")


def llvm_get_cpu_archlist(target=None):
    """The processors of a target's instruction set, by LLVM's names.

    Parameters
    ----------
    target : Target, optional
        The target; that of the ``with`` block around where it is left out.
    """
    return _api.target.llvm_processors(str(_of(target)))


def llvm_get_cpu_features(target=None):
    """What a target's processor can do, by LLVM's names: of each feature that kernels may use, 1."""
    return {str(name): 1 for name in _api.target.llvm_features(str(_of(target)))}


def llvm_cpu_has_features(cpu_features, target=None):
    """Whether a target's processor has a feature, or all of several.

    Parameters
    ----------
    cpu_features : str or list of str
        Features by LLVM's names: ``"avx512f"``.
    target : Target, optional
        The target; that of the ``with`` block around where it is left out.
    """
    names = [cpu_features] if isinstance(cpu_features, str) else cpu_features
    has = llvm_get_cpu_features(target)
    return all(name in has for name in names)


def target_has_features(cpu_features, target=None):
    """The same: what the target's ``mattr`` adds counts, and what it takes away does not."""
    return llvm_cpu_has_features(cpu_features, target)


def llvm_get_vector_width(target=None):
    """How many bits the widest vectors of a target's processor have; scalable ones count by their least width."""
    return int(_api.target.llvm_vector_bits(str(_of(target))))


def llvm_is_valid_cpu(cpu, triple):
    """Whether a triple's instruction set has a processor of that name."""
    return cpu in llvm_get_cpu_archlist(Target({"kind": "llvm", "mtriple": triple}))


def _of(target):
    target = Target.target_or_current(target)
    return target if isinstance(target, Target) else Target(target)
