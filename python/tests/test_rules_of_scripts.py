"""What TVMScript takes and refuses in Relax functions, read from Python."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import relax
from relaxide.error import ScriptError
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


def read(text):
    return tvm.script.from_source(text)


def test_a_scalar_parameter_is_a_dimension_of_those_behind_it():
    func = read(
        """
@R.function
def main(n: R.Prim("int64"), x: R.Tensor([n], "float32"), y: R.Tensor(["n + 1"], "float32"), s: R.Shape(["n"])) -> R.Tensor([n], "float32"):
    z = R.add(x, x)
    return z
"""
    )
    n, x, y, s = func.params
    assert x.ty.shape[0].same_as(n) and s.ty.values[0].same_as(n) and func.ret_ty.shape[0].same_as(n)
    assert y.ty.shape[0].a.same_as(n)
    tvm.ir.assert_structural_equal(read(func.script()), func)


def test_such_a_dimension_is_checked_when_the_program_runs():
    module = read(
        """
@I.ir_module
class Module:
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor([n], "float32")):
        y = R.add(x, x)
        return y
"""
    )
    main = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())["main"]
    x = tvm.runtime.tensor(np.ones(3, "float32"))
    np.testing.assert_array_equal(main(3, x).numpy(), np.full(3, 2, "float32"))
    with pytest.raises(ValueError, match="dimension 0 is 3, not 4"):
        main(4, x)


def test_a_local_function_has_scalar_dimensions_of_its_own():
    func = read(
        """
@R.function
def main(n: R.Prim("int64"), x: R.Tensor([n], "float32")):
    @R.function
    def again(count: R.Prim("int64"), value: R.Tensor([count], "float32")) -> R.Tensor([count], "float32"):
        return again(count, value)

    y = again(n, x)
    return y
"""
    )
    inner = func.body.blocks[0].bindings[0].value
    assert inner.params[1].ty.shape[0].same_as(inner.params[0])


def refused(text, message):
    with pytest.raises(ScriptError, match=message):
        read(text)


def test_a_result_without_other_effect_is_used_or_left_out():
    refused("@R.function\ndef main(x: R.Tensor):\n    R.add(x, x)\n    return x\n", "nobody uses the result")


DATAFLOW = """
@R.function
def main(x: R.Tensor((2,), "float32")):
    with R.dataflow():
        y = R.add(x, x)
        R.output(y)
        {}
    return y
"""


@pytest.mark.parametrize("last, message", [("z = R.add(y, y)", "nothing is bound behind"), ("R.output(y)", "stands once")])
def test_output_ends_a_dataflow_block(last, message):
    refused(DATAFLOW.format(last), message)


@pytest.mark.parametrize(
    "annotation, message", [("R.Tensor(16)", "write \\(16,\\)"), ('R.Tensor(dtype="float32", ndim=-2)', "ndim is -2")]
)
def test_shapes_are_tuples_and_ranks_are_not_negative(annotation, message):
    refused(f"@R.function\ndef main(x: {annotation}):\n    return x\n", message)


def test_a_private_function_has_no_symbol_of_its_own():
    refused(
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def main(x: R.Tensor((), "int32")):
        R.func_attr({"global_symbol": "main"})
        return x
""",
        "private function has no `global_symbol`",
    )


def test_branches_may_end_with_what_gives_nothing():
    @R.function(pure=False)
    def bound(x: R.Tensor((), "int32"), condition: R.Tensor((), "bool")):
        if condition:
            y = R.print(x, format="yes {}")
        else:
            y = R.print(x, format="no {}")
        return x

    @R.function(pure=False)
    def unbound(x: R.Tensor((), "int32"), condition: R.Tensor((), "bool")):
        if condition:
            R.print(x, format="yes {}")
        else:
            R.print(x, format="no {}")
        return x

    tvm.ir.assert_structural_equal(unbound.without_attr("global_symbol"), bound.without_attr("global_symbol"))


def test_a_function_by_itself_may_call_those_of_its_surroundings():
    @I.ir_module
    class Module:
        @R.function
        def square(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.multiply(x, x)
            return y

    square = Module.get_global_var("square")

    @R.function
    def main(x: R.Tensor((2,), "float32")):
        y = square(x)
        return y

    Module["main"] = main
    x = tvm.runtime.tensor(np.array([2, 3], "float32"))
    machine = relax.VirtualMachine(tvm.compile(Module, "llvm"), tvm.cpu())
    np.testing.assert_array_equal(machine["main"](x).numpy(), [4, 9])


def test_a_declared_scalar_may_say_its_type_twice():
    @R.function
    def main(x: R.Tensor(["N"], "float32")):
        N: R.Prim("int64") = T.int64()
        y = R.reshape(x, R.shape([I.meta_var(N)]))
        return y

    assert main.params[0].ty.shape[0].same_as(main.ret_ty.shape[0])
    assert I.meta_var is T.meta_var
    refused('@R.function\ndef main():\n    n: R.Prim("float32") = T.int64()\n    return n\n', "declared as int64")


def test_modules_share_more_than_devices():
    @I.ir_module
    class Module:
        I.module_global_infos({"vdevice": [I.vdevice("llvm")], "mine": [I.dummy_global_info(), I.dummy_global_info()]})

        @R.function
        def main(x: R.Tensor):
            return x

    assert [len(infos) for infos in Module.global_infos.values()] == [1, 2]
    tvm.ir.assert_structural_equal(read(Module.script()), Module)
    fewer = Module.clone()
    fewer.update_global_info("mine", [relax.DummyGlobalInfo()])
    assert not tvm.ir.structural_equal(fewer, Module)


@pytest.mark.parametrize("loop", ["serial", "parallel", "vectorized", "unroll"])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_a_counter_of_another_type_is_refused_in_python_too(loop, dtype):
    with pytest.raises(ValueError, match='must be "int32" or "uint32"'):
        getattr(T, loop)(4, dtype=dtype)
    getattr(T, loop)(4, dtype="uint32")


@pytest.mark.parametrize("make", [lambda: T.thread_binding(0, 8, "threadIdx.x", dtype="int32"), lambda: T.alloc_buffer((1,), name="b")])
def test_arguments_that_are_not_there_are_refused_in_python_too(make):
    with pytest.raises(TypeError):
        make()


def test_a_kind_of_types_stands_for_a_result():
    tvm.ir.assert_structural_equal(R.Callable([R.Tensor((2,))], R.Tuple), R.Callable([R.Tensor((2,))], R.Tuple()))


def test_a_symbol_that_is_not_the_name_is_no_form():
    mod = tvm.script.from_source(
        "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((2,))):\n        return x\n"
    )
    assert relax.analysis.check_well_formed(mod)
    mod["main"] = mod["main"].with_attr("global_symbol", "other")
    assert not relax.analysis.check_well_formed(mod)
    with pytest.raises(ValueError, match="has the symbol `other`"):
        relax.analysis.well_formed(mod)
    relax.analysis.well_formed(relax.transform.NormalizeGlobalVar()(mod))


def test_a_view_is_told_its_type_by_name():
    x = relax.Var("x", R.Tensor((8,), "float32"))
    call = relax.op.memory.view(x, [2, 4], "int32")
    assert call.args[2].value == "int32" and [int(dim) for dim in call.args[1].values] == [2, 4]
    assert len(relax.op.memory.view(x).args[1].fields) == 0


@pytest.mark.parametrize("value", ["tuple", "constant"])
def test_a_checkpoint_is_about_what_is_computed(value):
    x = relax.Var("x", R.Tensor((2,), "float32"))
    given = {"tuple": (x, x), "constant": relax.const(1.0)}[value]
    with pytest.raises(TypeError, match="a variable, or a call"):
        relax.op.grad.start_checkpoint(given)
    relax.op.grad.end_checkpoint(x + x)
