"""Every ONNX operator that is imported gives what ONNX Runtime gives, with fixed and with symbolic shapes.

A case is one node: its inputs, its attributes, the operator set. Inputs given as ``Fixed`` are initializers of the model;
the others are inputs of the graph, whose dimensions are symbolic in the second half of the cases.
"""

from dataclasses import dataclass, field

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxide as tvm


class Fixed(np.ndarray):
    """An array that is an initializer."""


def fixed(values, dtype="int64"):
    return np.asarray(values, dtype).view(Fixed)


@dataclass
class Case:
    op: str
    inputs: list
    attrs: dict = field(default_factory=dict)
    opset: int = 17
    outputs: int = 1
    #: Whether the case makes sense with symbolic dimensions only, or with fixed ones only.
    dims: str = "both"

    def __str__(self):
        shapes = ",".join("-" if x is None else "x".join(map(str, x.shape)) or "scalar" for x in self.inputs)
        attrs = ",".join(f"{key}={value}" for key, value in self.attrs.items() if not isinstance(value, TensorProto))
        return f"{self.op}-{self.opset}({shapes}){'{' + attrs + '}' if attrs else ''}"


def reals(*shape, low=-2.0, high=2.0):
    rng = np.random.default_rng(sum(shape) + len(shape))
    return rng.uniform(low, high, shape).astype("float32")


def ints(*shape, low=-5, high=6, dtype="int64"):
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype)


def bools(*shape):
    return np.random.default_rng(sum(shape)).random(shape) > 0.5


X = reals(2, 3, 5)
IMAGE = reals(2, 4, 7, 9)
POSITIVE = reals(2, 3, 5, low=0.1, high=3.0)

CASES = [
    *[Case(op, [X]) for op in "Abs Atan Ceil Cos Erf Exp Floor Neg Relu Sigmoid Sign Sin Sinh Cosh Softplus Softsign Tan Tanh Asinh Identity".split()],
    *[Case(op, [POSITIVE]) for op in "Log Sqrt Reciprocal".split()],
    *[Case(op, [reals(3, 4, low=-0.9, high=0.9)]) for op in "Acos Asin Atanh".split()],
    Case("Acosh", [POSITIVE + 1]),
    Case("Round", [np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.3], "float32")]),
    Case("Not", [bools(3, 4)]),
    Case("IsNaN", [np.array([1, np.nan, np.inf, -np.inf], "float32")]),
    Case("IsInf", [np.array([1, np.nan, np.inf, -np.inf], "float32")]),
    Case("IsInf", [np.array([1, np.nan, np.inf, -np.inf], "float32")], {"detect_negative": 0}),
    *[Case(op, [X, reals(3, 1)]) for op in "Add Sub Mul Max Min".split()],
    Case("Div", [X, POSITIVE]),
    Case("Div", [ints(3, 4), ints(3, 4, low=1)]),
    Case("Add", [ints(3, 4, dtype="int32"), ints(4, dtype="int32")]),
    # Operators that ONNX had on trial, and ONNX Runtime kept.
    Case("Affine", [X], {"alpha": 1.5, "beta": -0.25}, 7),
    Case("ScaledTanh", [X], {"alpha": 1.5, "beta": 0.5}, 7),
    Case("ParametricSoftplus", [X], {"alpha": 1.5, "beta": 0.5}, 7),
    Case("ThresholdedRelu", [X], {"alpha": 0.5}, 7),
    Case("ImageScaler", [IMAGE], {"scale": 0.5, "bias": [1.0, 2.0, 3.0, 4.0]}, 7),
    Case("Crop", [IMAGE], {"border": [1, 2, 3, 1]}, 7),
    Case("Crop", [IMAGE], {"border": [1, 2, 0, 0], "scale": [3, 5]}, 7),
    Case("STFT", [reals(2, 64), fixed(8), fixed(reals(16), "float32"), fixed(16)], {"onesided": 1}),
    *[
        Case(op, [np.array([[np.nan] * 3, [1, 3, 3], [-np.inf] * 3], "float32")], {"axis": 1, "keepdims": 0})
        for op in ("ArgMax", "ArgMin")
    ],
    Case("Pow", [POSITIVE, reals(5)]),
    Case("Pow", [X, fixed(2.0, "float32")]),
    Case("Pow", [POSITIVE, fixed(0.5, "float32")]),
    Case("Pow", [X, fixed(3)]),
    Case("Mod", [ints(3, 4), ints(3, 4, low=1)]),
    Case("Mod", [ints(3, 4), ints(3, 4, low=1, high=4) * -1]),
    Case("Mod", [reals(3, 4), POSITIVE[:, :, :4][0]], {"fmod": 1}),
    *[Case(op, [ints(3, 4), ints(4)]) for op in "Equal Greater GreaterOrEqual Less LessOrEqual".split()],
    *[Case(op, [bools(3, 4), bools(4)]) for op in "And Or Xor".split()],
    *[Case(op, [ints(3, 4), ints(4)], opset=18) for op in "BitwiseAnd BitwiseOr BitwiseXor".split()],
    Case("BitwiseNot", [ints(3, 4)], opset=18),
    Case("Sum", [X, reals(5), reals(3, 1)]),
    Case("Mean", [X, reals(5), reals(3, 1)]),
    Case("Where", [bools(3, 1), X, reals(5)]),
    *[Case("Cast", [X], {"to": to}) for to in (TensorProto.INT32, TensorProto.BOOL, TensorProto.DOUBLE, TensorProto.INT64)],
    Case("Cast", [bools(3, 4)], {"to": TensorProto.FLOAT}),
    Case("Cast", [ints(3, 4)], {"to": TensorProto.FLOAT}),
    Case("CastLike", [ints(3, 4), X]),
    Case("Clip", [X, fixed(-1.0, "float32"), fixed(0.5, "float32")]),
    Case("Clip", [X, None, fixed(0.5, "float32")]),
    Case("Clip", [X, np.array(-1.0, "float32")]),
    Case("Clip", [X], {"min": -1.0, "max": 0.5}, opset=7),
    # Activations.
    Case("Celu", [X], {"alpha": 1.7}),
    Case("Elu", [X], {"alpha": 0.7}),
    Case("Selu", [X]),
    Case("Gelu", [X], opset=20),
    Case("Gelu", [X], {"approximate": "tanh"}, opset=20),
    Case("HardSigmoid", [X]),
    Case("HardSigmoid", [X], {"alpha": 0.3, "beta": 0.4}),
    Case("HardSwish", [X * 3]),
    Case("LeakyRelu", [X], {"alpha": 0.2}),
    Case("Mish", [X], opset=18),
    Case("PRelu", [X, reals(3, 1)]),
    Case("ThresholdedRelu", [X], {"alpha": 0.5}),
    *[Case(op, [X], {"axis": axis}, opset=opset) for op in ("Softmax", "LogSoftmax") for axis, opset in ((1, 11), (2, 11), (0, 11), (-1, 13), (1, 13), (0, 13))],
    # Reductions.
    *[
        Case(f"Reduce{op}", [POSITIVE], {"axes": axes, "keepdims": keep}, opset=12)
        for op in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()
        for axes, keep in (([1], 1), ([0, 2], 0))
    ],
    Case("ReduceSum", [X, fixed([-1])], {"keepdims": 0}),
    Case("ReduceSum", [X]),
    Case("ReduceSum", [X], {"noop_with_empty_axes": 1}),
    Case("ReduceMax", [X, fixed([1])], opset=18),
    Case("ReduceMean", [X, fixed([1, 2])], opset=18),
    *[Case(op, [X], {"axis": axis, "keepdims": keep}) for op in ("ArgMax", "ArgMin") for axis, keep in ((1, 1), (-1, 0))],
    # Convolution and pooling.
    Case("Conv", [IMAGE, fixed(reals(6, 4, 3, 3), "float32")], {"pads": [1, 1, 1, 1]}),
    Case("Conv", [IMAGE, fixed(reals(6, 4, 3, 3), "float32"), fixed(reals(6), "float32")], {"strides": [2, 1], "pads": [0, 1, 2, 1]}),
    Case("Conv", [IMAGE, fixed(reals(4, 1, 5, 5), "float32")], {"group": 4, "pads": [2, 2, 2, 2]}),
    Case("Conv", [IMAGE, fixed(reals(6, 2, 3, 3), "float32")], {"group": 2, "dilations": [2, 2]}),
    Case("Conv", [IMAGE, fixed(reals(6, 4, 3, 3), "float32")], {"auto_pad": "SAME_UPPER"}),
    Case("Conv", [IMAGE, fixed(reals(6, 4, 4, 4), "float32")], {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, dims="fixed"),
    Case("Conv", [reals(2, 4, 11), fixed(reals(5, 4, 3), "float32"), fixed(reals(5), "float32")], {"pads": [1, 2], "strides": [2]}),
    Case("ConvTranspose", [IMAGE, fixed(reals(4, 3, 2, 2), "float32")], {"strides": [2, 2]}),
    Case("ConvTranspose", [IMAGE, fixed(reals(4, 3, 3, 3), "float32"), fixed(reals(3), "float32")], {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    Case("ConvTranspose", [IMAGE, fixed(reals(4, 2, 3, 3), "float32")], {"group": 2, "dilations": [2, 1]}),
    Case("MaxPool", [IMAGE], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    Case("MaxPool", [IMAGE], {"kernel_shape": [2, 3], "ceil_mode": 1, "strides": [2, 2]}),
    Case("MaxPool", [reals(2, 4, 11)], {"kernel_shape": [3], "strides": [2]}),
    Case("MaxPool", [reals(2, 3, 1, 7)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("MaxPool", [reals(2, 3, 2, 2)], {"kernel_shape": [3, 3], "strides": [2, 1]}),
    Case("MaxPool", [reals(2, 4, 2)], {"kernel_shape": [5], "strides": [4]}),
    Case("AveragePool", [IMAGE], {"kernel_shape": [3, 2], "strides": [3, 2]}),
    Case("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    Case("AveragePool", [IMAGE], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    Case("GlobalAveragePool", [IMAGE]),
    Case("GlobalMaxPool", [IMAGE]),
    Case("GlobalMaxPool", [reals(2, 4, 11)]),
    # Normalization.
    Case("BatchNormalization", [IMAGE, *(fixed(reals(4), "float32") for _ in range(3)), fixed(reals(4, low=0.5), "float32")]),
    Case("BatchNormalization", [IMAGE, *(reals(4) for _ in range(3)), reals(4, low=0.5)], dims="fixed"),
    Case("InstanceNormalization", [IMAGE, fixed(reals(4), "float32"), fixed(reals(4), "float32")]),
    Case("LayerNormalization", [X, fixed(reals(5), "float32"), fixed(reals(5), "float32")]),
    Case("LayerNormalization", [X, fixed(reals(3, 5), "float32")], {"axis": 1, "epsilon": 1e-3}),
    Case("GroupNormalization", [IMAGE, fixed(reals(4), "float32"), fixed(reals(4), "float32")], {"num_groups": 2}, opset=21),
    # Products.
    Case("MatMul", [reals(3, 4), reals(4, 5)]),
    Case("MatMul", [reals(2, 3, 4), fixed(reals(4, 5), "float32")]),
    Case("MatMul", [reals(2, 1, 3, 4), reals(3, 4, 5)]),
    Case("MatMul", [reals(4), reals(4, 5)]),
    Case("MatMul", [reals(3, 4), reals(4)]),
    Case("Gemm", [reals(3, 4), fixed(reals(5, 4), "float32"), fixed(reals(5), "float32")], {"transB": 1}),
    Case("Gemm", [reals(4, 3), reals(4, 5), reals(1, 5)], {"transA": 1, "alpha": 0.5, "beta": 2.0}),
    # Shapes and places.
    Case("Shape", [X]),
    Case("Shape", [X], {"start": 1, "end": -1}),
    Case("Size", [X]),
    Case("Reshape", [X, fixed([0, -1])]),
    Case("Reshape", [X, fixed([5, 3, 2])]),
    Case("Flatten", [X], {"axis": 2}),
    Case("Flatten", [X], {"axis": 0}),
    Case("Squeeze", [reals(2, 1, 3, 1), fixed([1, -1])]),
    Case("Squeeze", [reals(2, 1, 3, 1)], {"axes": [1]}, opset=11),
    Case("Unsqueeze", [X, fixed([0, -1])]),
    Case("Unsqueeze", [X], {"axes": [1]}, opset=11),
    Case("Expand", [reals(3, 1), fixed([2, 1, 5])]),
    Case("Transpose", [X], {"perm": [2, 0, 1]}),
    Case("Transpose", [X]),
    Case("Concat", [X, reals(2, 3, 2)], {"axis": -1}),
    Case("Concat", [X, X, reals(4, 3, 5)], {"axis": 0}),
    Case("Split", [reals(2, 3, 6)], {"axis": 2}, outputs=2, dims="fixed"),
    Case("Split", [X, fixed([1, 3, 1])], {"axis": 2}, outputs=3),
    Case("Split", [X], {"axis": 2, "split": [2, 3]}, opset=11, outputs=2),
    Case("Tile", [X, fixed([1, 2, 3])]),
    Case("Slice", [X, fixed([0, 1]), fixed([1, 2**62]), fixed([1, 2])]),
    Case("Slice", [X, fixed([1]), fixed([-1]), fixed([-1])]),
    Case("Slice", [X, fixed([0]), fixed([9]), fixed([2]), fixed([2])]),
    Case("Slice", [X, fixed([-1]), fixed([-(2**62)]), fixed([2]), fixed([-2])], dims="fixed"),
    Case("Slice", [X], {"starts": [1], "ends": [3], "axes": [2]}, opset=9),
    Case("Gather", [X, fixed([[0, 2], [1, -1]])], {"axis": 1}),
    Case("Gather", [X, ints(4, low=-3, high=3)], {"axis": 1}),
    Case("Gather", [X, fixed(1)], {"axis": 2}),
    Case("Pad", [X, fixed([0, 1, 2, 0, 3, 1])]),
    Case("Pad", [X, fixed([0, 1, 2, 0, 1, 1]), fixed(1.5, "float32")]),
    Case("Pad", [X, fixed([0, 1, 2, 0, 1, 1])], {"mode": "reflect"}),
    Case("Pad", [X, fixed([0, 1, 2, 0, 1, 1])], {"mode": "edge"}),
    Case("Pad", [X, fixed([1, 2]), fixed(0.0, "float32"), fixed([-1])], opset=18),
    Case("Pad", [X], {"pads": [0, 0, 1, 0, 0, 2], "value": 2.0}, opset=2 + 8),
    Case("ConstantOfShape", [fixed([2, 70])], {"value": helper.make_tensor("v", TensorProto.FLOAT, [1], [2.5])}),
    Case("Range", [fixed(1), fixed(10), fixed(3)]),
    Case("Dropout", [X]),
    Case("DepthToSpace", [reals(2, 8, 3, 2)], {"blocksize": 2}),
    Case("DepthToSpace", [reals(2, 8, 3, 2)], {"blocksize": 2, "mode": "CRD"}),
    Case("SpaceToDepth", [reals(2, 3, 4, 6)], {"blocksize": 2}, dims="fixed"),
    # Resizing.
    *[
        Case("Resize", [IMAGE, None, fixed([1, 1, 2, 3], "float32")], {"mode": mode, "coordinate_transformation_mode": where})
        for mode in ("nearest", "linear", "cubic")
        for where in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    ],
    *[
        Case("Resize", [IMAGE, None, None, fixed([2, 4, 5, 13])], {"mode": "nearest", "nearest_mode": rounding})
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    ],
    Case("Resize", [IMAGE, None, None, fixed([2, 4, 5, 13])], {"mode": "linear"}),
    Case("Resize", [IMAGE, fixed([1, 1, 2, 2], "float32")], {"mode": "nearest"}, opset=10),
    Case("Upsample", [IMAGE, fixed([1, 1, 2, 2], "float32")], {"mode": "nearest"}, opset=9),
]


def model_of(case, symbolic):
    names, inputs, initializers = [], [], []
    for i, x in enumerate(case.inputs):
        names.append("" if x is None else f"x{i}")
        if x is None:
            continue
        if isinstance(x, Fixed):
            initializers.append(numpy_helper.from_array(np.asarray(x), f"x{i}"))
            continue
        # Channels stay fixed, and so does what is 1: the operators' own rules depend on these.
        dims = [f"d{i}_{axis}" if symbolic and size != 1 and axis != 1 else size for axis, size in enumerate(x.shape)]
        inputs.append(helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), dims))
    outputs = [f"y{i}" for i in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, **case.attrs)
    infos = [onnx.ValueInfoProto(name=name) for name in outputs]
    graph = helper.make_graph([node], "case", inputs, infos, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)])
    model.ir_version = 8
    return model


def run_relaxide(model, arrays):
    module = tvm.relax.frontend.onnx.from_onnx(model)
    vm = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    result = vm["main"](*(tvm.runtime.tensor(x.copy()) for x in arrays))
    return [result.numpy()] if hasattr(result, "numpy") else [part.numpy() for part in result]


def difference(got, expected):
    """What is wrong with an output; nothing if it is right."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if got.dtype.kind == "f":
        same = np.allclose(got, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    else:
        same = np.array_equal(got, expected)
    return None if same else f"{got.ravel()[:6]} instead of {expected.ravel()[:6]}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_onnx_runtime(case):
    arrays = [x for x in case.inputs if x is not None and not isinstance(x, Fixed)]
    plain = model_of(case, symbolic=False)
    names = [info.name for info in plain.graph.input]
    # ONNX Runtime takes types of outputs from inference.
    inferred = onnx.shape_inference.infer_shapes(plain)
    session = onnxruntime.InferenceSession(inferred.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, dict(zip(names, arrays)))
    kinds = {"both": [False, True], "fixed": [False], "symbolic": [True]}[case.dims]
    if not arrays:
        kinds = [False]
    for symbolic in kinds:
        got = run_relaxide(model_of(case, symbolic), arrays)
        for i, (ours, theirs) in enumerate(zip(got, expected, strict=True)):
            fault = difference(ours, theirs)
            assert fault is None, f"{'symbolic' if symbolic else 'fixed'} shapes, output {i}: {fault}"
