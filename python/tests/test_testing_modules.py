"""Modules of `relax.testing.nn`: what they emit, their functions, and marks of what is computed twice."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import relax, te
from relaxide.relax.testing import nn


def built(model, *inputs):
    builder = relax.BlockBuilder()
    with builder.function("main"):
        output = model(*inputs)
        builder.emit_func_output(output, [*inputs, *model.parameters()])
    return builder.get()


def test_a_network_is_what_its_layers_are():
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False), nn.LogSoftmax())
    assert len(model.parameters()) == 3
    mod = built(model, nn.Placeholder((2, 4), name="data"))
    zeros = nn.init_params(mod)
    assert [tuple(zero.shape) for zero in zeros] == [(4, 3), (3,), (3, 2)]
    vm = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
    draw = np.random.default_rng(1)
    x, weight, bias, last = (draw.random(shape, "float32") for shape in ((2, 4), (4, 3), (3,), (3, 2)))
    logits = np.maximum(x @ weight + bias, 0) @ last
    wanted = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    np.testing.assert_allclose(vm["main"](*map(tvm.runtime.tensor, (x, weight, bias, last))).numpy(), wanted, rtol=1e-4)


def test_a_module_can_be_a_function_of_its_own():
    class Layer(nn.Module):
        define_subroutine = True

        def __init__(self):
            self.weights = nn.Parameter((4, 4), name="weights")

        def forward(self, input):
            return relax.op.matmul(input, self.weights)

    layer = Layer()
    data = nn.Placeholder((2, 4), name="data")
    builder = relax.BlockBuilder()
    with builder.function("main", params=[data, *layer.parameters()]):
        builder.emit_func_output(layer(layer(data)))
    assert sorted(var.name_hint for var in builder.get().get_global_vars()) == ["layer", "main"]


def test_what_is_computed_twice_is_marked():
    x = relax.Var("x", relax.TensorType((3,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = nn.emit_checkpoint_sequential([relax.op.sin, relax.op.cos, relax.op.exp], 3, x)
            y = builder.emit_output(y)
        builder.emit_func_output(y)
    text = builder.get().script()
    assert (text.count("start_checkpoint"), text.count("end_checkpoint")) == (2, 2)
    assert "x_scp" in text
    with pytest.raises(RuntimeError, match="no block builder is open"):
        nn.emit(x)


def test_one_dimension_may_come_without_a_list():
    n, m = tvm.tirx.Var("n", "int64"), tvm.tirx.Var("m", "int64")
    joined = te.compute((n + m), lambda i: i.astype("float32"))
    assert len(joined.shape) == 1
    assert len(te.extern(n + m, [], lambda ins, outs: tvm.tirx.call_packed("f", outs[0]), dtype="float32").shape) == 1


def test_a_program_is_printed_as_its_nodes():
    from relaxide.relax.testing import dump_ast

    x = relax.Var("x", relax.TensorType((3, 2), "float32"))
    call = relax.op.add(x, x)
    assert dump_ast(call, include_ty_annotations=False) == (
        'Call(\n    op=Op(name="relax.add"),\n    args=[\n        Var(name="x"),\n        Var(name="x")\n    ]\n)'
    )
    assert "shape=ShapeExpr(" in dump_ast(x)
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            y = builder.emit_output(builder.emit(call))
        builder.emit_func_output(relax.Tuple([y, relax.ShapeExpr([1])]))
    text = dump_ast(builder.get()["main"])
    for part in ("Function(", "SeqExpr(", "DataflowBlock(", "VarBinding(", "Tuple(", "Expr(value=`", '"global_symbol": "main"'):
        assert part in text
    with pytest.raises(ValueError, match="int is no node of Relax: 3"):
        dump_ast(3)
