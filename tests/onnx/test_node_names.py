"""What goes wrong when a model runs is told with the nodes of the model that it is about, alone and fused, from Python and the command."""

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T
from onnx import helper as h

import relaxide
from relaxide.onnx_backend import RelaxideBackend

V = h.make_tensor_value_info
FLOAT = np.float32
COMMAND = Path(relaxide.__file__).parents[2] / "build" / "relaxide"


def model(nodes, inputs, outputs, consts=()):
    graph = h.make_graph(nodes, "g", inputs, outputs, list(consts))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9)


def gather(*behind):
    nodes = [h.make_node("Gather", ["x", "i"], ["a"], name="pick"), *behind]
    return model(nodes, [V("x", T.FLOAT, ["n", 3]), V("i", T.INT64, ["k"])], [V(nodes[-1].output[0], T.FLOAT, None)])


RELU = h.make_node("Relu", ["a"], ["y"], name="/block/relu")
WRONG = {"x": np.ones((2, 3), FLOAT), "i": np.array([0, 5])}
ADD = model([h.make_node("Exp", ["x"], ["e"]), h.make_node("Add", ["e", "z"], ["y"], name="skip")], [V("x", T.FLOAT, ["n"]), V("z", T.FLOAT, ["m"])], [V("y", T.FLOAT, None)])
RESHAPE = model([h.make_node("Reshape", ["x", "s"], ["y"], name="view")], [V("x", T.FLOAT, ["n"]), V("s", T.INT64, [2])], [V("y", T.FLOAT, None)])
CONCAT = model([h.make_node("Concat", ["x", "z"], ["joined"], axis=0)], [V("x", T.FLOAT, ["n", "a"]), V("z", T.FLOAT, ["m", "b"])], [V("joined", T.FLOAT, None)])
LABELS = model([h.make_node("Cast", ["s"], ["y"], name="parse", to=T.FLOAT)], [V("s", T.STRING, ["n"])], [V("y", T.FLOAT, None)])

CASES = {
    "index": (gather(), WRONG, "Gather `pick`"),
    "fused index": (gather(RELU), WRONG, "Gather `pick`"),
    "lengths": (ADD, {"x": np.ones(3, FLOAT), "z": np.ones(2, FLOAT)}, "Add `skip`"),
    "shape": (RESHAPE, {"x": np.ones(6, FLOAT), "s": np.array([4, 2])}, "Reshape `view`"),
    "without a name": (CONCAT, {"x": np.ones((1, 2), FLOAT), "z": np.ones((1, 3), FLOAT)}, "Concat `joined`"),
    "texts": (LABELS, {"s": np.array(["1", "x"], dtype=object)}, "Cast `parse`"),
}


@pytest.mark.parametrize("case", CASES)
def test_errors_name_the_node(case):
    proto, feed, words = CASES[case]
    program = RelaxideBackend.prepare(proto)
    with pytest.raises(Exception) as caught:
        program.run(feed)
    assert words in str(caught.value), str(caught.value)


def test_errors_of_files_name_the_node(tmp_path):
    onnx.save(gather(RELU), tmp_path / "m.onnx")
    subprocess.run([COMMAND, "compile", "-q", "m.onnx", "-o", "m.so"], cwd=tmp_path, check=True, capture_output=True)
    for name, value in WRONG.items():
        np.save(tmp_path / f"{name}.npy", value)
    said = subprocess.run([COMMAND, "run", "m.so", "--input", "x=x.npy", "--input", "i=i.npy"], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 1 and "Gather `pick`" in said.stderr, said.stderr
    module = relaxide.runtime.load_module(str(tmp_path / "m.so"))
    machine = relaxide.relax.VirtualMachine(module, relaxide.cpu())
    with pytest.raises(Exception, match="Gather `pick`"):
        machine["main"](*(relaxide.runtime.tensor(value) for value in WRONG.values()))
