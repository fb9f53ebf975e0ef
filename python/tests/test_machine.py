"""The virtual machine's methods, as TVM names them."""

import json

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import relax as R


@tvm.script.ir_module
class Pair:
    @R.function
    def main(x: R.Tensor((2, 2), "float32"), y: R.Tensor((2, 2), "float32")):
        total = R.add(x, y)
        return (total, (R.multiply(total, x), y))


X, Y = np.full((2, 2), 2, "float32"), np.full((2, 2), 3, "float32")


@pytest.fixture
def machine():
    return relax.VirtualMachine(tvm.compile(Pair, "llvm"), tvm.cpu())


def looping(times):
    """An executable whose `main` counts down from its argument."""
    tvm.register_global_func("test.machine.less", lambda value: value - 1, override=True)
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.machine.less", args=[ib.r(0)], dst=ib.r(0))
        ib.emit_if(ib.r(0), 2)
        ib.emit_goto(-2)
        ib.emit_ret(ib.r(0))
    return relax.VirtualMachine(ib.get(), tvm.cpu())


def assert_outputs(outputs):
    total, (product, y) = outputs
    for tensor, expected in ((total, X + Y), (product, (X + Y) * X), (y, Y)):
        np.testing.assert_array_equal(tensor.numpy(), expected)


@pytest.mark.parametrize("memory_cfg", [None, "naive", "pooled", {tvm.cpu(): "naive"}])
def test_results_nest_whatever_the_allocator(memory_cfg):
    machine = relax.VirtualMachine(tvm.compile(Pair, "llvm"), [tvm.cpu()], memory_cfg)
    assert_outputs(machine["main"](tvm.runtime.tensor(X), tvm.runtime.tensor(Y)))


def test_stateful_calls_take_arrays_by_position_and_name(machine):
    for args, kwargs in (([X, Y], {}), ([X], {"y": Y}), ([Y], {"x": X}), ([], {"x": X, "y": Y})):
        machine.set_input("main", *args, **kwargs)
        machine.invoke_stateful("main")
        outputs = machine.get_outputs("main")
        assert type(outputs) is tuple and type(outputs[1]) is tuple
        assert_outputs(outputs)


def test_functions_are_saved_with_their_arguments(machine):
    machine.save_function("main", "saved", X, y=Y)
    assert_outputs(machine["saved"]())
    machine.save_function("main", "silent", X, Y, include_return=False)
    assert machine["silent"]() is None


def test_an_instrument_sees_every_call_and_its_result(machine):
    seen = []

    def instrument(func, func_symbol, before_run, ret_value, *args):
        seen.append((func_symbol, bool(before_run), ret_value, len(args)))
        return relax.VMInstrumentReturnKind.NO_OP

    machine.set_instrument(instrument)
    machine["main"](tvm.runtime.tensor(X), tvm.runtime.tensor(Y))
    assert [before for _, before, _, _ in seen] == [True, False] * (len(seen) // 2)
    assert all(value is None for _, before, value, _ in seen if before)
    count = len(seen)
    machine.set_instrument(None)
    machine["main"](tvm.runtime.tensor(X), tvm.runtime.tensor(Y))
    assert len(seen) == count


def test_an_instrument_that_raises_ends_the_call(machine):
    def instrument(*_):
        raise LookupError("seen enough")

    machine.set_instrument(instrument)
    with pytest.raises(LookupError, match="seen enough"):
        machine["main"](tvm.runtime.tensor(X), tvm.runtime.tensor(Y))


def test_time_is_measured_as_often_as_asked():
    calls, prepared = [], []
    tvm.register_global_func("test.machine.tick", lambda value: calls.append(value), override=True)
    tvm.register_global_func("test.machine.prepare", lambda *_: prepared.append(1), override=True)
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.machine.tick", args=[ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    machine = relax.VirtualMachine(ib.get(), tvm.cpu())
    result = machine.time_evaluator("main", tvm.cpu(), number=3, repeat=4, f_preproc="test.machine.prepare")(7)
    assert calls == [7] * (1 + 3 * 4) and len(prepared) == 4
    assert len(result.results) == 4 and result.min <= result.median <= result.max and result.std >= 0
    assert "mean (ms)" in str(result) and str(result.results) in repr(result)
    calls.clear()
    long = machine.time_evaluator("main", tvm.cpu(), number=1, min_repeat_ms=2)(7)
    assert len(calls) > 10 and long.mean < 2e-3
    with pytest.raises(Exception, match="absent"):
        machine.time_evaluator("absent", tvm.cpu())(7)


def test_a_profile_tells_calls_time_and_bytes(machine):
    report = machine.profile("main", tvm.runtime.tensor(X), tvm.runtime.tensor(Y))
    assert isinstance(report, tvm.runtime.profiling.Report)
    assert "add" in str(report) and "add" in report.csv()
    calls = json.loads(report.json())["calls"]
    assert any(call["Count"] == {"count": 1} for call in calls), calls
    events = json.loads(report.chrome_trace())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert {"name", "ts", "dur"} <= set(events[0]) and any("add" in event["name"] for event in events)


def test_limits_end_what_uses_more():
    machine = looping(10)
    assert machine["main"](5) == 0
    machine.set_limits(instructions=100)
    assert machine["main"](5) == 0
    with pytest.raises(RuntimeError, match="the limit of 100 instructions is reached"):
        machine["main"](10**9)
    machine.set_limits(milliseconds=50)
    with pytest.raises(TimeoutError, match="the time limit of 50ms is reached"):
        machine["main"](10**9)
    machine.set_limits()
    assert machine["main"](1000) == 0


def test_executables_run_what_they_name():
    executable = tvm.compile(Pair, "llvm")
    loaded = executable.jit()
    assert loaded.kind == "relax.VMExecutable" and loaded.is_binary_serializable() and not loaded.is_compilation_exportable()
    assert loaded.imports and loaded.implements_function("as_text")
    with pytest.raises(AttributeError, match="Module has no function 'absent'"):
        loaded["absent"]
    with pytest.raises(AttributeError, match="Module has no function 'absent'"):
        loaded.absent
