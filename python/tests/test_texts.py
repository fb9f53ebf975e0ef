"""Tensors of texts cross between Python and programs, and what is none is refused with a reason."""

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import relaxide
from relaxide.onnx_backend import RelaxideBackend
from relaxide.runtime import TextTensor, tensor

V = h.make_tensor_value_info
ML = "ai.onnx.ml"
COMMAND = Path(relaxide.__file__).parents[2] / "build" / "relaxide"


def model(nodes, inputs, outputs):
    opsets = [h.make_opsetid("", 20), h.make_opsetid(ML, 3)]
    return h.make_model(h.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=10)


ENCODE = model(
    [h.make_node("LabelEncoder", ["color"], ["code"], domain=ML, keys_strings=["red", "blue"], values_int64s=[3, 4], default_int64=-1)],
    [V("color", T.STRING, ["n", 1])],
    [V("code", T.INT64, None)],
)
CLASSES = model(
    [
        h.make_node("LinearClassifier", ["x"], ["label", "s"], domain=ML, coefficients=[1.0, -1.0], intercepts=[0.0, 0.0], classlabels_strings=["no", "yes"]),
        h.make_node("ZipMap", ["s"], ["maps"], domain=ML, classlabels_strings=["no", "yes"]),
    ],
    [V("x", T.FLOAT, ["n", 1])],
    [V("label", T.STRING, None), h.make_value_info("maps", h.make_sequence_type_proto(h.make_map_type_proto(T.STRING, h.make_tensor_type_proto(T.FLOAT, []))))],
)


def test_a_tensor_of_texts_keeps_shape_and_texts():
    for value in (np.array([["a", "bé"], ["", "d"]]), np.array([[]], dtype=object), np.array("one", dtype=object), np.array([b"x"]), ["p", "q"]):
        array = np.asarray(value)
        texts = TextTensor(value)
        wanted = [item.decode() if isinstance(item, bytes) else item for item in array.ravel().tolist()]
        assert texts.numpy().shape == array.shape and texts.numpy().ravel().tolist() == wanted
    assert isinstance(tensor(np.array(["a"])), TextTensor)
    with pytest.raises(TypeError, match="cannot hold 3"):
        TextTensor(np.array(["a", 3], dtype=object))


@pytest.mark.parametrize("value", [np.array([["blue"], ["green"]]), np.array([["blue"], ["green"]], dtype=object), [["blue"], ["green"]]])
def test_programs_take_arrays_and_lists_of_texts(value):
    machine = relaxide.relax.VirtualMachine(relaxide.compile(relaxide.relax.frontend.onnx.from_onnx(ENCODE)), relaxide.cpu())
    assert machine["main"](value).numpy().tolist() == [[4], [-1]]


@pytest.mark.parametrize(
    "value, match",
    [(np.array(["blue"]), "1 axes, where 2"), ([["a"], ["b", "c"]], "different lengths"), (np.ones((2, 1), "float32"), "tensor of texts"), (np.array([["a", "b"]]), "dimension 1 is 2, not 1")],
)
def test_what_is_no_tensor_of_texts_is_refused(value, match):
    machine = relaxide.relax.VirtualMachine(relaxide.compile(relaxide.relax.frontend.onnx.from_onnx(ENCODE)), relaxide.cpu())
    with pytest.raises(Exception, match=match):
        machine["main"](tensor(value) if isinstance(value, np.ndarray) else value)


def test_maps_are_dicts():
    label, maps = RelaxideBackend.prepare(CLASSES).run([np.array([[2.0], [-3.0]], "float32")])
    assert label.tolist() == ["no", "yes"] and maps == [{"no": 2.0, "yes": -2.0}, {"no": -3.0, "yes": 3.0}]


def test_the_command_takes_and_shows_texts(tmp_path):
    onnx.save(ENCODE, tmp_path / "m.onnx")
    onnx.save(CLASSES, tmp_path / "c.onnx")

    def say(*args):
        done = subprocess.run([COMMAND, *args], cwd=tmp_path, capture_output=True, text=True)
        return done.stdout + done.stderr

    say("compile", "-q", "m.onnx", "-o", "m.so")
    assert "texts(n, 1)" in say("inspect", "m.so")
    result = json.loads(say("run", "m.so", "--json", "--input", 'color=["blue", "green", "red"]'))
    assert result["outputs"][0]["head"] == [4, -1, 3]
    (tmp_path / "colors.txt").write_text("red\nblue\n")
    assert "[3, 4]" in say("run", "m.so", "--input", "color=colors.txt")
    assert "gives no texts" in say("run", "m.so", "--input", "color=1,2")
    assert "texts [1]" in say("run", "c.onnx", "--fill", "random", "--dim", "n=1")


def run(op, texts, outputs=1, domain="", rank=1, **attributes):
    """The outputs of a model of one operator over texts."""
    node = h.make_node(op, ["x"], [f"y{i}" for i in range(outputs)], domain=domain, **attributes)
    value = np.array(texts, dtype=object)
    opsets = [h.make_opsetid("", 20), h.make_opsetid("com.microsoft", 1)]
    results = [V(name, T.STRING, None) for name in node.output]
    graph = h.make_graph([node], "g", [V("x", T.STRING, [f"d{i}" for i in range(rank)])], results)
    return [value.tolist() for value in RelaxideBackend.prepare(h.make_model(graph, opset_imports=opsets, ir_version=10)).run([value])]


@pytest.mark.parametrize(
    "texts, attributes, wanted",
    [
        (["Äb", "", "a"], {"case_change_action": "UPPER"}, ["ÄB", "", "A"]),
        (["Monday", "TUESDAY", "monday"], {"stopwords": ["monday"]}, ["TUESDAY"]),
        (["Monday", "TUESDAY", "monday"], {"stopwords": ["monday"], "is_case_sensitive": 1, "case_change_action": "LOWER"}, ["monday", "tuesday"]),
        (["a", "A"], {"stopwords": ["a"]}, [""]),
    ],
)
def test_texts_are_normalized(texts, attributes, wanted):
    # ONNX Runtime does this only where the system has its locale.
    assert run("StringNormalizer", texts, **attributes) == [wanted]
    if len(texts) == 3:
        assert run("StringNormalizer", [texts], rank=2, **attributes) == [[wanted]]


@pytest.mark.parametrize(
    "attributes, wanted",
    [
        ({"tokenexp": "[a-z]+", "mincharnum": 2}, [["ab", "cde"], ["fg", "#"]]),
        ({"separators": [" ", ","]}, [["ab", "cde"], ["fg", "h"]]),
        ({"separators": [" "], "mark": 1}, [["\x02", "ab", "cde", "\x03"], ["\x02", "fg,h", "\x03", "#"]]),
        ({"separators": [""]}, [["a", "b", " ", "c", "d", "e"], ["f", "g", ",", "h", "#", "#"]]),
    ],
)
def test_texts_are_divided_into_tokens(attributes, wanted):
    attributes = {"mark": 0, "mincharnum": 1, "pad_value": "#"} | attributes
    assert run("Tokenizer", ["ab cde", "fg,h"], domain="com.microsoft", **attributes) == [wanted]
