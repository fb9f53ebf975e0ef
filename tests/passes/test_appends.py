"""Results that are a parameter with something behind it: they grow where they are, and are what a copy would be."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.ffi import from_dlpack
from relaxide.script import relax as R

HEADS, SIZE = 3, 8


def machine(mod, strided=True):
    made = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    made.set_strided_results(strided)
    return made


def program(before, behind, dtype, read):
    """``main(past, new) -> (past with new behind it, what ``read`` makes of that)``; lengths of the axis have names."""
    bb = relax.BlockBuilder()
    past, more = tvm.tirx.Var("p", "int64"), tvm.tirx.Var("t", "int64")
    args = [relax.Var(name, R.Tensor((*before, length, *behind), dtype)) for name, length in (("past", past), ("new", more))]
    with bb.function("main", args):
        with bb.dataflow():
            longer = bb.emit(relax.op.concat(args, axis=len(before)))
            results = [bb.emit_output(value) for value in [longer, *read(bb, longer)]]
        bb.emit_func_output(relax.Tuple(results))
    return bb.get()


def rows(rng, shape, dtype):
    return (rng.standard_normal(shape) * 9).astype(dtype)


def attention(bb, longer):
    """Scores of the last row with all of them, and what they weigh."""
    op, (*_, total, size) = relax.op, longer.ty.shape
    scores = bb.emit(op.matmul(longer, op.permute_dims(longer, [0, 1, 3, 2])))
    return [bb.emit(op.matmul(op.nn.softmax(scores, axis=-1), longer))]


def attended(whole):
    scores = whole @ whole.swapaxes(-1, -2)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return [shares / shares.sum(-1, keepdims=True) @ whole]


def run_steps(vm, before, behind, dtype, wanted, steps=40):
    """Feeds each result to the next call; counts how often it is in other memory than before."""
    rng = np.random.default_rng(0)
    whole = rows(rng, (*before, 2, *behind), dtype)
    now, moves = tvm.runtime.tensor(whole), 0
    for step in range(steps):
        new = rows(rng, (*before, 1 + step % 3, *behind), dtype)
        older = now.numpy()
        longer, *others = vm["main"](now, tvm.runtime.tensor(new))
        np.testing.assert_array_equal(now.numpy(), older)
        whole = np.concatenate([whole, new], axis=len(before))
        np.testing.assert_array_equal(longer.numpy(), whole)
        for other, want in zip(others, wanted(whole)):
            np.testing.assert_allclose(other.numpy(), want, rtol=1e-4, atol=1e-4)
        moves += longer.data_ptr() != now.data_ptr()
        now = longer
    return moves, now


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64"])
@pytest.mark.parametrize("before, behind", [((), ()), ((), (5,)), ((2, 3), (4,)), ((2, 3), ()), ((1, 1), (4,))])
def test_what_grows_is_what_a_copy_would_be(before, behind, dtype):
    read = lambda bb, longer: [bb.emit(relax.op.add(longer, longer)), bb.emit(relax.op.max(longer))]  # noqa: E731
    mod = program(before, behind, dtype, read)
    moves, last = run_steps(machine(mod), before, behind, dtype, lambda whole: [whole + whole, whole.max()])
    assert moves <= 4 and last.is_contiguous() == (np.prod(before) == 1)
    moves, last = run_steps(machine(mod, strided=False), before, behind, dtype, lambda whole: [whole + whole, whole.max()])
    assert moves == 40 and last.is_contiguous()


def test_attention_over_what_grows():
    moves, _ = run_steps(machine(program((2, HEADS), (SIZE,), "float32", attention)), (2, HEADS), (SIZE,), "float32", attended)
    assert moves <= 4


def test_heads_that_are_merged_with_the_batch():
    def read(bb, longer):
        batch, heads, total, size = longer.ty.shape
        flat = bb.emit(relax.op.reshape(longer, (batch * heads, total, size)))
        return [bb.emit(relax.op.matmul(flat, relax.op.permute_dims(flat, [0, 2, 1])))]

    def wanted(whole):
        flat = whole.reshape(-1, *whole.shape[2:])
        return [flat @ flat.swapaxes(-1, -2)]

    assert run_steps(machine(program((2, HEADS), (SIZE,), "float32", read)), (2, HEADS), (SIZE,), "float32", wanted)[0] <= 4


def test_what_is_no_kernel_reads_a_compact_tensor():
    def read(bb, longer):
        return [bb.emit(relax.op.nonzero(longer))]

    moves, last = run_steps(machine(program((2,), (3,), "int64", read)), (2,), (3,), "int64", lambda whole: [np.stack(whole.nonzero())], steps=5)
    assert moves == 5 and last.is_contiguous()


def grown():
    mod = program((2, HEADS), (SIZE,), "float32", attention)
    vm, rng = machine(mod), np.random.default_rng(1)
    past, new = (rows(rng, (2, HEADS, n, SIZE), "float32") for n in (5, 1))
    longer, _ = vm["main"](tvm.runtime.tensor(past), tvm.runtime.tensor(new))
    assert not longer.is_contiguous()
    return vm, rng, longer


def test_two_texts_go_on_from_one():
    vm, rng, longer = grown()
    whole = longer.numpy()
    ways = [rows(rng, (2, HEADS, 1, SIZE), "float32") for _ in range(3)]
    results = [vm["main"](longer, tvm.runtime.tensor(way)) for way in ways]
    for way, (result, other) in zip(ways, results):
        both = np.concatenate([whole, way], axis=2)
        np.testing.assert_array_equal(result.numpy(), both)
        np.testing.assert_allclose(other.numpy(), attended(both)[0], rtol=1e-4, atol=1e-4)


def test_other_functions_and_other_parameters_take_what_has_gaps():
    vm, rng, longer = grown()
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, HEADS, tvm.tirx.Var("p", "int64"), SIZE), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.exp(x)))
    np.testing.assert_allclose(machine(bb.get())["main"](longer).numpy(), np.exp(longer.numpy()), rtol=1e-5)
    # As what is to stand behind, too.
    result, _ = vm["main"](tvm.runtime.tensor(longer.numpy()), longer)
    np.testing.assert_array_equal(result.numpy(), np.concatenate([longer.numpy()] * 2, axis=2))


def test_a_view_of_the_same_memory_is_known_by_its_address():
    vm, rng, longer = grown()
    back = from_dlpack(np.from_dlpack(longer))
    result, _ = vm["main"](back, tvm.runtime.tensor(rows(rng, (2, HEADS, 1, SIZE), "float32")))
    assert result.data_ptr() == longer.data_ptr()
    # Another part of it is not what is appended to.
    part = from_dlpack(np.from_dlpack(longer)[:, :, 1:])
    other, _ = vm["main"](part, tvm.runtime.tensor(rows(rng, (2, HEADS, 1, SIZE), "float32")))
    np.testing.assert_array_equal(other.numpy()[:, :, :-1], longer.numpy()[:, :, 1:])


def test_a_profile_and_a_saved_function_append_as_well():
    vm, rng, longer = grown()
    new = tvm.runtime.tensor(rows(rng, (2, HEADS, 1, SIZE), "float32"))
    vm.profile("main", longer, new)
    vm.save_function("main", "again", longer, new)
    np.testing.assert_array_equal(vm["again"]()[0].numpy(), np.concatenate([longer.numpy(), new.numpy()], axis=2))


def test_what_does_not_fit_is_told():
    vm, rng, longer = grown()
    with pytest.raises(Exception, match="(?i)shape|dimension|expects"):
        vm["main"](longer, tvm.runtime.tensor(rows(rng, (2, HEADS, 1, SIZE + 1), "float32")))
