"""Models of one node, executed here and by ONNX Runtime."""

from dataclasses import dataclass, field

import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import relaxide as tvm


class Fixed(np.ndarray):
    """An array that is an initializer."""


def fixed(x, dtype=None):
    return np.asarray(x, dtype).view(Fixed)


def number(x, dtype="float32"):
    return fixed(np.array(x, dtype))


class Random:
    """Arrays from a seed."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reals(self, *shape, size=1.0):
        return (self.rng.standard_normal(shape) * size).astype("float32")

    def ints(self, *shape, dtype="uint8", low=0, high=255):
        return self.rng.integers(low, high, shape).astype(dtype)

    def bytes(self, *shape, dtype="uint8"):
        """Every number of a type of 8 bits."""
        return self.rng.integers(0, 256, shape).astype("uint8").view(dtype)

    def one_of(self, *values):
        return values[self.rng.integers(len(values))]

    def up_to(self, low, high):
        return int(self.rng.integers(low, high + 1))


@dataclass
class Case:
    op: str
    inputs: list
    attrs: dict = field(default_factory=dict)
    domain: str = "com.microsoft"
    opset: int = 21
    outputs: int = 1
    #: Integers may differ by this many steps, where a sum lies between two.
    steps: int = 0
    #: What real numbers may differ by.
    tolerance: float = 2e-5
    #: Dimensions that have no name in a symbolic model; others of one size are one dimension.
    keep: tuple = (1, 4, 8)
    #: Computes the outputs from the feed, where ONNX Runtime does not.
    reference: object = None

    def __str__(self):
        return f"{self.op}{self.attrs}"


def model_of(case, symbolic):
    """The model, and the arrays that it is given."""
    names, feed, weights = [], {}, []
    for i, x in enumerate(case.inputs):
        name = "" if x is None else f"in{i}"
        names.append(name)
        if isinstance(x, Fixed):
            weights.append(numpy_helper.from_array(np.asarray(x), name))
        elif x is not None:
            feed[name] = x

    def dims(shape):
        return [f"n{d}" if symbolic and d not in case.keep else d for d in shape]

    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), dims(x.shape)) for n, x in feed.items()]
    outputs = [f"out{i}" for i in range(case.outputs)]
    if case.outputs == 4:
        outputs[1:3] = ["", ""]
    graph = helper.make_graph(
        [helper.make_node(case.op, names, outputs, domain=case.domain, **case.attrs)],
        "g",
        infos,
        [helper.make_empty_tensor_value_info(name) for name in outputs if name],
        weights,
    )
    sets = [helper.make_opsetid("", case.opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10), feed


def runtime(model, feed):
    """What ONNX Runtime gives on one thread. With more it quantizes the states of a batch in parts, so that its result depends on
    their number."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, feed)


def ours(model, feed):
    machine = tvm.relax.VirtualMachine(tvm.compile(tvm.relax.frontend.onnx.from_onnx(model), target="llvm"), tvm.cpu())
    got = machine["main"](*[tvm.runtime.tensor(x) for x in feed.values()])
    return [y.numpy() for y in got] if len(model.graph.output) > 1 else [got.numpy()]


def check(case, symbolic):
    """Compares a case with ONNX Runtime, or with its reference."""
    model, feed = model_of(case, symbolic)
    wanted = case.reference() if case.reference else runtime(model, feed)
    for g, w in zip(ours(model, feed), wanted, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        if case.steps and w.dtype.kind in "iu":
            assert np.abs(g.astype(int) - w.astype(int)).max(initial=0) <= case.steps
        else:
            np.testing.assert_allclose(g, w, rtol=case.tolerance, atol=case.tolerance)
