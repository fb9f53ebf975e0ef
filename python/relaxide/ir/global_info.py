"""What the functions of a module share."""

from .._core import Target
from ..ffi import register_object
from . import _api
from .base import Node


class GlobalInfo(Node):
    """The base of what the functions of a module share."""


@register_object("relax.DummyGlobalInfo")
class DummyGlobalInfo(GlobalInfo):
    """Something that the functions of a module share of which nothing is known: it stands for itself."""

    def __init__(self):
        self.__init_handle_by_constructor__(_api.relax.DummyGlobalInfo)


@register_object("relax.VDevice")
class VDevice(GlobalInfo):
    """A device that tensors may live on, before real devices are chosen."""

    def __init__(self, target="", vdevice_id=0, memory_scope="global"):
        if isinstance(target, dict):
            target = Target(target)
        self.__init_handle_by_constructor__(_api.relax.VDevice, str(target), vdevice_id, memory_scope)

    @property
    def target(self):
        """What kernels for it are compiled for; nothing: it stands for no device in particular."""
        text = _api.relax.VDeviceTarget(self)
        return Target(text) if text else None

    @property
    def vdevice_id(self):
        """Which of several devices of that kind."""
        return self.id

    @property
    def memory_scope(self):
        """The memory on it."""
        return self.scope
