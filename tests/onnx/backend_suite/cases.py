"""The cases of ONNX's own backend test suite that are about inference, and how results are compared.

A case of kind `node` is generated with its data; the others are folders with a model and files of data. The comparison is
that of the suite's own runner, tolerances and all.
"""

import glob
import os
import warnings
from dataclasses import dataclass

import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
TRAINING = "ai.onnx.preview.training"


@dataclass
class Case:
    """A model, its inputs and what is expected of it."""

    name: str
    kind: str
    source: object

    def model(self):
        if self.source.model is not None:
            return self.source.model
        return onnx.load(os.path.join(self.source.model_dir, "model.onnx"))

    def data_sets(self, model):
        """Pairs of inputs and expected outputs."""
        if self.source.data_sets is not None:
            return [([_array(x) for x in inputs], [_array(y) for y in outputs]) for inputs, outputs in self.source.data_sets]
        pairs = []
        for folder in sorted(glob.glob(os.path.join(self.source.model_dir, "test_data_set*"))):
            pairs.append((_values(folder, "input", model.graph.input), _values(folder, "output", model.graph.output)))
        return pairs

    def check(self, expected, got):
        """Raises AssertionError where outputs differ from what is expected.

        The suite's runner compares the rows of a sequence's tensors, and fails where one has none, so sequences are handed to
        it as lists of outputs of their own.
        """
        tolerances = (self.source.rtol, self.source.atol, self.source.model_dir)
        assert len(expected) == len(got), f"{len(got)} outputs where {len(expected)} are expected"
        for one, other in zip(expected, got):
            is_list = isinstance(one, (list, tuple))
            assert is_list == isinstance(other, (list, tuple)), f"{type(other)} where {type(one)} is expected"
            Runner.assert_similar_outputs(one if is_list else [one], other if is_list else [other], *tolerances)


def load_cases():
    """Every case, sorted by name; cases of training operators are left out."""
    cases = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in KINDS:
            for source in load_model_tests(kind=kind):
                assert source.name not in cases, f"two cases are called {source.name}"
                case = Case(source.name, kind, source)
                if all(node.domain != TRAINING for node in case.model().graph.node):
                    cases[case.name] = case
    return [cases[name] for name in sorted(cases)]


def _array(value):
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def _values(folder, stem, infos):
    count = len(glob.glob(os.path.join(folder, f"{stem}_*.pb")))
    return [_value(os.path.join(folder, f"{stem}_{i}.pb"), infos[i].type) for i in range(count)]


def _value(path, kind):
    with open(path, "rb") as file:
        data = file.read()
    if kind.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(data))
    if kind.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(data))
    return numpy_helper.to_array(onnx.TensorProto.FromString(data))
