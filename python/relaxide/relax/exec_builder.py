"""Executables built by hand, under the name of TVM's module."""

from enum import IntEnum

from .builder import ExecBuilder, VMFuncScope


class SpecialReg(IntEnum):
    """Registers that stand for no value of the program."""

    VOID_ARG = (1 << 54) + 0
    VM_STATE = (1 << 54) + 1


class VMFuncKind(IntEnum):
    """What a function of an executable is."""

    PACKED_FUNC = 0
    VM_FUNC = 1


__all__ = ["ExecBuilder", "SpecialReg", "VMFuncKind", "VMFuncScope"]
