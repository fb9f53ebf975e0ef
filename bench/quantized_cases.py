"""Networks of 8-bit integers for ``models.py --quantized``, made by ONNX Runtime's own tools of the float networks.

Convolutional ones are calibrated on random images, with a scale for each channel, as ``QDQ`` (float operators between conversions) and as
``QLinear`` (integer operators); transformers and recurrent layers are quantized where they run (``quantize_dynamic``).
"""

import dataclasses

import network_cases
from network_cases import NETWORKS, Network


def prepared(network, folder):
    """The float network with its norms folded into convolutions, as quantization wants it."""
    from onnxruntime.quantization.shape_inference import quant_pre_process

    path = folder / f"{network.name}.prepared.onnx"
    if not path.exists():
        quant_pre_process(str(network.file(folder)), str(path), skip_symbolic_shape=True)
    return path


class Images:
    """Random images for calibration, a few."""

    def __init__(self, network, count=4):
        import numpy as np

        rng = np.random.default_rng(1)
        feed = network.feed()
        self.left = [{name: rng.standard_normal(array.shape, "float32") for name, array in feed.items()} for _ in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def static(name, form):
    network = NETWORKS[name]

    def file(folder):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

        class Reader(Images, CalibrationDataReader):
            pass

        path = folder / f"{name}.{form}.onnx"
        if not path.exists():
            formats = {"qdq": QuantFormat.QDQ, "qlinear": QuantFormat.QOperator}
            quantize_static(
                str(prepared(network, folder)), str(path), Reader(network), quant_format=formats[form], per_channel=True,
                activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
            )  # fmt: skip
        return path

    return dataclasses.replace(network, name=f"{name}.{form}", file=file, module=None)


def dynamic(name):
    network = NETWORKS[name]

    def file(folder):
        from onnxruntime.quantization import QuantType, quantize_dynamic

        path = folder / f"{name}.dynamic.onnx"
        if not path.exists():
            quantize_dynamic(str(network.file(folder)), str(path), weight_type=QuantType.QInt8)
        return path

    return dataclasses.replace(network, name=f"{name}.dynamic", file=file, module=None)


#: With ``--quantized``; the float networks stand beside those that are made of them.
QUANTIZED: list[Network] = [
    *(made for name in ("resnet50", "mobilenet_v2") for made in (NETWORKS[name], static(name, "qdq"), static(name, "qlinear"))),
    *(made for name in ("bert_base_128", "diacritics") for made in (NETWORKS[name], dynamic(name))),
]

network_cases.NETWORKS.update({network.name: network for network in QUANTIZED})
