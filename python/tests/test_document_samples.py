"""The sample programs of the Relax VM document, as written there with ``tvm`` replaced by ``relaxide``."""

import numpy as np
import pytest

import relaxide
import relaxide as tvm
from relaxide import relax
from relaxide.relax import VMInstrumentReturnKind
from relaxide.script import ir as I
from relaxide.script import relax as R


@relaxide.script.ir_module
class MyModule:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        return R.add(x, x)


def random_input():
    return relaxide.runtime.tensor(np.random.rand(3, 4).astype("float32"))


def machine():
    return relax.VirtualMachine(relaxide.compile(MyModule, target="llvm"), relaxide.cpu())


def test_build_entry_point():
    target = relaxide.target.Target("llvm")
    ex = relaxide.compile(MyModule, target)
    inp = random_input()
    vm = relax.VirtualMachine(ex, relaxide.cpu())
    np.testing.assert_array_equal(vm["main"](inp).numpy(), 2 * inp.numpy())


def test_python_interface():
    # Compile
    ex = relaxide.compile(MyModule, target="llvm")

    # Create VM
    vm = relax.VirtualMachine(ex, relaxide.cpu())

    # Direct invocation
    inp = relaxide.runtime.tensor(np.random.rand(3, 4).astype("float32"))
    result = vm["main"](inp)

    # Stateful interface (useful for RPC)
    vm.set_input("main", inp)
    vm.invoke_stateful("main")
    output = vm.get_outputs("main")

    np.testing.assert_array_equal(result.numpy(), 2 * inp.numpy())
    np.testing.assert_array_equal(output.numpy(), result.numpy())


def test_key_methods():
    vm, inp = machine(), random_input()
    vm.save_function("main", "saved", inp)
    np.testing.assert_array_equal(vm["saved"]().numpy(), 2 * inp.numpy())
    timing = vm.time_evaluator("main", relaxide.cpu(), number=2, repeat=3)(inp)
    assert len(timing.results) == 3 and timing.min > 0


def test_instrumentation():
    vm, called = machine(), []

    def my_instrument(func, func_symbol, before_run, ret_value, *args):
        if before_run:
            called.append(func_symbol)
        return VMInstrumentReturnKind.NO_OP

    vm.set_instrument(my_instrument)
    vm["main"](random_input())
    assert "vm.builtin.match_shape" in called and called[-1] == "add"


def test_an_instrument_can_skip_a_call():
    vm, finished = machine(), []

    def skip_add(func, func_symbol, before_run, ret_value, *args):
        if not before_run:
            finished.append(func_symbol)
        skip = before_run and func_symbol == "add"
        return VMInstrumentReturnKind.SKIP_RUN if skip else VMInstrumentReturnKind.NO_OP

    vm.set_instrument(skip_add)
    vm["main"](random_input())
    assert finished and "add" not in finished


def test_inspecting_bytecode():
    ex = relaxide.compile(MyModule, target="llvm")
    assert "call  add" in ex.as_text() and "ret   %2" in ex.as_text()
    assert "ib.emit_call" in ex.as_python()
    assert "Relax VM executable statistics" in ex.stats()


def test_inspecting_kernels():
    ex = relaxide.compile(MyModule, target="llvm")
    (kernels,) = ex.mod.imports
    assert kernels.kind == "llvm"
    assert "define dso_local i32 @__tvm_ffi_add(" in kernels.inspect_source("ll")
    assert "__tvm_ffi_add:" in kernels.inspect_source("asm") == ex.mod.inspect_source("asm")
    with pytest.raises(ValueError, match="cobol"):
        kernels.inspect_source("cobol")


def test_linking_into_a_program(tmp_path):
    # An archive and a header: crates/relaxide/tests links them.
    relaxide.compile(MyModule, target="llvm").export_library(tmp_path / "libmodel.a")
    assert (tmp_path / "libmodel.a").read_bytes().startswith(b"!<arch>\n")
    assert "static inline int model_main(" in (tmp_path / "libmodel.h").read_text()
    named = MyModule.with_attr("system_lib_prefix", "mine_")
    relaxide.compile(named, target="llvm").export_library(tmp_path / "model.o")
    assert "static inline int mine_open(" in (tmp_path / "model.h").read_text()


def test_serialization(tmp_path):
    ex = relaxide.compile(MyModule, target="llvm")
    # Save
    ex.export_library(str(tmp_path / "model.so"))

    # Load
    loaded = relaxide.runtime.load_module(str(tmp_path / "model.so"))
    vm = relax.VirtualMachine(loaded, relaxide.cpu())
    inp = random_input()
    np.testing.assert_array_equal(vm["main"](inp).numpy(), 2 * inp.numpy())


# What follows are the samples of the document on heterogeneous execution that are about programs, with the decorators and
# outputs that the document leaves out.

vdevice = [
    R.VDevice("llvm"),
    R.VDevice("cuda", 0),
    R.VDevice("cuda -arch=sm_80", 0),
    R.VDevice("metal", 0, "global"),
]


def vdevices_of(func):
    """The device of each parameter and of the result, by its place in the module's list."""
    types = [param.ty for param in func.params] + [func.ret_ty]
    return [None if ty.vdevice is None else (str(ty.vdevice.target), ty.vdevice.vdevice_id) for ty in types]


def test_types_name_devices_of_the_module():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def foo(
            a: R.Tensor((2, 3), "float32", "cuda"),
            b: R.Tensor((2, 3), "float32", "cuda:0"),
            c: R.Tensor((2, 3), "float32", "vdevice:1"),
        ):
            s1 = R.add(a, b)
            s = R.add(s1, c)
            return s

    assert vdevices_of(Module["foo"]) == [("cuda", 0)] * 4
    assert [str(device.target) for device in Module.global_infos["vdevice"]] == ["llvm", "cuda", "cuda -arch=sm_80", "metal"]
    again = relaxide.script.from_source(Module.script())
    relaxide.ir.assert_structural_equal(again, Module)


def test_devices_are_hinted_at_and_copied_between():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def foo(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                x1 = R.hint_on_device(x, tvm.cpu())
                y1 = R.hint_on_device(y, tvm.cuda())
                s1 = R.add(x1, x1)
                s2 = R.to_vdevice(s1, R.Tensor("cuda:0"))
                s = R.add(y1, s2)
                R.output(s)
            return s

    bindings = Module["foo"].body.blocks[0].bindings
    assert bindings[0].value.attrs.device_type == 1 and bindings[1].value.attrs.device_type == 2
    assert bindings[3].value.ty.vdevice.target.kind == "cuda" and vdevices_of(Module["foo"])[-1] == ("cuda", 0)
    relaxide.ir.assert_structural_equal(relaxide.script.from_source(Module.script()), Module)


def test_operands_on_different_devices_are_refused():
    with pytest.raises(SyntaxError, match="(?i)vdevice|device"):

        @I.ir_module
        class Module:
            I.module_global_infos({"vdevice": vdevice})

            @R.function
            def foo(a: R.Tensor((2, 3), "float32", "cuda:0"), b: R.Tensor((2, 3), "float32", "cuda:1")):
                s = R.add(a, b)
                return s


def test_the_device_of_operands_is_the_results():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def before(x: R.Tensor((2, 3), "float32", "cuda"), y: R.Tensor((2, 3), "float32", "cuda")):
            a = R.add(x, y)
            b = R.multiply(a, x)
            return b

        @R.function
        def after(
            x: R.Tensor((2, 3), "float32", "cuda"), y: R.Tensor((2, 3), "float32", "cuda")
        ) -> R.Tensor((2, 3), "float32", "cuda"):
            a: R.Tensor((2, 3), "float32", "cuda") = R.add(x, y)
            b: R.Tensor((2, 3), "float32", "cuda") = R.multiply(a, x)
            return b

    before, after = (Module[name].without_attr("global_symbol") for name in ("before", "after"))
    relaxide.ir.assert_structural_equal(before, after)


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_both_execution_modes(exec_mode):
    vm = relax.VirtualMachine(relax.build(MyModule, target="llvm", exec_mode=exec_mode), relaxide.cpu())
    inp = random_input()
    np.testing.assert_array_equal(vm["main"](inp).numpy(), 2 * inp.numpy())


def test_devices_are_realized_against_the_flow():
    @I.ir_module
    class ModBefore:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def func1(
            x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")
        ) -> R.Tensor((2, 3), "float32", "cuda:0"):
            a = R.add(x, y)
            b = R.multiply(a, x)
            return b

    @I.ir_module
    class ModExpected:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def func1(
            x: R.Tensor((2, 3), "float32", "cuda:0"), y: R.Tensor((2, 3), "float32", "cuda:0")
        ) -> R.Tensor((2, 3), "float32", "cuda:0"):
            a: R.Tensor((2, 3), "float32", "cuda:0") = R.add(x, y)
            b: R.Tensor((2, 3), "float32", "cuda:0") = R.multiply(a, x)
            return b

    relaxide.ir.assert_structural_equal(relax.transform.RealizeVDevice()(ModBefore), ModExpected)


def test_hints_say_where_expressions_before_them_lie():
    @I.ir_module
    class ModBefore:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def func2(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                s1 = R.add(x, y)
                s2 = R.multiply(s1, s1)
                s3 = R.hint_on_device(s2, tvm.cpu())
                # s3's vdevice is annotated, the expresions preceding s3
                # are expected to have the same vdevice
                R.output(s3)
            return s3

        @R.function
        def callee(x: R.Tensor((2, 3), "float32")):
            r = R.add(x, x)
            return r

        @R.function
        def caller(x: R.Tensor((2, 3), "float32")):
            cls = ModBefore
            s1 = cls.callee(x)
            s2 = R.hint_on_device(s1, tvm.cuda())
            s3 = R.add(s2, s2)
            return s3

    realized = relax.transform.RealizeVDevice()(ModBefore)
    assert vdevices_of(realized["func2"]) == [("llvm", 0)] * 3
    assert "hint_on_device" not in realized.script()
    assert vdevices_of(realized["caller"])[-1] == ("cuda", 0)


def test_a_device_of_the_module_is_updated():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": vdevice})

        @R.function
        def main(a: R.Tensor((2, 3), "float32", "cuda:0")):
            s = R.add(a, a)
            return s

    updated = relax.transform.UpdateVDevice(R.VDevice("rocm", 0), 1)(Module)
    assert [str(device.target) for device in updated.global_infos["vdevice"]][1] == "rocm"
    assert vdevices_of(updated["main"]) == [("rocm", 0)] * 2
