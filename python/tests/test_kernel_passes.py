"""Passes over kernels in Python: by name, in sequences, and written there."""

import inspect

import numpy as np
import pytest

import relaxide as tvm
from relaxide import s_tir, tirx
from relaxide.script import ir as I, tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.unroll(2):
            for j in range(8):
                with T.sblock("add"):
                    vi = T.axis.spatial(16, i * 8 + j)
                    B[vi] = A[vi] + T.float32(1)

    @T.prim_func(s_tir=True)
    def other(A: T.Buffer((16,), "float32"), n: T.int32):
        A[n % 16 // 4] = T.float32(0)


def test_every_pass_is_a_function_with_documentation():
    for module in (tirx.transform, s_tir.transform):
        assert len(module.names()) > 10
        for name in module.names():
            function = getattr(module, name)
            assert inspect.signature(function) and function.__doc__ and name in dir(module), name
    assert str(inspect.signature(s_tir.transform.CompactBufferAllocation)) == "(is_strict=True)"
    assert str(inspect.signature(tirx.transform.NarrowDataType)) == "(target_bits)"


def test_passes_stand_in_sequences():
    passes = [s_tir.transform.LowerInitBlock(), s_tir.transform.ConvertBlocksToOpaque(), s_tir.transform.LowerOpaqueBlock()]
    lowered = tvm.transform.Sequential([*passes, tirx.transform.UnrollLoop(), tirx.transform.StmtSimplify()])(Module)
    text = lowered["add"].script()
    assert "sblock" not in text and "unroll" not in text and "B[j + 8] = A[j + 8] + T.float32(1.0)" in text
    with tvm.transform.PassContext(disabled_pass=["tirx.UnrollLoop"]):
        assert "unroll" in tvm.transform.Sequential([*passes, tirx.transform.UnrollLoop()])(Module)["add"].script()


def test_passes_over_kernels_are_written_in_python():
    @tirx.transform.prim_func_pass(opt_level=1)
    def mark(func, mod, ctx):
        assert isinstance(func, tirx.PrimFunc) and isinstance(ctx, tvm.transform.PassContext)
        return func.with_attr("marked", len(mod.functions))

    assert isinstance(mark, tirx.transform.PrimFuncPass) and mark.info.opt_level == 1 and mark.info.name == "mark"
    assert mark(Module)["other"].attrs["marked"] == 2
    applied = tirx.transform.Apply(lambda func: func.with_attr("applied", True))(Module)
    assert applied["add"].attrs["applied"] is True
    kept = tirx.transform.Filter(lambda func: len(func.params) == 2 and func.script().count("sblock"))(Module)
    assert [var.name_hint for var in kept.get_global_vars()] == ["add"]
    assert len(Module.functions) == 2


def test_a_target_is_bound_and_the_entry_is_marked():
    bound = tirx.transform.BindTarget(tvm.Target("llvm -mcpu=skylake"))(Module)
    assert bound["add"].attrs["target"].kind == "llvm" and bound["add"].attrs["target"].attrs["mcpu"] == "skylake"
    # A target that is an attribute is one to passes, however it was given.
    named = Module["add"].with_attr("target", tvm.Target("llvm -mcpu=skylake", host="llvm"))
    assert "metadata" not in named.script() and named.attrs["target"].host.kind == "llvm"
    again = tirx.transform.BindTarget(tvm.Target("llvm"))(tvm.IRModule({"add": named}))["add"]
    assert again.attrs["target"].attrs["mcpu"] == "skylake"
    assert "tirx.is_entry_func" not in (tirx.transform.AnnotateEntryFunc()(Module)["add"].attrs or {})
    alone = tirx.transform.Filter(lambda func: "sblock" in func.script())(Module)
    assert tirx.transform.AnnotateEntryFunc()(alone)["add"].attrs["tirx.is_entry_func"] is True


def test_passes_that_are_not_here_say_why():
    for module, name, text in (
        (tirx.transform, "PointerValueTypeRewrite", "code generation does this itself"),
        (s_tir.transform, "LiftThreadBinding", "about memory that the threads of a device share"),
        (tirx.transform, "LowerInitBlock", "did you mean s_tir.transform.LowerInitBlock"),
        (tirx.transform, "Unroll", "did you mean UnrollLoop"),
        (s_tir.transform, "Nothing", "names\\(\\) lists"),
    ):
        with pytest.raises(AttributeError, match=text):
            getattr(module, name)
    with pytest.raises(ValueError, match="target_bits \"8\" is not known"):
        tirx.transform.NarrowDataType(8)(Module)


def test_a_copy_of_a_kernel_has_variables_of_its_own():
    copy = s_tir.renew_defs(Module["other"])
    assert tvm.ir.structural_equal(copy, Module["other"]) and not copy.params[1].same_as(Module["other"].params[1])
    array = tvm.runtime.tensor(np.ones(16, "float32"))
    tvm.compile(tvm.IRModule({"other": copy}), "llvm")["other"](array, 9)
    assert array.numpy()[2] == 0 and array.numpy().sum() == 15


def test_the_state_of_schedules_has_its_names():
    assert [int(bit) for bit in s_tir.schedule.ScheduleDebugMask] == [1, 2]
    assert s_tir.schedule.state.CachedFlags(True, False, True).region_cover is False
    assert tvm.ir.PrimType("float32x4").matches_code(0, 2) and not tvm.ir.PrimType("uint8").matches_code(0, 2)
    assert tvm.ir.PrimType("int8").matches_element_type(0, 8) and not tvm.ir.PrimType("int16").matches_element_type(0, 8)


@I.ir_module
class Narrow:
    @T.prim_func(s_tir=True)
    def add(A: T.Buffer((16,), "bfloat16"), B: T.Buffer((16,), "bfloat16"), C: T.Buffer((16,), "float8_e4m3fn"), D: T.Buffer((16,), "float32")):
        for i in range(16):
            B[i] = A[i] + A[i]
            D[i] = T.reinterpret("float8_e4m3fn", T.reinterpret("uint8", C[i]))


@pytest.mark.parametrize("arch, bf16, fp8", [("sm_75", True, True), ("sm_86", False, True), ("sm_90a", False, False), (None, True, True)])
def test_devices_that_compute_in_narrow_floats_keep_them(arch, bf16, fp8):
    """`bf16` and `fp8` say what is computed in a wider type, and stored as bits."""
    target = {"kind": "cuda", "arch": arch} if arch else "llvm"
    bound = tirx.transform.BindTarget(tvm.target.Target(target))(Narrow)
    for short, changes in (("BF16", bf16), ("FP8", fp8)):
        for step in ("ComputeLegalize", "StorageLegalize"):
            made = getattr(tirx.transform, short + step)()(bound)
            changed = not tvm.ir.structural_equal(made, bound)
            assert changed == (changes and (short, step) != ("FP8", "ComputeLegalize")), (short, step)


def test_bits_are_not_read_as_floats_to_be_read_as_bits():
    stored = tirx.transform.FP8StorageLegalize()(Narrow)["add"].script()
    assert "C: T.Buffer((16,), \"uint8\")" in stored and stored.count("T.reinterpret(") == 1, stored
