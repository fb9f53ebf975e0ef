"""Writes the models that fuzzing and the tests of damaged models begin with: graphs inside nodes, functions, sequences.

usage: make.py            (from anywhere; the files are part of the repository)
"""

import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).resolve().parent / "onnx_model"
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def value(name, kind=FLOAT, shape=(4,)):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=outputs.split()[0], **attributes)


def save(name, nodes, inputs, outputs, constants=(), functions=(), domains=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(domain, 1) for domain in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions), producer_name="")
    onnx.checker.check_model(model)
    onnx.save(model, FOLDER / f"{name}.onnx")


def branches():
    """A branch inside a branch; both read names from outside."""
    inner = helper.make_graph([node("Mul", "x w", "a")], "inner", [], [value("a")])
    other = helper.make_graph([node("Neg", "x", "b")], "other", [], [value("b")])
    nested = node("If", "c", "n", then_branch=inner, else_branch=other)
    then = helper.make_graph([nested, node("Add", "n x", "t")], "then", [], [value("t")])
    otherwise = helper.make_graph([node("Identity", "w", "e")], "else", [], [value("e")])
    choice = node("If", "c", "y", then_branch=then, else_branch=otherwise)
    save("branches", [choice], [value("x"), value("c", BOOL, ())], [value("y")], [constant("w", np.ones(4, "float32"))])


def loop():
    """A state, a condition, an output for each iteration, and a name from outside."""
    body = helper.make_graph(
        [node("Add", "s x", "next"), node("Less", "i limit", "goes"), node("Mul", "next next", "each")],
        "body",
        [value("i", INT, ()), value("c", BOOL, ()), value("s")],
        [value("goes", BOOL, ()), value("next"), value("each")],
        [constant("limit", np.int64(3))],
    )
    constants = [constant("turns", np.int64(5)), constant("yes", np.bool_(True))]
    save("loop", [node("Loop", "turns yes x", "y z", body=body)], [value("x")], [value("y"), value("z", FLOAT, (None, 4))], constants)


def scan():
    """A running sum along the first axis."""
    body = helper.make_graph(
        [node("Add", "s e", "t"), node("Identity", "t", "out")], "body", [value("s"), value("e")], [value("t"), value("out")]
    )
    rows = value("rows", FLOAT, ("n", 4))
    save("scan", [node("Scan", "x rows", "y z", body=body, num_scan_inputs=1)], [value("x"), rows], [value("y"), value("z", FLOAT, ("n", 4))])


def functions():
    """A function with an attribute, called by another."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    leaky = node("LeakyRelu", "a", "b")
    reference = onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope")
    leaky.attribute.append(reference)
    inner = helper.make_function("own", "Bend", ["a"], ["b"], [leaky], opsets, ["slope"])
    calls = [node("Bend", "a", "m", domain="own", slope=0.1), node("Add", "m a", "b")]
    outer = helper.make_function("own", "Twice", ["a"], ["b"], calls, opsets)
    save("functions", [node("Twice", "x", "y", domain="own")], [value("x")], [value("y")], (), [inner, outer], ["own"])


def sequences():
    """Tensors in a sequence, taken out, put in, mapped and put together."""
    body = helper.make_graph([node("Relu", "e", "r")], "body", [value("e")], [value("r")])
    nodes = [
        node("SequenceConstruct", "x x", "s"),
        node("SequenceInsert", "s x zero", "t"),
        node("SequenceErase", "t one", "u"),
        node("SequenceMap", "u", "v", body=body),
        node("SequenceAt", "v one", "f"),
        node("ConcatFromSequence", "v", "y", axis=0),
        node("SplitToSequence", "y two", "w", axis=0),
        node("SequenceLength", "w", "n"),
    ]
    constants = [constant(name, np.int64(n)) for n, name in enumerate(("zero", "one", "two"))]
    save("sequences", nodes, [value("x")], [value("f"), value("y", FLOAT, (None,)), value("n", INT, ())], constants)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for write in (branches, loop, scan, functions, sequences):
        write()
    print(f"wrote {len(list(FOLDER.iterdir()))} models to {FOLDER}")
