"""Where tensors of a program for an Adreno device lie: in textures, or in plain memory."""

import pytest
import relaxide as tvm
from relaxide import relax
from relaxide.relax.backend.adreno._scopes import scope_of
from relaxide.relax.backend.adreno.transform import AnnotateCustomMemoryScope, FoldVDeviceScopeChange
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T

ADRENO = tvm.target.Target({"kind": "opencl", "device": "adreno"}, host="llvm")


@pytest.mark.parametrize(
    ("shape", "scope"),
    [
        ((2, 4, 28, 28, 4), "global.texture-weight"),
        ((1, 1, 127, 129, 4), "global.texture-weight"),
        ((1, 1, 128, 128, 4), "global.texture"),
        ((2, 16, 56, 56, 4), "global.texture-nhwc"),
        ((2047, 20, 100, 100, 4), "global.texture-nhwc"),
        ((2048, 20, 100, 100, 4), "global"),
        ((1, 2047, 200, 200, 4), "global.texture"),
        ((1, 2048, 200, 200, 4), "global"),
        ((16384, 1, 1, 1, 4), "global"),
        ((2, 4, 28, 28, 8), "global"),
        ((2, 16, 28, 28), "global"),
    ],
)
def test_limits_of_textures(shape, scope):
    assert scope_of(relax.TensorType(shape, "float32"), ADRENO) == scope


def _scopes(mod):
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return {binding.var.name_hint: binding.var.ty.vdevice.memory_scope for binding in bindings}


@I.ir_module
class Pools:
    @R.function
    def main(x: R.Tensor((2, 4, 28, 28, 4), "float32")):
        with R.dataflow():
            a = R.nn.max_pool2d(x, (2, 2), layout="NCHW4c")
            b = R.nn.max_pool2d(a, (2, 2), layout="NCHW4c")
            c = R.sum(b, axis=[0])
            R.output(c)
        return c


def test_a_result_lies_where_all_who_read_it_want_it():
    mod = AnnotateCustomMemoryScope(ADRENO)(Pools)
    assert _scopes(mod) == {"x_texture": "global.texture-weight", "a": "global.texture-weight", "b": "global", "c": "global"}
    assert mod["main"].params[0].ty.vdevice.memory_scope == "global"
    relax.analysis.well_formed(mod)


def test_plain_memory_is_copied_for_those_who_read_textures():
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((2, 4, 28, 28, 4), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            a = bb.emit(relax.op.nn.max_pool2d(x, (1, 1), layout="NCHW4c"), "a")
            b = bb.emit(relax.op.nn.max_pool2d(a, (1, 1), layout="NCHW4c"), "b")
            both = bb.emit_output(relax.op.sum(a), "total"), bb.emit_output(b, "out")
        bb.emit_func_output(relax.Tuple(list(both)))
    found = _scopes_of_calls(AnnotateCustomMemoryScope(ADRENO)(bb.get()))
    assert found["a"] == "global" and found["a_texture"] == "global.texture-weight"


def _scopes_of_calls(mod):
    bindings = [binding for block in mod["main"].body.blocks for binding in block.bindings]
    return {b.var.name_hint: b.var.ty.vdevice.memory_scope for b in bindings if isinstance(b.var.ty, relax.TensorType)}


@I.ir_module
class Copied:
    I.module_global_infos(
        {"vdevice": [I.vdevice({"kind": "opencl", "device": "adreno"}, 0, "global.texture-weight"), I.vdevice({"kind": "opencl", "device": "adreno"}, 0, "global")]}
    )

    @T.prim_func(private=True)
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32", vdevice="opencl:1:global")):
        cls = Copied
        with R.dataflow():
            a = R.call_tir(cls.twice, (x,), out_ty=R.Tensor((4,), "float32", vdevice="opencl:0:global.texture-weight"))
            b: R.Tensor((4,), "float32", vdevice="opencl:1:global") = R.to_vdevice(a, dst_vdevice="opencl:1:global")
            c = R.call_tir(cls.twice, (b,), out_ty=R.Tensor((4,), "float32", vdevice="opencl:1:global"))
            R.output(c)
        return c


def test_a_kernel_writes_where_its_result_is_copied_to():
    assert _scopes(FoldVDeviceScopeChange()(Copied)) == {"a": "global", "c": "global"}
