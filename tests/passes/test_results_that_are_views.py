"""Reshapes that are results: views where the memory is the program's own, and no result shares memory with another or with an argument."""

import numpy as np

import relaxide as tvm
from relaxide.script import relax as R


def run(build, *shapes):
    bb = tvm.relax.BlockBuilder()
    args = [tvm.relax.Var(f"x{i}", R.Tensor(shape, "float32")) for i, shape in enumerate(shapes)]
    with bb.function("main", args):
        with bb.dataflow():
            results = bb.emit_output(tvm.relax.Tuple([bb.emit(r) for r in build(bb, *args)]))
        bb.emit_func_output(results)
    vm = tvm.relax.VirtualMachine(tvm.compile(bb.get(), "llvm"), tvm.cpu())
    given = [np.random.default_rng(i).standard_normal(s).astype("float32") for i, s in enumerate(shapes)]
    tensors = [tvm.runtime.tensor(x) for x in given]
    return given, tensors, list(vm["main"](*tensors))


def overwrite(tensor):
    tensor.copyfrom(np.full(tensor.shape, 7, "float32"))


def test_a_result_that_is_a_view_is_alone_with_its_memory():
    def build(bb, x):
        y = bb.emit(tvm.relax.op.exp(x))
        turned = bb.emit(tvm.relax.op.permute_dims(x, [1, 0]))
        return [tvm.relax.op.reshape(turned, (12,)), tvm.relax.op.reshape(y, (4, 3)), y, tvm.relax.op.reshape(x, (2, 6))]

    (x,), (tensor,), results = run(build, (3, 4))
    wanted = [x.T.reshape(12), np.exp(x).reshape(4, 3), np.exp(x), x.reshape(2, 6)]
    for i, result in enumerate(results):
        np.testing.assert_allclose(result.numpy(), wanted[i], rtol=1e-5)
        overwrite(result)
    np.testing.assert_array_equal(tensor.numpy(), x)


def test_two_views_of_one_memory_are_two_results():
    def build(bb, x):
        y = bb.emit(tvm.relax.op.exp(x))
        return [tvm.relax.op.reshape(y, (12,)), tvm.relax.op.reshape(y, (4, 3))]

    (x,), _, (first, second) = run(build, (3, 4))
    overwrite(first)
    np.testing.assert_allclose(second.numpy(), np.exp(x).reshape(4, 3), rtol=1e-5)
