"""Nodes made in Python: constructors, fields, operators, comparison."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import ir, relax, te, tirx


def tensor(shape, dtype="float32"):
    return relax.TensorType(shape, dtype)


def test_scalars_take_the_type_of_what_they_meet():
    n = tirx.Var("n", "int64")
    assert repr(n * 2 + 1) == "n * T.int64(2) + T.int64(1)" and (n + 1).dtype == "int64"
    assert isinstance(n + 1, tirx.Add) and not isinstance(n + 1, tirx.Sub)
    assert (n + 0).same_as(n) and (n // 4).ty == ir.PrimType("int64")
    assert bool(n == n) and not (n == tirx.Var("n", "int64"))
    with pytest.raises(RuntimeError, match="ambiguity"):
        n / 2
    with pytest.raises(ValueError, match="no bool"):
        bool(n < 3)


def test_operators_on_tensors_are_typed_calls():
    n = tirx.Var("n", "int64")
    x, y = relax.Var("x", tensor([n, 4])), relax.Var("y", tensor([4]))
    call = x + y
    assert call.op == ir.Op.get("relax.add") and call.args[0].same_as(x) and call.ty == tensor([n, 4])
    assert (x * 2.0).args[1].value.numpy() == 2.0 and (2.0 - x).op.name == "relax.subtract"
    assert (x > y).ty.dtype == "bool" and (-x).op.name == "relax.negative"
    with pytest.raises(ValueError, match="add"):
        x + relax.Var("z", tensor([3, 5]))


def test_attributes_are_items_and_members():
    x = relax.Var("x", tensor([2, 3]))
    call = relax.op.sum(x, axis=1)
    assert call.attrs.axis == [1] and call.attrs["keepdims"] is False
    with pytest.raises(AttributeError, match="there are: axis"):
        call.attrs.nothing


def test_blocks_say_whether_they_are_dataflow_blocks():
    x = relax.Var("x", tensor([2]))
    binding = relax.VarBinding(relax.Var("y", tensor([2])), x)
    assert isinstance(relax.DataflowBlock([binding]), relax.DataflowBlock)
    assert not isinstance(relax.BindingBlock([binding]), relax.DataflowBlock)


def test_differences_are_named_by_their_path():
    x, y = relax.Var("x", tensor([2])), relax.Var("y", tensor([2]))
    one, two = relax.Function([x], x + x), relax.Function([y], y * y)
    ir.assert_structural_equal(one, relax.Function([y], y + y))
    with pytest.raises(ValueError, match="body"):
        ir.assert_structural_equal(one, two)
    assert ir.structural_hash(one) != ir.structural_hash(two)


def test_modules_change_in_place_and_clones_do_not():
    x = relax.Var("x", tensor([2]))
    function = relax.Function([x], x, attrs={"global_symbol": "main"})
    module = ir.IRModule({"main": function})
    other = module.clone()
    module["again"] = function
    assert "again" in module and "again" not in other
    module.update({ir.GlobalVar("third"): function})
    assert [var.name_hint for var in module.get_global_vars()] == ["main", "again", "third"]
    del module["third"]
    assert module.get_global_var("again") == ir.GlobalVar("again")
    with pytest.raises(ValueError, match='Cannot find global var "nothing"'):
        module.get_global_var("nothing")
    with pytest.raises(KeyError, match="there are: main, again"):
        module["nothing"]
    assert module.with_attr("a", 1).attrs["a"] == 1 and module.attrs is None


def test_a_program_is_built_compiled_and_run():
    n = tirx.Var("n", "int64")
    x, y = relax.Var("x", tensor([n, 4])), relax.Var("y", tensor([4]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x, y]):
        with bb.dataflow():
            a = bb.emit(relax.op.nn.relu(x + y) * 2.0)
            b = bb.emit_te(lambda A: te.compute(A.shape, lambda i, j: A[i, j] + 1.0), a, primfunc_name_hint="inc")
            k = te.reduce_axis((0, 4), "k")
            c = bb.emit_te(lambda A: te.compute((A.shape[0],), lambda i: te.sum(A[i, k], axis=k)), b)
            out = bb.emit_output(c)
        bb.emit_func_output(out)
    machine = relax.VirtualMachine(tvm.compile(bb.get()), tvm.cpu())
    a, b = np.arange(12, dtype="float32").reshape(3, 4) - 5, np.ones(4, "float32")
    result = machine["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b)).numpy()
    np.testing.assert_allclose(result, (np.maximum(a + b, 0) * 2 + 1).sum(1), rtol=1e-6)


def test_help_shows_what_the_registry_says():
    import inspect

    signature = inspect.signature(relax.op.nn.conv2d)
    assert list(signature.parameters)[:4] == ["data", "weight", "strides", "padding"]
    assert signature.parameters["groups"].default == 1 and "Parameters" in relax.op.nn.conv2d.__doc__
    for name in ir.Op.list_op_names():
        target = relax.op
        for part in name.removeprefix("relax.").split("."):
            target = getattr(target, part)
        assert callable(target) and target.__doc__ and inspect.signature(target), name


def test_a_builder_that_is_misused_says_how():
    bb = relax.BlockBuilder()
    with pytest.raises(ValueError, match="inside a function"):
        bb.emit(relax.const(1.0))
    with pytest.raises(RuntimeError, match="emit_func_output must be called"):
        with bb.function("main", []):
            pass
    x = relax.Var("x", tensor([2]))
    with pytest.raises(RuntimeError, match="exactly once"):
        with bb.function("main", [x]):
            bb.emit_func_output(x)
            bb.emit_func_output(x)


def test_programs_survive_json():
    x = relax.Var("x", tensor([tirx.Var("n", "int64"), 3]))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit(relax.op.add(x, relax.const(np.arange(3, dtype="float32"))))
        bb.emit_func_output(relax.op.nn.softmax(y))
    for module in (bb.get(), relax.get_pipeline("default_build")(bb.get())):
        ir.assert_structural_equal(ir.load_json(ir.save_json(module)), module)
    with pytest.raises(ValueError, match="double quotes"):
        ir.load_json("{")


def test_assertions_have_a_kind_and_a_message():
    i = tirx.Var("i", "int32")
    check = tirx.AssertStmt(tvm.ir.StringImm("ValueError"), i < 3, ["too ", tvm.ir.StringImm("large")])
    assert check.kind == "ValueError" and check.message_parts == ["too large"] and isinstance(check.condition, tirx.LT)


def test_blocks_of_bindings_have_the_class_of_their_kind():
    x = relax.Var("x", relax.TensorType([3], "float32"))
    binding = relax.VarBinding(relax.Var("y", x.ty), relax.op.add(x, x))
    plain, dataflow = relax.BindingBlock([binding]), relax.DataflowBlock([binding])
    assert type(plain) is relax.BindingBlock and type(dataflow) is relax.DataflowBlock
    func = relax.Function([x], relax.SeqExpr([plain, dataflow], x))
    assert [type(block) for block in func.body.blocks] == [relax.BindingBlock, relax.DataflowBlock]


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda a, i: tirx.BufferLoad(a, [i, i]), ValueError),
        (lambda a, i: a[i, i], IndexError),
        (lambda a, i: tirx.BufferStore(a, tirx.StringImm("x"), [i]), TypeError),
        (lambda a, i: tirx.For(i, 0, 8, 9, tirx.Evaluate(0)), ValueError),
        (lambda a, i: tirx.For(i, 0, 8, tirx.ForKind.THREAD_BINDING, tirx.Evaluate(0)), ValueError),
        (lambda a, i: tirx.For(i, 0, tirx.const(1.5, "float32"), 0, tirx.Evaluate(0)), TypeError),
        (lambda a, i: tirx.For(i, 0, 8, 0, None), TypeError),
        (lambda a, i: tirx.Ramp(i, 1, 0), ValueError),
        (lambda a, i: tirx.Add(tirx.StringImm("x"), tirx.StringImm("y")), TypeError),
        (lambda a, i: tirx.SeqStmt([1]), TypeError),
        (lambda a, i: tirx.PrimFunc([3], tirx.Evaluate(0)), TypeError),
        (lambda a, i: tirx.PrimFunc([a], tirx.Evaluate(0)).specialize({i: a}), ValueError),
        (lambda a, i: tvm.build(tirx.PrimFunc([a], tirx.BufferStore(a, 1.0, [i]))), RuntimeError),
    ],
)
def test_kernels_that_cannot_be_are_refused(make, error):
    with pytest.raises(error):
        make(tirx.decl_buffer((8,), "float32", name="A"), tirx.Var("i", "int32"))


def test_a_kernel_of_nodes_runs():
    a, b = (tirx.decl_buffer((8,), "float32", name=name) for name in "AB")
    i = tirx.Var("i", "int32")
    choice = tirx.IfThenElse(i < 4, b.vstore([i], a[i] * 2.0), b.vstore([i], a[7 - i]))
    kernel = tvm.build(tirx.PrimFunc([a, b], tirx.For(i, 0, 8, tirx.ForKind.PARALLEL, choice)))["main"]
    x = np.arange(8, dtype="float32")
    out = tvm.runtime.tensor(np.zeros(8, "float32"))
    kernel(tvm.runtime.tensor(x), out)
    np.testing.assert_array_equal(out.numpy(), np.where(x < 4, x * 2, x[::-1]))
