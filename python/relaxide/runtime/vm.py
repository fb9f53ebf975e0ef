"""The virtual machine under the name of TVM's module: Relax's, and Relay's for what Relay compiled."""

from .. import relay as _relay
from ..relax.vm import VirtualMachine as _RelaxMachine
from ..relax.vm import VMInstrumentReturnKind

#: What is added to the kind of a device for each session of another machine that it is behind.
RPC_SESS_MASK = 128

ADT, Executable = _relay.vm.ADT, _relay.vm.Executable


class VirtualMachine(_RelaxMachine):
    """Runs the functions of an executable: see :class:`relaxide.relax.VirtualMachine`; of one that Relay compiled, it is
    :class:`relaxide.relay.vm.VirtualMachine`."""

    def __new__(cls, rt_mod, *args, **kwargs):
        if isinstance(rt_mod, Executable):
            return _relay.vm.VirtualMachine(rt_mod, *args, **kwargs)
        return super().__new__(cls)


__all__ = ["ADT", "Executable", "RPC_SESS_MASK", "VMInstrumentReturnKind", "VirtualMachine"]
