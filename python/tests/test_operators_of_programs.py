"""Operators that a program adds."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.ir import Op, register_op_attr
from relaxide.script import relax as R

NAME = "tests_of_programs.scaled_sum"


@pytest.fixture
def scaled_sum():
    def type_of(call, context):
        x, y = call.args
        return Op.get("relax.add").get_attr("FInferType")(relax.op.add(x, y), context)

    def lowered(builder, call):
        x, y = call.args
        twice = builder.emit(relax.op.multiply(x, R.const(2.0, "float32")))
        return relax.op.add(twice, y)

    said = {"FInferType": type_of, "FLegalize": lowered, "FPurity": True}
    for key, value in said.items():
        register_op_attr(NAME, key, value)
    yield Op.get(NAME)
    for key in said:
        Op.get(NAME).reset_attr(key)


def _program(op):
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((2, "n"), "float32"))
    y = relax.Var("y", R.Tensor((2, 1), "float32"))
    with builder.function("main", [x, y]):
        with builder.dataflow():
            out = builder.emit_output(relax.Call(op, [x, y]))
        builder.emit_func_output(out)
    return builder.get()


def test_calls_have_types_and_run(scaled_sum):
    assert scaled_sum.name == NAME and scaled_sum.get_attr("FPurity")
    mod = _program(scaled_sum)
    rows, columns = mod["main"].ret_ty.shape
    assert rows == 2 and columns.name == "n"
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    x, y = np.arange(6, dtype="float32").reshape(2, 3), np.array([[1], [2]], "float32")
    np.testing.assert_array_equal(vm["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y)).numpy(), x * 2 + y)


def test_what_a_rule_refuses_names_the_operator(scaled_sum):
    x = relax.Var("x", R.Tensor((2,), "float32"))
    y = relax.Var("y", R.Tensor((3,), "float32"))
    with pytest.raises(ValueError, match=NAME):
        relax.Call(scaled_sum, [x, y])


def test_an_operator_without_a_rule_says_what_to_note():
    register_op_attr("tests_of_programs.untyped", "FPurity", True)
    x = relax.Var("x", R.Tensor((2,), "float32"))
    with pytest.raises(ValueError, match="tests_of_programs.untyped.*FInferType"):
        relax.Call(Op.get("tests_of_programs.untyped"), [x])


def test_operators_that_nobody_added_are_refused():
    with pytest.raises(AttributeError, match="there is no operator tests_of_programs.none"):
        Op.get("tests_of_programs.none")
