"""Tuning: spaces, strategies, databases, and what passes make of what was measured."""

from pathlib import Path

import numpy as np
import pytest

import relaxide as tvm
from relaxide.ir.utils import derived_object
from relaxide.s_tir import Schedule
from relaxide.s_tir import meta_schedule as ms
from relaxide.s_tir.meta_schedule.testing.dummy_object import DummyBuilder, DummyRunner
from relaxide.script import tirx as T
from relaxide.target import Target

HERE = Path(__file__).parent


@T.prim_func(s_tir=True)
def product(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"), C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def _tiled(sch):
    i, j, k = sch.get_loops(sch.get_sblock("C"))
    sch.split(i, sch.sample_perfect_tile(i, n=2))


def _tune(**options):
    options = {"strategy": "replay-trace", "cost_model": "random", "database": "memory", "seed": 7, **options}
    target = Target({"kind": "llvm", "num-cores": 2})
    options |= {"builder": DummyBuilder(), "runner": DummyRunner(), "measure_callbacks": ms.measure_callback.AddToDatabase()}
    return ms.tune_tir(product, target, options.pop("work_dir"), 6, num_trials_per_iter=3, **options)


def _run(mod):
    a = np.random.default_rng(3).standard_normal((32, 32), "float32")
    result = tvm.runtime.tensor(np.zeros((32, 32), "float32"))
    tvm.compile(mod, "llvm")["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(a), result)
    np.testing.assert_allclose(result.numpy(), a @ a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func"])
def test_what_a_search_finds_computes_the_same(tmp_path, strategy):
    database = _tune(work_dir=str(tmp_path), strategy=strategy)
    assert len(database) == 6
    best = ms.tir_integration.compile_tir(database, product, "llvm")
    _run(best.mod)


def test_a_search_by_evolution_learns_of_its_database(tmp_path):
    strategy = ms.search_strategy.EvolutionarySearch(population_size=4, init_min_unmeasured=3, genetic_num_iters=1)
    database = _tune(work_dir=str(tmp_path), strategy=strategy, space=_tiled)
    assert 0 < len(database) <= 6


def test_records_are_written_and_read(tmp_path):
    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    mod = tvm.IRModule({"main": product})
    sch = Schedule(mod)
    _tiled(sch)
    workload = database.commit_workload(mod)
    args = ms.arg_info.ArgInfo.from_entry_func(mod)
    for seconds in ([3.0], [1.0, 2.0]):
        database.commit_tuning_record(ms.database.TuningRecord(sch.trace, workload, seconds, Target("llvm"), args))
    again = ms.database.JSONDatabase(work_dir=str(tmp_path), allow_missing=False)
    assert len(again) == 2 and again.has_workload(mod) and not again.has_workload(tvm.IRModule({"main": product.with_attr("x", 1)}))
    best = again.query(mod, Target("llvm"), kind="record")
    assert [float(second) for second in best.run_secs] == [1.0, 2.0] and best.args_info[0].as_json() == ["TENSOR", "float32", [32, 32]]
    assert str(again.query(mod, Target("llvm")).trace) == str(sch.trace)
    with open(tmp_path / "database_tuning_record.json", "a") as file:
        file.write("[7, []]\n")
    with pytest.raises(ValueError, match="database_tuning_record.json:3: .*there is no workload 7"):
        ms.database.JSONDatabase(work_dir=str(tmp_path))


def test_a_database_of_tvm_is_read_and_its_traces_apply():
    database = ms.database.JSONDatabase(work_dir=str(HERE / "tvm_database"), allow_missing=False)
    (workload,) = database.workloads
    with Target("llvm"), database:
        made = tvm.relax.transform.MetaScheduleApplyDatabase()(workload.mod)
    loops = [str(stmt.kind) for stmt in _loops(made["main"])]
    assert made["main"].attrs["tirx.is_scheduled"] and len(loops) == 2
    result, data = tvm.runtime.tensor(np.zeros(64, "float32")), np.arange(64, dtype="float32")
    tvm.compile(made, "llvm")["main"](tvm.runtime.tensor(data), result)
    assert (result.numpy() == 2 * data).all()


def test_a_program_runs_with_what_was_tuned(tmp_path):
    relax = tvm.relax
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType([16, 16], "float32")) for name in "xw")
    with builder.function("main", [x, w]):
        with builder.dataflow():
            result = builder.emit_output(relax.op.nn.relu(builder.emit(relax.op.matmul(x, w))))
        builder.emit_func_output(result)
    mod = relax.get_pipeline("zero")(builder.get())
    (task,) = ms.relax_integration.extract_tasks(mod, "llvm")
    assert task.weight == 1
    target = Target({"kind": "llvm", "num-cores": 2})
    how = {"builder": DummyBuilder(), "runner": DummyRunner(), "cost_model": "random", "strategy": "replay-trace", "database": "memory"}
    database = ms.relax_integration.tune_relax(mod, {}, target, str(tmp_path), 2, num_trials_per_iter=2, **how)
    vm = relax.VirtualMachine(ms.relax_integration.compile_relax(database, mod, target, None), tvm.cpu())
    a = np.random.default_rng(4).standard_normal((16, 16), "float32")
    np.testing.assert_allclose(vm["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(a)).numpy(), np.maximum(a @ a, 0), rtol=1e-4, atol=1e-4)


def _loops(func):
    from relaxide.tirx import For
    from relaxide.tirx._walk import walk

    return [stmt for stmt in walk(func.body) if isinstance(stmt, For)]


def test_classes_of_ones_own_stand_in():
    @derived_object
    class Own(ms.builder.PyBuilder):
        def build(self, build_inputs):
            return [ms.builder.BuilderResult(None, "no") for _ in build_inputs]

    (result,) = Own().build([ms.builder.BuilderInput(product, Target("llvm"))])
    assert isinstance(Own(), ms.Builder) and result.error_msg == "no"
    with pytest.raises(TypeError, match="not allowed"):

        @derived_object
        class Other(Own):
            pass


def test_unions_and_functions_are_databases():
    mod = tvm.IRModule({"main": product})
    target = Target("llvm")

    def schedule(sch):
        _tiled(sch)
        return True

    by_function = ms.Database.create(schedule)
    empty = ms.database.MemoryDatabase()
    assert ms.database.OrderedUnionDatabase(empty, by_function).query(mod, target, kind="ir_module") is not None
    assert ms.database.UnionDatabase(empty).query(mod, target) is None
    with by_function:
        assert ms.Database.current() is by_function
    assert ms.Database.current() is None


def test_errors_say_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="Unknown Database: csv"):
        ms.Database.create("csv")
    with pytest.raises(ValueError, match="there are llvm, cuda"):
        ms.ScheduleRule.create("abacus")
    with pytest.raises(NotImplementedError, match="max_trials_global"):
        _tune(work_dir=str(tmp_path), post_optimization=True)
    with pytest.raises(ValueError, match="open one"):
        tvm.relax.transform.MetaScheduleApplyDatabase()(tvm.IRModule({"main": product}))


def test_the_limit_of_parallel_iterations_is_mutated():
    sch = Schedule(product)
    i, *_ = sch.get_loops(sch.get_sblock("C"))
    sch.split(i, [4, 8])
    sch.annotate(sch.get_sblock("root"), "meta_schedule.parallel", 1)
    context = ms.TuneContext(product, target=Target({"kind": "llvm", "num-cores": 2}), rand_state=1)
    mutator = ms.mutator.MutateParallel(max_jobs_per_core=16)
    mutator._initialize_with_tune_context(context)
    trace = mutator.apply(sch.trace)
    (mark,) = [inst for inst in trace.insts if inst.kind.name == "Annotate"]
    # The products of the outer loops: 4, and 4 * 8.
    assert int(mark.inputs[1]) in (4, 32)


def test_computes_to_tune_count_their_operations():
    from relaxide import te
    from relaxide.s_tir.analysis import estimate_tir_flops
    from relaxide.s_tir.meta_schedule.testing import te_workload

    # Two operations for each element of the window of each output, whatever is padded, transposed or grouped.
    wanted = {"C1D": 2 * 128 * 128 * 3 * 64, "GRP": 2 * 28 * 28 * 128 * 9 * 16, "DEP": 2 * 112 * 112 * 32 * 9}
    wanted |= {"T2D": 2 * 8 * 8 * 256 * 16 * 512, "CAP": 2 * 8 * 8 * 16 * 32 * 9 * 4 * 32, "NRM": 2 * 256 * 256, "SFM": 4 * 256 * 256}
    for name, count in wanted.items():
        kernel = te_workload.create_te_workload(name, 0)
        assert kernel.attrs["global_symbol"] == "main" and estimate_tir_flops(kernel) == count, name
    with pytest.raises(ValueError, match="known: C1D"):
        te_workload.create_te_workload("C9D", 0)
    with pytest.raises(ValueError, match="sizes 0 to 3"):
        te_workload.create_te_workload("C2D", 4)
    # A transposed convolution against its definition: each element of the input adds a window to the output.
    kernel = te.create_prim_func(te_workload.conv2d_transpose_nhwc(1, 3, 3, 2, 2, 3, 2, 1))
    draw = np.random.default_rng(5)
    a, w, out = draw.standard_normal((1, 3, 3, 2), "f"), draw.standard_normal((3, 3, 2, 2), "f"), np.zeros((1, 5, 5, 2), "f")
    around = np.zeros((7, 7, 2), "f")
    for y, x in np.ndindex(3, 3):
        around[2 * y : 2 * y + 3, 2 * x : 2 * x + 3] += np.einsum("c,hwco->hwo", a[0, y, x], w)
    arguments = [tvm.runtime.tensor(one) for one in (a, w, out)]
    tvm.compile(kernel, "llvm")(*arguments)
    np.testing.assert_allclose(arguments[2].numpy()[0], around[1:6, 1:6], rtol=1e-4, atol=1e-5)


def test_a_tracker_and_a_server_of_this_machine():
    from relaxide.rpc import connect_tracker
    from relaxide.s_tir.meta_schedule.testing.local_rpc import LocalRPC

    with LocalRPC("here", silent=True) as local:
        remote = connect_tracker(local.tracker_host, local.tracker_port).request(local.tracker_key, session_timeout=30)
        assert remote.cpu(0).exist
