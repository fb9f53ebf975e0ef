"""Lengths and computed arguments that make no sense are errors when the model runs, never numbers.

Each model is compiled once, with named lengths; what ONNX Runtime gives for the inputs that make sense is what we give, and each
input that makes none is an error with the words that are looked for.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

from relaxide import compiler, cpu
from relaxide.relax.frontend.onnx import from_onnx
from relaxide.relax.vm import VirtualMachine
from relaxide.runtime import tensor

F, I, B = T.FLOAT, T.INT64, T.BOOL


def floats(*shape):
    return np.arange(np.prod(shape), dtype="f4").reshape(shape)


def ints(*values):
    return np.array(values, "i8")


def one(value):
    return np.array(value, "i8")


def case(name, node, inputs, right, wrong, weights=None, opset=18):
    return pytest.param(node, inputs, right, wrong, weights or {}, opset, id=name)


N = h.make_node
MANY = "as many elements"
CASES = [
    case("reshape to fixed", N("Reshape", ["x", "s"], ["y"]), {"x": (F, "ab")}, [(floats(4, 3),)],
         [((floats(5, 3),), MANY), ((floats(2, 3),), MANY)], {"s": ints(3, 4)}),
    case("reshape to the rest", N("Reshape", ["x", "s"], ["y"]), {"x": (F, "ab")}, [(floats(4, 3),)],
         [((floats(2, 3),), MANY), ((floats(5, 3),), MANY)], {"s": ints(-1, 4)}),
    case("reshape, computed", N("Reshape", ["x", "s"], ["y"]), {"x": (F, "ab"), "s": (I, [2])}, [(floats(2, 3), ints(-1, 2))],
         [((floats(2, 3), ints(-2, 3)), "-1 or more"), ((floats(2, 3), ints(-1, 4)), MANY)]),
    case("space to depth", N("SpaceToDepth", ["x"], ["y"], blocksize=2), {"x": (F, "abcd")}, [(floats(1, 1, 4, 6),)],
         [((floats(1, 1, 5, 4),), MANY)]),
    case("depth to space", N("DepthToSpace", ["x"], ["y"], blocksize=2), {"x": (F, "abcd")}, [(floats(1, 4, 2, 3),)],
         [((floats(1, 5, 2, 2),), MANY)]),
    case("range", N("Range", ["x", "l", "s"], ["y"]), {"x": (I, ""), "l": (I, ""), "s": (I, "")}, [(one(0), one(5), one(2))],
         [((one(0), one(5), one(0)), "step must not be 0"), ((one(-(2**63)), one(2**63 - 1), one(1)), "more numbers than 64 bits"),
          ((one(0), one(2**62), one(1)), "more bytes than a memory")]),
    case("reversed sequences", N("ReverseSequence", ["x", "l"], ["y"], time_axis=0, batch_axis=1), {"x": (F, "ab"), "l": (I, "b")},
         [(floats(4, 2), ints(3, 1)), (floats(4, 2), ints(4, 0))],
         [((floats(4, 2), ints(5, 2)), "outside of the extent 4"), ((floats(4, 2), ints(-1, 2)), "outside of the extent 4")]),
    case("pad takes off", N("Pad", ["x", "p"], ["y"]), {"x": (F, "ab")}, [(floats(6, 2),), (floats(7, 1),)],
         [((floats(4, 2),), "more elements than there are")], {"p": ints(-3, 0, -3, 0)}),
    case("average of small images", N("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2]), {"x": (F, "abcd")},
         [(floats(1, 2, 2, 5),), (floats(1, 1, 6, 7),), (floats(2, 1, 2, 2),)], []),
    case("average of small images and their padding", N("AveragePool", ["x"], ["y"], kernel_shape=[4, 4], strides=[3, 3], pads=[1, 0, 0, 0],
         count_include_pad=1), {"x": (F, "abcd")}, [(floats(1, 2, 2, 5),), (floats(1, 1, 6, 7),)], []),
    case("average of small padded images", N("AveragePool", ["x"], ["y"], kernel_shape=[4, 3], strides=[3, 2], pads=[1, 1, 0, 0]),
         {"x": (F, "abcd")}, [(floats(1, 2, 2, 5),), (floats(1, 1, 6, 7),), (floats(1, 1, 2, 1),)], []),
    case("deformed convolution", N("DeformConv", ["x", "w", "o"], ["y"], kernel_shape=[2, 2]),
         {"x": (F, "abcd"), "w": (F, "ebfg"), "o": (F, "ahij")},
         [(floats(1, 2, 4, 4), floats(3, 2, 2, 2), floats(1, 8, 3, 3) / 40)],
         [((floats(1, 2, 4, 4), floats(3, 2, 3, 2), floats(1, 8, 3, 3)), "must be")], opset=19),
    case("cumulative sum", N("CumSum", ["x", "k"], ["y"]), {"x": (F, "ab"), "k": (I, "")}, [(floats(2, 3), one(1)), (floats(2, 3), one(-2))],
         [((floats(2, 3), one(2)), "within 2 dimensions"), ((floats(2, 3), one(-3)), "within 2 dimensions")]),
    case("reduction", N("ReduceSum", ["x", "k"], ["y"]), {"x": (F, "ab"), "k": (I, [1])}, [(floats(2, 3), ints(1)), (floats(2, 3), ints(-2))],
         [((floats(2, 3), ints(2)), "within 2 dimensions"), ((floats(2, 3), ints(-3)), "within 2 dimensions")]),
    case("slice by steps", N("Slice", ["x", "b", "e", "a", "s"], ["y"]), {"x": (F, "a"), "s": (I, [1])},
         [(floats(4), ints(2)), (floats(4), ints(2**63 - 1)), (floats(4), ints(-(2**63)))], [((floats(4), ints(0)), "step must not be 0")],
         {"b": ints(0), "e": ints(9), "a": ints(0)}),
    case("slice by axes", N("Slice", ["x", "b", "e", "a"], ["y"]), {"x": (F, "a"), "a": (I, [1])}, [(floats(4), ints(-1))],
         [((floats(4), ints(1)), "within 1 dimensions")], {"b": ints(1), "e": ints(9)}),
    case("expand", N("Expand", ["x", "s"], ["y"]), {"x": (F, "a"), "s": (I, [2])}, [(floats(2), ints(3, 1))],
         [((floats(1), ints(3, -1)), "is -1"), ((floats(1), ints(-3, 1)), "not be negative")]),
    case("tile", N("Tile", ["x", "s"], ["y"]), {"x": (F, "a"), "s": (I, "n")}, [(floats(2), ints(3)), (floats(2), ints(0))],
         [((floats(2), ints(-1)), "not be negative")]),
    case("constant of shape", N("ConstantOfShape", ["s"], ["y"]), {"s": (I, [2])}, [(ints(2, 0),)], [((ints(2, -1),), "not be negative")]),
    case("one hot", N("OneHot", ["x", "d", "v"], ["y"]), {"x": (I, "a"), "d": (I, ""), "v": (F, "b")},
         [(ints(0, 1, -1), one(3), floats(2))],
         [((ints(0, 1), one(-3), floats(2)), "not be negative"), ((ints(0, 1), one(2), floats(3)), "is 3, not 2")]),
    case("window", N("HannWindow", ["n"], ["y"]), {"n": (I, "")}, [(one(4),)], [((one(-1),), "not be negative")]),
    case("short time Fourier transform", N("STFT", ["x", "s", "", "n"], ["y"]), {"x": (F, [1, "a", 1]), "s": (I, "")},
         [(floats(1, 8, 1), one(2))], [((floats(1, 8, 1), one(0)), "must be positive")], {"n": one(4)}),
    case("gather in batches", N("GatherND", ["x", "i"], ["y"], batch_dims=1), {"x": (F, "ab"), "i": (I, ["k", 1])},
         [(floats(2, 3), ints(0, 2).reshape(2, 1))], [((floats(2, 3), ints(0).reshape(1, 1)), "is 1, not 2")]),
    case("suppression", N("NonMaxSuppression", ["x", "s", "m"], ["y"]), {"x": (F, "abc"), "s": (F, "def"), "m": (I, "")},
         [(floats(1, 3, 4), floats(1, 1, 3), one(2))],
         [((floats(1, 3, 4), floats(1, 1, 2), one(2)), "is 2, not 3"), ((floats(1, 3, 5), floats(1, 1, 3), one(2)), "is 5, not 4")]),
    case("resize by scales", N("Resize", ["x", "", "s"], ["y"]), {"x": (F, [1, 1, "a", "b"]), "s": (F, [4])},
         [(floats(1, 1, 2, 2), np.array([1, 1, 2, 3], "f4"))],
         [((floats(1, 1, 2, 2), np.array([1, 1, bad, 2], "f4")), "positive") for bad in (0, -1, np.nan, np.inf)]),
    case("group normalization", N("GroupNormalization", ["x", "w", "w"], ["y"], num_groups=2), {"x": (F, "abcd"), "w": (F, "e")},
         [(floats(1, 4, 2, 2), floats(4))], [((floats(1, 3, 2, 2), floats(3)), "multiple of `num_groups`")], opset=21),
    case("convolution in groups", N("Conv", ["x", "w"], ["y"], group=2), {"x": (F, "abcd"), "w": (F, "efgh")},
         [(floats(1, 4, 3, 3), floats(2, 2, 2, 2))],
         [((floats(1, 4, 3, 3), floats(3, 2, 2, 2)), "multiple of `group`"), ((floats(1, 4, 3, 3), floats(2, 3, 2, 2)), "is 4, not 6")]),
    case("transposed convolution", N("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], auto_pad="SAME_UPPER"), {"x": (F, "abcd"), "w": (F, "efgh")},
         [(floats(1, 2, 3, 3), floats(2, 1, 3, 2))],
         [((floats(1, 2, 3, 3), floats(3, 1, 2, 2)), "is 2, not 3")]),
]


@pytest.mark.parametrize("node, inputs, right, wrong, weights, opset", CASES)
def test_what_makes_no_sense_is_an_error(node, inputs, right, wrong, weights, opset):
    def dims(name, given):
        return [f"{name}_{d}" if isinstance(d, str) else d for d in given]

    infos = [h.make_tensor_value_info(name, dtype, dims(name, given)) for name, (dtype, given) in inputs.items()]
    initializers = [nh.from_array(value, name) for name, value in weights.items()]
    graph = h.make_graph([node], "g", infos, [h.make_tensor_value_info("y", T.UNDEFINED, None)], initializers)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8)
    machine = VirtualMachine(compiler.compile(from_onnx(model), target="llvm"), cpu())["main"]
    untyped = onnx.ModelProto()
    untyped.CopyFrom(model)
    untyped.graph.output[0].ClearField("type")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(onnx.shape_inference.infer_shapes(untyped).SerializeToString(), options)
    for feed in right:
        want = session.run(None, dict(zip(inputs, feed)))[0]
        np.testing.assert_allclose(machine(*map(tensor, feed)).numpy(), want, rtol=1e-4, atol=1e-4)
    for feed, words in wrong:
        with pytest.raises((ValueError, IndexError, MemoryError), match=words):
            machine(*map(tensor, feed))


def test_a_condition_that_is_too_long_chooses_among_what_is_there():
    node = N("Compress", ["x", "c"], ["y"], axis=0)
    infos = [h.make_tensor_value_info("x", F, ["a"]), h.make_tensor_value_info("c", B, ["k"])]
    graph = h.make_graph([node], "g", infos, [h.make_tensor_value_info("y", F, None)])
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 18)], ir_version=8)
    machine = VirtualMachine(compiler.compile(from_onnx(model), target="llvm"), cpu())["main"]
    for condition, want in (([True] * 5, [0, 1, 2]), ([False, True], [1]), ([False, False, False, True], [])):
        assert machine(tensor(floats(3)), tensor(np.array(condition))).numpy().tolist() == want
