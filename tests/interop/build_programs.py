"""Builds executables instruction by instruction, with either package: the builder has the same names in both.

usage: build_programs.py relaxide|tvm DIRECTORY

Writes ``NAME.exec``, the bare executable, and its forms; Relaxide also writes ``NAME_library.so``.
"""

import importlib
import pathlib
import sys
import types

import describe
import numpy as np


def loop(ib, tvm):
    """Sums the numbers below n: a jump back and a jump out."""
    with ib.function("main", num_inputs=1):
        total, i, more = ib.r(1), ib.r(2), ib.r(3)
        ib.emit_call("test.interop.sum", args=[ib.imm(0)], dst=total)
        ib.emit_call("test.interop.sum", args=[ib.imm(0)], dst=i)
        ib.emit_call("test.interop.less", args=[i, ib.r(0)], dst=more)
        ib.emit_if(more, 4)
        ib.emit_call("test.interop.sum", args=[total, i], dst=total)
        ib.emit_call("test.interop.sum", args=[i, ib.imm(1)], dst=i)
        ib.emit_goto(-4)
        ib.emit_ret(total)


def constants(ib, tvm):
    """A constant of each kind, some of them twice."""
    numbers = tvm.runtime.tensor(np.arange(6, dtype="int16").reshape(2, 3))
    with ib.function("main", num_inputs=0):
        args = [(2, 3), tvm.runtime.DataType("float16x4"), numbers, ib.convert_constant("text"), (2, 3), ib.imm(-7)]
        ib.emit_call("test.interop.show", args=args, dst=ib.r(0))
        ib.emit_call("test.interop.show", args=[ib.convert_constant("text"), ib.imm(2**55 - 1)], dst=ib.r(1))
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))


def shapes(ib, tvm):
    """The shape of the argument taken apart and put together again."""
    with ib.function("main", num_inputs=1, param_names=["x"]):
        ib.emit_call("vm.builtin.shape_of", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_call("vm.builtin.reshape", args=[ib.r(0), (6, 1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(1), ib.r(2), ib.r(0)], dst=ib.r(3))
        ib.emit_call("vm.builtin.tuple_getitem", args=[ib.r(3), ib.imm(0)], dst=ib.r(1))
        ib.emit_call("test.interop.show", args=[ib.r(1)], dst=ib.r(1))
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(1), ib.r(2)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))


def functions(ib, tvm):
    """One function calls another, directly and through a closure that holds an argument."""
    with ib.function("minus", num_inputs=2):
        ib.emit_call("test.interop.negative", args=[ib.r(1)], dst=ib.r(2))
        ib.emit_call("test.interop.sum", args=[ib.r(0), ib.r(2)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))
    with ib.function("main", num_inputs=2):
        ib.emit_call("minus", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("vm.builtin.make_closure", args=[ib.f("minus"), ib.r(1)], dst=ib.r(3))
        ib.emit_call("vm.builtin.invoke_closure", args=[ib.vm_state(), ib.r(3), ib.r(0)], dst=ib.r(4))
        ib.emit_call("test.interop.show", args=[ib.r(2)], dst=ib.void_arg())
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(2), ib.r(4)], dst=ib.r(5))
        ib.emit_ret(ib.r(5))


PROGRAMS = {function.__name__: function for function in (loop, constants, shapes, functions)}
#: What ``main`` is called with, once for each entry.
ARGUMENTS = {
    "loop": [[10], [0]],
    "constants": [[]],
    "shapes": [[np.arange(6, dtype="float32").reshape(2, 3)]],
    "functions": [[10, 4]],
}


def rebuilt(tvm, text):
    """The executable that a program in Python builds. Its names are those that TVM's printer writes."""
    names = {"rx": types.SimpleNamespace(Builder=tvm.relax.ExecBuilder), "void": 1 << 54, "vm": (1 << 54) + 1}
    exec(text, names)
    return names["ib"].get()


def main(runtime, directory):
    tvm = importlib.import_module(runtime)
    importlib.import_module(f"{runtime}.relax")
    for name, build in PROGRAMS.items():
        ib = tvm.relax.ExecBuilder()
        build(ib, tvm)
        executable = ib.get()
        executable.mod.write_to_file(f"{directory / name}.exec", "relax.VMExecutable")
        describe.describe(executable.mod, f"{directory / name}.built")
        if name in ("loop", "functions"):  # the text leaves out constants and the names of parameters
            describe.describe(rebuilt(tvm, executable.as_python()).mod, f"{directory / name}.rebuilt")
        if runtime == "relaxide":
            executable.export_library(f"{directory / name}_library.so")


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
