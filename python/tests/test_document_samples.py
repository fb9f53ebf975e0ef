"""The sample programs of the Relax VM document, as written there with ``tvm`` replaced by ``relaxide``."""

import numpy as np

import relaxide
from relaxide import relax
from relaxide.relax import VMInstrumentReturnKind
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


def test_serialization(tmp_path):
    ex = relaxide.compile(MyModule, target="llvm")
    # Save
    ex.export_library(str(tmp_path / "model.so"))

    # Load
    loaded = relaxide.runtime.load_module(str(tmp_path / "model.so"))
    vm = relax.VirtualMachine(loaded, relaxide.cpu())
    inp = random_input()
    np.testing.assert_array_equal(vm["main"](inp).numpy(), 2 * inp.numpy())
