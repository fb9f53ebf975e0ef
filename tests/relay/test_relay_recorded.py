"""What TVM 0.16 recorded runs here and gives what it gave: its executables, its saved graphs and its printed programs."""

import json
import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, relay

HERE = pathlib.Path(__file__).parent
NAMES = ["closure", "const", "dense", "dynshape", "if_dyn", "list_sum", "loop", "tuple_match"]


def _softmax(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def _same_shape(shape):
    return shape


#: What the kernels of each executable compute; the executables come without their library, and kernels of one name differ.
KERNELS = {
    "closure": {"fused_add": np.add},
    "const": {},
    "dense": {
        "fused_nn_dense_nn_bias_add_nn_relu": lambda x, w, b: np.maximum(x @ w.T + b, 0),
        "fused_nn_softmax": _softmax,
    },
    "dynshape": {
        "shape_func_concatenate": lambda a, b: np.array([a[0] + b[0], a[1]]),
        "fused_prod": np.prod,
        "fused_multiply": lambda elements: elements * 4,
        "fused_concatenate": lambda a, b: np.concatenate([a, b]),
        "fused_shape_of": lambda x: np.array(x.shape),
        "shape_func_reshape": lambda shape: np.array([shape.prod()]),
        "shape_func_dyn_zeros": _same_shape,
        "fused_dyn_zeros": lambda shape: np.zeros(shape),
    },
    "if_dyn": {
        "fused_greater": lambda n: n > 0,
        "shape_func_nn_relu": _same_shape,
        "fused_prod": np.prod,
        "fused_multiply": lambda elements: elements * 4,
        "fused_nn_relu": lambda x: np.maximum(x, 0),
        "shape_func_negative": _same_shape,
        "fused_negative": np.negative,
        "fused_add": lambda n: n + 1,
    },
    "list_sum": {"fused_add": np.add},
    "loop": {"fused_equal": lambda i: i == 0, "fused_subtract": lambda i: i - 1, "fused_add": np.add},
    "tuple_match": {"fused_multiply": lambda n: n * 2, "fused_add": np.add},
}


def cases(name):
    """The inputs and the outputs that were recorded."""
    array = lambda value: np.array(value["data"], value["dtype"]).reshape(value["shape"])

    def output(value):
        return (value["tag"], [output(field) for field in value["fields"]]) if "fields" in value else array(value)

    recorded = json.loads((HERE / f"{name}.results.json").read_text())
    return [([array(value) for value in case["inputs"]], output(case["output"])) for case in recorded]


def check(found, expected):
    if isinstance(expected, tuple):
        tag, fields = expected
        assert found.tag == tag and len(found.fields) == len(fields)
        for value, wanted in zip(found.fields, fields):
            check(value, wanted)
        return
    found = found.numpy()
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def check_in_relax(found, expected):
    """Tuples are tuples there."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected[1])
        for value, wanted in zip(found, expected[1]):
            check_in_relax(value, wanted)
    else:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def _kernel(compute):
    def call(*tensors):
        *inputs, out = tensors
        out.copyfrom(np.asarray(compute(*(tensor.numpy() for tensor in inputs))).astype(str(out.dtype)))

    return call


@pytest.mark.parametrize("name", NAMES)
def test_an_executable_of_the_reference_runs_with_kernels_of_the_user(name):
    exe = relay.vm.Executable.load_exec(bytes.fromhex((HERE / f"{name}.ro.hex").read_text()), None)
    assert sorted(exe.primitive_ops) == sorted(f"vm_mod_{kernel}" for kernel in KERNELS[name])
    for kernel, compute in KERNELS[name].items():
        tvm.register_global_func(f"vm_mod_{kernel}", _kernel(compute), override=True)
    machine = relay.vm.VirtualMachine(exe, tvm.cpu())
    for inputs, expected in cases(name):
        check(machine.invoke("main", *inputs), expected)


@pytest.mark.parametrize("form", ["astext.txt", "anf.txt", "mod.json"])
@pytest.mark.parametrize("name", NAMES)
def test_every_recorded_form_of_a_program_gives_what_was_recorded(name, form):
    text = (HERE / f"{name}.{form}").read_text()
    mod = relay.load_json(text) if form == "mod.json" else relay.parse(text)
    interpreter = relay.create_executor("debug", mod).evaluate()
    machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    by_relax = relax.VirtualMachine(tvm.compile(relay.to_relax(mod), "llvm"), tvm.cpu())
    for inputs, expected in cases(name):
        check(interpreter(*inputs), expected)
        check(machine.invoke("main", *inputs), expected)
        check_in_relax(by_relax["main"](*map(tvm.runtime.tensor, inputs)), expected)
