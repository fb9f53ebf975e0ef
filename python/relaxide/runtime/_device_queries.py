"""What devices say of themselves."""

import json

from .. import _core
from .._extend import methods_of
from ..ffi import get_global_func

#: The numbers of the questions.
_ASKED = {
    "exist": 0,
    "max_threads_per_block": 1,
    "warp_size": 2,
    "max_shared_memory_per_block": 3,
    "compute_version": 4,
    "device_name": 5,
    "max_clock_rate": 6,
    "multi_processor_count": 7,
    "max_thread_dimensions": 8,
    "api_version": 11,
    "driver_version": 12,
    "l2_cache_size_bytes": 13,
    "total_global_memory": 14,
    "available_global_memory": 15,
}

_DOCS = {
    "max_threads_per_block": "How many threads a block may have.",
    "warp_size": "How many threads go in step.",
    "max_shared_memory_per_block": "How many bytes the threads of a block may share.",
    "compute_version": "The version of what it can compute, as text.",
    "device_name": "The vendor's name for it.",
    "max_clock_rate": "Its highest frequency, in kHz.",
    "multi_processor_count": "How many units compute side by side.",
    "api_version": "The version of the interface that it is used by.",
    "driver_version": "The version of the vendor's driver.",
    "l2_cache_size_bytes": "The bytes of its second-level cache.",
    "total_global_memory": "The bytes of its memory.",
    "available_global_memory": "The bytes of its memory that are free.",
}


def _answer(device, name):
    return get_global_func("runtime.GetDeviceAttr")(device.dlpack_device_type(), device.index, _ASKED[name])


def _query(name):
    def ask(self):
        return _answer(self, name)

    ask.__name__ = name
    ask.__doc__ = f"{_DOCS[name]} ``None`` where the device does not say."
    return property(ask)


@methods_of(_core.Device)
class _Queries:
    @property
    def max_thread_dimensions(self):
        """The most threads along each axis of a block; ``None`` where the device does not say."""
        said = _answer(self, "max_thread_dimensions")
        return None if said is None else json.loads(said)

    def texture_spatial_limit(self):
        """The largest extent of a texture; an error where it has none."""
        found = get_global_func("device_api.opencl.get_texture_limit", allow_missing=True)
        if found is None:
            raise RuntimeError(f"{self} has no textures")
        return found(self.dlpack_device_type(), self.index)

    def create_raw_stream(self):
        """A new queue of its work; give it to :meth:`free_raw_stream` when it is no longer used."""
        return get_global_func("runtime.Device_StreamCreate")(self)

    def free_raw_stream(self, stream):
        """Give a queue back."""
        get_global_func("runtime.Device_StreamFree")(self, stream)

    def set_raw_stream(self, stream):
        """Let its work go to a queue from now on."""
        get_global_func("runtime.Device_SetStream")(self, stream)


for _name in _DOCS:
    setattr(_core.Device, _name, _query(_name))

#: Devices of other machines have numbers from this one on, a multiple of it for each session.
RPC_SESS_MASK = 128
