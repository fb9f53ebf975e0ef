"""Weights, files and dimensions that a session is given beside its model: the same answers from either package."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import relaxide.onnxruntime as door
from relaxide.onnxruntime import _compiled

BOTH = pytest.mark.parametrize("ort", [onnxruntime, door], ids=["onnxruntime", "relaxide"])
X = np.arange(6, dtype="float32").reshape(2, 3)
W = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAXIDE_CACHE", str(tmp_path / "cache"))


def product(inputs=(("x", [None, 3]),), weight=W):
    """`x @ w + b`."""
    nodes = [h.make_node("MatMul", ["x", "w"], ["p"]), h.make_node("Add", ["p", "b"], ["y"])]
    values = [h.make_tensor_value_info(name, T.FLOAT, shape) for name, shape in inputs]
    weights = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.float32([1, 2, 3, 4]), "b")]
    graph = h.make_graph(nodes, "g", values, [h.make_tensor_value_info("y", T.FLOAT, None)], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


def beside(tmp_path):
    """The same with `w` in a file of its own, and the bytes of that, which then goes."""
    path = tmp_path / "model.onnx"
    onnx.save(product(), path, save_as_external_data=True, location="weights.bin", size_threshold=70)
    content = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").unlink()
    return path, content


def value(ort, array):
    return ort.OrtValue.ortvalue_from_numpy(array)


@BOTH
def test_a_weight_that_is_given_takes_the_place_of_the_model_s(ort):
    for scale in (1, 3):
        options = ort.SessionOptions()
        given = value(ort, W * scale)
        options.add_initializer("w", given)
        options.add_initializer("nobody", given)
        [y] = ort.InferenceSession(product().SerializeToString(), options).run(None, {"x": X})
        np.testing.assert_array_equal(y, X @ (W * scale) + np.float32([1, 2, 3, 4]))


@BOTH
def test_weights_and_files_that_lie_elsewhere_are_given_from_memory(ort, tmp_path):
    path, content = beside(tmp_path)
    options = ort.SessionOptions()
    options.add_external_initializers(["w"], [value(ort, W * 2)])
    [y] = ort.InferenceSession(str(path), options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X @ (W * 2) + np.float32([1, 2, 3, 4]))
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [content], [len(content)])
    [y] = ort.InferenceSession(path.read_bytes(), options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X @ W + np.float32([1, 2, 3, 4]))


@BOTH
def test_a_model_in_memory_finds_its_files_in_the_folder_that_an_entry_names(ort, tmp_path):
    path, content = beside(tmp_path)
    (tmp_path / "weights.bin").write_bytes(content)
    options = ort.SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(tmp_path))
    [y] = ort.InferenceSession(path.read_bytes(), options).run(None, {"x": X})
    np.testing.assert_array_equal(y, X @ W + np.float32([1, 2, 3, 4]))


@BOTH
@pytest.mark.parametrize("name, array", [("nobody", W), ("b", np.ones(4, "f4")), ("w", W.T.copy()), ("w", W.astype("f8"))])
def test_weights_that_the_model_does_not_have_so_are_refused(ort, tmp_path, name, array):
    path, _ = beside(tmp_path)
    options = ort.SessionOptions()
    with pytest.raises(Exception) as raised:
        options.add_external_initializers([name], [value(ort, array)])
        ort.InferenceSession(str(path), options)
    assert name in str(raised.value) or ort is onnxruntime


def test_what_is_given_is_of_one_length_and_of_numbers():
    options = door.SessionOptions()
    with pytest.raises(RuntimeError, match="2 names of weights, and 1"):
        options.add_external_initializers(["a", "b"], [value(door, W)])
    with pytest.raises(RuntimeError, match="only tensors of numbers"):
        options.add_initializer("w", door.OrtValue.ortvalue_from_numpy(np.array(["a"])))
    with pytest.raises(RuntimeError, match="OrtValue"):
        options.add_initializer("w", W)


@BOTH
def test_dimensions_are_fixed_by_name_and_by_what_they_stand_for(ort):
    cases = itertools.product(("n", None), ("DATA_BATCH", "data_batch", "OTHER"), (True, False))
    for name, denotation, by_name in cases:
        made = product([("x", [name, 3]), ("z", [name, 3])])
        made.graph.node.append(h.make_node("Identity", ["z"], ["unused"]))
        made.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
        options = ort.SessionOptions()
        if by_name:
            options.add_free_dimension_override_by_name("n", 2)
        else:
            options.add_free_dimension_override_by_denotation(denotation, 2)
        session = ort.InferenceSession(made.SerializeToString(), options)
        fixed = (by_name and name == "n") or (not by_name and denotation != "OTHER")
        assert session.run(["y"], {"x": X, "z": X})[0].shape == (2, 4)
        three = np.ones((3, 3), "f4")
        if fixed:
            with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="Got"):
                session.run(["y"], {"x": three, "z": three})
        else:
            assert session.run(["y"], {"x": three, "z": three})[0].shape == (3, 4)


def refused():
    """Models with calls that are wrong for any length: those whose ranks depend on no length."""
    f = lambda name, shape: h.make_tensor_value_info(name, T.FLOAT, shape)  # noqa: E731
    two = numpy_helper.from_array(np.array([2, -1, 3]), "shape")
    yield [h.make_node("Reshape", ["x", "shape"], ["y"])], [f("x", ["n"])], [two], {"x": np.ones(5, "f4")}
    pair = {"x": np.ones(5, "f4"), "z": np.ones(4, "f4")}
    yield [h.make_node("Add", ["x", "z"], ["y"])], [f("x", ["n"]), f("z", ["m"])], [], pair
    pair = {"x": np.ones((2, 5), "f4"), "z": np.ones((4, 3), "f4")}
    yield [h.make_node("MatMul", ["x", "z"], ["y"])], [f("x", ["n", "k"]), f("z", ["l", "m"])], [], pair
    pair = {"x": np.ones((2, 5), "f4"), "z": np.ones((4, 3), "f4")}
    yield [h.make_node("Concat", ["x", "z"], ["y"], axis=0)], [f("x", ["n", "k"]), f("z", ["l", "m"])], [], pair


@pytest.mark.parametrize("nodes, inputs, weights, feed", list(refused()), ids=["Reshape", "Add", "MatMul", "Concat"])
def test_a_call_that_is_wrong_for_any_length_is_not_compiled_for(nodes, inputs, weights, feed, monkeypatch):
    graph = h.make_graph(nodes, "g", inputs, [h.make_tensor_value_info("y", T.FLOAT, None)], weights)
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    session = door.InferenceSession(made.SerializeToString())
    monkeypatch.setattr(_compiled, "_compile", lambda *_: pytest.fail("the model is compiled again"))
    with pytest.raises(door.RuntimeException):
        session.run(None, feed)


@BOTH
def test_lengths_that_were_taken_to_be_equal_may_be_one(ort):
    """A skip connection past a stride: one side is 1 where the other is not for a length that the program was not made for."""
    shrink = {"kernel_shape": [1], "strides": [2]}
    nodes = [h.make_node("MaxPool", ["x"], ["p"], **shrink), h.make_node("Tile", ["p", "twice"], ["q"]), h.make_node("Add", ["x", "q"], ["y"])]
    info = h.make_tensor_value_info("x", T.FLOAT, [1, 1, "n"])
    weights = [numpy_helper.from_array(np.array([1, 1, 2]), "twice")]
    graph = h.make_graph(nodes, "g", [info], [h.make_tensor_value_info("y", T.FLOAT, None)], weights)
    session = ort.InferenceSession(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString())
    for n in (4, 1, 6):
        assert session.run(None, {"x": np.ones((1, 1, n), "f4")})[0].shape == (1, 1, 2 if n == 1 else n)
