"""What a user reads where lengths do not fit when a model runs: which operator, which input, which dimension, and both numbers."""

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper

import relaxide
from relaxide import compiler
from relaxide.relax import VirtualMachine
from relaxide.relax.frontend.onnx import from_onnx

OF_NUMPY = {"f": T.FLOAT, "i": T.INT64, "b": T.BOOL}


def node(op, inputs, output="y", name="node", **attrs):
    return helper.make_node(op, inputs, [output], name=name, **attrs)


def floats(*shape):
    return np.ones(shape, "f4")


def integers(*values):
    return np.array(values, "i8")


#: Nodes; inputs by name with their dimensions and what is fed; the message.
CASES = [
    (
        [node("MatMul", ["x", "w"])],
        {"x": (["a", "b"], floats(2, 3)), "w": (["c", "d"], floats(4, 5))},
        '`w` must be R.Tensor((b, d), dtype="float32"): dimension 0 is 4, not 3 (in MatMul `node`)',
    ),
    (
        [node("Concat", ["x", "w"], axis=0)],
        {"x": (["a", "b"], floats(2, 3)), "w": (["c", "d"], floats(4, 5))},
        '`w` must be R.Tensor((c, b), dtype="float32"): dimension 1 is 5, not 3 (in Concat `node`)',
    ),
    (
        [node("Add", ["x", "w"])],
        {"x": (["a", "b"], floats(2, 3)), "w": (["c", "d"], floats(4, 5))},
        "lengths must be the same, or 1: dimension 1 of `x` is 3, dimension 1 of `w` is 5 (in Add `node`)",
    ),
    (
        [node("Where", ["c", "x", "w"])],
        {"c": (["q"], np.ones(3, "?")), "x": (["a"], floats(4)), "w": (["b"], floats(1))},
        "lengths must be the same, or 1: dimension 0 of `c` is 3, dimension 0 of `x` is 4, dimension 0 of `w` is 1 "
        "(in Where `node`)",
    ),
    (
        [node("NonZero", ["x"], "t", "found"), node("Add", ["t", "w"])],
        {"x": (["a", "b"], floats(2, 3)), "w": ([2, 5], np.ones((2, 5), "i8"))},
        "lengths must be the same, or 1: dimension 1 of the result of NonZero `found` is 6, dimension 1 of `w` is 5 "
        "(in Add `node`)",
    ),
    (
        [node("Reshape", ["x", "s"])],
        {"x": (["a", "b"], floats(2, 3)), "s": ([2], integers(4, 5))},
        "the new shape must have as many elements as the tensor: the product of the new sizes is 20, the number of elements "
        "is 6 (in Reshape `node`)",
    ),
    (
        [node("Reshape", ["x", "s"])],
        {"x": (["a", "b"], floats(2, 3)), "s": ([2], integers(-1, -1))},
        "one size at most may be -1: the number of those is 2 (in Reshape `node`)",
    ),
    (
        [node("Reshape", ["x", "s"], "t", "new"), node("MatMul", ["t", "w"])],
        {"x": (["a", "b"], floats(2, 3)), "s": ([2], integers(3, 2)), "w": ([4, 5], floats(4, 5))},
        'the result of Reshape `new` must be R.Tensor((d0, 4), dtype="float32"): dimension 1 is 2, not 4 (in MatMul `node`)',
    ),
    (
        [node("Expand", ["x", "s"])],
        {"x": (["a", "b"], floats(2, 3)), "s": ([2], integers(4, 5))},
        "lengths must be the same, or 1: dimension 0 is 2, size 0 of the new shape is 4 (in Expand `node`)",
    ),
    (
        [node("Squeeze", ["x", "s"])],
        {"x": (["a", "b"], floats(2, 3)), "s": ([1], integers(0))},
        "an axis that goes away must have one element: axis 0 is 0, dimension 0 is 2, dimension 1 is 3 (in Squeeze `node`)",
    ),
    (
        [node("TopK", ["x", "k"], "y")],
        {"x": (["a", "b"], floats(2, 3)), "k": ([1], integers(9))},
        "`k` must be no more than there are elements: `k` is 9, dimension 1 is 3 (in TopK `node`)",
    ),
    (
        [node("Relu", ["x"])],
        {"x": (["a", 4], floats(2, 3))},
        'argument `x` of `main` must be R.Tensor((a, 4), dtype="float32"): dimension 1 is 3, not 4 (in Relu `node`)',
    ),
]


def in_graph(nodes, inputs, value):
    """The nodes in the graph of the model."""
    return nodes, [], value


def in_branches(nodes, inputs, value):
    """The nodes in both branches of a condition that a number of the graph has."""
    branch = lambda name: helper.make_graph(nodes, name, [], [value])  # noqa: E731
    some = [node("Size", [next(iter(inputs))], "size"), node("Cast", ["size"], "some", to=T.BOOL)]
    return [*some, node("If", ["some"], then_branch=branch("one"), else_branch=branch("other"))], [], value


def in_loop(nodes, inputs, value):
    """The nodes in a loop of as many iterations as an input has elements."""
    scalar = lambda name, of: helper.make_tensor_value_info(name, of, [])  # noqa: E731
    body = [*nodes, node("Identity", ["going"], "goes_on")]
    body = helper.make_graph(body, "body", [scalar("i", T.INT64), scalar("going", T.BOOL)], [scalar("goes_on", T.BOOL), value])
    return [node("Size", [next(iter(inputs))], "size"), node("Loop", ["size", ""], "all", body=body)], [], helper.make_tensor_value_info("all", value.type.tensor_type.elem_type, None)


def in_function(nodes, inputs, value):
    """The nodes in a function of the model's."""
    names = list(inputs)
    function = helper.make_function("own", "F", names, ["y"], nodes, [helper.make_opsetid("", 20)])
    return [helper.make_node("F", names, ["y"], name="call", domain="own")], [function], value


PLACES = [in_graph, in_branches, in_loop, in_function]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_length_that_does_not_fit_is_told_with_its_place_and_both_numbers(case, place):
    nodes, inputs, message = CASES[case]
    if message.startswith("argument") and place is not in_graph:
        pytest.skip("the graph's argument is checked where the graph begins")
    if nodes[-1].op_type == "TopK":
        nodes[-1].output[:] = ["y", "places"]
    given = [helper.make_tensor_value_info(name, OF_NUMPY[value.dtype.kind], dims) for name, (dims, value) in inputs.items()]
    whole = nodes[-1].op_type == "Add" and nodes[0].op_type == "NonZero"
    value = helper.make_tensor_value_info("y", T.INT64 if whole else T.FLOAT, None)
    outer, functions, value = place(nodes, inputs, value)
    opsets = [helper.make_opsetid("", 20), *[helper.make_opsetid("own", 1)] * len(functions)]
    model = helper.make_model(helper.make_graph(outer, "g", given, [value]), functions=functions, opset_imports=opsets)
    vm = VirtualMachine(compiler.compile(from_onnx(model), target="llvm"), relaxide.cpu())
    with pytest.raises(ValueError) as error:
        vm["main"](*[relaxide.runtime.tensor(value) for _, value in inputs.values()])
    assert str(error.value).strip() == message
