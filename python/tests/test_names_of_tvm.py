"""Names of TVM's package that stand for what is also here under another, and small things of their own."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import ir, relax, s_tir, te, tirx
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


def test_tensors_say_what_computes_them():
    A = te.placeholder((4, 3), name="A")
    k = te.reduce_axis((0, 3), name="k")
    B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((4,), lambda i: B[i] + B[3 - i] + A[i, 0], name="C")
    state = te.placeholder((4,), name="state")
    first = te.compute((1,), lambda i: C[0], name="first")
    S = te.scan(first, te.compute((4,), lambda t: state[t - 1] + C[t], name="next"), state, name="S")
    E = te.extern((4,), [C], lambda ins, outs: tirx.Evaluate(tirx.call_packed("f", ins[0], outs[0])), name="E", dtype="float32")
    kinds = {A: te.PlaceholderOp, B: te.ComputeOp, C: te.ComputeOp, S: te.ScanOp, E: te.ExternOp}
    assert all(isinstance(tensor.op, kind) for tensor, kind in kinds.items())
    assert isinstance(B.op, te.tensor.BaseComputeOp)
    assert A.op.input_tensors == [] and B.op.input_tensors == [A] and C.op.input_tensors == [B, A] and E.op.input_tensors == [C]
    assert isinstance(A, te.tensor.TensorOpBase) and str(A.expr_ty()) == "float32"
    assert str(A[0].expr_ty()) == "float32" and isinstance(A[0][1].equal(A[1][1]), tirx.EQ)


def test_axes_and_scalars_have_types():
    axis = tirx.IterVar((0, 4), "i", tirx.IterVar.DataPar)
    assert str(axis.expr_ty()) == "int32" and str((axis.var + 1).expr_ty()) == "int32"
    with pytest.raises(TypeError, match="a scalar has a type"):
        relax.Var("x", R.Tensor((2,), "float32")).expr_ty()


def test_loads_and_regions_name_their_source():
    A = tirx.decl_buffer((4,), "float32", name="A")
    assert isinstance(A[1], ir.TensorLoad) and A[1].source.same_as(A)
    region = tirx.BufferRegion(A, [ir.Range(0, 4)])
    assert isinstance(region, ir.TensorRegion) and region.source.same_as(A)


def test_a_function_of_the_registry_is_saved_by_its_name():
    tvm.register_global_func("test.names.add_one", lambda x: x + 1, override=True)
    function = ir.EnvFunc.get("test.names.add_one")
    again = ir.load_json(ir.save_json(function))
    assert again.name == function.name == "test.names.add_one"
    assert again(1) == again.func(1) == 2
    with pytest.raises(ValueError):
        ir.EnvFunc.get("test.names.nobody")


def test_operators_are_described():
    op = ir.Op.get("relax.matmul")
    assert [argument.name for argument in op.arguments][:2] == ["x1", "x2"] and op.num_inputs == 2
    other = ir.Op.get("relax.logical_xor")
    before = len(other.arguments)
    other.add_argument("more", "Tensor", "One more.")
    other.set_num_inputs(3)
    other.set_support_level(1)
    other.set_attrs_type_key("relax.attrs.None")
    assert other.arguments[before].description == "One more." and len(ir.Op.get("relax.logical_xor").arguments) == before + 1
    assert (other.num_inputs, other.support_level, other.attrs_type_key) == (3, 1, "relax.attrs.None")


def test_tags_stand_for_targets():
    tags = tvm.target.list_tags()
    assert tags["nvidia/nvidia-a100"].kind.name == "cuda" and "wasm" in tags
    made = tvm.target.register_tag("test/board", {"kind": "llvm", "mcpu": "cortex-a53", "mtriple": "aarch64-linux-gnu"})
    assert made.attrs["mcpu"] == "cortex-a53" and tvm.target.Target("test/board") == made
    with pytest.raises(ValueError, match="override=True"):
        tvm.target.register_tag("test/board", {"kind": "c"})
    assert tvm.target.register_tag("test/board", {"kind": "c"}, override=True).kind.name == "c"
    with pytest.raises(ValueError):
        tvm.target.register_tag("test/none", {"kind": "no kind"})


def test_functions_from_outside_have_types():
    ty = relax.FuncType([R.Tensor((2,), "float32")], R.Tensor((3,), "float32"))
    assert relax.ExternFunc("f", ty).ty == ty
    func = tvm.script.from_source(
        """
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((3,), "float32"):
    y = R.ExternFunc("f", R.Callable((R.Tensor((2,), "float32"),), R.Tensor((3,), "float32")))(x)
    return y
"""
    )
    again = tvm.script.from_source(func.script())
    tvm.ir.assert_structural_equal(func, again)
    assert str(again.body.blocks[0].bindings[0].var.ty) == 'R.Tensor((3,), dtype="float32")'
    tvm.register_global_func("f", lambda x: tvm.runtime.tensor(np.append(x.numpy(), 7).astype("float32")), override=True)
    vm = relax.VirtualMachine(tvm.compile(tvm.IRModule({"main": func}), "llvm"), tvm.cpu())
    assert vm["main"](tvm.runtime.tensor(np.array([1, 2], "float32"))).numpy().tolist() == [1, 2, 7]


def test_functions_from_outside_are_functions_of_a_builder():
    bb = relax.BlockBuilder()
    var = bb.add_func(relax.extern("f"), "outside")
    assert isinstance(bb.get()[var], relax.ExternFunc)


def test_symbolic_variables_are_bound_themselves():
    n, m = (tirx.Var(name, "int64") for name in "nm")

    @R.function(private=True)
    def func(x: R.Tensor((n, m), "float32")) -> R.Tensor((n, m), "float32"):
        return x

    twice = func.bind_symbolic_vars({n: m * 2})
    assert [str(dim) for dim in twice.params[0].ty.shape] == ["m * T.int64(2)", "m"]
    with pytest.raises(RuntimeError, match="no such symbolic variable"):
        func.bind_symbolic_vars({tirx.Var("n", "int64"): 4})
    with pytest.raises(RuntimeError, match="two values"):
        func.bind_symbolic_vars({n: 4, "n": 4})
    other = tirx.Var("n", "int64")

    @R.function(private=True)
    def both(x: R.Tensor((n, other), "float32")) -> R.Tensor((n, other), "float32"):
        return x

    with pytest.raises(RuntimeError, match="several"):
        both.bind_symbolic_vars({"n": 4})
    assert [str(dim) for dim in both.bind_symbolic_vars({other: 4}).params[0].ty.shape] == ["n", "T.int64(4)"]


def test_variables_are_declared_among_values():
    func = tvm.script.from_source(
        """
@R.function
def main(x: R.Tensor(("n", "m"), "float32")):
    n, k, m = T.int64(), T.int64(4), T.int64()
    y = R.reshape(x, (m, n))
    return y
"""
    )
    assert [dim.name for dim in func.body.blocks[0].bindings[0].var.ty.shape] == ["m", "n"]


def test_views_do_not_reach_beyond_their_tensor():
    x = relax.Var("x", R.Tensor(("n",)))
    n = x.ty.shape[0]
    with pytest.raises(ValueError, match="beyond"):
        relax.op.memory.view(x, R.shape([n + 1]))
    with pytest.raises(ValueError, match="beyond"):
        relax.op.memory.view(relax.Var("x", R.Tensor((16,))), R.shape([4, 5]))
    with pytest.raises(ValueError, match="behind the first"):
        relax.op.memory.view(relax.Var("x", R.Tensor()), relative_byte_offset=relax.prim_value(16))
    assert relax.op.memory.view(x, R.shape([n])).ty.ndim == 1


def test_a_dimension_is_sliced_once():
    x = relax.Var("x", R.Tensor((8, 9), "float32"))
    with pytest.raises(ValueError, match="sliced twice"):
        relax.op.strided_slice(x, axes=[0, -2], begin=[0, 0], end=[8, 8])


def test_the_pipeline_of_kernels_is_a_pass():
    @I.ir_module
    class Kernel:
        @T.prim_func
        def main(A: T.Buffer((8,), "float32")):
            for i in T.vectorized(8):
                with T.sblock("b"):
                    vi = T.axis.spatial(8, i)
                    A[vi] = A[vi] + T.float32(1)

    lower, of_host, of_devices = tirx.get_tir_pipeline("default")
    lowered = of_devices()(of_host()(lower(Kernel)))
    assert "sblock" not in lowered.script()
    seen = []

    @tvm.transform.module_pass(opt_level=0)
    def look(mod, ctx):
        seen.append([var.name_hint for var in mod.get_global_vars()])
        return mod

    tirx.register_tir_pipeline("look", lambda: (look, of_host, of_devices))
    for pipeline in ("look", look):
        made = tvm.compile(Kernel, "llvm", tir_pipeline=pipeline)
        A = tvm.runtime.tensor(np.zeros(8, "float32"))
        made["main"](A)
        assert A.numpy().tolist() == [1.0] * 8
    assert seen == [["main"], ["main"]]
    with pytest.raises(ValueError, match="there is no pipeline 'none'"):
        tirx.get_tir_pipeline("none")


def test_modules_are_parted_by_targets():
    text = "@T.prim_func\ndef {name}(A: T.Buffer((1,), 'float32')):\n    T.func_attr({attrs})\n    A[0] = T.float32({value})\n"
    funcs = {
        name: tvm.script.from_source(text.format(name=name, attrs=attrs, value=value))
        for name, attrs, value in (("host", "{}", 1), ("device", '{"target": "cuda"}', 2))
    }
    from relaxide.tirx.build import split_host_device_mods, tir_to_runtime

    host, devices = split_host_device_mods(tvm.IRModule(funcs))
    assert [var.name_hint for var in host.get_global_vars()] == ["host"]
    assert [(target.kind.name, [v.name_hint for v in mod.get_global_vars()]) for target, mod in devices.items()] == [("cuda", ["device"])]
    made = tir_to_runtime(host, {}, tvm.target.Target("llvm"))
    A = tvm.runtime.tensor(np.zeros(1, "float32"))
    made["host"](A)
    assert A.numpy()[0] == 1


def test_patterns_of_one_shape():
    from relaxide.relax.dpl import PatternContext, SameShapeConstraint, wildcard

    with PatternContext():
        a, b = wildcard(), wildcard()
        assert isinstance(a.same_shape_as(b), SameShapeConstraint)
    with pytest.raises(ValueError, match="with PatternContext"):
        SameShapeConstraint(wildcard(), wildcard())


def test_a_rule_for_rows_of_processors():
    A = te.placeholder((32, 64), name="A")
    from relaxide import topi

    func = te.create_prim_func([A, topi.nn.softmax(A)]).with_attr("global_symbol", "main")
    with tvm.target.Target("llvm -mcpu=x86-64-v3"):
        scheduled = s_tir.dlight.ApplyDefaultSchedule(s_tir.dlight.cpu.Reduction())(tvm.IRModule.from_expr(func))
    text = scheduled.script()
    assert text.count("T.parallel") == 1 and "T.vectorized" in text and "pragma_auto_unroll_max_step" in text
    a, out = tvm.runtime.tensor(np.random.rand(32, 64).astype("float32")), tvm.runtime.tensor(np.zeros((32, 64), "float32"))
    tvm.build(scheduled, "llvm")["main"](a, out)
    wanted = np.exp(a.numpy()) / np.exp(a.numpy()).sum(-1, keepdims=True)
    np.testing.assert_allclose(out.numpy(), wanted, rtol=1e-5)
    plus = te.create_prim_func([A, te.compute((32, 64), lambda i, j: A[i, j] + 1)])
    assert s_tir.dlight.cpu.Reduction().apply(plus, tvm.target.Target("llvm"), False) is None


def test_variables_of_python_are_symbolic_dimensions():
    from typing import TypeVar

    n, m = TypeVar("n"), TypeVar("m")

    @R.function
    def func(x: R.Tensor((n, m), "float32")) -> R.Tensor((m, n), "float32"):
        y = R.permute_dims(x)
        return y

    assert [dim.name for dim in func.ret_ty.shape] == ["m", "n"]

    @I.ir_module
    class Module:
        @T.prim_func
        def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in range(n):
                B[i] = A[i] * T.float32(2)

        @R.function
        def main(x: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            cls = Module
            y = R.call_tir(cls.double, (x,), out_ty=R.Tensor((n,), "float32"))
            return y

    vm = relax.VirtualMachine(tvm.compile(Module, "llvm"), tvm.cpu())
    assert vm["main"](tvm.runtime.tensor(np.arange(3, dtype="float32"))).numpy().tolist() == [0, 2, 4]


@tvm.script.ir_module
class Reshaped:
    @R.function
    def main(x: R.Tensor((1, 3, 8, 8), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"), b: R.Tensor((4,), "float32")):
        with R.dataflow():
            bias = R.reshape(b, (1, 4, 1, 1))
            image = R.nn.conv2d(x, w)
            out = R.nn.relu(R.add(image, bias))
            R.output(out)
        return out


@pytest.mark.parametrize("make", [relax.dpl.make_fused_bias_activation_pattern, relax.backend.patterns.make_fused_bias_activation_pattern])
def test_a_bias_that_was_reshaped_is_part_of_a_pattern(make):
    pattern = make("relax.nn.conv2d", with_bias=True, activation="relax.nn.relu", allow_reshape=True)
    pattern = pattern[0] if isinstance(pattern, tuple) else pattern
    fused = relax.transform.FuseOpsByPattern([("all", pattern)])(Reshaped)
    inside = next(func for var, func in fused.functions.items() if var.name_hint != "main")
    called = [binding.value.op.name for binding in inside.body.blocks[0].bindings]
    assert sorted(called) == ["relax.add", "relax.nn.conv2d", "relax.nn.relu", "relax.reshape"]


def test_thrust_is_used_where_a_target_asks_for_it_and_it_is_there():
    from relaxide.contrib.thrust import can_use_thrust

    asks = tvm.target.Target({"kind": "cuda", "libs": ["thrust"]})
    assert not can_use_thrust(asks, "tests.sorted_by_thrust") and not can_use_thrust(tvm.target.Target("llvm"), "tests.sorted_by_thrust")
    tvm.register_global_func("tests.sorted_by_thrust", lambda: None, override=True)
    assert can_use_thrust(asks, "tests.sorted_by_thrust") and not can_use_thrust(tvm.target.Target("cuda"), "tests.sorted_by_thrust")


def test_kernels_have_the_names_that_programs_look_up():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2, 3), "float32")):
            with R.dataflow():
                y = R.matmul(R.permute_dims(x), x)
                z = R.concat([R.exp(y), R.exp(R.astype(y, "float32"))])
                w = R.concat([z, z])
                R.output(w)
            return w

    names = {var.name_hint for var in relax.transform.LegalizeOps()(Module).get_global_vars()}
    assert {"transpose", "matmul", "tir_exp", "concatenate", "concatenate1"} <= names


def test_an_operator_of_two_scalars_makes_a_scalar():
    @I.ir_module
    class Module:
        @R.function
        def main(a: R.Prim("float32"), b: R.Prim("float32"), x: R.Tensor((3,), "float32")):
            c = R.add(a, b)
            return (R.multiply(x, c), R.less(c, b))

    assert str(Module["main"].ret_ty.fields[1]) == "bool"
    vm = relax.VirtualMachine(relax.build(Module, "llvm"), tvm.cpu())
    product, below = vm["main"](1.5, 2.0, tvm.runtime.tensor(np.arange(3, dtype="float32")))
    np.testing.assert_array_equal(product.numpy(), np.arange(3, dtype="float32") * 3.5)
    assert not below


def test_a_loop_over_a_shape_counts_in_each_dimension():
    @T.prim_func(s_tir=True)
    def copied(a: T.Buffer((4, 8), "float32"), b: T.Buffer((4, 8), "float32")):
        for axes in T.grid(*a.shape):
            with T.sblock("copy"):
                i, j = T.axis.remap("SS", axes)
                b[i, j] = a[i, j]

    @T.prim_func(s_tir=True)
    def written(a: T.Buffer((4, 8), "float32"), b: T.Buffer((4, 8), "float32")):
        for x, y in T.grid(4, 8):
            with T.sblock("copy"):
                i, j = T.axis.remap("SS", [x, y])
                b[i, j] = a[i, j]

    tvm.ir.assert_structural_equal(copied, written.with_attr("global_symbol", "copied"))


def test_names_of_the_surroundings_may_be_announced():
    dtype = "float32"

    def made():
        nonlocal dtype

        @R.function
        def main(x: R.Tensor((2,), dtype)):
            nonlocal dtype
            return R.astype(x, dtype)

        return main

    assert str(made().ret_ty) == 'R.Tensor((2,), dtype="float32")'


def test_a_kernel_that_is_described_has_dimensions_of_its_own():
    from relaxide import topi

    n = tirx.Var("n", "int64")
    x = relax.Var("x", R.Tensor((n, 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit_te(topi.exp, x, primfunc_name_hint="tir_exp"))

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32")):
            gv = R.exp(x)
            return gv

    made = builder.get()
    assert not made["tir_exp"].buffers[0].shape[0].same_as(n)
    tvm.ir.assert_structural_equal(made, relax.transform.LegalizeOps()(Module))
