"""The calling thread's current stream of a device: where calls queue work when they are given no stream."""

from .. import _core


class StreamContext:
    """Makes a stream current for a block of code."""

    def __init__(self, device, stream):
        self.device, self.stream = device, getattr(stream, "value", stream) or 0

    def __enter__(self):
        self.previous = _core.set_stream(self.device, self.stream)
        return self

    def __exit__(self, *_):
        _core.set_stream(self.device, self.previous)


def use_raw_stream(device, stream):
    """A context in which a stream, given by its address, is the device's current one."""
    from ctypes import c_void_p

    if not isinstance(stream, (int, c_void_p)):
        raise ValueError("use_raw_stream only accepts int or c_void_p as stream input")
    return StreamContext(device, stream)


def get_raw_stream(device):
    """The address of the device's current stream; 0 is its default stream."""
    return _core.get_stream(device)


__all__ = ["StreamContext", "get_raw_stream", "use_raw_stream"]
