"""Derivatives that a program says itself."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, te
from relaxide.ir import Op
from relaxide.relax.op import register_gradient
from relaxide.relax.training.utils import register_te_gradient
from relaxide.script import ir as I
from relaxide.script import relax as R


def run(mod, *args):
    made = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    result, grads = made["main_adjoint"](*(tvm.runtime.tensor(np.asarray(arg, "float32")) for arg in args))
    return result.numpy(), [grad.numpy() for grad in grads]


@I.ir_module
class Rounded:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((), "float32"):
        with R.dataflow():
            y = R.round(x)
            z = R.sum(y)
            R.output(z)
        return z


def test_an_operator_is_given_a_derivative():
    def straight_through(orig_var, orig_call, output_grad, ctx):
        assert orig_call.op == Op.get("relax.round") and orig_var.name == "y"
        return [relax.op.multiply(output_grad, relax.const(2.0))]

    register_gradient("relax.round", straight_through, level=11)
    try:
        result, grads = run(relax.transform.Gradient("main")(Rounded), [0.4, 1.6, 2.0])
        assert result == 4 and grads[0].tolist() == [2, 2, 2]
    finally:
        Op.get("relax.round").reset_attr("FPrimalGradient")


def test_no_gradient_flows_where_that_is_said():
    register_gradient("relax.round", lambda var, call, grad, ctx: [relax.op.grad.no_grad(call.args[0])], level=11)
    try:
        assert run(relax.transform.Gradient("main")(Rounded), [1, 2, 3])[1][0].tolist() == [0, 0, 0]
    finally:
        Op.get("relax.round").reset_attr("FPrimalGradient")


def test_a_derivative_of_the_compiler_is_not_replaced_by_accident():
    with pytest.raises(ValueError, match="level above"):
        register_gradient("relax.add", lambda *given: [])


def test_errors_of_a_derivative_are_the_programs():
    def broken(*given):
        raise KeyError("broken on purpose")

    register_gradient("relax.round", broken, level=11)
    try:
        with pytest.raises(KeyError, match="broken on purpose"):
            relax.transform.Gradient("main")(Rounded)
        Op.get("relax.round").reset_attr("FPrimalGradient")
        register_gradient("relax.round", lambda *given: [], level=11)
        with pytest.raises(ValueError, match="0 gradients for 1 arguments"):
            relax.transform.Gradient("main")(Rounded)
    finally:
        Op.get("relax.round").reset_attr("FPrimalGradient")


def product(a, b):
    return te.compute(a.shape, lambda i: a[i] * b[i], name="product")


def test_kernels_have_derivatives():
    @register_te_gradient("product_grad")
    def product_grad(grad, a, b, factor=1.0):
        return [
            te.compute(a.shape, lambda i: grad[i] * b[i] * factor, name="by_a"),
            te.compute(b.shape, lambda i: grad[i] * a[i] * factor, name="by_b"),
        ]

    bb = relax.BlockBuilder()
    x, y = (relax.Var(name, R.Tensor((3,), "float32")) for name in "xy")
    with bb.function("main", [x, y]):
        with bb.dataflow():
            made = bb.emit(bb.call_te_with_grad(product, x, y, te_grad_name="product_grad", te_grad_kwargs={"factor": 3.0}))
            out = bb.emit_output(relax.op.sum(made))
        bb.emit_func_output(out)
    mod = bb.get()
    result, (by_x, by_y) = run(relax.transform.Gradient("main")(mod), [1, 2, 3], [4, 5, 6])
    assert result == 32 and by_x.tolist() == [12, 15, 18] and by_y.tolist() == [3, 6, 9]


def test_a_derivative_that_nobody_registered_is_named():
    bb = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((3,), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(relax.op.sum(bb.emit(bb.call_te_with_grad(product, x, x, te_grad_name="nobody"))))
        bb.emit_func_output(out)
    with pytest.raises(ValueError, match="no derivative 'nobody' is registered"):
        relax.transform.Gradient("main")(bb.get())


def test_variables_in_between_have_derivatives():
    @I.ir_module
    class Chain:
        @R.function
        def main(x: R.Tensor((3,), "float32")) -> R.Tensor((), "float32"):
            with R.dataflow():
                y = R.multiply(x, x)
                z = R.sum(y)
                R.output(z)
            return z

    _, grads = run(relax.transform.Gradient("main", ["x", "y"])(Chain), [1, 2, 3])
    assert grads[0].tolist() == [2, 4, 6] and grads[1].tolist() == [1, 1, 1]


def test_pipelines_ask_how_an_operator_is_lowered():
    asked = []

    @relax.transform.register_legalize("relax.round")
    def lower(bb, call):
        asked.append(call)
        return bb.call_te(lambda x: te.compute(x.shape, lambda i: x[i] + te.const(1.0, "float32"), name="other"), call.args[0])

    try:
        made = relax.VirtualMachine(tvm.compile(Rounded, "llvm"), tvm.cpu())
        assert asked and made["main"](tvm.runtime.tensor(np.array([1, 2, 3], "float32"))).numpy() == 9
        assert len(relax.get_pipeline("zero")(Rounded).functions) == 2 and len(asked) > 1
    finally:
        Op.get("relax.round").reset_attr("FLegalize")
    made = relax.VirtualMachine(tvm.compile(Rounded, "llvm"), tvm.cpu())
    assert made["main"](tvm.runtime.tensor(np.array([1, 2, 3], "float32"))).numpy() == 6
