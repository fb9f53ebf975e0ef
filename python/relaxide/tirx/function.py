"""Kernels."""

from ..ffi import register_object
from ..ir import _api
from ..ir.base import Scriptable
from ..ir.function import BaseFunc
from ..ir.type import FuncType
from .buffer import Buffer
from .index_map import IndexMap


def _dims(buffer):
    """The lengths of a buffer as those of a tensor, which have 64 bits."""
    return [dim.value if hasattr(dim, "value") else dim.astype("int64") for dim in buffer.shape]


class _Buffers(dict):
    """Buffers by their handles; a buffer that is among them stands for itself."""

    def __missing__(self, key):
        if any(buffer.same_as(key) for buffer in self.values()):
            return key
        raise KeyError(key)

    def __contains__(self, key):
        return super().__contains__(key) or any(buffer.same_as(key) for buffer in self.values())


@register_object("tirx.PrimFunc")
class PrimFunc(BaseFunc, Scriptable):
    """One kernel: what it takes, and the statement that it executes.

    ``params`` are variables and buffers. A buffer is passed as a handle; ``func.buffer_map`` has the handles and the buffers behind
    them, and finds a buffer by itself too. ``buffer_map`` gives buffers to handles among ``params`` in another way.
    """

    def __init__(self, params, body, ret_type=None, attrs=None, span=None, *, buffer_map=None):
        attrs = dict(attrs) if attrs else None
        behind = dict(buffer_map) if buffer_map else None
        self.__init_handle_by_constructor__(_api.tirx.PrimFunc, list(params), body, ret_type, attrs, behind)

    @property
    def params(self):
        """What it takes: variables, and buffers."""
        handles, buffers = self._handles, self.buffers
        return [handle if buffer is None else buffer for handle, buffer in zip(handles, buffers)]

    @property
    def _handles(self):
        """What it takes as variables alone: of a buffer the handle."""
        return self._field("params")

    @property
    def ty(self):
        """What it takes and gives: buffers as tensors; pure where it writes to none of them."""
        from ..relax.type import TensorType
        from ..s_tir.analysis import is_pure_function

        pairs = zip(self._handles, self.buffers)
        params = [param.ty if buffer is None else TensorType(_dims(buffer), buffer.dtype) for param, buffer in pairs]
        return FuncType(params, self.ret_type, is_pure_function(self))

    @property
    def buffer_map(self):
        """The buffer behind each handle parameter."""
        pairs = zip(self._handles, self.buffers)
        return _Buffers({param: buffer for param, buffer in pairs if buffer is not None})

    def with_body(self, new_body, span=None):
        """The kernel of the same signature that executes another statement."""
        return PrimFunc(self._handles, new_body, self.ret_type, self.attrs, buffer_map=self.buffer_map)

    def specialize(self, param_map):
        """The kernel with values for scalars, for symbolic dimensions, or buffers of known shapes for its own or their handles."""
        if not param_map:
            return self
        own = {buffer: handle for handle, buffer in self.buffer_map.items()}
        keys = [own.get(key, key) if isinstance(key, Buffer) else key for key in param_map]
        return _api.tirx.Specialize(self, dict(zip(keys, param_map.values())))


__all__ = ["PrimFunc"]
