"""Limits, profiles and scripts of the virtual machine."""

import json

import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.runtime.profiling import Report


def counting():
    """``main(n)``: adds one until ``n`` is reached."""
    tvm.register_global_func("test.vm.less", lambda a, b: a < b, override=True)
    tvm.register_global_func("test.vm.add", lambda a, b: a + b, override=True)
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1, param_names=["n"]):
        ib.emit_call("vm.builtin.copy", args=[ib.imm(0)], dst=ib.r(1))
        ib.emit_call("test.vm.less", args=[ib.r(1), ib.r(0)], dst=ib.r(2))
        ib.emit_if(ib.r(2), 3)
        ib.emit_call("test.vm.add", args=[ib.r(1), ib.imm(1)], dst=ib.r(1))
        ib.emit_goto(-3)
        ib.emit_ret(ib.r(1))
    return ib.get()


def test_limits_end_a_call_and_name_themselves():
    vm = relax.VirtualMachine(counting(), tvm.cpu())
    vm.set_limits(instructions=100)
    assert vm["main"](5) == 5
    with pytest.raises(RuntimeError, match="the limit of 100 instructions is reached"):
        vm["main"](1000)
    vm.set_limits(milliseconds=5)
    with pytest.raises(TimeoutError, match="the time limit of 5ms is reached"):
        vm["main"](10**9)
    vm.set_limits()
    assert vm["main"](1000) == 1000


def test_a_profile_counts_every_call():
    vm = relax.VirtualMachine(counting(), tvm.cpu())
    report = vm.profile("main", 3)
    assert isinstance(report, Report)
    calls = {call["Name"]["string"]: call["Count"]["count"] for call in json.loads(report.json())["calls"]}
    assert calls == {"main": 1, "vm.builtin.copy": 1, "test.vm.less": 4, "test.vm.add": 3}
    assert "test.vm.less" in str(report) and "main" in report.csv()
    assert {event["name"] for event in json.loads(report.chrome_trace())["traceEvents"]} == set(calls)


def test_a_script_builds_the_executable_again(tmp_path):
    ib = relax.ExecBuilder()
    text, shape = ib.convert_constant('with "quotes"'), ib.convert_constant(tvm.runtime.ShapeTuple([1, 2]))
    weights = ib.convert_constant(tvm.runtime.tensor([1.5, -2.0]))
    with ib.function("main", num_inputs=1):
        ib.emit_call("test.vm.any", args=[ib.r(0), text, shape, weights, ib.vm_state(), ib.f("main")], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    ex = ib.get()
    names = {}
    exec(ex.as_script(), names)
    assert names["ex"].as_text() == ex.as_text()
    for name, built in (("first", ex), ("again", names["ex"])):
        built.mod.write_to_file(str(tmp_path / name), "relax.VMExecutable")
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()


def test_an_executable_is_loaded_once():
    ex = counting()
    assert ex.jit() is ex.jit()
    assert ex.jit(force_recompile=True) is ex.jit()
