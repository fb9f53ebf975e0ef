"""What a kernel takes: the types and shapes that its measurements are made with."""

from ...ffi import dtype as _dtype


class ArgInfo:
    """What is known of an argument; there are tensors: :class:`TensorInfo`."""

    def as_json(self):
        """Names and numbers."""
        raise NotImplementedError(f"{type(self).__name__}.as_json")

    @staticmethod
    def from_json(json_obj):
        """What :meth:`as_json` wrote. A ValueError for anything else."""
        try:
            tag, dtype, shape = json_obj
            if tag != "TENSOR":
                raise ValueError
            return TensorInfo(str(dtype), [int(dim) for dim in shape])
        except (TypeError, ValueError):
            raise ValueError(f"an argument is written as ['TENSOR', dtype, shape], got {json_obj!r}") from None

    @staticmethod
    def from_prim_func(func):
        """The arguments of a kernel. Lengths that are not known are a ValueError."""
        found = []
        for param, buffer in zip(func.params, func.buffers):
            if buffer is None:
                raise ValueError(f"the argument {param} is no tensor, so that nothing can be measured with it")
            dims = [getattr(dim, "value", None) for dim in buffer.shape]
            if None in dims:
                raise ValueError(f"the length {buffer.shape[dims.index(None)]} of {buffer.name} is not known: give the kernel constants")
            found.append(TensorInfo(buffer.dtype, dims))
        return found

    @staticmethod
    def from_entry_func(mod, remove_preproc=True):
        """The arguments of the function that is called from outside: ``main``, or the only one.

        ``remove_preproc`` is for modules whose weights are laid out anew in front of the kernel; the arguments are the same here.
        """
        from ...tirx import PrimFunc

        kernels = [(var.name_hint, func) for var, func in mod.functions_items() if isinstance(func, PrimFunc)]
        entries = [func for name, func in kernels if name == "main" or (func.attrs or {}).get("tirx.is_entry_func")] or [
            func for _, func in kernels
        ]
        if len(entries) != 1:
            raise ValueError(f"the module has {len(kernels)} kernels and none is `main`, so that it is not clear which is called")
        return ArgInfo.from_prim_func(entries[0])


class TensorInfo(ArgInfo):
    """A tensor of an element type and a shape."""

    def __init__(self, dtype, shape):
        self.dtype, self.shape = _dtype(dtype), [int(dim) for dim in shape]

    def as_json(self):
        """``["TENSOR", dtype, shape]``."""
        return ["TENSOR", str(self.dtype), list(self.shape)]

    def __repr__(self):
        return f'TensorInfo("{self.dtype}", {self.shape})'


__all__ = ["ArgInfo", "TensorInfo"]
