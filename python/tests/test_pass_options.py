"""Options of passes with several entries, and what the passes do with them."""

import pytest

import relaxide as tvm
from relaxide import s_tir, tirx
from relaxide.s_tir.transform import HoistedConditionals, HoistedLetBindings
from relaxide.script import ir as I
from relaxide.script import tirx as T


@I.ir_module
class Loops:
    @T.prim_func
    def main(A: T.Buffer((64,), "float32")):
        for i in range(4):
            for j in range(2):
                A[i * 2 + j] = A[i * 2 + j] + T.float32(1)


def unrolled(**entries):
    with tvm.transform.PassContext(config={"tirx.UnrollLoop": entries}):
        return tirx.transform.UnrollLoop()(Loops)["main"].body


def test_loops_that_come_to_few_statements_are_unrolled():
    assert isinstance(unrolled(), tirx.For)
    assert isinstance(unrolled(auto_max_step=8), tirx.SeqStmt) and len(unrolled(auto_max_step=8)) == 8
    inner_only = unrolled(auto_max_step=2)
    assert isinstance(inner_only, tirx.For) and isinstance(inner_only.body, tirx.SeqStmt)


def test_loops_are_marked_where_they_are_not_to_be_unrolled():
    body = unrolled(auto_max_step=8, explicit_unroll=False)
    assert body.kind == body.body.kind == tirx.ForKind.UNROLLED


def test_an_attribute_asks_for_it_below():
    text = """
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    with T.attr(0, "pragma_auto_unroll_max_step", 8):
        for i in range(8):
            A[i] = T.float32(1)
    for i in range(8):
        A[i] = A[i] + T.float32(1)
"""
    func = tvm.script.from_source(text)
    body = tirx.transform.UnrollLoop()(tvm.IRModule.from_expr(func))["main"].body
    assert [isinstance(stmt, tirx.For) for stmt in body] == [False] * 8 + [True]


def test_a_context_holds_options_with_their_defaults():
    context = tvm.transform.PassContext(config={"tirx.UnrollLoop": {"auto_max_step": 10}})
    option = context.config["tirx.UnrollLoop"]
    assert (option.auto_max_step, option.auto_max_depth, option.explicit_unroll) == (10, 8, 1)
    assert isinstance(option, tirx.transform.UnrollLoopConfig)
    assert "auto_max_step=10" in repr(option)
    again = tvm.transform.PassContext(config={"tirx.UnrollLoop": tirx.transform.UnrollLoopConfig(auto_max_step=10)})
    assert again.config["tirx.UnrollLoop"] == option


def test_entries_that_do_not_exist_are_refused():
    with pytest.raises(TypeError, match="has no entry 'steps'"):
        tvm.transform.PassContext(config={"tirx.UnrollLoop": {"steps": 1}})
    with pytest.raises(AttributeError, match="is a dict"):
        tvm.transform.PassContext(config={"tirx.UnrollLoop": 1})
    with pytest.raises(ValueError, match="auto_max_step"):
        tvm.transform.PassContext(config={"tirx.UnrollLoop": {"auto_max_step": "many"}})


CHOICES = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32, m: T.int32):
    for i in range(16):
        A[i] = T.if_then_else(n < 3 and m < 4, T.float32(1), T.float32(2))
"""


def hoisted(text, conditionals, bindings=HoistedLetBindings.All):
    entries = {"hoisted_conditionals": conditionals.value, "hoisted_let_bindings": bindings.value}
    with tvm.transform.PassContext(config={"s_tir.HoistExpression": entries}):
        return s_tir.transform.HoistExpression()(tvm.IRModule.from_expr(tvm.script.from_source(text)))["main"]


def run(func, n, m):
    import numpy as np

    made = tvm.build(func, "llvm")
    A = tvm.runtime.tensor(np.zeros(16, "float32"))
    made["main"](A, n, m)
    return A.numpy().tolist()


@pytest.mark.parametrize("kinds", [HoistedConditionals.IfElseExpr, HoistedConditionals.BooleanExpression])
def test_choices_of_expressions_leave_loops(kinds):
    func = hoisted(CHOICES, kinds)
    assert isinstance(func.body, tirx.IfThenElse), func.script()
    for n, m in ((0, 0), (5, 0), (0, 5), (5, 5)):
        assert run(func, n, m) == [1.0 if n < 3 and m < 4 else 2.0] * 16


def test_choices_stay_where_nobody_asks():
    assert isinstance(hoisted(CHOICES, HoistedConditionals.Never).body, tirx.For)
    assert isinstance(hoisted(CHOICES, HoistedConditionals.IfElseStmt).body, tirx.For)


NAMES = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32, m: T.int32):
    for i in range(16):
        k: T.let[T.int32] = n * m
        A[i] = T.Cast("float32", k + i)
"""


def test_names_leave_loops_where_they_may():
    assert isinstance(hoisted(NAMES, HoistedConditionals.Never).body, tirx.SeqStmt)
    assert isinstance(hoisted(NAMES, HoistedConditionals.Never, HoistedLetBindings.Never).body, tirx.For)
    assert run(hoisted(NAMES, HoistedConditionals.All), 2, 3) == [6.0 + i for i in range(16)]


def test_conditions_leave_loops_over_threads_where_that_is_asked():
    text = """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), n: T.int32):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        if n < 3:
            A[i] = T.float32(1)
"""
    mod = tvm.IRModule.from_expr(tvm.script.from_source(text))
    assert isinstance(s_tir.transform.HoistIfThenElse()(mod)["main"].body, tirx.For)
    with tvm.transform.PassContext(config={"s_tir.HoistIfThenElse": {"support_block_scope_hoisting": True}}):
        assert isinstance(s_tir.transform.HoistIfThenElse()(mod)["main"].body, tirx.IfThenElse)


@pytest.mark.parametrize(
    "condition, options, simple",
    [
        ("n < 10 and n < 5", ["apply_constraints_to_boolean_branches"], "n < 5"),
        ("n < 5 or n < 10", ["apply_constraints_to_boolean_branches"], "n < 10"),
        ("n < m + 5 and n < m + 10", ["apply_constraints_to_boolean_branches", "transitively_prove_inequalities"], "n < m + 5"),
        ("n < m + 5 or n < m + 10", ["apply_constraints_to_boolean_branches", "transitively_prove_inequalities"], "n < m + 10"),
    ],
)
def test_sides_of_a_condition_are_simplified_under_each_other(condition, options, simple):
    def kernel(written):
        return tvm.script.from_source(f"""
@T.prim_func(private=True)
def main(A: T.Buffer((1,), "bool"), n: T.int32, m: T.int32):
    A[0] = {written}
""")

    mod = tvm.IRModule({"main": kernel(condition)})
    with tvm.transform.PassContext(config={"tirx.StmtSimplify": dict.fromkeys(options, True)}):
        made = tirx.transform.StmtSimplify()(mod)["main"]
    tvm.ir.assert_structural_equal(made, kernel(simple))


@pytest.mark.parametrize(
    "condition, simple",
    [
        ("n == 0 or (m == 1 and k == 2)", "(n == 0 or m == 1) and (n == 0 or k == 2)"),
        ("(n == 0 or m == 1) and (m == 1 or (n == 0 and k == 2))", "(n == 0 or m == 1) and (m == 1 or k == 2)"),
        ("(n == 0 or k == 20) and (k != 30 or n == 0)", "k == 20 or n == 0"),
        ("k == 20 and ((n == 0 or m == 10) and k != 30)", "(n == 0 or m == 10) and k == 20"),
        ("n == 20 or m == 0 or n != 30", "m == 0 or n != 30"),
    ],
)
def test_conditions_become_an_and_of_ors(condition, simple):
    def kernel(written):
        return tvm.script.from_source(f"""
@T.prim_func(private=True)
def main(A: T.Buffer((1,), "bool"), n: T.int32, m: T.int32, k: T.int32):
    A[0] = {written}
""")

    mod = tvm.IRModule({"main": kernel(condition)})
    with tvm.transform.PassContext(config={"tirx.StmtSimplify": {"convert_boolean_to_and_of_ors": True}}):
        made = tirx.transform.StmtSimplify()(mod)["main"]
    tvm.ir.assert_structural_equal(made, kernel(simple))
