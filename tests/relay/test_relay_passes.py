"""Passes over Relay: files of a program, the pass, and what it gives; and every pass keeps what networks compute.

``RELAXIDE_BLESS=1`` writes what the passes give into the files.
"""

import json
import os
import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relay
from relaxide.relay import testing, transform

FILES = sorted((pathlib.Path(__file__).parent / "passes").glob("*.relay"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pass_gives_what_its_file_says(path):
    head, _, rest = path.read_text().partition("\n")
    name, _, option = head.removeprefix("// pass ").partition(" ")
    source, _, expected = rest.partition("// ----\n")
    key, _, value = option.partition("=")
    options = {key: json.loads(value)} if key else {}
    found = getattr(transform, name)(**options)(relay.parse(source, path.name)).astext()
    # What a pass gives is a program: it is read again, and its types are inferred.
    assert relay.parse(found, "result") is not None
    if os.environ.get("RELAXIDE_BLESS"):
        path.write_text(f"{head}\n{source}// ----\n{found}")
    else:
        assert found == expected


def _inputs(mod, weights):
    random = np.random.default_rng(3)
    return {
        var.name_hint: random.standard_normal(var.type_annotation.concrete_shape).astype("float32")
        for var in mod["main"].params
        if var.name_hint not in weights
    }


def _run(mod, inputs):
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    return machine.invoke("main", **inputs).numpy()


NETWORKS = {
    "resnet": lambda: testing.resnet.get_workload(num_classes=4, image_shape=(3, 16, 16), width=4),
    "squeezenet": lambda: testing.squeezenet.get_workload(num_classes=4, image_shape=(3, 32, 32), version="1.1"),
}
PASSES = {
    "for inference": ["SimplifyInference", "FoldConstant", "SimplifyExpr", "FoldScaleAxis", "EliminateCommonSubexpr"],
    "one kernel each": ["FuseOps"],
    "fused and defused": ["FuseOps", "DefuseOps", "CanonicalizeOps"],
    "named": ["ToANormalForm", "FastMath", "ToBasicBlockNormalForm", "DeadCodeElimination"],
}


@pytest.mark.parametrize("network", NETWORKS)
def test_passes_keep_what_a_network_computes(network):
    mod, weights = NETWORKS[network]()
    mod = relay.vm.bind_params(mod, weights)
    inputs = _inputs(mod, {})
    expected = _run(mod, inputs)
    for what, names in PASSES.items():
        changed = mod
        for name in names:
            changed = getattr(transform, name)()(changed)
        np.testing.assert_allclose(_run(changed, inputs), expected, rtol=1e-3, atol=1e-5, err_msg=what)


def test_another_layout_gives_the_same():
    mod, weights = NETWORKS["squeezenet"]()
    mod = relay.vm.bind_params(mod, weights)
    inputs = _inputs(mod, {})
    wish = {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC", "default"]}
    changed = transform.ConvertLayout(wish)(mod)
    assert 'data_layout="NHWC"' in changed.astext()
    np.testing.assert_allclose(_run(changed, inputs), _run(mod, inputs), rtol=1e-3, atol=1e-5)


def test_half_precision_is_near():
    mod, weights = NETWORKS["resnet"]()
    mod = relay.vm.bind_params(mod, weights)
    inputs = _inputs(mod, {})
    changed = transform.ToMixedPrecision()(mod)
    assert "float16" in changed.astext()
    found = _run(changed, inputs)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, _run(mod, inputs), rtol=0.1, atol=0.03)


def test_an_operator_of_which_no_precision_is_said_is_refused_if_that_is_asked_for():
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 2), float32]) { sin(nn.dense(%x, %x, units=2)) }')
    with pytest.raises(ValueError, match="sin.*missing_op_mode=1"):
        transform.ToMixedPrecision("float16", 0)(mod)
    for mode in (1, 2):
        assert "float16" in transform.ToMixedPrecision("float16", mode)(mod).astext()
    with pytest.raises(ValueError, match="0, 1 or 2"):
        transform.ToMixedPrecision("float16", 3)(mod)


def test_memory_passes_and_blocks_of_channels_keep_what_a_network_computes():
    mod, weights = NETWORKS["resnet"]()
    mod = transform.SimplifyInference()(relay.vm.bind_params(mod, weights))
    inputs = _inputs(mod, {})
    blocked = transform.AlterOpLayout()(transform.Legalize()(mod))
    assert "nn.contrib_conv2d_NCHWc" in blocked.astext()
    np.testing.assert_allclose(_run(blocked, inputs), _run(mod, inputs), rtol=1e-3, atol=1e-5)


def test_scales_beside_layers_become_part_of_their_weights():
    x = relay.var("x", shape=(1, 3, 6, 6))
    random = np.random.default_rng(0)
    weight = relay.const(random.standard_normal((4, 3, 3, 3)).astype("float32"))
    scale = relay.const(random.uniform(0.5, 2, (4, 1, 1)).astype("float32"))
    first = relay.const(random.uniform(0.5, 2, (3, 1, 1)).astype("float32"))
    y = relay.nn.conv2d(relay.nn.relu(x * first), weight, channels=4, kernel_size=(3, 3))
    y = relay.nn.bias_add(y, relay.const(random.standard_normal(4).astype("float32"))) * scale
    mod = relay.IRModule.from_expr(relay.Function([x], y))
    folded = transform.FoldScaleAxis()(mod)
    assert "multiply" not in folded.astext()
    inputs = {"x": random.standard_normal((1, 3, 6, 6)).astype("float32")}
    np.testing.assert_allclose(_run(folded, inputs), _run(mod, inputs), rtol=1e-4, atol=1e-5)


def test_what_is_no_pass_or_option_is_refused():
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: float32) { %x }')
    with pytest.raises(AttributeError):
        transform.NoSuchPass
    with pytest.raises(TypeError, match="no parameter"):
        transform.FuseOps(level=3)
    with pytest.raises(ValueError, match="desired_layouts"):
        transform.ConvertLayout()(mod)


def test_sequences_run_passes_up_to_their_level():
    mod = relay.parse('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { add(exp(%x), exp(%x)) }')
    sequence = transform.Sequential([transform.EliminateCommonSubexpr()])
    with tvm.transform.PassContext(opt_level=1):
        assert sequence(mod).astext() == mod.astext()
    with tvm.transform.PassContext(opt_level=3):
        assert sequence(mod).astext() != mod.astext()
