"""Models of many nodes that are independent of each other, compiled at once and executed here and by ONNX Runtime."""

import numpy as np
import onnxruntime
from onnx import helper as h
from onnx import numpy_helper

from relaxide.onnx_backend import RelaxideBackend


class Nodes:
    """A model of many nodes that are independent of each other."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.weights, self.feed, self.expected = [], [], [], [], {}, []

    def value(self, array, dims=None):
        name = f"x{len(self.inputs)}"
        kind = h.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(h.make_tensor_value_info(name, kind, dims or array.shape))
        self.feed[name] = array
        return name

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, types, expected=None, **attributes):
        names = [f"y{len(self.outputs) + i}" for i in range(len(types))]
        self.nodes.append(h.make_node(op, inputs, names, **attributes))
        self.outputs.extend(h.make_tensor_value_info(n, t, None) for n, t in zip(names, types))
        self.expected.extend(expected or [])

    def model(self, opset):
        graph = h.make_graph(self.nodes, "g", self.inputs, self.outputs, self.weights)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=9)

    def run(self, opset=20):
        return RelaxideBackend.prepare(self.model(opset)).run(self.feed)

    def run_there(self, opset=20):
        return onnxruntime.InferenceSession(self.model(opset).SerializeToString()).run(None, self.feed)
