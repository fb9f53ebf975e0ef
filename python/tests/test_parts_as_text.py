"""Parts of programs as text, with what says what their variables are."""

import relaxide as rx
from relaxide import relax, tirx
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T
from relaxide.target import Target

x = tirx.Var("x", "int64")


def of(node):
    return node.script(verbose_expr=True).strip().splitlines()


def test_variables_are_declared_in_front():
    one = relax.Var("a", relax.TensorType([1, x, 3], "float32"))
    two = relax.Var("R", relax.TensorType([1, x, 3], "float32"))
    binding = relax.VarBinding(two, relax.op.sin(one))
    assert of(binding) == [
        "x = T.int64()",
        'a: R.Tensor((1, x, 3), dtype="float32")',
        'R_1: R.Tensor((1, x, 3), dtype="float32") = R.sin(a)',
    ]
    seq = relax.SeqExpr([relax.BindingBlock([binding])], two)
    assert of(seq)[-1] == "R_1" and of(seq)[:3] == of(binding)
    assert of(relax.Tuple([one, two]))[-1] == "(a, R_1)"
    assert of(one) == ["x = T.int64()", 'a: R.Tensor((1, x, 3), dtype="float32")', "a"]
    assert of(one.ty) == ["x = T.int64()", 'R.Tensor((1, x, 3), dtype="float32")']
    call = relax.call_tir(relax.GlobalVar("f"), (one, x), out_ty=one.ty)
    assert of(call)[-1].startswith("R.call_tir(f, (a, x)")


def test_types_that_say_nothing_of_their_parts():
    assert of(relax.ShapeType(ndim=-1)) == ["R.Shape(ndim=-1)"]

    @rx.script.relax.function
    def takes(f: rx.script.relax.PackedFunc) -> rx.script.relax.Object:
        return f

    assert takes.params[0].ty == relax.PackedFuncType()


def test_parts_of_kernels():
    A = tirx.decl_buffer((128, 4), "float16", name="A")
    assert of(A) == ['A = T.Buffer((128, 4), "float16")', "A"] and str(A) == "A"
    assert of(A[0:64, 1])[-1] == "A[0:64, 1]"
    assert str(tirx.Range(2, 10)) == "I.Range(2, 10)"
    assert of(tirx.IterVar((0, 8), "i", tirx.IterVar.CommReduce)) == ["i = T.int32()", 'T.iter_var(i, T.Range(0, 8), "CommReduce", "")']
    assert of(tirx.Select(True, 0, 2)) == ["T.Select(T.bool(True), 0, 2)"]


def test_targets_of_small_processors():
    target = Target({"kind": "c", "mcpu": "cortex-m55+nomve"})
    assert list(target.keys) == ["arm_cpu", "cpu"] and target.features.has_dsp and not target.features.has_mve
    assert Target({"kind": "llvm", "mcpu": "cortex-m3"}).features.has_dsp is False
    assert list(Target("llvm").keys) == ["cpu"] and Target("llvm").features.has_dsp is None
    other = Target({"tag": "nvidia/nvidia-a100", "l2_cache_size_bytes": 12345})
    assert other.attrs["arch"] == "sm_80" and other.attrs["l2_cache_size_bytes"] == 12345 and other.tag == "nvidia/nvidia-a100"


def test_a_module_has_the_name_in_its_functions_that_is_asked_for():
    @I.ir_module
    class Program:
        @T.prim_func(private=True)
        def kernel(A: T.Buffer((4,), "float32")):
            A[0] = T.float32(1)

        @R.function
        def main() -> R.Tensor((4,), "float32"):
            y = R.call_tir(Program.kernel, (), out_ty=R.Tensor((4,), "float32"))
            return y

    assert "cls = Module" in Program.script() and "cls.kernel" in Program.script()
    plain, other = Program.script(module_alias=""), Program.script(module_alias="own")
    assert "cls" not in plain and "R.call_tir(Module.kernel" in plain
    assert "own = Module" in other and "own.kernel" in other
    rx.ir.assert_structural_equal(rx.script.from_source(plain), Program)


def test_scalars_say_what_they_define_and_tuples_of_them_are_of_kernels():
    x = tirx.Var("x", "int32")
    assert tirx.Let(x, 1, x + 1).script(verbose_expr=True) == "x = T.int32()\nT.Let(x + 1, where={x: 1})"
    scalars = rx.ir.TupleType([rx.ir.PrimType("float32"), rx.ir.PrimType("int32")])
    assert scalars.script() == "T.Tuple(T.float32, T.int32)"
    assert rx.ir.TupleType([scalars]).script() == "R.Tuple(R.Tuple(T.float32, T.int32))"
