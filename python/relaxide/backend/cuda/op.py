"""Instructions of NVIDIA's devices, one by one. There are none: kernels say what they compute, and the code generator picks the instructions."""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(
        f"{__name__}.{name}: single instructions of NVIDIA's devices are not to be had; "
        "write what the kernel computes, and compile it for a target of kind cuda"
    )
