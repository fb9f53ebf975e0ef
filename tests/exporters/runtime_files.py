"""What ONNX Runtime's quantizer and its optimizer of transformers write, and onnxslim and onnxsim, of files by torch."""

import tempfile
from pathlib import Path

import onnx

import torch_files

#: Networks that are quantized and optimized.
OF = ("cnn", "unet", "depthwise", "attention", "attention-triu", "gpt", "bert", "encoder", "LSTM-False", "GRU-True", "crnn", "norms", "activations")


def quantized(model, runs, kind):
    """Weights with a sign have seven bits, but where the kind says `full`."""
    seven = "s8" in kind and "full" not in kind
    from onnxruntime import quantization as q

    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "a.onnx"), Path(folder, "b.onnx")
        source.write_bytes(model)
        if kind.startswith("dynamic"):
            q.quantize_dynamic(source, target, weight_type=q.QuantType.QUInt8 if kind.endswith("u8") else q.QuantType.QInt8, per_channel="channel" in kind, reduce_range=seven)
            return onnx.load(target)
        q.quant_pre_process(source, source, skip_symbolic_shape=True)

        class Reader(q.CalibrationDataReader):
            def __init__(self):
                self.rest = iter(runs)

            def get_next(self):
                return next(self.rest, None)

        form = q.QuantFormat.QDQ if "qdq" in kind else q.QuantFormat.QOperator
        types = dict(activation_type=q.QuantType.QInt8, weight_type=q.QuantType.QInt8) if "s8" in kind else {}
        q.quantize_static(source, target, Reader(), quant_format=form, per_channel="channel" in kind, reduce_range=seven, **types)
        return onnx.load(target)


def optimized(model, kind):
    from onnxruntime.transformers import optimizer

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "a.onnx")
        source.write_bytes(model)
        return optimizer.optimize_model(str(source), model_type=kind, num_heads=2, hidden_size=8, opt_level=0).model


def session(model, level):
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(Path(folder, "a.onnx"))
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def slim(model):
    import onnxslim

    return onnxslim.slim(onnx.load_from_string(model))


def sim(model):
    import onnxsim

    return onnxsim.simplify(onnx.load_from_string(model))[0]


def files():
    import onnxruntime
    import torch

    levels = onnxruntime.GraphOptimizationLevel
    torch.manual_seed(0)
    for name, network, shapes in torch_files.networks():
        if name not in OF:
            continue
        runs = torch_files.arrays(shapes)
        feeds = [{f"x{i}": a for i, a in enumerate(run)} for run in runs]
        try:
            written = torch_files.export(network, runs, False, False)
        except Exception:
            continue
        for kind in ("dynamic-s8", "dynamic-full-s8", "dynamic-u8", "dynamic-channel-s8", "static-qdq-s8", "static-qdq-channel-s8", "static-operator-u8"):
            yield f"quantized-{kind}-{name}", lambda m=written, f=feeds, k=kind: quantized(m, [{n: a for n, a in one.items()} for one in f], k), feeds
        for kind in ("bert", "gpt2"):
            if name in ("attention", "attention-triu", "gpt", "bert", "encoder"):
                yield f"optimized-{kind}-{name}", lambda m=written, k=kind: optimized(m, k), feeds
        yield f"session-basic-{name}", lambda m=written: session(m, levels.ORT_ENABLE_BASIC), feeds
        yield f"session-extended-{name}", lambda m=written: session(m, levels.ORT_ENABLE_EXTENDED), feeds
        yield f"slim-{name}", lambda m=written: slim(m), feeds
        yield f"sim-{name}", lambda m=written: sim(m), feeds
