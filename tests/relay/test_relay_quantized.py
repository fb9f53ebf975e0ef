"""Networks of 8-bit integers agree with ONNX Runtime on the same integers, with what TVM 0.16 gave, and in every executor."""

import pathlib
import sys

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, relay
from relaxide.relay import testing

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import relay_as_onnx  # noqa: E402
from test_relay_networks import inputs_of  # noqa: E402
from test_relay_onnxruntime import answers  # noqa: E402

HERE = pathlib.Path(__file__).parent
NETWORKS = {"resnet": testing.quantized.resnet.get_workload, "mobilenet": testing.quantized.mobilenet.get_workload}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_integers_gives_the_same_everywhere(name):
    mod, weights = NETWORKS[name](batch_size=4)
    (image,) = inputs_of(mod, weights)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    found = machine.invoke("main", image).numpy()
    # What TVM 0.16 gave for the text and the weights: integers are equal to the last bit, and so are the floats made of them.
    np.testing.assert_allclose(found, np.load(HERE / "quantized.npz")[name], rtol=1e-6, atol=1e-6)
    # ONNX Runtime rounds the sums as floats, where a number in the middle between two goes another way now and then.
    expected = answers(relay_as_onnx.as_onnx(mod, weights), ["data"], [image])
    np.testing.assert_allclose(found, expected, rtol=0, atol=0.02 * np.abs(expected).max())
    assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()
    program = tvm.compile(relay.to_relax(relay.vm.bind_params(mod, weights)), "llvm")
    by_relax = relax.VirtualMachine(program, tvm.cpu())["main"](tvm.runtime.tensor(image)).numpy()
    np.testing.assert_allclose(by_relax, found, rtol=1e-6, atol=1e-6)
    graph = relay.create_executor("graph", mod, params=weights).evaluate()(image).numpy()
    np.testing.assert_array_equal(graph, found)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_of_integers_takes_batches_of_any_size(name):
    mod, weights = NETWORKS[name](batch_size=relay.Any())
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    for batch in (1, 2, 5):
        known, same = NETWORKS[name](batch_size=batch)
        (images,) = inputs_of(known, same)
        expected = relay.create_executor("vm", known, params=same).evaluate()(images).numpy()
        np.testing.assert_allclose(machine.invoke("main", images).numpy(), expected, rtol=1e-6, atol=1e-6)


def test_a_small_network_of_integers_is_interpreted_alike():
    mod, weights = testing.quantized.resnet.get_workload(image_shape=(3, 8, 8), width=4)
    (image,) = inputs_of(mod, weights)
    found = relay.create_executor("vm", mod, params=weights).evaluate()(image).numpy()
    interpreted = relay.create_executor("debug", mod, params=weights).evaluate()(image).numpy()
    np.testing.assert_allclose(interpreted, found, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rounding", ["UPWARD", "TONEAREST", None])
def test_sums_between_scales_that_are_no_constants_are_rounded_as_asked(rounding):
    attrs = f', rounding="{rounding}"' if rounding else ""
    mod = relay.parse(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?), int32], %s: float32, %z: int32, %t: float32, %u: int32)'
        f' {{ qnn.requantize(%x, %s, %z, %t, %u{attrs}, out_dtype="int8") }}'
    )
    # Every scale is a power of two, so the halves are halves.
    values, scale, zero, other, moved = np.arange(-600, 600, dtype="int32"), np.float32(0.25), np.int32(3), np.float32(2), np.int32(-5)
    exact = (values - zero) * (0.25 / 2)
    away = np.sign(exact) * np.floor(np.abs(exact) + 0.5)
    expected = np.clip((away if rounding == "TONEAREST" else np.floor(exact + 0.5)) + moved, -128, 127).astype("int8")
    args = (values, scale, zero, other, moved)
    for kind in ("debug", "vm"):
        found = relay.create_executor(kind, mod).evaluate()(*args).numpy()
        np.testing.assert_array_equal(found, expected, err_msg=kind)
    program = relax.VirtualMachine(tvm.compile(relay.to_relax(mod), "llvm"), tvm.cpu())
    found = program["main"](*(tvm.runtime.tensor(np.asarray(arg)) for arg in args)).numpy()
    np.testing.assert_array_equal(found, expected)
