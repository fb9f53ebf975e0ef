"""Kernels that are described in the compute language: what they compute, in programs and by themselves."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, te, tirx, topi
from relaxide.script import ir as I, tirx as T
from relaxide.tirx._walk import walk

X = np.random.default_rng(0).standard_normal((8, 4)).astype("float32")


def run(describe, *arrays):
    """What the tensors that a function describes hold, by a program that has them from ``emit_te``."""
    builder = relax.BlockBuilder()
    params = [relax.Var(f"x{i}", relax.TensorType(list(a.shape), str(a.dtype))) for i, a in enumerate(arrays)]
    with builder.function("main", params):
        builder.emit_func_output(builder.emit_te(describe, *params))
    machine = relax.VirtualMachine(tvm.compile(builder.get()), tvm.cpu())
    made = machine["main"](*[tvm.runtime.tensor(a) for a in arrays])
    return [part.numpy() for part in made] if not isinstance(made, tvm.runtime.Tensor) else made.numpy()


def test_a_scan_computes_running_sums():
    def sums(x):
        state = te.placeholder(x.shape, x.dtype, name="state")
        first = te.compute((1, 4), lambda _, i: x[0, i], name="first")
        update = te.compute((8, 4), lambda t, i: state[t - 1, i] + x[t, i], name="update")
        return te.scan(first, update, state, inputs=[x], name="sums")

    np.testing.assert_allclose(run(sums, X), np.cumsum(X, 0), rtol=1e-5)


def test_the_update_of_a_scan_may_be_a_reduction():
    w = np.random.default_rng(1).standard_normal((4, 4)).astype("float32") / 4

    def recurrence(x, w):
        state = te.placeholder(x.shape, x.dtype, name="state")
        k = te.reduce_axis((0, 4), "k")
        first = te.compute((1, 4), lambda _, i: x[0, i])
        update = te.compute((8, 4), lambda t, i: te.sum(state[t - 1, k] * w[k, i], axis=k))
        return te.scan(first, update, state)

    expected = [X[0]]
    for _ in range(7):
        expected.append(expected[-1] @ w)
    np.testing.assert_allclose(run(recurrence, X, w), np.stack(expected), rtol=1e-4, atol=1e-6)


def test_states_of_a_scan_see_each_other():
    def two(x):
        a, b = (te.placeholder(x.shape, x.dtype, name=name) for name in "ab")
        zero = [te.compute((1, 4), lambda _, i: x[0, i], name=f"first{at}") for at in range(2)]
        up = te.compute((8, 4), lambda t, i: a[t - 1, i] + b[t - 1, i], name="up")
        down = te.compute((8, 4), lambda t, i: a[t - 1, i] - b[t - 1, i], name="down")
        return te.scan(zero, [up, down], [a, b])

    a, b = [X[0]], [X[0]]
    for _ in range(7):
        a, b = [*a, a[-1] + b[-1]], [*b, a[-1] - b[-1]]
    for made, expected in zip(run(two, X), (a, b)):
        np.testing.assert_allclose(made, np.stack(expected), rtol=1e-5)


def test_scans_that_do_not_fit_are_refused():
    x, state = te.placeholder((8, 4)), te.placeholder((8, 4))
    update = te.compute((8, 4), lambda t, i: state[t - 1, i])
    with pytest.raises(ValueError, match="lists of one length"):
        te.scan([], update, state)
    with pytest.raises(ValueError, match="same dimensions"):
        te.scan(te.compute((4,), lambda i: x[0, i]), update, state)
    with pytest.raises(ValueError, match="update is a compute"):
        te.scan(te.compute((1, 4), lambda _, i: x[0, i]), x, state)


def test_statements_fill_tensors():
    def reversed_rows(x):
        def body(ins, outs):
            i, j = tirx.Var("i", "int64"), tirx.Var("j", "int64")
            store = tirx.BufferStore(outs[0], ins[0][7 - i, j], [i, j])
            return tirx.For(i, 0, 8, tirx.ForKind.SERIAL, tirx.For(j, 0, 4, tirx.ForKind.SERIAL, store))

        return te.extern((8, 4), [x], body, name="reversed_rows")

    np.testing.assert_array_equal(run(reversed_rows, X), X[::-1])


def test_statements_fill_several_tensors_of_their_types():
    def split(x):
        def body(ins, outs):
            i = tirx.Var("i", "int64")
            first = outs[0].vstore([i], ins[0][i, 0] * 2.0)
            second = outs[1].vstore([i], ins[0][i, 1].astype("int32"))
            return tirx.For(i, 0, 8, tirx.ForKind.SERIAL, tirx.SeqStmt([first, second]))

        return te.extern([(8,), (8,)], [x], body, dtype=["float32", "int32"], name="split")

    first, second = run(split, X * 10)
    np.testing.assert_array_equal(first, X[:, 0] * 20)
    np.testing.assert_array_equal(second, (X[:, 1] * 10).astype("int32"))


def test_buffers_of_ones_own_stand_for_inputs_and_outputs():
    ins, outs = tirx.decl_buffer((8, 4), name="P"), tirx.decl_buffer((8,), name="Q")
    i = tirx.Var("i", "int64")
    body = tirx.For(i, 0, 8, tirx.ForKind.SERIAL, outs.vstore([i], ins[i, 3]))
    made = run(lambda x: te.extern((8,), [x], lambda *_: body, in_buffers=[ins], out_buffers=[outs]), X)
    np.testing.assert_array_equal(made, X[:, 3])


@T.prim_func(private=True, s_tir=True)
def doubled(a: T.handle, b: T.handle, n: T.int64):
    A = T.match_buffer(a, (n, 4))
    B = T.match_buffer(b, (n, 4))
    for i, j in T.grid(n, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)


def test_a_kernel_makes_tensors():
    np.testing.assert_array_equal(run(lambda x: te.extern_primfunc([x], doubled), X), X * 2)


@T.prim_func(private=True, s_tir=True)
def added_up(A: T.Buffer((8, 4), "float32"), C: T.Buffer((8,), "float32")):
    for i, j in T.grid(8, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SR", [i, j])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vi, vj]


def test_what_a_kernel_reads_and_writes_last_is_its_output():
    made = []
    np.testing.assert_allclose(run(lambda x: made.append(te.extern_primfunc([x], added_up)) or made[0], X), X.sum(axis=1), rtol=1e-6)
    (operation,) = [tensor.op for tensor in made]
    assert [*map(str, operation.input_placeholders), *map(str, operation.output_placeholders)] == ["A", "C"]
    assert operation.input_placeholders[0].same_as(added_up.buffers[0]) and operation.output_placeholders[0].same_as(added_up.buffers[1])


def test_a_block_without_axes_has_one_of_length_one():
    x = te.placeholder((3,), "float32", "x")
    k = te.reduce_axis((0, 3), "k")
    whole = te.compute((), lambda: te.sum(x[k], axis=k), "whole")
    kernel = te.create_prim_func([x, te.compute((), lambda: whole() * 2.0, "double")])
    blocks = [stmt for stmt in walk(kernel.body) if isinstance(stmt, tvm.s_tir.SBlock)]
    axes = {block.name_hint: [(axis.var.name, int(axis.dom.extent)) for axis in block.iter_vars] for block in blocks}
    assert axes == {"root": [], "whole": [("v_k", 3)], "double": [("vi", 1)]}


def test_what_statements_cannot_fill_is_refused():
    x = te.placeholder((8,))
    with pytest.raises(ValueError, match="provide dtype"):
        te.extern((8,), [], lambda ins, outs: tirx.Evaluate(0))
    with pytest.raises(RuntimeError, match="mismatch"):
        te.extern((8,), [x], lambda ins, outs: tirx.Evaluate(0), in_buffers=[])
    with pytest.raises(ZeroDivisionError):
        te.extern((8,), [x], lambda ins, outs: 1 // 0)


def test_reducers_of_ones_own():
    product = te.comm_reducer(lambda a, b: a * b, lambda dtype: tirx.const(1, dtype), name="product")

    def describe(x):
        k = te.reduce_axis((0, 4), "k")
        return te.compute((8,), lambda i: product(x[i, k], axis=k), name="product")

    np.testing.assert_allclose(run(describe, X), X.prod(1), rtol=1e-5)
    a, b = tirx.Var("a", "int32"), tirx.Var("b", "int32")
    assert str(product(a, b)) == "a * b" and str(product(a, b, a)) == "a * b * a"


def test_a_reducer_of_two_values_finds_the_place_of_the_largest():
    def larger(x, y):
        return tirx.Select(x[1] >= y[1], x[0], y[0]), tirx.Select(x[1] >= y[1], x[1], y[1])

    def nothing(index, value):
        return tirx.const(-1, index), tirx.min_value(value)

    argmax = te.comm_reducer(larger, nothing, name="argmax")

    def describe(x):
        k = te.reduce_axis((0, 4), "k")
        return te.compute((8,), lambda i: argmax((k.var, x[i, k]), axis=k), name="largest")

    index, value = run(describe, X)
    np.testing.assert_array_equal(index, X.argmax(1))
    np.testing.assert_array_equal(value, X.max(1))


def test_reductions_over_a_part_of_an_axis():
    def some(x):
        k, late = te.reduce_axis((0, 4), "k"), te.reduce_axis((1, 4), "late")
        return [
            te.compute((8,), lambda i: te.sum(x[i, k], axis=k, where=k < 2), name="few"),
            te.compute((8,), lambda i: te.max(x[i, late], axis=late), name="behind"),
        ]

    few, behind = run(some, X)
    np.testing.assert_allclose(few, X[:, :2].sum(1), rtol=1e-5)
    np.testing.assert_array_equal(behind, X[:, 1:].max(1))


def test_a_start_value_counts_once():
    product = te.comm_reducer(lambda x, y: x * y, lambda dtype: tirx.const(1, dtype), name="product")
    largest = te.comm_reducer(
        lambda x, y: (te.max(x[0], y[0]), x[1] + y[1]),
        lambda a, b: (tirx.min_value(a), tirx.const(0, b)),
        name="largest_and_sum",
    )

    def some(x):
        k = te.reduce_axis((0, 4), "k")
        begun = te.compute((8,), lambda i: te.sum(x[i, k], axis=k, init=x[i, 0] * 2.0), name="sum")
        times = te.compute((8,), lambda i: product(x[i, k], axis=k, init=3.0), name="product")
        both = te.compute((8,), lambda i: largest((x[i, k], x[i, k]), axis=k, init=(0.5, 1.0)), name="both")
        return [begun, times, *both]

    begun, times, high, total = run(some, X)
    np.testing.assert_allclose(begun, X.sum(1) + 2 * X[:, 0], rtol=1e-5)
    np.testing.assert_allclose(times, X.prod(1) * 3, rtol=1e-5)
    np.testing.assert_allclose(high, np.maximum(X.max(1), 0.5), rtol=1e-6)
    np.testing.assert_allclose(total, X.sum(1) + 1, rtol=1e-5)


def test_a_compute_may_have_several_values():
    more, twice = run(lambda x: te.compute((8, 4), lambda i, j: (x[i, j] + 1.0, x[i, j] * 2.0), name="both"), X)
    np.testing.assert_array_equal(more, X + 1)
    np.testing.assert_array_equal(twice, X * 2)


def test_tensors_know_what_computes_them():
    x = te.placeholder((8, 4), name="x")
    k = te.reduce_axis((0, 4), "k")
    rows = te.compute((8,), lambda row: te.sum(x[row, k], axis=k), name="rows")
    assert rows.op.name == "rows" and [axis.var.name for axis in rows.op.axis] == ["row"]
    assert [str(axis.var) for axis in rows.op.reduce_axis] == ["k"] and x.op.name == "x"
    kernel = te.create_prim_func([x, rows])
    assert [buffer.name for buffer in kernel.buffers] == ["x", "rows"]


def test_a_registered_function_fills_a_tensor():
    seen = []

    def scale(source, target, factor):
        seen.append((source.shape, target.shape, factor))
        target.copyfrom(source.numpy() * factor)

    tvm.register_global_func("test.te.scale", scale, override=True)

    def some(x):
        twice = te.compute((8, 4), lambda i, j: x[i, j] * 2.0, name="twice")
        scaled = te.extern(
            (8, 4), [twice], lambda ins, outs: tirx.call_packed("test.te.scale", ins[0], outs[0], 3), name="scaled"
        )
        return te.compute((8, 4), lambda i, j: scaled[i, j] + 1.0, name="more")

    np.testing.assert_allclose(run(some, X), X * 6 + 1, rtol=1e-6)
    assert [tuple(map(tuple, row[:2])) + row[2:] for row in seen] == [((8, 4), (8, 4), 3)]


def test_kernels_hand_buffers_to_registered_functions():
    def negate(source, target):
        target.copyfrom(-source.numpy())

    tvm.register_global_func("test.te.negate", negate, override=True)

    @T.prim_func(s_tir=True)
    def kernel(a: T.handle, b: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        with T.sblock("root"):
            T.reads(A[0:n, 0:4])
            T.writes(B[0:n, 0:4])
            T.evaluate(T.call_packed("test.te.negate", A, B))

    built = tvm.tirx.build(kernel.with_attr("global_symbol", "main"))
    for rows in (1, 8):
        tensors = [tvm.runtime.tensor(X[:rows].copy()), tvm.runtime.tensor(np.zeros((rows, 4), "float32"))]
        built(*tensors)
        np.testing.assert_array_equal(tensors[1].numpy(), -X[:rows])
    assert "T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(n, 4), 0, 2, T.float32(0.0)" in kernel.script()


def test_kernels_of_tensors_are_called_main_and_may_say_their_target():
    a = te.placeholder((4,), name="A")
    kernel = te.create_prim_func([a, te.compute((4,), lambda i: a[i] + 1.0, name="B")])
    assert kernel.attrs["global_symbol"] == "main" and "private" not in kernel.script()
    module = tvm.IRModule({"main": kernel.with_attr("target", tvm.target.Target("llvm"))})
    result = tvm.runtime.tensor(np.zeros(4, "float32"))
    tvm.build(module, target="llvm")(tvm.runtime.tensor(np.ones(4, "float32")), result)
    assert result.numpy().tolist() == [2.0] * 4


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_of_one_type(dtype):
    """Dimensions, counters and what is computed of them; elements keep their types."""
    n = te.var("n", "int32" if dtype == "int64" else "int64")
    A = te.placeholder((n, 8), "int32", name="A")
    rows = te.placeholder((n,), "int32", name="rows")
    B = te.compute((n, 8), lambda i, j: A[rows[i], 7 - j] + te.if_then_else(i > j, te.const(1, "int32"), te.const(2, "int32")), name="B")
    kernel = te.create_prim_func([A, rows, B], index_dtype_override=dtype)
    assert {str(dim.dtype) for buffer in kernel.buffer_map.values() for dim in buffer.shape} == {dtype}
    assert {str(buffer.dtype) for buffer in kernel.buffer_map.values()} == {"int32"}
    values, order = np.arange(40, dtype="int32").reshape(5, 8), np.array([4, 0, 3, 1, 2], "int32")
    result = tvm.runtime.tensor(np.zeros((5, 8), "int32"))
    tvm.compile(kernel, "llvm")["main"](tvm.runtime.tensor(values), tvm.runtime.tensor(order), result)
    i, j = np.indices((5, 8))
    assert np.array_equal(result.numpy(), values[order][:, ::-1] + np.where(i > j, 1, 2))
    with pytest.raises(ValueError, match="indices are integers"):
        te.create_prim_func([A, rows, B], index_dtype_override="float32")


def test_what_is_made_of_tensors_lies_on_the_device_of_the_first():
    x = relax.Var("x", relax.TensorType([8, 4], "float32", I.vdevice("llvm")))
    y = relax.Var("y", relax.TensorType([8, 4], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        both = builder.emit_te(lambda y, pair: te.compute((8, 4), lambda i, j: y[i, j] + pair[0][i, j]), y, (x,))
        neither = builder.emit_te(lambda y: te.compute((8, 4), lambda i, j: y[i, j] * 2.0), y)
        assert both.ty.vdevice == x.ty.vdevice and neither.ty.vdevice is None
        builder.emit_func_output(neither)


@pytest.mark.parametrize("dtype, stages", [("int32", 1), ("int64", 1), ("float32", 2)])
def test_positions_have_the_type_that_is_wanted_at_once(dtype, stages):
    x = te.placeholder((8, 4), "float32", "x")
    kernel = te.create_prim_func([x, topi.argsort(x, dtype=dtype)])
    assert kernel.script().count("T.writes(T_") == stages, kernel.script()
