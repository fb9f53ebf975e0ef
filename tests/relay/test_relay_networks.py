"""Networks agree: in the Relay VM, in the graph executor, by way of Relax, and with what TVM 0.16 gave on the same weights."""

import os
import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, relay
from relaxide.relay import testing

HERE = pathlib.Path(__file__).parent
NETWORKS = {
    "mlp": lambda: testing.mlp.get_workload(),
    "resnet18": lambda: testing.resnet.get_workload(num_layers=18, num_classes=10, image_shape=(3, 32, 32), width=8),
    "resnet50": lambda: testing.resnet.get_workload(num_layers=50, num_classes=10, image_shape=(3, 64, 64), width=8),
    "mobilenet": lambda: testing.mobilenet.get_workload(num_classes=10, image_shape=(3, 32, 32), multiplier=0.25),
    "squeezenet": lambda: testing.squeezenet.get_workload(num_classes=10, image_shape=(3, 64, 64), version="1.1"),
    "vgg": lambda: testing.vgg.get_workload(num_classes=10, image_shape=(3, 32, 32), width=8, hidden=32),
    "densenet": lambda: testing.densenet.get_workload(classes=10, image_shape=(3, 32, 32), blocks=[2, 3, 2], growth=8),
    "dcgan": lambda: testing.dcgan.get_workload(ngf=8),
    "inception": lambda: testing.inception_v3.get_workload(num_classes=10, image_shape=(3, 139, 139), width=0.125),
    "lstm": lambda: testing.lstm.get_workload(),
    "bert": lambda: testing.bert.get_workload(),
}


#: Those that every change is tried on; the others take longer.
USUAL = ["mlp", "resnet18", "mobilenet", "squeezenet", "vgg", "dcgan", "lstm", "bert"]
DEEP = bool(os.environ.get("RELAXIDE_DEEP"))
#: In the sizes of their papers.
LARGE = {
    "resnet18": lambda: testing.resnet.get_workload(num_layers=18),
    "resnet50": lambda: testing.resnet.get_workload(num_layers=50),
    "mobilenet": lambda: testing.mobilenet.get_workload(),
    "squeezenet": lambda: testing.squeezenet.get_workload(),
    "densenet": lambda: testing.densenet.get_workload(),
    "vgg": lambda: testing.vgg.get_workload(),
    "inception": lambda: testing.inception_v3.get_workload(),
}


def inputs_of(mod, weights):
    random = np.random.default_rng(1)
    found = []
    for var in mod["main"].params:
        if var.name_hint not in weights:
            shape, dtype = var.type_annotation.concrete_shape, var.type_annotation.dtype
            numbers = random.integers(0, 100, shape) if dtype == "int64" else random.standard_normal(shape)
            found.append(numbers.astype(str(dtype)))
    return found


@pytest.mark.parametrize("name", NETWORKS if DEEP else USUAL)
def test_a_network_gives_the_same_everywhere(name):
    mod, weights = NETWORKS[name]()
    inputs = inputs_of(mod, weights)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    found = machine.invoke("main", *inputs).numpy()
    # What TVM 0.16 gave for the text and the weights.
    np.testing.assert_allclose(found, np.load(HERE / "networks.npz")[name], rtol=1e-4, atol=1e-5)
    program = tvm.compile(relay.to_relax(relay.vm.bind_params(mod, weights)), "llvm")
    by_relax = relax.VirtualMachine(program, tvm.cpu())["main"](*map(tvm.runtime.tensor, inputs)).numpy()
    np.testing.assert_allclose(by_relax, found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LARGE if DEEP else [])
def test_a_network_of_its_papers_size_gives_the_same_everywhere(name):
    mod, weights = LARGE[name]()
    inputs = inputs_of(mod, weights)
    found = relay.create_executor("vm", mod, params=weights).evaluate()(*inputs).numpy()
    graph = relay.create_executor("graph", mod, params=weights).evaluate()(*inputs).numpy()
    np.testing.assert_array_equal(graph, found)
    program = tvm.compile(relay.to_relax(relay.vm.bind_params(mod, weights)), "llvm")
    by_relax = relax.VirtualMachine(program, tvm.cpu())["main"](*map(tvm.runtime.tensor, inputs)).numpy()
    np.testing.assert_allclose(by_relax, found, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mlp", "squeezenet", "lstm"])
def test_a_network_gives_the_same_in_the_graph_executor(name):
    mod, weights = NETWORKS[name]()
    inputs = inputs_of(mod, weights)
    found = relay.create_executor("vm", mod, params=weights).evaluate()(*inputs).numpy()
    graph = relay.create_executor("graph", mod, params=weights).evaluate()(*inputs).numpy()
    np.testing.assert_array_equal(graph, found)


def test_the_interpreter_agrees_on_small_networks():
    for mod, weights in (testing.lstm.get_workload(2, 4), testing.bert.get_workload(1, 4, 1, 8, 2, 20)):
        inputs = [value % 20 for value in inputs_of(mod, weights)] if "tokens" in mod.astext() else inputs_of(mod, weights)
        found = relay.create_executor("vm", mod, params=weights).evaluate()(*inputs).numpy()
        interpreted = relay.create_executor("debug", mod, params=weights).evaluate()(*inputs).numpy()
        np.testing.assert_allclose(interpreted, found, rtol=1e-4, atol=1e-5)


def test_a_text_of_any_length_goes_through_one_encoder():
    mod, weights = testing.bert.get_workload(1, relay.Any())
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    by_relax = tvm.compile(relay.to_relax(relay.vm.bind_params(mod, weights)), "llvm")
    by_relax = relax.VirtualMachine(by_relax, tvm.cpu())
    for length in (1, 7, 16):
        tokens = np.random.default_rng(length).integers(0, 100, (1, length))
        found = machine.invoke("main", tokens).numpy()
        known, same_weights = testing.bert.get_workload(1, length)
        expected = relay.create_executor("vm", known, params=same_weights).evaluate()(tokens).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        relaxed = by_relax["main"](tvm.runtime.tensor(tokens)).numpy()
        np.testing.assert_allclose(relaxed, expected, rtol=1e-4, atol=1e-5)


#: By the size of a batch.
BATCHES = {
    "mobilenet": lambda b: testing.mobilenet.get_workload(b, 10, (3, 32, 32), multiplier=0.25),
    "mlp": lambda b: testing.mlp.get_workload(b),
    "resnet18": lambda b: testing.resnet.get_workload(b, 10, num_layers=18, image_shape=(3, 32, 32), width=8),
    "resnet50": lambda b: testing.resnet.get_workload(b, 10, num_layers=50, image_shape=(3, 64, 64), width=8),
    "squeezenet": lambda b: testing.squeezenet.get_workload(b, 10, image_shape=(3, 64, 64), version="1.1"),
    "vgg": lambda b: testing.vgg.get_workload(b, 10, image_shape=(3, 32, 32), width=8, hidden=32),
    "densenet": lambda b: testing.densenet.get_workload(
        classes=10, batch_size=b, image_shape=(3, 32, 32), blocks=[2, 3, 2], growth=8
    ),
    "dcgan": lambda b: testing.dcgan.get_workload(b, ngf=8),
    "inception": lambda b: testing.inception_v3.get_workload(b, 10, image_shape=(3, 139, 139), width=0.125),
}


@pytest.mark.parametrize("name", BATCHES if DEEP else ["mobilenet", "dcgan"])
def test_a_network_takes_batches_of_any_size(name):
    mod, weights = BATCHES[name](relay.Any())
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    for batch in (1, 2, 5):
        known, same_weights = BATCHES[name](batch)
        inputs = inputs_of(known, same_weights)
        expected = relay.create_executor("vm", known, params=same_weights).evaluate()(*inputs).numpy()
        np.testing.assert_allclose(machine.invoke("main", *inputs).numpy(), expected, rtol=1e-4, atol=1e-5)


#: Fully convolutional in front of one mean for each channel, so that images of any size go through.
IMAGES = {
    "densenet": lambda side: testing.densenet.get_workload(
        classes=10, image_shape=(3, side, side), blocks=[2, 3], growth=8
    ),
    "inception": lambda side: testing.inception_v3.get_workload(1, 10, image_shape=(3, side, side), width=0.125),
}


@pytest.mark.parametrize("name", IMAGES if DEEP else [])
def test_a_network_takes_images_of_any_size(name):
    mod, weights = IMAGES[name](relay.Any())
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    for side in (139, 155, 172):
        known, same_weights = IMAGES[name](side)
        inputs = inputs_of(known, same_weights)
        expected = relay.create_executor("vm", known, params=same_weights).evaluate()(*inputs).numpy()
        np.testing.assert_allclose(machine.invoke("main", *inputs).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_an_unrolled_lstm_takes_batches_of_any_size():
    mod, weights = testing.lstm.get_workload(6, 4, batch_size=relay.Any())
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    program = tvm.compile(relay.to_relax(relay.vm.bind_params(mod, weights)), "llvm")
    by_relax = relax.VirtualMachine(program, tvm.cpu())
    for batch in (1, 2, 5):
        known, same_weights = testing.lstm.get_workload(6, 4, batch_size=batch)
        inputs = inputs_of(known, same_weights)
        expected = relay.create_executor("vm", known, params=same_weights).evaluate()(*inputs).numpy()
        np.testing.assert_allclose(machine.invoke("main", *inputs).numpy(), expected, rtol=1e-4, atol=1e-5)
        found = by_relax["main"](*(tvm.runtime.tensor(value) for value in inputs)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_what_is_computed_of_large_constants_is_computed_once():
    # Interpreted, it would take longer than a compilation may; so it is compiled and run, by either compiler.
    weight = relay.const(np.random.default_rng(0).standard_normal((600, 600)).astype("float32"))
    x = relay.var("x", shape=(600,))
    product = relay.op.nn.dense(weight, weight, units=600)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.op.add(product, x)))
    assert relay.vm.compile(mod, "llvm").primitive_ops == ["vm_mod_fused_add"]


def test_an_lstm_runs_over_a_list_of_any_length():
    mod, weights = testing.lstm.over_list(num_hidden=4)
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
    nil, cons = (ctor.tag for ctor in sorted(relay.Prelude().get_type("List")[1:], key=lambda ctor: ctor.name == "Cons"))
    wi, wh = weights["i2h_weight"].numpy(), weights["h2h_weight"].numpy()
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    for length in (0, 1, 40):
        steps = np.random.default_rng(length).standard_normal((length, 1, 4)).astype("float32")
        listed = relay.vm.ADT(nil, [])
        for step in steps[::-1]:
            listed = relay.vm.ADT(cons, [step, listed])
        hidden = cell = np.zeros((1, 4), "float32")
        for step in steps:
            i, f, g, o = np.split(step @ wi.T + hidden @ wh.T, 4, axis=1)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
        np.testing.assert_allclose(machine.invoke("main", listed).numpy(), hidden, rtol=1e-4, atol=1e-6)
