"""Calls of functions from outside whose type a registered function tells."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import relax
from relaxide.script import ir as I
from relaxide.script import relax as R


@tvm.register_global_func("tests.derived_types.doubled_rows", override=True)
def doubled_rows(call, _builder):
    """Twice as many rows as the first argument has."""
    rows, *rest = call.args[0].ty.shape
    return relax.TensorType([rows * 2, *rest], call.args[0].ty.dtype)


@tvm.register_global_func("tests.derived_types.repeat", override=True)
def repeat(x):
    return tvm.runtime.tensor(np.concatenate([x.numpy(), x.numpy()]))


@I.ir_module
class Repeat:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32")):
        y = R.ExternFunc(
            "tests.derived_types.repeat", R.Callable(derive_func="tests.derived_types.doubled_rows", purity=True)
        )(x)
        return y


def test_the_type_of_a_call_is_what_the_rule_says():
    n = Repeat["main"].params[0].ty.shape[0]
    tvm.ir.assert_structural_equal(Repeat["main"].ret_ty, relax.TensorType([n * 2, 3], "float32"))


def test_its_text_is_read_back():
    assert 'R.Callable(derive_func="tests.derived_types.doubled_rows", purity=True)' in Repeat.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(Repeat.script()), Repeat)


def test_such_a_program_runs():
    machine = relax.VirtualMachine(tvm.compile(Repeat, "llvm"), tvm.cpu())
    x = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(machine["main"](tvm.runtime.tensor(x)).numpy(), np.concatenate([x, x]))


def test_the_rule_is_a_part_of_the_type():
    known = relax.FuncType.opaque_func(derive_func="tests.derived_types.doubled_rows", purity=True)
    same = relax.FuncType.opaque_func(derive_func=tvm.ir.EnvFunc.get("tests.derived_types.doubled_rows"), purity=True)
    tvm.ir.assert_structural_equal(known, same)
    assert known.derive_func.name == "tests.derived_types.doubled_rows"
    assert relax.FuncType.opaque_func(ret=relax.AnyType()).derive_func is None
    assert not tvm.ir.structural_equal(known, relax.FuncType.opaque_func(purity=True))


def test_a_rule_that_nobody_registered_is_named():
    ty = relax.FuncType.opaque_func(derive_func="tests.derived_types.nothing")
    with pytest.raises(ValueError, match="tests.derived_types.nothing.*not registered"):
        relax.Call(relax.ExternFunc("f", ty), [relax.const(1.0)])


def test_views_are_calls_with_a_rule_once_they_are_lowered():
    @R.function
    def halves(x: R.Tensor((4, 4), "float32")):
        y = R.memory.view(x, R.shape([8]), R.dtype("float32"), R.prim_value(32))
        return y

    lowered = relax.transform.LowerRuntimeBuiltin()(tvm.IRModule({"main": halves}))["main"]
    call = lowered.body.blocks[0].bindings[0].value
    assert call.op.global_symbol == "runtime.TVMTensorCreateView"
    assert call.op.ty.derive_func.name == "tvm.relax.type.infer_view_ty"
    tvm.ir.assert_structural_equal(relax.analysis.derive_call_ret_type(call.op.ty, call), relax.TensorType([8], "float32"))
