"""Makes the artifacts of this folder with apache-tvm 0.27.0.post1 (see README.md). Run it inside the folder."""

import json
import pathlib
import subprocess
import tarfile
import tempfile

import numpy as np
import tvm
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "x86-64"})


@I.ir_module
class Add:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        return R.add(x, x)


@I.ir_module
class Dynamic:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        n = T.int64()
        a = R.add(x, y)
        b = R.concat([a, x], axis=0)
        c = R.reshape(b, R.shape([n * 2, 2, 2]))
        return R.exp(c), R.shape([n, n + 1])


@I.ir_module
class Control:
    @R.function
    def main(i: R.Tensor((), "int64"), acc: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cond = R.less(i, R.const(10, "int64"))
        if cond:
            next_i = R.add(i, R.const(1, "int64"))
            next_acc = R.add(acc, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
            out: R.Tensor((4,), "float32") = Control.main(next_i, next_acc)
        else:
            out: R.Tensor((4,), "float32") = acc
        return out


@I.ir_module
class Closure:
    @R.function
    def make_adder(x: R.Tensor((2, 3), "float32")) -> R.Callable((R.Tensor((2, 3), "float32"),), R.Tensor((2, 3), "float32")):
        @R.function
        def add_x(z: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            s = R.add(z, x)
            return s

        return add_x

    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        adder = Closure.make_adder(x)
        first = adder(y)
        second = adder(first)
        return (first, second)


@I.ir_module
class Parallel:
    @T.prim_func
    def scale(a: T.handle, b: T.handle):
        T.func_attr({"global_symbol": "scale"})
        A = T.match_buffer(a, (8, 300), "float32")
        B = T.match_buffer(b, (8, 300), "float32")
        for i in T.parallel(8):
            tmp = T.alloc_buffer((300,), "float32")
            for j in range(300):
                tmp[j] = A[i, j] * T.float32(2)
            for j in range(300):
                B[i, j] = tmp[299 - j] + A[i, j]

    @R.function
    def main(x: R.Tensor((8, 300), "float32")):
        y = R.call_tir(Parallel.scale, (x,), out_ty=R.Tensor((8, 300), "float32"))
        return y


def described(value):
    """A tensor or a shape as JSON; the bytes of a tensor in hexadecimal."""
    if isinstance(value, tvm_ffi.Shape):
        return {"shape_value": list(value)}
    array = value.numpy()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "data": array.tobytes().hex()}


def run(executable, function, *inputs):
    result = relax.VirtualMachine(executable, tvm.cpu())[function](*[tvm.runtime.tensor(x) for x in inputs])
    results = list(result) if isinstance(result, tvm_ffi.Array) else [result]
    return {
        "function": function,
        "inputs": [described(tvm.runtime.tensor(x)) for x in inputs],
        "outputs": [described(value) for value in results],
    }


def record(name, executable, runs=()):
    module = executable.mod
    module.write_to_file(f"{name}.vmexec", "")
    texts = {"text": module["as_text"](), "python": module["as_python"]()}
    try:
        texts["stats"] = module["stats"]()
    except tvm.error.InternalError:
        texts["stats"] = None
    with open(f"{name}.json", "w", encoding="utf-8") as out:
        json.dump({**texts, "runs": list(runs)}, out, indent=1)
        out.write("\n")


def compile_and_record(name, module, *runs, mode="bytecode"):
    executable = relax.build(module, TARGET, exec_mode=mode)
    executable.export_library(f"{name}.so")
    subprocess.run(["strip", f"{name}.so"], check=True)
    record(name, executable, [run(executable, *args) for args in runs])


def linked():
    """A model as one object file, for linking into programs."""
    module = Add.with_attr("system_lib_prefix", "hello_")
    relax.build(module, TARGET).export_library("linked.tar")
    with tarfile.open("linked.tar") as archive, tempfile.TemporaryDirectory() as folder:
        archive.extractall(folder, filter="data")
        objects = [f"{folder}/{name}" for name in archive.getnames()]
        subprocess.run(["ld", "-r", "-o", "linked.o", *objects], check=True)
    pathlib.Path("linked.tar").unlink()


def every_constant():
    ib = relax.ExecBuilder()
    with ib.function("every_constant", num_inputs=2, param_names=["a", "b"]):
        ib.emit_call("test.add", args=[ib.r(0), ib.r(1)], dst=ib.r(12))
        ib.emit_if(ib.r(12), 3)
        constants = [
            ib.convert_constant('a "string"\n'),
            ib.convert_constant("s"),
            ib.convert_constant(""),
            ib.convert_constant(2**60),
            ib.convert_constant(-(2**55)),
            ib.convert_constant(7),
            ib.convert_constant(tvm.runtime.tensor(np.arange(6, dtype="float32").reshape(2, 3))),
            ib.convert_constant(tvm.runtime.tensor(np.array(2.5, dtype="float64"))),
            ib.convert_constant(tvm.runtime.tensor(np.zeros((0, 3), dtype="float16"))),
            ib.convert_constant(tvm.runtime.tensor(np.array([True, False, True]))),
            ib.convert_constant(tvm_ffi.Shape(())),
            ib.convert_constant(tvm_ffi.Shape((1, 2, 3))),
            ib.convert_constant(tvm_ffi.dtype("bfloat16")),
            ib.convert_constant(tvm_ffi.dtype("int8")),
        ]
        ib.emit_call("test.all", args=[*constants, ib.f("every_constant"), ib.vm_state(), ib.void_arg()], dst=ib.r(9))
        ib.emit_goto(2)
        ib.emit_call("test.all", args=constants[:2], dst=ib.r(9))
        ib.emit_ret(ib.r(9))
    with ib.function("unnamed", num_inputs=1):
        ib.emit_goto(2)
        ib.emit_ret(ib.void_arg())
        ib.emit_call("test.a_function_with_a_long_name", args=[ib.r(0), ib.imm(-1)])
        ib.emit_goto(-2)
    return ib.get()


def float_constant():
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=0):
        ib.emit_call("test.id", args=[ib.convert_constant(1.5)], dst=ib.r(0))
        ib.emit_ret(ib.r(0))
    return ib.get()


random = np.random.default_rng(0)


def f32(*shape):
    return random.standard_normal(shape).astype("float32")


compile_and_record("add", Add, ("main", f32(3, 4)))
dynamic_runs = [("main", f32(n, 4), f32(n, 4)) for n in (1, 5)]
compile_and_record("dynamic", Dynamic, *dynamic_runs)
compile_and_record("dynamic_compiled", Dynamic, *dynamic_runs, mode="compiled")
compile_and_record("control", Control, ("main", np.array(3, "int64"), f32(4)), ("main", np.array(10, "int64"), f32(4)))
compile_and_record("closure", relax.transform.LambdaLift()(Closure), ("main", f32(2, 3), f32(2, 3)))
compile_and_record("parallel", Parallel, ("main", f32(8, 300)))
linked()
record("every_constant", every_constant())
record("float_constant", float_constant())
