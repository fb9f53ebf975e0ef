"""Kernels as ``LegalizeOps`` writes them by itself, and as pipelines make them: two forms, one result."""

import json
import re

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, tirx
from relaxide.ir import json_compact
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@I.ir_module
class Network:
    @R.function
    def main(x: R.Tensor((2, 4, 9), "float32"), w: R.Tensor((6, 2, 3), "float32"), i: R.Tensor((1, 4, 5, 8), "float32"), a: R.Tensor((1,), "float32")):
        with R.dataflow():
            conv = R.nn.conv1d(x, w, strides=2, padding=1, groups=2)
            spread = R.nn.conv1d_transpose(conv, w, strides=2, padding=1, output_padding=1)
            largest = R.nn.max_pool2d(i, pool_size=(2, 2), strides=(2, 2), padding=(1, 1), layout="NHWC", ceil_mode=True)
            mean = R.nn.avg_pool2d(largest, pool_size=(2, 2), padding=(0, 1))
            share = R.nn.softmax(mean, axis=1)
            top = R.max(share, axis=[1])
            spreads = R.variance(i, axis=[1], keepdims=True)
            steep = R.nn.prelu(i, a, axis=1)
            gv = (spread, mean, top, spreads, steep)
            R.output(gv)
        return gv


def results(module, inputs):
    vm = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    return [result.numpy() for result in vm["main"](*map(tvm.runtime.tensor, inputs))]


def test_both_forms_compute_the_same():
    rng = np.random.default_rng(7)
    inputs = [rng.standard_normal([int(dim) for dim in p.ty.shape]).astype("float32") for p in Network["main"].params]
    for one, other in zip(results(relax.transform.LegalizeOps()(Network), inputs), results(Network, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@I.ir_module
class Normalized:
    @R.function
    def main(x: R.Tensor((2, 4, 3, 5), "float32"), c: R.Tensor((4,), "float32"), d: R.Tensor((4,), "float32"), r: R.Tensor((3, 5), "float32")):
        with R.dataflow():
            positive = R.exp(d)
            batch = R.nn.batch_norm(x, c, d, c, positive, axis=1, training=True)
            still = R.nn.batch_norm(x, c, d, c, positive, axis=1, training=False)
            layer = R.nn.layer_norm(x, r, r, axes=[-2, -1])
            group = R.nn.group_norm(x, c, d, num_groups=2, channel_axis=1, axes=[2, 3])
            root = R.nn.rms_norm(x, r, axes=[-2, -1])
            smooth = R.nn.silu(R.nn.gelu(R.nn.gelu_tanh(x)))
            joined = R.concat((x, layer, group), axis=1)
            turned = R.reshape(joined, (2, 9, 20))
            least = R.squeeze(R.expand_dims(x, [1, 3]), [3])
            again = R.repeat(r, 3)
            gv = (batch[0], batch[1], batch[2], still[0], layer, group, root, smooth, turned, least, again)
            R.output(gv)
        return gv


def test_both_forms_of_normalizations_compute_the_same():
    rng = np.random.default_rng(8)
    inputs = [rng.standard_normal([int(dim) for dim in p.ty.shape]).astype("float32") for p in Normalized["main"].params]
    for one, other in zip(results(relax.transform.LegalizeOps()(Normalized), inputs), results(Normalized, inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_activations_have_the_blocks_that_tvm_gives_them():
    kernels = relax.transform.LegalizeOps()(Normalized)
    blocks = {"silu": ["compute", "T_multiply"], "rms_norm": ["T_cast", "T_multiply", "T_multiply_red", "rsqrt", "T_cast_1", "T_rms_norm", "T_cast_2"]}
    for name, expected in blocks.items():
        assert re.findall(r'T.sblock\("(\w+)"\)', kernels[name].script().replace('"root"', "root")) == expected


@I.ir_module
class Loss:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32"), v: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")):
        with R.dataflow():
            batch = R.nn.cross_entropy_with_logits(x, y)
            one = R.nn.cross_entropy_with_logits(v, w)
            gv = (batch, one)
            R.output(gv)
        return gv


def test_a_loss_is_one_kernel_of_several_blocks():
    rng = np.random.default_rng(9)
    inputs = [rng.standard_normal([int(dim) for dim in p.ty.shape]).astype("float32") for p in Loss["main"].params]
    lowered = relax.transform.LegalizeOps()(Loss)
    assert len(lowered.functions) == 3
    blocks = re.findall(r'T.sblock\("(\w+)"\)', lowered["cross_entropy_with_logits"].script().replace('"root"', "root"))
    assert blocks == ["T_multiply", "T_multiply_red", "T_multiply_1", "T_divide"]
    x, y, v, w = inputs
    expected = [-(x * y).sum() / 2, -(v * w).sum()]
    for module in (lowered, Loss):
        for found, value in zip(results(module, inputs), expected, strict=True):
            np.testing.assert_allclose(found, value, rtol=1e-5)


def test_a_kernel_that_is_called_has_its_own_type():
    kernel = relax.transform.LegalizeOps()(Loss)
    lowered = relax.transform.CallTIRRewrite()(kernel)
    calls = [binding.value for block in lowered["main"].body.blocks for binding in block.bindings]
    calls = [call for call in calls if isinstance(call, relax.Call) and isinstance(call.op, tvm.ir.GlobalVar)]
    assert len(calls) == 2 and all(len(call.ty_args) == 0 for call in calls)


def test_one_negative_term_alone_is_a_product():
    h, k = tirx.Var("h", "int64"), tirx.Var("k", "int64")
    simple = tvm.sym.Analyzer().canonical_simplify
    for given, expected in ((-h, "h * T.int64(-1)"), (h - h * 3, "h * T.int64(-2)"), (-(h + k), "T.int64(0) - h - k"), (k - h, "k - h")):
        assert str(simple(given)) == expected


def test_padding_is_a_block_of_its_own():
    kernels = relax.transform.LegalizeOps()(Network)
    for name in ("conv1d", "max_pool2d", "avg_pool2d"):
        assert 'T.sblock("pad_temp")' in kernels[name].script(), name
    assert "if_then_else" not in kernels["max_pool2d"].script().split('T.sblock("pool_max")')[1]


def test_a_sum_has_its_literal_in_front_of_what_is_subtracted():
    h, k = tirx.Var("h", "int64"), tirx.Var("k", "int64")
    simple = tvm.sym.Analyzer().canonical_simplify
    for given, expected in ((h - k + 1, h + 1 - k), (h - k - 1, h - k - 1), (1 - k, 1 - k), (k + h * 2, h * 2 + k), (-k - 3, 0 - k - 3)):
        tvm.ir.assert_structural_equal(simple(given), expected)


def test_what_is_no_condition_is_refused():
    number, flag = tirx.Var("n", "int32"), tirx.Var("b", "bool")
    for wrong in (lambda: tirx.all(number, flag), lambda: tirx.any(flag, number), lambda: tirx.if_then_else(number, 1, 2)):
        with pytest.raises(tvm.error.InternalError, match="compare it"):
            wrong()
    with pytest.raises(tvm.error.InternalError, match="floats"):
        tirx.power(number, number)
    assert str(tirx.power(number, tirx.Var("x", "float64")).dtype) == "float64"
    with pytest.raises(tvm.error.InternalError, match="of type"):
        tirx.Let(number, tirx.Var("m", "int64"), number)


def test_a_second_definition_is_told_with_the_first():
    @T.prim_func(check_well_formed=False, s_tir=True)
    def func():
        x = T.int32()
        T.bind(42, var=x)
        T.bind(99, var=x)
        T.evaluate(x)

    with pytest.raises(ValueError, match="ill-formed, due to multiple nested definitions of variable x.*`x = 42`.*`x = 99`"):
        tirx.analysis.verify_well_formed(func)


def test_graphs_of_older_versions_get_the_names_of_today():
    graph = {
        "root_index": 1,
        "nodes": [{"type": "tirx.Var", "data": {"name_hint": 2}}, {"type": "tirx.Add", "data": {"a": 0, "b": 0}}, {"type": "arith.IterMark"}],
        "metadata": {"tvm_version": "0.26.dev0"},
    }
    nodes = json.loads(json_compact.upgrade_json(json.dumps(graph)))["nodes"]
    assert [node["type"] for node in nodes] == ["ir.Var", "ir.prim.Add", "sym.IterMark"]
    assert nodes[0]["data"] == {"name": 2}
    update = json_compact.create_updater({"tirx.Add": lambda node, nodes: {**node, "type": "x.Add"}}, "0.26", "0.27")
    assert update(graph)["nodes"][1]["type"] == "x.Add" and json_compact.get_version(graph) == "0.27"
    with pytest.raises(AssertionError, match="0.27"):
        update(graph)
    with pytest.raises(ValueError, match="0.16"):
        json_compact.upgrade_json(json.dumps({"nodes": [], "attrs": {}}))


@pytest.mark.parametrize("kind, field", [("ir.Var", "name"), ("ir.Var", "name_hint"), ("tirx.Var", "name"), ("relax.expr.Var", "name_hint")])
def test_a_variable_of_tvm_keeps_its_place_in_its_file(kind, field):
    graph = {
        "root_index": 4,
        "nodes": [
            {"type": "ir.SourceName", "data": "network.py"},
            {"type": "ir.Span", "data": {"source_name": 0, "line": 7, "column": 2, "end_line": 9, "end_column": 14}},
            {"type": "ir.PrimType", "data": {"dtype": "int64"}},
            {"type": "ffi.String", "data": "length"},
            {"type": kind, "data": {"span": 1, "ty": 2, field: 3}},
        ],
        "metadata": {"tvm_version": "0.26.0"},
    }
    var = tvm.ir.load_json(json.dumps(graph))
    assert type(var) is tirx.Var and var.name == "length" and str(var.dtype) == "int64"
    span = var.span
    assert (span.source_name.name, span.line, span.column, span.end_line, span.end_column) == ("network.py", 7, 2, 9, 14)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(var)), var, map_free_vars=True)
