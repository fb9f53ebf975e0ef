"""Rules for GPUs: what they schedule computes the same, and its threads are ones that a GPU can have."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import s_tir
from relaxide.s_tir import dlight
from relaxide.script import tirx as T
from relaxide.target import Target


@T.prim_func(s_tir=True)
def product(A: T.Buffer((40, 24), "float32"), B: T.Buffer((24, 72), "float32"), C: T.Buffer((40, 72), "float32")):
    for i, j, k in T.grid(40, 72, 24):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def rows(A: T.Buffer((20, 300), "float32"), B: T.Buffer((20,), "float32")):
    for i, k in T.grid(20, 300):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def columns(A: T.Buffer((300, 20), "float32"), B: T.Buffer((20,), "float32")):
    for i, k in T.grid(20, 300):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vk, vi]


@T.prim_func(s_tir=True)
def by_vector(A: T.Buffer((30, 96), "float32"), x: T.Buffer((96,), "float32"), y: T.Buffer((30,), "float32")):
    for i, k in T.grid(30, 96):
        with T.sblock("y"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + A[vi, vk] * x[vk]


def _scheduled(func, rule):
    with Target("cuda"):
        return dlight.ApplyDefaultSchedule(rule)(tvm.IRModule({"main": func}))["main"]


def _as_plain_loops(func):
    """The kernel with loops in the place of those that threads execute."""
    text = func.with_attr("global_symbol", "main").script()
    for name in ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y", "vthread.x", "vthread.y"):
        text = text.replace(f', thread="{name}"', "")
    return tvm.script.from_source(text.replace("T.thread_binding(", "T.serial(").replace("tirx.is_scheduled", "scheduled"))


def _run(func, *arrays):
    given = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(tvm.IRModule({"main": func}), "llvm")["main"](*given)
    return given[-1].numpy()


@pytest.mark.parametrize(
    "func, rule",
    [
        (product, dlight.gpu.Matmul()),
        (rows, dlight.gpu.Reduction()),
        (columns, dlight.gpu.Reduction()),
        (by_vector, dlight.gpu.GEMV()),
    ],
    ids=["product", "rows", "columns", "vector"],
)
def test_a_rule_keeps_what_a_kernel_computes(func, rule):
    made = _scheduled(func, rule)
    assert made.attrs["tirx.is_scheduled"], "the rule is about such a kernel"
    assert s_tir.analysis.verify_gpu_code(made, {"max_threads_per_block": 1024, "max_shared_memory_per_block": 49152})
    assert tvm.tirx.analysis.verify_memory(made.with_attr("target", "cuda")), "all of it is done by threads"
    rng = np.random.default_rng(7)
    shapes = [[int(dim) for dim in buffer.shape] for buffer in func.buffers]
    inputs = [rng.standard_normal(shape, "float32") for shape in shapes[:-1]]
    found = _run(_as_plain_loops(made), *inputs, np.zeros(shapes[-1], "float32"))
    wanted = {2: lambda a, b: a @ b, 1: lambda a: a.sum(axis=1 if func is rows else 0)}[len(inputs)](*inputs)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_rules_leave_what_they_are_not_about():
    for func, rule in ((rows, dlight.gpu.Matmul()), (product, dlight.gpu.GEMV()), (rows, dlight.gpu.RMSNorm()), (rows, dlight.gpu.LowBatchGEMV())):
        assert "tirx.is_scheduled" not in (_scheduled(func, rule).attrs or {})


@T.prim_func(s_tir=True)
def raised_rows(A: T.Buffer((16, 300), "float32"), B: T.Buffer((16, 300), "float32"), S: T.Buffer((16,), "float32")):
    for i, j in T.grid(16, 300):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
    for i, k in T.grid(16, 300):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + B[vi, vk]


def test_kernels_that_nothing_scheduled_get_threads():
    mod = tvm.IRModule({"main": raised_rows})
    with Target("cuda"):
        made = s_tir.transform.DefaultGPUSchedule()(mod)["main"]
    assert made.attrs["tirx.is_scheduled"] and made.script().count("threadIdx.x") == 2
    a = np.random.default_rng(0).standard_normal((16, 300)).astype("float32")
    found = _run(_as_plain_loops(made), a, np.zeros_like(a), np.zeros(16, "float32"))
    np.testing.assert_allclose(found, (a + 1).sum(axis=1), rtol=1e-4)
    with Target("cuda"):
        assert s_tir.transform.DefaultGPUSchedule()(tvm.IRModule({"main": made}))["main"].script() == made.script()
    with Target("llvm"):
        left = s_tir.transform.DefaultGPUSchedule()(mod)["main"]
    assert left.attrs["tirx.is_scheduled"] and "threadIdx" not in left.script()
    with pytest.raises(ValueError, match="needs a target"):
        s_tir.transform.DefaultGPUSchedule()(mod)


@T.prim_func(s_tir=True)
def packed_rows(W: T.Buffer((32, 64), "uint32"), S: T.Buffer((32,), "float32")):
    for i, k in T.grid(32, 512):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.Cast("float32", T.shift_right(W[vi, vk // 8], T.Cast("uint32", vk % 8) * T.uint32(4)) & T.uint32(15))


@T.prim_func(s_tir=True)
def packed_results(W: T.Buffer((64, 8), "uint32"), S: T.Buffer((64,), "float32")):
    B = T.sblock_alloc_buffer((64,), "float32")
    for i, k in T.grid(64, 64):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + T.Cast("float32", T.shift_right(W[vk, vi // 8], T.Cast("uint32", vi % 8) * T.uint32(4)) & T.uint32(15))
    for i in range(64):
        with T.sblock("S"):
            vi = T.axis.spatial(64, i)
            S[vi] = B[vi] * T.float32(2)


@pytest.mark.parametrize("func", [packed_rows, packed_results], ids=["rows", "results"])
def test_neighbours_that_read_one_element_are_one_threads(func):
    made = _scheduled(func, dlight.gpu.Reduction())
    assert made.attrs["tirx.is_scheduled"] and "* 8 + " in made.script()
    packed = np.random.default_rng(3).integers(0, 1 << 32, [int(dim) for dim in func.buffers[0].shape], dtype="uint32")
    numbers = (packed[:, :, None] >> (np.arange(8, dtype="uint32") * 4)) & 15
    numbers = numbers.reshape(packed.shape[0], -1).astype("float32")
    wanted = numbers.sum(axis=1) if func is packed_rows else 2 * numbers.sum(axis=0)
    found = _run(_as_plain_loops(made), packed, np.zeros(wanted.shape, "float32"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_results_that_are_read_once_stay_with_their_thread():
    made = _scheduled(packed_results, dlight.gpu.Reduction())
    assert 'scope="shared"' not in made.script()
