"""Forms of programs and passes that TVM's own programs use."""

import numpy as np
import pytest
from relaxide import relax
from relaxide.script import ir as I
from relaxide.script import relax as R


def test_a_dataflow_block_may_end_with_the_return():
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, y)
            return z

    @R.function
    def same(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, y)
            R.output(z)
        return z

    assert main.body.script() == same.body.script()


def test_allocations_take_the_name_of_a_dtype():
    @R.function(pure=False)
    def main():
        storage = R.memory.alloc_storage(R.shape([24]), virtual_device_index=0, storage_scope="global", dtype="float32")
        return R.memory.alloc_tensor(storage, 0, R.shape([2, 3]), dtype="float32")

    assert str(main.ret_ty) == 'R.Tensor((2, 3), dtype="float32")'


def test_a_bare_tuple_says_nothing_of_the_result():
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple:
        return (x, x)

    assert len(main.ret_ty.fields) == 2


def test_binding_a_parameter_binds_its_dimensions():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n",), "float32")):
            y = R.add(x, x)
            return y

    bound = relax.transform.BindParams("main", {"x": np.zeros(16, "float32")})(Module)
    assert str(bound["main"].ret_ty) == 'R.Tensor((16,), dtype="float32")'


def test_checks_may_leave_out_which_value_they_are_of():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            R.func_attr({"relax.force_pure": True})
            return x

    told = relax.transform.VMShapeLower()(Module).script()
    assert "ErrorContext" in told
    assert "ErrorContext" not in relax.transform.VMShapeLower(emit_err_ctx=False)(Module).script()


def test_functions_are_inlined_by_name():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            y = Module.twice(x)
            return R.exp(y)

        @R.function
        def twice(x: R.Tensor((4,), "float32")):
            y = R.add(x, x)
            return y

        @R.function
        def forever(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            y = Module.forever(x)
            return y

    text = Module["main"].inline_functions({"twice": Module["twice"]}).script()
    assert "R.add(x, x)" in text and "twice" not in text
    with pytest.raises(ValueError, match="have no end"):
        Module["main"].inline_functions({"forever": Module["forever"]})
    with pytest.raises(ValueError, match="given twice"):
        Module["main"].inline_functions({"twice": Module["twice"], Module.get_global_var("twice"): Module["twice"]})


def test_operators_have_gradients():
    add = relax.op.add(relax.Var("x", R.Tensor((4,), "float32")), relax.Var("y", R.Tensor((4,), "float32")))
    builder = relax.BlockBuilder()
    result, grad = relax.Var("r", R.Tensor((4,), "float32")), relax.Var("g", R.Tensor((4,), "float32"))
    grads = add.op.get_attr("FPrimalGradient")(result, add, grad, builder)
    assert [value.same_as(grad) for value in grads] == [True, True]
    assert relax.op.floor(grad).op.get_attr("FPurity")
