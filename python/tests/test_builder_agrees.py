"""Programs that Python code builds and rewrites, with this package and with the reference: both end in the same program."""

import importlib.util
import sys
import textwrap

import pytest

import relaxide

reference = pytest.importorskip("tvm")

HEAD = """
import numpy as np
import PACKAGE as tvm
from PACKAGE import ir, relax, te, tirx
from PACKAGE.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from PACKAGE.script import ir as I
from PACKAGE.script import relax as R
from PACKAGE.script import tirx as T
"""

PROGRAMS = {
    "a multilayer perceptron": """
        n = tirx.Var("n", "int64")
        x = relax.Var("x", R.Tensor([n, 784], "float32"))
        w0, b0 = relax.Var("w0", R.Tensor([128, 784], "float32")), relax.Var("b0", R.Tensor([128], "float32"))
        w1, b1 = relax.Var("w1", R.Tensor([10, 128], "float32")), relax.Var("b1", R.Tensor([10], "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x, w0, b0, w1, b1]):
            with bb.dataflow():
                h = bb.emit(relax.op.matmul(x, relax.op.permute_dims(w0)) + b0)
                h = bb.emit(relax.op.nn.relu(h))
                y = bb.emit(relax.op.linear(h, w1, b1))
                out = bb.emit_output(relax.op.nn.softmax(y, axis=-1))
            bb.emit_func_output(out)
        result = bb.get()
        """,
    "two blocks and a tuple": """
        m, n = tirx.Var("m", "int64"), tirx.Var("n", "int64")
        x, y = relax.Var("x", R.Tensor([m, n], "float16")), relax.Var("y", R.Tensor([n], "float16"))
        bb = relax.BlockBuilder()
        with bb.function("func", [x, y]):
            with bb.dataflow():
                lv0 = bb.emit(relax.op.add(x, y))
                gv0 = bb.emit_output(relax.op.multiply(lv0, y))
            gv1 = bb.emit(relax.op.subtract(gv0, y))
            with bb.dataflow():
                lv1 = bb.emit(relax.op.exp(gv1))
                gv2 = bb.emit_output(relax.Tuple([lv1, gv1]))
            bb.emit_func_output(gv2)
        result = bb.get()
        """,
    "functions that call each other": """
        x = relax.Var("x", R.Tensor([4], "float32"))
        bb = relax.BlockBuilder()
        with bb.function("inner", [x]):
            gv = bb.emit_func_output(relax.op.add(x, x))
        y = relax.Var("y", R.Tensor([4], "float32"))
        with bb.function("outer", [y]):
            a = bb.emit(relax.Call(gv, [y]))
            b = bb.emit(gv(a))
            bb.emit_func_output(b)
        result = bb.get()
        """,
    "match_cast and shapes": """
        m = tirx.Var("m", "int64")
        n = tirx.Var("n", "int64")
        x = relax.Var("x", R.Tensor(ndim=2, dtype="float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            y = bb.match_cast(x, R.Tensor([m, n], "float32"))
            z = bb.emit(relax.op.reshape(y, [m * n]))
            s = bb.emit(relax.ShapeExpr([m * n, n]))
            bb.emit_func_output(relax.Tuple([z, s]))
        result = bb.get()
        """,
    "kernels described in te": """
        n = tirx.Var("n", "int64")
        x, y = relax.Var("x", R.Tensor([n, 16], "float32")), relax.Var("y", R.Tensor([16, 8], "float32"))
        def product(A, B):
            k = te.reduce_axis((0, 16), name="k")
            return te.compute((A.shape[0], 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="product")
        bb = relax.BlockBuilder()
        with bb.function("main", [x, y]):
            z = bb.emit_te(product, x, y)
            w = bb.emit_te(lambda A: te.compute(A.shape, lambda i, j: te.exp(A[i, j]) + 1.0, name="shifted"), z, primfunc_name_hint="shift")
            bb.emit_func_output(w)
        result = bb.get()
        """,
    "one kernel for two calls": """
        x = relax.Var("x", R.Tensor([16], "float32"))
        def double(A):
            return te.compute(A.shape, lambda i: A[i] * 2.0, name="double")
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            a = bb.emit_te(double, x)
            b = bb.emit_te(double, a)
            bb.emit_func_output(b)
        result = bb.get()
        """,
    "calls of functions outside": """
        x = relax.Var("x", R.Tensor([4, 4], "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x]):
            a = bb.emit(relax.call_dps_packed("test.op.identity", (x,), R.Tensor([4, 4], "float32")))
            b = bb.emit(relax.call_pure_packed("test.op.other", a, ty_args=R.Tensor([4, 4], "float32")))
            bb.emit_func_output(b)
        result = bb.get()
        """,
    "functions of nodes": """
        x = relax.Var("x", R.Tensor([2, 3], "float32"))
        cond = relax.Var("cond", R.Tensor([], "bool"))
        y = relax.Var("y", R.Tensor([2, 3], "float32"))
        t = relax.Var("t", R.Tensor([2, 3], "float32"))
        f = relax.Var("f", R.Tensor([2, 3], "float32"))
        then = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(t, relax.op.exp(x))])], t)
        other = relax.SeqExpr([relax.BindingBlock([relax.VarBinding(f, relax.op.negative(x))])], f)
        block = relax.BindingBlock([relax.VarBinding(y, relax.If(cond, then, other))])
        func = relax.Function([cond, x], relax.SeqExpr([block], y), R.Tensor([2, 3], "float32"))
        func = func.with_attr("global_symbol", "main")
        result = tvm.IRModule({"main": relax.transform.Normalize()(tvm.IRModule({"main": func}))["main"]}) if "tvm" == tvm.__name__ else tvm.IRModule({"main": func})
        """,
    "a mutator of calls": """
        @I.ir_module
        class Module:
            @R.function
            def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
                with R.dataflow():
                    a = R.add(x, y)
                    b = R.nn.relu(a)
                    c = R.multiply(b, y)
                    R.output(c)
                return c
        @mutator
        class Sigmoid(PyExprMutator):
            def visit_call_(self, call):
                call = self.visit_expr_post_order(call)
                if call.op == ir.Op.get("relax.nn.relu"):
                    return relax.op.multiply(call.args[0], relax.op.sigmoid(call.args[0]))
                return call
        rewriter = Sigmoid(Module)
        func = rewriter.visit_expr(Module["main"])
        rewriter.builder_.update_func(Module.get_global_var("main"), func)
        result = rewriter.builder_.get()
        """,
    "a mutator that emits": """
        @R.function
        def main(x: R.Tensor((3, 4), "float32")):
            y = R.exp(x)
            z = R.add(y, y)
            return z
        @mutator
        class Check(PyExprMutator):
            def visit_call_(self, call):
                if call.op == ir.Op.get("relax.exp"):
                    clipped = self.builder_.emit(relax.op.clip(call.args[0], 0, 10))
                    return relax.op.exp(clipped)
                return call
        result = Check().visit_expr(main)
        """,
    "operators on expressions": """
        x, y = relax.Var("x", R.Tensor([2, 3], "float32")), relax.Var("y", R.Tensor([2, 3], "float32"))
        bb = relax.BlockBuilder()
        with bb.function("main", [x, y]):
            a = bb.emit(x + y)
            b = bb.emit(a - y)
            c = bb.emit(b * x)
            d = bb.emit(c / y)
            e = bb.emit(-d)
            f = bb.emit(e ** y)
            g = bb.emit(f > x)
            h = bb.emit(f.astype("float16"))
            bb.emit_func_output(relax.Tuple([g, h]))
        result = bb.get()
        """,
    "a private function and attributes": """
        x = relax.Var("x", R.Tensor([2], "float32"))
        bb = relax.BlockBuilder()
        with bb.function("hidden", [x], attrs={"level": 3}, private=True):
            bb.emit_func_output(relax.op.abs(x))
        with bb.function("impure", [x], pure=False):
            bb.emit(relax.Call(relax.ExternFunc("test.print"), [x], ty_args=[R.Tuple([])]))
            bb.emit_func_output(x)
        result = bb.get()
        """,
}


def run(package, text, folder):
    path = folder / f"built_{package}.py"
    path.write_text(HEAD.replace("PACKAGE", package) + textwrap.dedent(text))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.result


@pytest.mark.parametrize("name", PROGRAMS)
def test_built_programs_are_those_of_the_reference(name, tmp_path):
    ours, theirs = (run(package, PROGRAMS[name], tmp_path) for package in ("relaxide", "tvm"))
    expected = relaxide.script.from_source(theirs.script(show_meta=True))
    found = ours
    if not isinstance(ours, relaxide.IRModule):
        # The text of one function is that function.
        relaxide.ir.assert_structural_equal(found, expected)
        return
    if relaxide.ir.structural_equal(found, expected):
        return
    # The order of functions in a module is no part of it.
    assert set(found.functions) == set(expected.functions), f"{found}\n{expected}"
    for var, func in expected.functions.items():
        relaxide.ir.assert_structural_equal(found[var], func)
