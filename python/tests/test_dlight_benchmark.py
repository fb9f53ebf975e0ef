"""How long kernels take, at samples of their dimensions."""

import runpy

import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.s_tir.dlight import benchmark as bench
from relaxide.s_tir.dlight.benchmark.extract import extract_dynamic_var, extract_shape
from relaxide.s_tir.dlight.benchmark.utils import populuate_input_shape
from relaxide.s_tir.meta_schedule.runner import EvaluatorConfig
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T

ONCE = EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)


@I.ir_module
class Module:
    @T.prim_func
    def double(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n, T.int64(4)), "float32")
        B = T.match_buffer(var_B, (n, T.int64(4)), "float32")
        for i, j in T.grid(n, T.int64(4)):
            with T.sblock("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n, 4), "float32"))
        z = R.call_tir(cls.double, (y,), out_ty=R.Tensor((n, 4), "float32"))
        return z


def test_a_kernel_says_what_it_takes():
    args, dims = bench.extract_func_info_from_prim_func(Module["double"])
    assert dims == {"n": "int64"} and [dtype for _, dtype in args] == ["float32", "float32"]
    assert populuate_input_shape(args, {"n": 3}) == [((3, 4), "float32")] * 2
    assert populuate_input_shape([(("n", 4), "float32"), relax.ShapeType([args[0][0][0]])], {"n": 3})[1] == ((3,), "scalar")
    with pytest.raises(ValueError, match="says nothing of the dimension n"):
        populuate_input_shape(args, {"m": 3})


def test_calls_of_a_function_are_counted():
    calls, dims = bench.extract_all_func_info_from_relax(Module)
    (main, kernels), = calls.items()
    (kernel, records), = kernels.items()
    assert (main.name_hint, kernel.name_hint, [count for _, count in records]) == ("main", "double", [2])
    assert extract_dynamic_var(calls) == dims and list(dims.values()) == [{"n": "int64"}]
    assert len(extract_shape((Module["main"].params[0], [Module["main"].params[0]]))) == 2


def test_a_kernel_is_measured():
    infos, median, deviation = bench.benchmark(Module["double"], dym_var_sample={"n": 8}, target="llvm", evaluator_config=ONCE)
    assert infos == [((8, 4), "float32")] * 2 and median > 0 and deviation >= 0
    with pytest.raises(ValueError, match="no target"):
        bench.benchmark(Module["double"], dym_var_sample={"n": 8})


def test_results_are_printed(capsys):
    with tvm.target.Target("llvm"):
        bench.benchmark_prim_func(Module["double"], sample_number=2, evaluator_config=ONCE, prim_func_name="double", sort_by="WxTime(ms)")
    bench.benchmark_relax_func(Module, "main", sample_number=1, target="llvm", evaluator_config=ONCE)
    printed = capsys.readouterr().out
    assert "PrimFuncs in main" in printed and printed.count("double") >= 3
    with pytest.raises(ValueError, match="there are main"):
        bench.benchmark_relax_func(Module, "other")


def test_a_program_measures_one_kernel(tmp_path, capsys):
    bench.extract_from_relax(Module, "model", str(tmp_path), target="llvm")
    (program,) = tmp_path.iterdir()
    assert program.name == "main_double.py"
    program.write_text(program.read_text().replace("SAMPLE_NUMBER = 5", "SAMPLE_NUMBER = 1"))
    runpy.run_path(str(program), run_name="__main__")
    assert "RelaxFunc" in capsys.readouterr().out
