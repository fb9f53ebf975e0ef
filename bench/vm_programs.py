"""Makes the programs that ``vm_overhead.py`` times, with TVM, so that both machines run the same files.

Each program repeats one thing many times inside one call of ``main``: what is left after dividing is the cost of that thing.
``programs.json`` beside the files says how often, and with what arguments ``main`` is called.

usage: vm_programs.py DIRECTORY
"""

import importlib.util
import json
import pathlib
import sys

import tvm
from tvm import relax

#: How often a program repeats its row's thing.
REPEATS = 500
#: How deep the recursion goes. TVM's machine recurses on the native stack and ends near 4,000.
DEPTH = 1000

STATIC = """
@T.prim_func
def step(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
    for i in range(4):
        b[i] = a[i] + T.float32(1)
"""

SYMBOLIC = """
@T.prim_func
def step(pa: T.handle, pb: T.handle):
    n = T.int64()
    a = T.match_buffer(pa, (n,), "float32")
    b = T.match_buffer(pb, (n,), "float32")
    for i in range(n):
        b[i] = a[i] + T.float32(1)
"""

RECURSION = """
@R.function
def main(n: R.Tensor((), "int32"), one: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
    c = R.greater(n, one)
    if c:
        m = R.subtract(n, one)
        r = Program.main(m, one)
    else:
        r = n
    return r
"""

HEADER = """from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Program:
"""


def indented(text, by):
    return "".join(f"{' ' * by}{line}\n" for line in text.strip("\n").splitlines())


def parsed(directory, name, body):
    """The module of a text. TVMScript wants its source in a file."""
    path = directory / f"{name}.py"
    path.write_text(HEADER + indented(body, 4))
    name = f"bench_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.Program


def chain(kernel, size):
    """A function that applies the kernel again and again, each time to a new tensor."""
    lines = [f'@R.function\ndef main(v0: R.Tensor(({size},), "float32")):']
    if size == '"n"':
        lines.append("    n = T.int64()")
        size = "n"
    for i in range(REPEATS):
        lines.append(f'    v{i + 1} = R.call_tir(Program.step, (v{i},), out_ty=R.Tensor(({size},), "float32"))')
    lines.append(f"    return v{REPEATS}")
    return kernel + "\n".join(lines)


def repeated(function, times=REPEATS):
    """A program in bytecode that calls one function again and again with its own argument."""
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        for _ in range(times):
            ib.emit_call(function, args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(0))
    return relax.vm_build._vmlink(ib, "llvm", tvm.IRModule())


def owned(directory):
    """A chain in bytecode in which each kernel has a new storage for its result, and lets go of what it has read."""
    ib = relax.ExecBuilder()
    byte, float32 = (ib.convert_constant(tvm.DataType(name)) for name in ("uint8", "float32"))
    size, shape = (ib.convert_constant(tvm.runtime.ShapeTuple([value])) for value in (16, 4))
    scope = ib.convert_constant("global")
    with ib.function("main", num_inputs=1):
        for i in range(REPEATS):
            storage, tensor, read = 1 + 2 * i, 2 + 2 * i, 2 * i
            ib.emit_call(
                "vm.builtin.alloc_storage", args=[ib.vm_state(), size, ib.imm(0), byte, scope], dst=ib.r(storage)
            )
            ib.emit_call("vm.builtin.alloc_tensor", args=[ib.r(storage), ib.imm(0), shape, float32], dst=ib.r(tensor))
            ib.emit_call("vm.builtin.null_value", dst=ib.r(storage))
            ib.emit_call("step", args=[ib.r(read), ib.r(tensor)])
            if read:
                ib.emit_call("vm.builtin.null_value", dst=ib.r(read))
        ib.emit_ret(ib.r(2 * REPEATS))
    return relax.vm_build._vmlink(ib, "llvm", parsed(directory, "owned", STATIC))


def large(instructions):
    """A program of that many instructions, of the kinds that compilers emit."""
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        for i in range(instructions // 2):
            ib.emit_call("vm.builtin.shape_of", args=[ib.r(0)], dst=ib.r(1 + i % 8))
            ib.emit_call("vm.builtin.reshape", args=[ib.r(0), ib.r(1 + i % 8)], dst=ib.r(9))
        ib.emit_ret(ib.r(0))
    return relax.vm_build._vmlink(ib, "llvm", tvm.IRModule())


def main(directory):
    directory.mkdir(parents=True, exist_ok=True)
    tensor, scalar = ["float32", [4]], lambda value: ["int32", [], value]

    def compiled(name, body):
        return tvm.compile(parsed(directory, name, body), "llvm")

    programs = {
        "copy": (repeated("vm.builtin.copy"), REPEATS, [tensor]),
        "shape_of": (repeated("vm.builtin.shape_of"), REPEATS, [tensor]),
        "callback": (repeated("bench.callback"), REPEATS, [tensor]),
        "static": (compiled("static", chain(STATIC, 4)), REPEATS, [tensor]),
        "owned": (owned(directory), REPEATS, [tensor]),
        "symbolic": (compiled("symbolic", chain(SYMBOLIC, '"n"')), REPEATS, [tensor]),
        "recursion": (compiled("recursion", RECURSION), DEPTH, [scalar(DEPTH + 1), scalar(1)]),
        "enter": (repeated("vm.builtin.copy", times=0), 1, [tensor]),
        "large": (large(10_000), 1, [tensor]),
    }
    rows = []
    for name, (executable, repeats, args) in programs.items():
        executable.export_library(str(directory / f"{name}.so"))
        rows.append({"name": name, "repeats": repeats, "args": args})
    (directory / "programs.json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
