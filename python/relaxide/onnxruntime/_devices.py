"""What programs ask of devices and of the memory on them. There is one, the processor; the names of others are kept."""

import enum

from ._typed import taken_number
from ._values import OrtMemoryInfo, OrtValue


class OrtDeviceMemoryType(enum.IntEnum):
    """Which memory of a device."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtDeviceVendorId(enum.IntEnum):
    """Who made a device."""

    NONE = 0
    AMD = 4098
    NVIDIA = 4318
    ARM = 5045
    MICROSOFT = 5140
    HUAWEI = 6629
    QUALCOMM = 20803
    INTEL = 32902


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """Which devices are preferred."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtHardwareDeviceType(enum.IntEnum):
    """A kind of device."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """A kind of device that has memory."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtHardwareDevice:
    """The processor."""

    type = OrtHardwareDeviceType.CPU
    vendor = ""
    vendor_id = 0
    device_id = 0
    metadata = {}


class OrtEpDevice:
    """The processor, as what sessions run on."""

    ep_name = "CPUExecutionProvider"
    ep_vendor = "Relaxide"
    ep_metadata = {}
    ep_options = {}
    device = OrtHardwareDevice()

    def memory_info(self, memory_type=OrtDeviceMemoryType.DEFAULT):
        """Where its memory is."""
        return OrtMemoryInfo.of_host()

    def create_sync_stream(self):
        """Refused: calls of the processor end before the next begins."""
        raise RuntimeError("the processor has no streams: every call ends before the next begins")


class OrtArenaCfg:
    """How memory would be kept between calls, which Relaxide decides by itself; values are kept and change nothing."""

    _PLACES = ("max_mem", "arena_extend_strategy", "initial_chunk_size_bytes", "max_dead_bytes_per_chunk")
    _NAMES = (*_PLACES, "initial_growth_chunk_size_bytes", "max_power_of_two_extend_bytes")

    def __init__(self, *settings):
        is_named = len(settings) == 1 and isinstance(settings[0], dict)
        given = settings[0] if is_named else dict(zip(self._PLACES, settings))
        unknown = given.keys() - set(self._NAMES)
        if unknown:
            raise RuntimeError(f"an arena has no setting {', '.join(sorted(unknown))}; it has {', '.join(self._NAMES)}")
        for name in self._NAMES:
            try:
                setattr(self, name, _setting(given, name))
            except TypeError as error:
                raise (RuntimeError(str(error)) if is_named else error) from None


def _setting(given, name):
    value = given.get(name, 0 if name == "max_mem" else -1)
    if name == "max_mem" and isinstance(value, int) and value < 0:
        raise TypeError(f"{name} is a number of bytes, not {value}")
    return taken_number(value, name)


_PROCESSOR = OrtEpDevice()


def get_ep_devices():
    """What sessions can run on."""
    return [_PROCESSOR]


def create_and_register_allocator(mem_info, arena_cfg=None):
    """Kept for its name: memory between calls is kept as the runtime decides."""
    if not isinstance(mem_info, OrtMemoryInfo):
        raise TypeError(f"mem_info is OrtMemoryInfo, not {type(mem_info).__name__}")


def create_and_register_allocator_v2(provider_type, mem_info, options, arena_cfg=None):
    """Kept for its name: memory between calls is kept as the runtime decides."""


def copy_tensors(src, dst, stream=None):
    """Copy tensors into others of their shapes, one into the other in order."""
    if len(src) != len(dst):
        raise RuntimeError(f"there are {len(src)} tensors to copy, and {len(dst)} to copy them into")
    for value in (*src, *dst):
        if not isinstance(value, OrtValue):
            raise TypeError(f"values are copied, not {type(value).__name__}")
    for source, target in zip(src, dst):
        target.update_inplace(source)


__all__ = [
    "OrtArenaCfg",
    "OrtDeviceMemoryType",
    "OrtDeviceVendorId",
    "OrtEpDevice",
    "OrtExecutionProviderDevicePolicy",
    "OrtHardwareDevice",
    "OrtHardwareDeviceType",
    "OrtMemoryInfoDeviceType",
    "copy_tensors",
    "create_and_register_allocator",
    "create_and_register_allocator_v2",
    "get_ep_devices",
]
