"""Weights that are fetched one at a time, and derivatives of tuples."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import relax
from relaxide.script import ir as I
from relaxide.script import relax as R


@I.ir_module
class Tuple:
    @R.function
    def transform_params(
        params: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((3,), "float32")),
    ) -> R.Tuple(R.Tensor((3, 2), "float32"), R.Tensor((3,), "float32"), R.Tensor((3, 2), "float32")):
        w = params[0]
        b = params[1]
        turned = R.permute_dims(w)
        doubled = R.add(b, b)
        out = (turned, doubled, turned)
        return out


@I.ir_module
class Apart:
    @R.function
    def transform_params(w: R.Tensor((2, 3), "float32"), b: R.Tensor((3,), "float32")):
        turned = R.permute_dims(w)
        doubled = R.add(b, b)
        return (turned, b, doubled)


def run(mod, weights, prefix="", extra=()):
    """``(results by number, what was asked and told in order)``."""
    results, order = {}, []

    def get(*args):
        order.append(("get", *[str(arg) for arg in args]))
        return tvm.runtime.tensor(weights[args[-1]])

    def take(*args):
        order.append(("set", *[str(arg) for arg in args[:-1]]))
        results[int(args[-2])] = args[-1].numpy()

    tvm.register_global_func(f"{prefix}get_item", get, override=True)
    tvm.register_global_func(f"{prefix}set_item", take, override=True)
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    returned = vm["transform_params"](*extra)
    return results, order, returned


WEIGHTS = [np.arange(6, dtype="float32").reshape(2, 3), np.arange(3, dtype="float32")]


def test_weights_are_fetched_and_results_handed_over_one_at_a_time():
    results, order, _ = run(relax.transform.LazyTransformParams()(Tuple), WEIGHTS)
    np.testing.assert_array_equal(results[0], WEIGHTS[0].T)
    np.testing.assert_array_equal(results[1], WEIGHTS[1] * 2)
    np.testing.assert_array_equal(results[2], WEIGHTS[0].T)
    assert order.index(("set", "0")) < order.index(("set", "1")) and ("set", "2") in order


def test_weights_that_are_parameters_are_fetched_in_front_of_their_use():
    results, order, _ = run(relax.transform.LazyTransformParams()(Apart), WEIGHTS)
    np.testing.assert_array_equal(results[1], WEIGHTS[1])
    np.testing.assert_array_equal(results[2], WEIGHTS[1] * 2)
    assert order[:2] == [("get", "0"), ("set", "0")], order


@pytest.mark.parametrize("mod", [Tuple, Apart], ids=["tuple", "apart"])
def test_without_a_taker_results_are_returned(mod):
    lazy = relax.transform.LazyTransformParams(fset_item=None)(mod)
    results, order, returned = run(lazy, WEIGHTS)
    assert not results and len(returned) == 3 and all(step[0] == "get" for step in order)
    np.testing.assert_array_equal(returned[0].numpy(), WEIGHTS[0].T)


def test_further_arguments_are_texts_numbers_and_parameters():
    loader = relax.Var("loader", relax.AnyType())
    lazy = relax.transform.LazyTransformParams(extra_get_item_params=["disk", loader], extra_set_item_params=[loader])(Tuple)
    assert [param.name_hint for param in lazy["transform_params"].params] == ["loader"]
    _, order, _ = run(lazy, WEIGHTS, extra=["here"])
    assert order[0][:3] == ("get", "disk", "here") and ("set", "here", "0") in order
    with pytest.raises(ValueError, match="integers, texts and variables"):
        relax.transform.LazyTransformParams(extra_get_item_params=[1.5])(Tuple)


def test_results_that_nothing_computes_come_last():
    @I.ir_module
    class Constants:
        @R.function
        def transform_params(w: R.Tensor((3,), "float32")):
            y = R.add(w, w)
            return (y, R.const(4.0, "float32"))

    lazy = relax.transform.LazySetOutput()(Constants)["transform_params"]
    calls = [binding.value for block in lazy.body.blocks for binding in block.bindings if binding.value.op == lazy.params[1]]
    assert [int(call.args[0].value) for call in calls] == [0, 1]
    results, order, _ = run(relax.transform.LazyTransformParams()(Constants), WEIGHTS[1:])
    assert order == [("get", "0"), ("set", "0"), ("set", "1")] and results[1] == 4


def test_derivatives_of_tuples_are_bound_as_tuples():
    @I.ir_module
    class Pairs:
        @R.function
        def main(x: R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32")), y: R.Tensor((3,), "float32")):
            with R.dataflow():
                pair = (y, (x, y))
                inner = pair[1]
                again = inner[0]
                a = again[1]
                b = R.multiply(a, inner[1])
                c = R.add(b, pair[0])
                s = R.sum(c)
                R.output(s)
            return s

    made = relax.transform.Gradient("main")(Pairs)
    types = [
        binding.var.ty
        for binding in made["main_adjoint"].body.blocks[0].bindings
        if binding.var.name_hint in ("pair_adjoint", "inner_adjoint", "again_adjoint", "x_adjoint")
    ]
    assert types and all(isinstance(ty, relax.TupleType) for ty in types)
    vm = relax.VirtualMachine(tvm.compile(made, "llvm"), tvm.cpu())
    x0, x1, y = (np.array(v, "float32") for v in ([1, 2, 3], [4, 5, 6], [7, 8, 9]))
    tensor = tvm.runtime.tensor
    _, (by_x, by_y) = vm["main_adjoint"]((tensor(x0), tensor(x1)), tensor(y))
    np.testing.assert_array_equal(by_x[0].numpy(), 0 * x0)
    np.testing.assert_array_equal(by_x[1].numpy(), y)
    np.testing.assert_array_equal(by_y.numpy(), x1 + 1)


def test_weights_are_cast_at_the_begin_of_a_block():
    @I.ir_module
    class Product:
        @R.function
        def main(x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                y = R.nn.relu(x)
                z = R.matmul(y, w)
                u = R.matmul(R.add(v, v), v)
                gv = R.nn.softmax(z)
                R.output(gv, u)
            return (gv, u)

    mixed = relax.transform.ToMixedPrecision()(Product)["main"]
    first = mixed.body.blocks[0].bindings[0].value
    assert first.op == tvm.ir.Op.get("relax.astype") and first.args[0].same_as(mixed.params[1])
    assert not any(
        b.value.op == first.op and b.value.args[0].same_as(mixed.params[2]) for b in mixed.body.blocks[0].bindings[:2]
    ), "v is read in 32 bits as well"
