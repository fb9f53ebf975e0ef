"""The Relay VM's machine and executables, under the names that TVM had for them."""

from ..relay.vm import ADT, Executable, VirtualMachine

__all__ = ["ADT", "Executable", "VirtualMachine"]
