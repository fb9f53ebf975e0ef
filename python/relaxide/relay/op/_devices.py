"""What says of a value where it is."""

from ...runtime import device as _device
from ._generate import call


def _place(where):
    """A device, or its name, as the attribute that TVM saves."""
    where = _device(where) if isinstance(where, str) else where
    kind = where.dlpack_device_type() if hasattr(where, "dlpack_device_type") else where.device_type
    fields = {"device_type_int": int(kind), "memory_scope": "", "target": 0, "virtual_device_id": int(where.index)}
    return {name: str(value) for name, value in fields.items()} | {"type_key": "VirtualDevice"}


def on_device(body, device, constrain_result=False, constrain_body=True):
    """The value, computed on a device. Where it is read elsewhere a copy stands, unless its result is constrained too."""
    attrs = {"virtual_device": _place(device), "constrain_result": constrain_result, "constrain_body": constrain_body}
    return call("on_device", [body], attrs)


def device_copy(data, src_device, dst_device):
    """A copy of a tensor on another device."""
    attrs = {"src_virtual_device": _place(src_device), "dst_virtual_device": _place(dst_device)}
    return call("device_copy", [data], attrs)


SPECIAL = {
    "on_device": on_device,
    "annotation.on_device": on_device,
    "device_copy": device_copy,
}
