"""Calls in the normal form of their operators, and results that are declared to be what they are not."""

import warnings

import pytest
import relaxide as tvm
from relaxide import relax
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T

NAME = "test_normal_calls.first_of_two"


@pytest.fixture
def first_of_two():
    attrs = {
        "FInferType": lambda call, builder: call.args[0].ty,
        "FPurity": True,
        "FNormalize": lambda builder, call: relax.Call(call.op, [*call.args, relax.Tuple([])]) if len(call.args) == 1 else call,
    }
    for key, value in attrs.items():
        tvm.ir.register_op_attr(NAME, key, value)
    op = tvm.ir.Op.get(NAME)
    yield op
    for key in attrs:
        op.reset_attr(key)


def _program(op, *more):
    x = relax.Var("x", relax.TensorType((4,), "float32"))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.Call(op, [x, *more])))
    return bb.get()


def test_mutators_bring_calls_into_their_form(first_of_two):
    @relax.expr_functor.mutator
    class Same(relax.PyExprMutator):
        pass

    made = Same().visit_expr(_program(first_of_two)["main"])
    assert len(made.body.blocks[0].bindings[0].value.args) == 2
    assert Same().visit_expr(made).same_as(made)


def test_another_form_is_not_well_formed(first_of_two):
    assert relax.analysis.check_well_formed(_program(first_of_two, relax.Tuple([])))
    with pytest.raises(ValueError, match=f"{NAME}.*another form"):
        relax.analysis.well_formed(_program(first_of_two))


def test_a_declared_result_that_its_value_contradicts_is_a_warning():
    with pytest.warns(UserWarning, match="`main` is declared to return .*which is taken"):

        @R.function
        def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((3, 4), "float32"):
            y = R.add(x, x)
            return y

    assert [int(dim) for dim in main.ret_ty.shape] == [4, 4]


def test_the_warning_may_be_an_error():
    with warnings.catch_warnings(), pytest.raises(tvm.error.ScriptError, match="declared to return"):
        warnings.simplefilter("error")

        @R.function
        def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((3, 4), "float32"):
            return x


def test_a_list_of_one_result_is_the_result():
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Mod
            one = R.call_tir(cls.k, (x,), out_ty=[R.Tensor((4,), "float32")])
            tuple_of_one = R.call_tir(cls.k, (x,), out_ty=R.Tuple(R.Tensor((4,), "float32")))
            return (one, tuple_of_one)

        @T.prim_func(private=True)
        def k(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            for i in range(4):
                B[i] = A[i]

    one, tuple_of_one = [binding.var.ty for binding in Mod["main"].body.blocks[0].bindings[:2]]
    assert isinstance(one, relax.TensorType) and isinstance(tuple_of_one, relax.TupleType)
    tvm.ir.assert_structural_equal(tvm.script.from_source(Mod.script()), Mod)
