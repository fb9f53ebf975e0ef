"""Instructions of NVIDIA's devices and functions of NVSHMEM, one by one, as calls: ``cuda_printf("%d", i)``.

Passes of a program's own read them, and they are printed as TVMScript; no code is made of them. Kernels say what they compute, and
the code generator picks the instructions.
"""

from .._instructions import functions as _functions

_made = _functions("cuda", "nvshmem", "ptx_legacy")
globals().update(_made)

__all__ = sorted(_made)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"{__name__}.{name}: there is no such instruction of NVIDIA's devices here; "
        "write what the kernel computes, and compile it for a target of kind cuda"
    )
