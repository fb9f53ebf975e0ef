"""Networks written in Relay give what ONNX Runtime gives on the same weights: in the Relay VM, and by way of Relax."""

import os
import pathlib
import sys

import numpy as np
import onnxruntime
import pytest

import relaxide as tvm
from relaxide import relax, relay

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import relay_as_onnx  # noqa: E402
import test_relay_networks as networks  # noqa: E402

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))


def answers(model, names, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs)))[0]


def check(mod, weights):
    inputs = networks.inputs_of(mod, weights)
    names = [var.name_hint for var in mod["main"].params if var.name_hint not in weights]
    model = relay_as_onnx.as_onnx(mod, weights)
    expected = answers(model, names, inputs)
    found = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu()).invoke("main", *inputs)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
    return model, names, inputs, expected


@pytest.mark.parametrize("name", networks.NETWORKS if DEEP else networks.USUAL)
def test_a_network_gives_what_onnx_runtime_gives(name):
    check(*networks.NETWORKS[name]())


@pytest.mark.parametrize("name", networks.LARGE if DEEP else [])
def test_a_network_of_its_papers_size_gives_what_onnx_runtime_gives(name):
    check(*networks.LARGE[name]())


@pytest.mark.parametrize("name", networks.NETWORKS if DEEP else ["mlp", "squeezenet", "lstm", "bert"])
def test_a_network_comes_back_from_onnx(name):
    """The same network read by the importer gives the same again."""
    model, names, inputs, expected = check(*networks.NETWORKS[name]())
    mod, weights = relay.frontend.from_onnx(model, freeze_params=False)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    order = [var.name_hint for var in mod["main"].params if var.name_hint not in weights]
    given = dict(zip(names, inputs))
    found = machine.invoke("main", *[given[name] for name in order])
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
