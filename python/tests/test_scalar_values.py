"""Scalars stand for values as they are: in programs that are built, changed and run."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, tirx
from relaxide.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from relaxide.script import ir as I, relax as R


@tvm.register_global_func("test.scalar_values.add", override=True)
def add(x, a, b):
    return tvm.runtime.tensor(x.numpy() + np.float32(a) + np.float32(b))


def built():
    """``x`` plus its length and twice its length plus ``s``."""
    n, s = tirx.Var("n", "int64"), relax.Var("s", "int64")
    x = relax.Var("x", relax.TensorType([n], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, s]):
        length = builder.emit(n)
        twice = builder.emit(n * 2 + s)
        args = [relax.ExternFunc("test.scalar_values.add"), x, n, twice]
        y = builder.emit(relax.op.call_pure_packed(*args, ty_args=[relax.TensorType([n], "float32")]))
        shape = builder.emit(relax.op.full([n, 2], relax.const(1.0), "float32"))
        builder.emit_func_output(relax.Tuple([y, shape, length, n]))
    return builder.get()


X = np.arange(5, dtype="float32")


@pytest.mark.parametrize("exec_mode", ["bytecode", "compiled"])
def test_dimensions_are_values_of_programs(exec_mode):
    module = built()
    relax.analysis.well_formed(module)
    machine = relax.VirtualMachine(tvm.compile(module, exec_mode=exec_mode), tvm.cpu())
    y, ones, length, n = machine["main"](tvm.runtime.tensor(X), 3)
    np.testing.assert_array_equal(y.numpy(), X + 5 + 13)
    assert ones.shape == (5, 2) and (length, n) == (5, 5)


def test_programs_of_scalars_are_text_and_back():
    module = built()
    again = tvm.script.from_source(module.script(show_meta=True))
    tvm.ir.assert_structural_equal(again, module)


def test_mutators_keep_scalars_that_they_do_not_touch():
    @mutator
    class Nothing(PyExprMutator):
        pass

    @mutator
    class Doubled(PyExprMutator):
        def visit_int_imm_(self, op):
            return tirx.IntImm(op.dtype, op.value * 2)

    func = built()["main"]
    assert Nothing().visit_expr(func).same_as(func)
    doubled = Doubled().visit_expr(func)
    assert "n * 4 + s" in doubled.script() and "R.shape([" in doubled.script()


def test_visitors_see_the_operands_of_scalars():
    @visitor
    class Names(PyExprVisitor):
        def __init__(self):
            self.names, self.sums = [], 0

        def visit_var_(self, op):
            self.names.append(op.name)

        def visit_add_(self, op):
            self.sums += 1
            super().visit_add_(op)

    names = Names()
    names.visit_expr(built()["main"])
    assert names.sums == 1 and names.names.count("n") >= 3 and "s" in names.names


def test_scalars_of_text_are_scalars():
    @I.ir_module
    class Module:
        @R.function
        def other(x: R.Tensor((4,), "float32"), p: R.Prim("bool")):
            y = R.call_pure_packed("f", x, R.prim_value(3), R.prim_value(True), p, ty_args=R.Tensor((4,), "float32"))
            return y

    call = Module["other"].body.blocks[0].bindings[0].value
    assert [type(arg).__name__ for arg in call.args] == ["ExternFunc", "Var", "IntImm", "IntImm", "Var"]
    assert call.args[2] == 3 and call.args[2].dtype == "int64" and call.args[3].dtype == "bool"


def test_rules_give_scalars():
    n = tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType([n], "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(relax.op.exp(x))
        builder.emit_func_output(y)
    pattern = relax.dpl.is_op("relax.exp")(relax.dpl.wildcard())

    def counted(call, parts):
        operand = call.args[0]
        callee = relax.ExternFunc("test.scalar_values.add")
        return relax.op.call_pure_packed(callee, operand, n, n + 1, ty_args=[call.ty])

    module = relax.dpl.PatternMatchingRewriter.from_pattern(pattern, counted)(builder.get())
    relax.analysis.well_formed(module)
    machine = relax.VirtualMachine(tvm.compile(module), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(X)).numpy(), X + 5 + 6)


def _float32(value):
    return tirx.const(float(value), "float32")


@pytest.mark.parametrize(
    "made, value",
    [
        (lambda: _float32(3e30) * 3e30, float("inf")),
        (lambda: _float32(3e30) * _float32(-3e30), float("-inf")),
        (lambda: _float32(3e30) / _float32(3e-30), float("inf")),
        (lambda: _float32(1) + float("-inf"), float("-inf")),
        (lambda: _float32(0.1) + _float32(0.2), float(np.float32(0.1) + np.float32(0.2))),
        (lambda: tirx.round(_float32(2.5)), 2.0),
        (lambda: tirx.nearbyint(_float32(3.5)), 4.0),
        (lambda: tirx.ceil(_float32(3.2)).astype("int32"), 4),
        (lambda: _float32(-3.7).astype("int8"), -3),
    ],
)
def test_two_numbers_with_a_point_are_one(made, value):
    assert made().value == value


def test_what_no_type_holds_is_left_to_the_machine():
    for number, dtype in ((300, "int8"), (-1, "uint8"), ("nan", "int32"), ("inf", "int64")):
        assert isinstance(_float32(number).astype(dtype), tirx.Cast)
    with pytest.raises(ValueError, match="divide by zero"):
        _float32(1) / _float32(0)


def test_whole_numbers_are_rounded_already():
    n = tirx.Var("n", "int32")
    for function in (tirx.round, tirx.nearbyint, tirx.trunc, tirx.ceil, tirx.floor):
        assert function(n).same_as(n) and function(tirx.const(7, "uint8")).value == 7
    assert not tirx.isnan(n).value and str(tirx.isnan(tirx.Var("v", "int8x2")).dtype) == "boolx2"
    assert str(tirx.isnan(tirx.Var("h", "float16"))) == 'T.isnan(T.Cast("float32", h))'


@pytest.mark.parametrize("number", [np.uint8(3), np.int16(-3), np.float64(0.5), np.float16(0.5), np.bool_(True)], ids=str)
def test_numbers_of_numpy_keep_their_type(number):
    literal = tirx.const(number)
    assert str(literal.dtype) == str(number.dtype) and literal.value == number
