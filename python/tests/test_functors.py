"""Visitors, mutators, analyses and patterns in Python."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.relax.dpl import PatternContext, is_const, is_op, rewrite_bindings, rewrite_call, wildcard
from relaxide.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from relaxide.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((3, 3), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.add(b, b)
            R.output(c)
        return c

    @R.function
    def choose(p: R.Tensor((), "bool"), x: R.Tensor((3,), "float32")):
        if p:
            y = R.exp(x)
        else:
            y = R.negative(x)
        return y


def run(mod, name, *args):
    machine = relax.VirtualMachine(tvm.compile(mod), tvm.cpu())
    return machine[name](*[tvm.runtime.tensor(arg) for arg in args]).numpy()


def test_visitors_see_every_node():
    @visitor
    class Names(PyExprVisitor):
        def __init__(self):
            self.ops, self.defined, self.blocks = [], [], 0

        def visit_call_(self, op):
            super().visit_call_(op)
            self.ops.append(op.op.name)

        def visit_var_def_(self, var):
            self.defined.append(var.name_hint)

        def visit_dataflow_block_(self, block):
            self.blocks += 1
            super().visit_dataflow_block_(block)

    names = Names()
    for func in Module.functions.values():
        names.visit_expr(func)
    assert names.ops == ["relax.matmul", "relax.nn.relu", "relax.add", "relax.exp", "relax.negative"]
    assert names.defined[:3] == ["x", "w", "c"] and names.blocks == 1


def test_a_mutator_that_changes_nothing_keeps_the_nodes():
    @mutator
    class Nothing(PyExprMutator):
        pass

    for func in Module.functions.values():
        assert Nothing(Module).visit_expr(func).same_as(func)


def test_mutators_rebuild_what_changes():
    @mutator
    class Swap(PyExprMutator):
        def visit_call_(self, op):
            op = self.visit_expr_post_order(op)
            if op.op.name == "relax.nn.relu":
                shifted = self.builder_.emit(relax.op.add(op.args[0], relax.const(1.0)))
                return relax.op.nn.relu(shifted)
            if op.op.name == "relax.negative":
                return relax.op.abs(op.args[0])
            return op

    @tvm.transform.module_pass(opt_level=0)
    def swap(mod, ctx):
        rewriter = Swap(mod)
        for var, func in mod.functions.items():
            rewriter.builder_.update_func(var, rewriter.visit_expr(func))
        return rewriter.builder_.get()

    changed = swap(Module)
    relax.analysis.well_formed(changed)
    x, w = np.arange(6, dtype="float32").reshape(2, 3) - 4, np.eye(3, dtype="float32")
    np.testing.assert_allclose(run(changed, "main", x, w), 2 * np.maximum(x + 1, 0))
    v = np.array([-1, 2, -3], "float32")
    np.testing.assert_allclose(run(changed, "choose", np.array(False), v), np.abs(v))


def test_types_of_variables_follow_their_values():
    @mutator
    class Half(PyExprMutator):
        def visit_call_(self, op):
            op = self.visit_expr_post_order(op)
            return relax.op.astype(op.args[0], "float16") if op.op.name == "relax.nn.relu" else op

    made = Half(Module).visit_expr(Module["main"])
    assert made.ret_ty.dtype == "float16" and [b.var.ty.dtype for b in made.body.blocks[0].bindings][1:] == ["float16"] * 2


def test_functors_of_other_classes_are_refused():
    with pytest.raises(TypeError, match="does not derive"):
        visitor(int)
    with pytest.raises(NotImplementedError, match="visit_call_"):
        relax.ExprFunctor().visit_expr(Module["main"].body.blocks[0].bindings[0].value)


def test_analyses_answer():
    main, choose = Module["main"], Module["choose"]
    x, w = main.params
    assert relax.analysis.free_vars(main.body) == [x, w] and relax.analysis.free_vars(main) == []
    assert [v.name_hint for v in relax.analysis.bound_vars(main)] == ["x", "w", "a", "b", "c"]
    assert [v.name for v in relax.analysis.defined_symbolic_vars(main)] == ["n"]
    assert not relax.analysis.contains_impure_call(main)
    assert list(relax.analysis.name_to_binding(main)) == ["a", "b", "c"]
    values = relax.analysis.get_var2val(choose)
    assert [v.op.name for v in values.values() if isinstance(v, relax.Call)] == ["relax.exp", "relax.negative"]
    users = relax.analysis.udchain(main.body.blocks[0])
    assert [[u.name_hint for u in users[v]] for v in relax.analysis.bound_vars(main)[2:4]] == [["b"], ["c", "c"]] or [
        [u.name_hint for u in users[v]] for v in relax.analysis.bound_vars(main)[2:4]
    ] == [["b"], ["c"]]
    one, two = relax.TensorType([2, 3], "float32"), relax.TensorType(ndim=2, dtype="float32")
    assert relax.analysis.type_lca(one, relax.TensorType([2, 4], "float32")) == two
    assert relax.analysis.get_static_type(one) == two and two.is_base_of(one)
    seen = []
    relax.analysis.post_order_visit(main, lambda e: seen.append(type(e).__name__))
    assert seen[-1] == "Function" and seen.count("Call") == 3
    broken = relax.Function([x], relax.SeqExpr([], w))
    assert not relax.analysis.check_well_formed(broken)
    with pytest.raises(ValueError, match="not well-formed"):
        relax.analysis.well_formed(broken)


def test_patterns_are_matched_and_replaced():
    main = Module["main"]
    values = relax.analysis.get_var2val(main)
    x = wildcard()
    doubled = is_op("relax.add")(x, x)
    final = main.body.blocks[0].bindings[2].value
    parts = doubled.extract_matched_expr(final, values)
    assert doubled.match(final, values) and parts[doubled].op.name == "relax.add"
    assert not is_op("relax.add")(is_const(), wildcard()).match(final, values)
    made = rewrite_call(doubled, lambda call, parts: relax.op.multiply(call.args[0], relax.const(2.0)), main)
    assert "R.multiply" in made.script() and "R.add" not in made.script()

    def fails(call, parts):
        raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        rewrite_call(doubled, fails, main)


def test_contexts_match_whole_blocks():
    @R.function
    def both(x: R.Tensor((2, 3), "float32"), w0: R.Tensor((3, 4), "float32"), w1: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            a = R.matmul(x, w0)
            b = R.matmul(x, w1)
            c = R.add(a, b)
            R.output(c)
        return c

    with PatternContext() as context:
        data, left, right = wildcard(), wildcard(), wildcard()
        one, two = is_op("relax.matmul")(data, left), is_op("relax.matmul")(data, right)

    found = context.match_dfb(both.body.blocks[0])
    assert {found[one].name_hint, found[two].name_hint} == {"a", "b"} and found[data].same_as(both.params[0])

    def combine(found, values):
        wide = relax.op.concat([found[left], found[right]], axis=1)
        product = relax.op.matmul(found[data], wide)
        halves = relax.op.split(product, 2, axis=1)
        return {found[one]: relax.TupleGetItem(halves, 0), found[two]: relax.TupleGetItem(halves, 1)}

    made = rewrite_bindings(context, combine, both)
    assert made.script().count("R.matmul") == 1
    arrays = [np.random.rand(*[int(d) for d in p.ty.shape.values]).astype("float32") for p in both.params]
    result = run(tvm.IRModule({"main": made.with_attr("global_symbol", "main")}), "main", *arrays)
    np.testing.assert_allclose(result, arrays[0] @ arrays[1] + arrays[0] @ arrays[2], rtol=1e-5)


def test_patterns_drive_passes():
    pattern = is_op("relax.nn.relu")(is_op("relax.matmul")(wildcard(), wildcard()))
    made = relax.transform.FuseOpsByPattern([("mine.matmul_relu", pattern)])(Module)
    names = [var.name_hint for var in made.get_global_vars()]
    assert names == ["main", "choose", "fused_relax_matmul_relax_nn_relu"]
    assert made[names[-1]].attrs["Composite"] == "mine.matmul_relu"
    seen = []

    def check(context):
        seen.append((context.matched_expr.op.name, list(context.annotated_expr)))
        return False

    refused = relax.transform.FusionPattern("mine.matmul_relu", pattern, {"root": pattern}, check)
    same = relax.transform.FuseOpsByPattern([refused])(Module)
    tvm.ir.assert_structural_equal(same, Module)
    assert seen == [("relax.nn.relu", ["root"])]
