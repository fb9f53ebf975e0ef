"""Instructions of devices, and lanes under masks: made in Python, printed, read again; and what has code computes the same as NumPy."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import _core, tirx
from relaxide.backend import cuda as cuda_backend
from relaxide.backend import trn as trn_backend
from relaxide.backend._instructions import functions
from relaxide.script import tirx as T
from relaxide.tirx.cuda import op as cuda_op
from relaxide.tirx.trn import op as trn_op

SPACES = ("cuda", "nvshmem", "ptx_legacy", "nki", "metal")


def _value(name):
    if name == "dtype":
        return "float16"
    return tirx.Var(name, "int32")


@pytest.mark.parametrize("name", sorted(functions(*SPACES)))
def test_a_call_is_printed_as_it_is_read(name):
    function = functions(*SPACES)[name]
    parameters = function.__signature__.parameters.values()
    needed = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    call = function(*(_value(p.name) for p in needed))
    params = [arg for arg in call.args if isinstance(arg, tvm.ir.Var)]
    kernel = tirx.PrimFunc(params, tirx.Evaluate(call)).with_attr("global_symbol", "main")
    text = kernel.script()
    assert "call_intrin" not in text
    if not name.startswith("ptx_legacy_ldmatrix"):  # whose text leaves the type out, as TVM's does
        tvm.ir.assert_structural_equal(tvm.script.from_source(text)["main"] if "class" in text else tvm.script.from_source(text), kernel)


def test_every_name_is_of_the_table():
    paths = [path for path, *_ in _core.device_intrinsics()]
    assert len(set(paths)) == len(paths)
    assert cuda_op.cuda_printf("%d", 1).script().strip().endswith('T.cuda.printf("%d", 1)')
    assert trn_op.nki_load is trn_backend.op.nki_load
    with pytest.raises(AttributeError, match="there is no such instruction"):
        cuda_backend.op.cuda_unheard_of


def test_lanes_under_a_mask():
    @T.prim_func
    def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        T.masked_store(
            B,
            T.masked_load("float32x4", A, T.Ramp(2, 1, 4), T.Broadcast(T.bool(True), 4)),
            T.Ramp(0, 1, 4),
            T.Broadcast(T.bool(True), 4),
        )

    load = tirx.masked_load("float32x4", kernel.buffers[0], tirx.Ramp(2, 1, 4), tirx.Broadcast(tirx.const(True), 4))
    store = tirx.masked_store(kernel.buffers[1], load, tirx.Ramp(0, 1, 4), tirx.Broadcast(tirx.const(True), 4))
    tvm.ir.assert_structural_equal(kernel.body, store)
    assert "T.masked_load(" in kernel.script() and "T.masked_store(" in kernel.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(kernel.script()), kernel)
    with pytest.raises(TypeError, match="not float32x8"):
        tirx.masked_load("float32x8", kernel.buffers[0], tirx.Ramp(2, 1, 4), tirx.Broadcast(tirx.const(True), 4))
    with pytest.raises(ValueError, match="a mask"):
        tirx.masked_load("float32", kernel.buffers[0])
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    x, y = tvm.runtime.tensor(a), tvm.runtime.tensor(b)
    tvm.compile(tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")}), target="llvm")["main"](x, y)
    np.testing.assert_array_equal(y.numpy(), [2, 3, 4, 5, 0, 0, 0, 0])


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_products_of_four_bytes(dtype):
    word = "int32" if dtype == "int8" else "uint32"

    @T.prim_func
    def kernel(A: T.Buffer((8, 4), dtype), B: T.Buffer((8, 4), dtype), C: T.Buffer((8,), "int32")):
        for i in range(8):
            C[i] = T.dp4a(T.reinterpret(word, A[i, T.Ramp(0, 1, 4)]), T.reinterpret(word, B[i, T.Ramp(0, 1, 4)]), C[i])

    @T.prim_func
    def vectors(A: T.Buffer((8, 4), dtype), B: T.Buffer((8, 4), dtype), C: T.Buffer((8,), "int32")):
        for i in range(8):
            C[i] = T.dp4a(A[i, T.Ramp(0, 1, 4)], B[i, T.Ramp(0, 1, 4)], C[i])

    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    random = np.random.default_rng(3)
    a, b = (random.integers(low, high, (8, 4), dtype=dtype, endpoint=True) for _ in range(2))
    c = random.integers(-1000, 1000, 8, dtype="int32")
    want = c + (a.astype("int32") * b.astype("int32")).sum(axis=1)
    for program in (kernel, vectors):
        module = tvm.compile(tvm.IRModule({"main": program.with_attr("global_symbol", "main")}), target="llvm")
        out = tvm.runtime.tensor(c.copy())
        module["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
        np.testing.assert_array_equal(out.numpy(), want)
