"""A program that was compiled for other lengths says so by the kind of its error, and nothing else is compiled again."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import relaxide
import relaxide.onnxruntime as door
from relaxide import _core, relax
from relaxide.onnxruntime import _compiled
from relaxide.relax.frontend.onnx import from_onnx


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAXIDE_CACHE", str(tmp_path / "cache"))


def model(nodes, inputs, outputs, weights=()):
    values = lambda infos: [h.make_tensor_value_info(name, T.FLOAT, shape) for name, shape in infos]  # noqa: E731
    graph = h.make_graph(nodes, "g", values(inputs), values(outputs), list(weights))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 11)], ir_version=8)


def squeezed():
    return model([h.make_node("Squeeze", ["x"], ["y"])], [("x", ["n", 4])], [("y", None)])


def test_the_error_of_a_guard_has_a_kind_and_others_have_not():
    vm = relax.VirtualMachine(relaxide.compile(from_onnx(squeezed()), "llvm"), relaxide.cpu())
    of = lambda shape: relaxide.runtime.tensor(np.zeros(shape, "float32"))  # noqa: E731
    with pytest.raises(_core.ShapeGuardError, match="number of axes that the model was compiled for"):
        vm["main"](of((1, 4)))
    with pytest.raises(ValueError, match="dimension 1 is 5, not 4") as caught:
        vm["main"](of((3, 5)))
    assert not isinstance(caught.value, _core.ShapeGuardError)


def test_words_in_a_message_compile_nothing(monkeypatch):
    said = "the model was compiled for"
    node = h.make_node("MatMul", [said, "w"], ["y"], name=said)
    made = model([node], [(said, ["n", "k"])], [("y", None)], [nh.from_array(np.ones((4, 2), "float32"), "w")])
    session = door.InferenceSession(made.SerializeToString())
    monkeypatch.setattr(_compiled, "_compile", lambda *_: pytest.fail("the model is compiled again"))
    with pytest.raises(door.RuntimeException):
        session.run(None, {said: np.zeros((3, 5), "float32")})


@pytest.mark.parametrize("ort", [onnxruntime, door], ids=["onnxruntime", "relaxide"])
def test_weights_among_the_inputs_may_be_given(ort):
    weights = [nh.from_array(np.full(3, value, "float32"), name) for name, value in (("w", 2), ("b", 1))]
    nodes = [h.make_node("Mul", ["x", "w"], ["m"]), h.make_node("Add", ["m", "b"], ["y"])]
    made = model(nodes, [("x", ["n", 3]), ("w", [3]), ("b", [3])], [("y", ["n", 3])], weights)
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    x, other = np.ones((2, 3), "float32"), np.full(3, 5, "float32")
    for feed, expected in (({}, 3), ({"w": other}, 6), ({"b": other}, 7), ({"b": other, "w": other}, 10), ({}, 3), ({"w": other * 2}, 11)):
        [y] = session.run(None, {"x": x, **feed})
        assert (y == expected).all()


def test_a_guard_behind_a_recurrence_has_its_kind():
    rng = np.random.default_rng(0)
    weights = [nh.from_array(rng.standard_normal((1, 12, 4)).astype("float32"), name) for name in "wr"]
    nodes = [h.make_node("GRU", ["x", "w", "r", "", "", "h"], ["states"], hidden_size=4), h.make_node("Squeeze", ["states"], ["y"])]
    made = model(nodes, [("x", [3, "n", 4]), ("h", [1, "n", 4])], [("y", None)], weights).SerializeToString()
    sessions = [ort.InferenceSession(made, providers=["CPUExecutionProvider"]) for ort in (onnxruntime, door)]
    for n in (2, 1):
        feed = {"x": rng.standard_normal((3, n, 4)).astype("float32"), "h": np.zeros((1, n, 4), "float32")}
        [theirs], [ours] = (session.run(None, feed) for session in sessions)
        assert theirs.shape == ours.shape
        np.testing.assert_allclose(theirs, ours, rtol=1e-5, atol=1e-6)


def in_branches(nodes, y):
    """The nodes in both branches of a condition."""
    branch = lambda name: h.make_graph(nodes, name, [], [y])  # noqa: E731
    some = [h.make_node("Size", ["x"], ["size"]), h.make_node("Cast", ["size"], ["some"], to=T.BOOL)]
    return [*some, h.make_node("If", ["some"], ["z"], then_branch=branch("one"), else_branch=branch("other"))]


def in_loop(nodes, y):
    """The nodes in a loop, whose iterations are joined."""
    scalar = lambda name, of: h.make_tensor_value_info(name, of, [])  # noqa: E731
    body = [*nodes, h.make_node("Identity", ["going"], ["goes_on"])]
    body = h.make_graph(body, "body", [scalar("i", T.INT64), scalar("going", T.BOOL)], [scalar("goes_on", T.BOOL), y])
    return [h.make_node("Size", ["x"], ["size"]), h.make_node("Loop", ["size", ""], ["z"], body=body)]


@pytest.mark.parametrize("place", [in_branches, in_loop], ids=lambda place: place.__name__)
def test_a_guard_has_its_kind_wherever_its_node_is(place):
    nodes = [h.make_node("Relu", ["x"], ["r"]), h.make_node("Squeeze", ["r"], ["s"]), h.make_node("Add", ["s", "s"], ["y"])]
    made = model(place(nodes, h.make_tensor_value_info("y", T.FLOAT, None)), [("x", ["n", 4])], [("z", None)]).SerializeToString()
    sessions = [ort.InferenceSession(made, providers=["CPUExecutionProvider"]) for ort in (onnxruntime, door)]
    for n in (3, 1, 2):
        [theirs], [ours] = (session.run(None, {"x": np.full((n, 4), n, "float32")}) for session in sessions)
        assert theirs.shape == ours.shape and (theirs == ours).all()
