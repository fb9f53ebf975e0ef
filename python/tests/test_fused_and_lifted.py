"""What fusion, lifting and planning hand from one function to another, as TVM's passes do it."""

import numpy as np
import pytest

import relaxide as tvm
import relaxide.topi.testing
from relaxide import relax, te, tirx, topi
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


def bindings(func):
    return [(binding.var, getattr(binding, "value", None)) for block in func.body.blocks for binding in block.bindings]


def fused(**options):
    """A chain of kernels that are given constants, as one function."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", R.Tensor((4, 8), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            one = builder.emit_te(topi.add, x, relax.const(1.0, "float32"))
            two = builder.emit_te(topi.exp, one)
            gv = builder.emit_output(builder.call_te(topi.multiply, two, relax.const(1.0, "float32")))
        builder.emit_func_output(gv)
    passes = [relax.transform.AnnotateTIROpPattern(), relax.transform.FuseOps(**options)]
    return tvm.transform.Sequential(passes)(builder.get())


def test_a_fused_function_takes_each_constant_as_a_parameter():
    module = fused()
    ((_, call),) = bindings(module["main"])
    assert [isinstance(arg, relax.Constant) for arg in call.args] == [False, True, True]
    assert [param.name_hint for param in module[call.op].params] == ["x", "p0", "p1"]
    kernel = next(f for f in relax.transform.FuseTIR()(module).functions.values() if isinstance(f, tirx.PrimFunc))
    assert len(kernel.params) == 4


def test_a_fused_chain_computes_what_its_operators_do():
    x = np.random.default_rng(1).standard_normal((4, 8)).astype("float32")
    vm = relax.VirtualMachine(tvm.compile(relax.transform.FuseTIR()(fused()), target="llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](tvm.runtime.tensor(x)).numpy(), np.exp(x + 1), rtol=1e-6)


def test_a_kernel_takes_only_the_fields_that_it_reads():
    @I.ir_module
    class Tuples:
        @T.prim_func(private=True, s_tir=True)
        def double(a: T.Buffer((T.int64(4),), "float32"), b: T.Buffer((T.int64(4),), "float32")):
            for i in range(T.int64(4)):
                with T.sblock("double"):
                    v = T.axis.spatial(T.int64(4), i)
                    b[v] = a[v] * T.float32(2)

        @R.function(private=True)
        def fused(pair: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))) -> R.Tensor((4,), "float32"):
            R.func_attr({"Primitive": True})
            cls = Tuples
            with R.dataflow():
                second = pair[1]
                gv = R.call_tir(cls.double, (second,), out_ty=R.Tensor((4,), "float32"))
                R.output(gv)
            return gv

        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            cls = Tuples
            with R.dataflow():
                gv: R.Tensor((4,), "float32") = cls.fused((x, y))
                R.output(gv)
            return gv

    after = relax.transform.FuseTIR()(Tuples)
    ((_, call),) = bindings(after["main"])
    assert [arg.name_hint for arg in call.args[1]] == ["y"] and len(after["fused"].params) == 2


def weights_of(module, name):
    """What the function that transforms weights binds: names, in order."""
    return [var.name_hint for var, _ in bindings(module[name])]


def test_weights_are_taken_where_they_are_first_used():
    @I.ir_module
    class Network:
        @R.function
        def main(x: R.Tensor((4, 4), "float32"), a: R.Tensor((4, 4), "float32"), b: R.Tensor((4, 4), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                bt = R.permute_dims(b)
                at = R.permute_dims(a)
                gv = R.matmul(R.matmul(x, at), bt)
                R.output(gv)
            return gv

    lifted = relax.transform.LiftTransformParams()(Network)
    assert weights_of(lifted, "main_transform_params") == ["b", "bt", "a", "at", "output_tuple"]
    bundled = relax.transform.BundleModelParams()(Network)["main"]
    assert [var.name_hint for var, _ in bindings(bundled)][:4] == ["b", "bt", "a", "at"]


def test_programs_that_share_lift_what_all_compute():
    @I.ir_module
    class Two:
        @R.function
        def first(x: R.Tensor((4, 4), "float32"), a: R.Tensor((4, 4), "float32"), b: R.Tensor((4, 4), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                at = R.permute_dims(a)
                bt = R.permute_dims(b)
                gv = R.add(R.matmul(x, at), R.matmul(x, bt))
                R.output(gv)
            return gv

        @R.function
        def second(x: R.Tensor((4, 4), "float32"), a: R.Tensor((4, 4), "float32"), b: R.Tensor((4, 4), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                at = R.permute_dims(a)
                gv = R.add(R.matmul(x, at), b)
                R.output(gv)
            return gv

    lifted = relax.transform.LiftTransformParams(shared_transform=True)(Two)
    assert weights_of(lifted, "transform_params") == ["a", "at", "b", "output_tuple"]
    for name in ("first", "second"):
        assert [param.name_hint for param in lifted[name].params] == ["x", "b", "at"]
    assert "bt" in [var.name_hint for var, _ in bindings(lifted["first"])]


def test_lifting_ends_where_it_is_told_to_and_leaves_constants_on_both_sides():
    @I.ir_module
    class Network:
        @R.function
        def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
            R.func_attr({"num_input": 1})
            with R.dataflow():
                ones = R.ones((4,), "float32")
                more = R.add(w, ones)
                here = R.builtin.stop_lift_params(more)
                late = R.exp(here)
                gv = R.add(R.add(x, ones), late)
                R.output(gv)
            return gv

    lifted = relax.transform.LiftTransformParams()(Network)
    assert [param.name_hint for param in lifted["main"].params] == ["x", "more"]
    assert [var.name_hint for var, _ in bindings(lifted["main"])][:2] == ["ones", "late"]
    assert weights_of(lifted, "main_transform_params") == ["ones", "w", "more", "output_tuple"]


def test_where_nothing_is_to_be_lifted_the_weights_are_the_result():
    @I.ir_module
    class Network:
        @R.function
        def main(x: R.Tensor((4,), "float32"), a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
            R.func_attr({"num_input": 1})
            gv = R.add(R.add(x, a), b)
            return gv

    transform = relax.transform.LiftTransformParams()(Network)["main_transform_params"]
    assert not transform.body.blocks and transform.body.body.same_as(transform.params[0])


def test_a_cast_of_a_weight_says_what_is_computed_before_the_inputs():
    @R.function
    def main(x: R.Tensor(("n",), "int32"), w: R.Tensor(ndim=1, dtype="int32")):
        R.func_attr({"num_input": 1})
        n = T.int64()
        m = T.int64()
        cast = R.match_cast(w, R.Tensor([m], "int32"))
        known = R.ones([m], "int32")
        unknown = R.ones([n], "int32")
        return (cast, known, unknown)

    assert [var.name_hint for var in relax.analysis.computable_at_compile_time(main)] == ["w", "cast", "known"]


def test_a_function_that_returns_less_says_what_is_left():
    @I.ir_module
    class Pair:
        @R.function(private=True)
        def both() -> R.Tuple([R.Tensor, R.Tensor]):
            return (R.zeros([3, 5], "int32"), R.ones([7], "int32"))

        @R.function
        def main() -> R.Tensor:
            return Pair.both()[0]

    after = relax.transform.RemoveUnusedOutputs()(Pair)
    assert after["main"].ret_ty == R.Tensor((3, 5), "int32")


def planned(func):
    return [value for _, value in bindings(func) if isinstance(value, relax.Call) and getattr(value.op, "name", "") == "relax.memory.alloc_storage"]


def allocations(shape, **attrs):
    """A function that makes tensors of a shape one after the other; all but the last are planned."""

    @T.prim_func(private=True, s_tir=True)
    def kernel(a: T.handle, b: T.handle):
        T.evaluate(0)

    builder = relax.BlockBuilder()
    n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
    x = relax.Var("x", R.Tensor(shape(n, m), "float32"))
    dims = relax.Var("dims", R.Shape([n, m]))
    with builder.function("main", [x, dims], attrs=attrs):
        callee = builder.add_func(kernel, "kernel")
        value = x
        for _ in range(2):
            value = builder.emit(relax.call_tir(callee, [value], R.Tensor(shape(n, m), "float32")))
        builder.emit_func_output(value)
    return relax.transform.CallTIRRewrite()(relax.transform.ToNonDataflow()(builder.get()))


def test_a_storage_is_as_large_as_the_largest_of_what_its_bounds_allow():
    module = allocations(lambda n, m: [n, n - m], tir_var_upper_bound={"n": 20, "m": 10}, tir_var_lower_bound={"m": 2})
    (storage,) = planned(relax.transform.StaticPlanBlockMemory()(module)["main"])
    assert int(storage.args[0].values[0]) == 20 * (20 - 2) * 4


def test_what_is_returned_is_planned_where_the_function_says_so():
    bounds = {"tir_var_upper_bound": {"n": 20, "m": 10}}
    module = allocations(lambda n, m: [n, m], **bounds, **{"relax.memory_plan_dynamic_func_output": True})
    assert len(planned(relax.transform.StaticPlanBlockMemory()(module)["main"])) == 2


def test_a_bound_is_an_integer():
    with pytest.raises(tvm.error.PassError, match="bound of n in `tir_var_upper_bound`"):
        relax.transform.StaticPlanBlockMemory()(allocations(lambda n, m: [n, m], tir_var_upper_bound={"n": [4]}))


def test_binary_functions_of_topi_bring_integers_to_the_wider_type():
    narrow, wide, real = (te.placeholder((4,), dtype) for dtype in ("int32", "int64", "float32"))
    assert topi.add(narrow, wide).dtype == "int64" and topi.multiply(wide, narrow).dtype == "int64"
    assert topi.subtract(narrow, real).dtype == "float32"


def test_squeeze_of_topi_keeps_a_dimension_with_a_name():
    n = te.var("n", "int64")
    assert [str(dim) for dim in topi.squeeze(te.placeholder((1, n, 1, 4), "float32")).shape] == ["n", "T.int64(4)"]


def test_boxes_that_overlap_give_way_to_the_best():
    boxes = np.array([[[0, 0.9, 0, 0, 2, 2], [0, 0.8, 0, 0, 2, 1.8], [1, 0.7, 0, 0, 2, 2], [0, 0.2, 5, 5, 6, 6], [-1, 0.95, 8, 8, 9, 9]]], "float32")
    count, data, places = topi.testing.get_valid_counts_python(boxes, 0.3, 0, 1)
    assert count.tolist() == [3] and places.tolist() == [[0, 1, 2, -1, -1]]
    kept, counts = topi.testing.non_max_suppression_python(data, count, places)
    assert kept.tolist() == [[0, 2, -1, -1, -1]] and counts.tolist() == [[2]]
    kept, counts = topi.testing.non_max_suppression_python(data, count, places, force_suppress=True)
    assert kept.tolist() == [[0, -1, -1, -1, -1]]
    soft, _, _ = topi.testing.non_max_suppression_python(data, count, places, iou_threshold=0.95, soft_nms_sigma=0.5)
    np.testing.assert_allclose(soft[0, 2, 1], 0.8 * np.exp(-0.9**2), rtol=1e-5)


def test_a_remainder_of_a_quotient_is_written_as_a_quotient_of_a_remainder():
    x, y = tirx.Var("x", "int64"), tirx.Var("y", "int64")
    simple = tvm.sym.Analyzer().canonical_simplify
    tvm.ir.assert_structural_equal(simple(x // 4 % 3), x % 12 // 4)
    tvm.ir.assert_structural_equal(simple(x + y // 5), y // 5 + x)
    assert tvm.sym.Analyzer().can_prove_equal(x // 4 % 3, x % 12 // 4)
