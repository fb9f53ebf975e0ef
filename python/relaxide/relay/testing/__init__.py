"""Networks to test with, written as TVM's ``relay.testing`` had them: ``resnet.get_workload(num_layers=18)``."""

from types import SimpleNamespace

from . import networks as _networks
from . import quantized as _quantized
from . import sequences as _sequences
from .builder import Builder


def _workload(function):
    return SimpleNamespace(get_workload=function, __doc__=function.__doc__)


mlp = _workload(_networks.mlp)
resnet = _workload(_networks.resnet)
mobilenet = _workload(_networks.mobilenet)
squeezenet = _workload(_networks.squeezenet)
vgg = _workload(_networks.vgg)
densenet = _workload(_networks.densenet)
dcgan = _workload(_networks.dcgan)
inception_v3 = _workload(_networks.inception_v3)
lstm = SimpleNamespace(get_workload=_sequences.lstm, over_list=_sequences.lstm_over_list)
bert = _workload(_sequences.bert)
quantized = SimpleNamespace(resnet=_workload(_quantized.resnet), mobilenet=_workload(_quantized.mobilenet))


def create_workload(function, inputs=("data",), seed=0):
    """``(module, weights)`` of a function: weights are drawn for its parameters."""
    builder = Builder()
    builder.params = [(var, var.type_annotation.concrete_shape) for var in function.params]
    return builder.workload(function.body, inputs, seed)


__all__ = ["Builder", "bert", "create_workload", "dcgan", "densenet", "inception_v3", "lstm", "mlp", "mobilenet"]
__all__ += ["quantized", "resnet", "squeezenet", "vgg"]
