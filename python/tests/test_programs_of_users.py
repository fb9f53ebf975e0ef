"""What scripts that were written for TVM rely on: effects of packed calls, checks of results, values of the surroundings, bound parameters."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, tirx
from relaxide.error import InternalError
from relaxide.ir import assert_structural_equal
from relaxide.relax.dpl import PatternContext, is_call_dps_packed, is_call_tir
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T

MODES = ("bytecode", "compiled")


def machine(module, mode="bytecode"):
    return relax.VirtualMachine(relax.build(module, "llvm", exec_mode=mode), tvm.cpu())


def floats(*shape):
    return tvm.runtime.tensor(np.arange(np.prod(shape), dtype="float32").reshape(shape))


@tvm.register_global_func("test.users.copy_into", override=True)
def copy_into(source, target):
    target.copyfrom(source)
    return target


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", ["call_pure_packed", "call_inplace_packed"])
def test_a_packed_call_whose_result_nothing_uses_is_called(mode, call):
    b = relax.BlockBuilder()
    x, y = (relax.Var(name, relax.TensorType((3, 4), "float32")) for name in "xy")
    with b.function("main", [x, y]):
        extra = {} if call == "call_pure_packed" else {"inplace_indices": [1]}
        b.emit(getattr(relax.op, call)("test.users.copy_into", x, y, ty_args=relax.TensorType((3, 4), "float32"), **extra))
        b.emit_func_output(y)
    source, target = floats(3, 4), tvm.runtime.tensor(np.zeros((3, 4), "float32"))
    machine(b.get(), mode)["main"](source, target)
    np.testing.assert_array_equal(target.numpy(), source.numpy())


@I.ir_module
class Unused:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")):
        with R.dataflow():
            _ = R.call_pure_packed("test.users.missing", x, ty_args=(R.Tensor(ndim=2, dtype="float32"),))
            y = R.add(x, x)
            R.output(y)
        return y


def test_a_packed_call_of_a_dataflow_block_whose_result_nothing_uses_is_dropped():
    np.testing.assert_array_equal(machine(Unused)["main"](floats(3, 4)).numpy(), 2 * floats(3, 4).numpy())


@pytest.mark.parametrize("mode", MODES)
def test_a_result_of_which_the_function_says_more_than_its_body_is_checked(mode):
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(["n", "m"], "int32"), y: R.Any) -> R.Tensor(["m", "n"], dtype=None):
            return y

    main = machine(Module, mode)["main"]
    x = tvm.runtime.tensor(np.zeros((1, 2), "int32"))
    assert main(x, floats(2, 1)).shape == (2, 1)
    with pytest.raises(RuntimeError, match=r"the return value of `main` must be .*: dimension 0 is 1, not 2"):
        main(x, floats(1, 2))
    with pytest.raises(ValueError, match="the return value of `main` must be .*ndim"):
        main(x, floats(2, 1, 1))
    with pytest.raises(TypeError, match="the return value of `main`"):
        main(x, 3)


def test_a_cast_that_fails_is_called_by_its_name():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(dtype="float32")) -> R.Shape:
            n, m = T.int64(), T.int64()
            _ = R.match_cast(x, R.Tensor((n, m), "float32"))
            return R.shape([n * 2, m * 3])

    with pytest.raises(ValueError, match="match_cast: `x` must be .*ndim"):
        machine(Module)["main"](floats(1))


def test_a_call_with_too_few_arguments_is_the_error_that_tvm_raises():
    main = machine(Unused)["main"]
    for kind in (InternalError, RuntimeError, ValueError):
        with pytest.raises(kind, match="expects 1 arguments"):
            main()


def test_types_take_none_and_shapes_from_the_surroundings():
    shape, rank, dtype = None, 1, None

    @R.function
    def open_rank(x: R.Tensor(shape, ndim=rank, dtype=dtype), s: R.Shape(shape, ndim=rank)):
        R.func_attr({"global_symbol": "main"})
        y: R.Tensor(shape=shape, ndim=rank, dtype=dtype) = x
        return y

    @R.function
    def written(x: R.Tensor(ndim=1), s: R.Shape(ndim=1)):
        R.func_attr({"global_symbol": "main"})
        y: R.Tensor(ndim=1) = x
        return y

    assert_structural_equal(open_rank, written)


def test_a_type_whose_shape_is_a_value_has_the_rank_of_that():
    @R.function
    def main(x: R.Tensor(dtype="float32"), shape: R.Shape(ndim=2)):
        y = R.call_pure_packed("test.users.reshape", x, shape, ty_args=R.Tensor(shape, dtype="float32"))
        return y

    assert main.ret_ty.ndim == 2


def test_constants_and_operators_of_the_surroundings():
    values = np.array([[1, 2], [3, 4]], dtype="int32")

    @R.function
    def constant() -> R.Tensor((2, 2), "int32"):
        x: R.Tensor((2, 2), "int32") = R.const(np.array([[1, 2], [3, 4]], dtype="int32"), dtype="int32")
        return x

    @R.function
    def converted() -> R.Tensor((2, 2), "int64"):
        x = R.const(values, "int64")
        return x

    for function, dtype in ((constant, "int32"), (converted, "int64")):
        bound = function.body.blocks[0].bindings[0].value.data.numpy()
        assert bound.dtype == dtype
        np.testing.assert_array_equal(bound, values)

    @T.prim_func(s_tir=True)
    def kernel(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
        for i in range(4):
            B[i] = tvm.tirx.div(A[i], 3) + T.Call("tirx.shift_left", [A[i], 1], ret_ty="int32")

    given, result = tvm.runtime.tensor(np.array([-7, -1, 5, 9], "int32")), tvm.runtime.tensor(np.zeros(4, "int32"))
    tvm.compile(kernel, "llvm")["kernel"](given, result)
    np.testing.assert_array_equal(result.numpy(), [-2 - 14, -2, 1 + 10, 3 + 18])


def test_a_block_is_matched_through_tuples_of_arguments():
    @I.ir_module
    class Diamond:
        @T.prim_func(private=True, s_tir=True)
        def relu(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
            for i in range(8):
                B[i] = T.max(A[i], T.float32(0))

        @R.function
        def main(x: R.Tensor((8,), "float32")) -> R.Tensor:
            with R.dataflow():
                a = R.call_tir(Diamond.relu, (x,), R.Tensor((8,), "float32"))
                b = R.call_dps_packed("test.users.left", (a,), R.Tensor((8,), "float32"))
                c = R.call_dps_packed("test.users.right", (a,), R.Tensor((8,), "float32"))
                d = R.call_dps_packed("test.users.join", (b, c), R.Tensor((8,), "float32"))
                R.output(d)
            return d

    block = Diamond["main"].body.blocks[0]
    with PatternContext() as context:
        start, left, right, join = (
            is_call_tir("relu"),
            is_call_dps_packed("test.users.left"),
            is_call_dps_packed("test.users.right"),
            is_call_dps_packed("test.users.join"),
        )
        start ^ left
        start ^ right
        left >> join
        right >> join
        found = context.match_dfb(block)
        assert [found[part] for part in (start, left, right, join)] == [binding.var for binding in block.bindings]
    with PatternContext() as context:
        is_call_tir("relu") >> is_call_dps_packed("test.users.left")
        assert not context.match_dfb(block), "another call uses the value, too"


def test_parameters_that_are_shapes_and_scalars_are_bound():
    @R.function
    def shaped(s: R.Shape(ndim=1)):
        R.func_attr({"global_symbol": "main"})
        t: R.Shape(ndim=1) = s
        return t

    @R.function
    def bound_shape() -> R.Shape([16]):
        R.func_attr({"global_symbol": "main"})
        t = R.ShapeExpr([16])
        return t

    assert_structural_equal(shaped.bind_params({"s": relax.ShapeExpr([16])}), bound_shape)

    number = tvm.ir.PrimType("int64")
    n = relax.Var("n", number)
    data = relax.Var("data", relax.TensorType([n], "float32"))
    function = relax.Function([n, data], n, number)
    five = function.bind_params({n: tirx.const(5, "int64"), data: np.zeros(5, "float32")})
    assert not five.params
    assert_structural_equal(five.body.body, tirx.const(5, "int64"))
    with pytest.raises(ValueError, match="symbolic variable n is bound to two values"):
        function.bind_params({n: 5, data: np.zeros(7, "float32")})
    with pytest.raises(ValueError, match="value of n, a symbolic variable, must be"):
        function.bind_params({n: relax.const(np.array(5)), data: np.zeros(5, "float32")})


def test_what_uses_a_bound_parameter_of_an_open_type_is_typed_anew():
    values = np.arange(16).astype("float32")

    @R.function
    def open_type(a: R.Tensor(ndim=1)):
        R.func_attr({"global_symbol": "main"})
        b: R.Tensor(ndim=1) = a
        c = R.add(b, b)
        return c

    constant = relax.const(values)

    @R.function
    def known() -> R.Tensor([16], "float32"):
        R.func_attr({"global_symbol": "main"})
        b = constant
        c = R.add(b, b)
        return c

    assert_structural_equal(open_type.bind_params({"a": values}), known)
