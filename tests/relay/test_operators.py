"""Every operator that the reference could carry out gives what it gave, in the machine and in the interpreter.

``operators.tsv`` holds a call of each, ``operators.npz`` what it was given and what TVM 0.16 made of it.
"""

import pathlib

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relay

HERE = pathlib.Path(__file__).parent
HEADER = '#[version = "0.0.5"]\n'


def _cases():
    for line in (HERE / "operators.tsv").read_text().splitlines():
        yield line.split("\t")


CASES = list(_cases())


@pytest.fixture(scope="module")
def arrays():
    return np.load(HERE / "operators.npz")


def _given(arrays, kind, index):
    found = []
    while f"{index}.{kind}{len(found)}" in arrays:
        found.append(arrays[f"{index}.{kind}{len(found)}"])
    return found


def _program(name, text, inputs):
    params = (f"%{'abcdefgh'[i]}: Tensor[({', '.join(map(str, v.shape))}), {v.dtype}]" for i, v in enumerate(inputs))
    return f"def @{name}({', '.join(params)}) {{ {text} }}"


def _flat(value):
    if hasattr(value, "fields"):
        return [tensor for field in value.fields for tensor in _flat(field)]
    return [value.numpy()]


def _differences(found, expected):
    if [(a.shape, a.dtype) for a in found] != [(a.shape, a.dtype) for a in expected]:
        return f"{[(a.shape, str(a.dtype)) for a in found]} is not {[(a.shape, str(a.dtype)) for a in expected]}"
    for a, b in zip(found, expected):
        # Integers are equal to the last one; kernels of floats add in orders of their own.
        exact = a.dtype.kind in "iub"
        same = np.array_equal(a, b) if exact else np.allclose(a, b, rtol=1e-4, atol=2e-5, equal_nan=True)
        if not same:
            return f"{a.ravel()[:8]} is not {b.ravel()[:8]}"
    return None


def test_the_machine_gives_what_the_reference_gave(arrays):
    programs = [_program(f"c{i}", text, _given(arrays, "in", i)) for i, (_, text) in enumerate(CASES)]
    machine = relay.vm.VirtualMachine(relay.vm.compile(relay.parse(HEADER + "\n".join(programs)), "llvm"), tvm.cpu())
    wrong = {}
    for i, (name, _) in enumerate(CASES):
        found = _flat(machine.invoke(f"c{i}", *_given(arrays, "in", i)))
        difference = _differences(found, _given(arrays, "out", i))
        if difference:
            wrong[name] = difference
    assert not wrong


def test_the_interpreter_gives_what_the_reference_gave(arrays):
    wrong = {}
    for i, (name, text) in enumerate(CASES):
        inputs = _given(arrays, "in", i)
        mod = relay.parse(HEADER + _program("main", text, inputs))
        found = _flat(relay.create_executor("debug", mod).evaluate()(*inputs))
        difference = _differences(found, _given(arrays, "out", i))
        if difference:
            wrong[name] = difference
    assert not wrong


def test_texts_of_all_calls_are_printed_and_read_to_the_same(arrays):
    for i, (name, text) in enumerate(CASES):
        mod = relay.parse(HEADER + _program("main", text, _given(arrays, "in", i)))
        assert relay.parse(mod.astext()) == mod, name
        assert relay.load_json(relay.save_json(mod)) == mod, name


def test_unknown_operators_and_attributes_are_refused():
    with pytest.raises(AttributeError, match="no operator"):
        relay.op.get("nn.convolution")
    with pytest.raises(ValueError, match="did you mean `padding`"):
        relay.Call(relay.op.get("nn.conv2d"), [relay.var("x"), relay.var("w")], {"paddding": [1, 1]})
