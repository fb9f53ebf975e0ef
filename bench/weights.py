"""What weights beside the library cost and save: a network with random weights, compiled with its weights inside and apart.

usage: weights.py [--network bert|resnet50] [--inside] [--processes N]

BERT-base has its weights in a file beside the ONNX file, or with --inside in it; ResNet-50 always has them in it, and is only compiled.

Printed are the sizes of the files, how long compilation takes and the most memory that it has, private to the process and altogether
(with the pages of mapped files); how long a process takes to load the model; and what several processes that run it have of their own
and share.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "examples" / "sentence_embedding"))

import convolutions  # noqa: E402
import minilm  # noqa: E402

COMMAND = ROOT / "build" / "relaxide"
CONFIG = {"hidden_size": 768, "num_attention_heads": 12, "num_hidden_layers": 12, "layer_norm_eps": 1e-12}

#: Loads the model, says so with the time it took, waits for a line, runs it, says so, and waits for its end.
RUNNER = """
import sys, time
import numpy as np
import relaxide as tvm
start = time.perf_counter()
machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
print(time.perf_counter() - start, flush=True)
sys.stdin.readline()
ids = tvm.runtime.tensor(np.ones((1, 16), "int64"))
machine["main"](ids, ids, ids)
print("ran", flush=True)
sys.stdin.readline()
"""


class Weights(dict):
    """Random arrays of the shapes that BERT-base has."""

    def __missing__(self, name):
        wide, hidden = 3072, CONFIG["hidden_size"]
        shape = {
            "embeddings.word_embeddings.weight": (30522, hidden),
            "embeddings.position_embeddings.weight": (512, hidden),
            "embeddings.token_type_embeddings.weight": (2, hidden),
        }.get(name)
        if shape is None and name.endswith("bias"):
            shape = (wide if "intermediate" in name else hidden,)
        elif shape is None and "LayerNorm" in name:
            shape = (hidden,)
        elif shape is None:
            inside = "output.dense" in name and "attention" not in name
            shape = (wide, hidden) if "intermediate" in name else (hidden, wide) if inside else (hidden, hidden)
        rng = np.random.default_rng(len(self))
        self[name] = rng.standard_normal(shape, "float32") * np.float32(0.02)
        return self[name]


def resnet50(path, inside):
    """Writes ResNet-50 with its normalizations folded into the convolutions."""
    rng, nodes, weights = np.random.default_rng(0), [], []

    def weight(*shape):
        array = rng.standard_normal(shape, "float32") / np.float32(max(1, np.prod(shape[1:])) ** 0.5)
        weights.append(onnx.numpy_helper.from_array(array, f"w{len(weights)}"))
        return weights[-1].name

    def node(kind, *inputs, **attributes):
        nodes.append(onnx.helper.make_node(kind, inputs, [f"n{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    def conv(x, layer):
        shape, pads = (layer.outputs, layer.inputs, layer.kernel, layer.kernel), [layer.kernel // 2] * 4
        return node("Conv", x, weight(*shape), weight(layer.outputs), strides=[layer.stride] * 2, pads=pads)

    layers = convolutions.resnet50()
    x = node("Relu", conv("image", next(layers)))
    x = node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for blocks in (3, 4, 6, 3):
        for block in range(blocks):
            inner = node("Relu", conv(x, next(layers)))
            inner = node("Relu", conv(inner, next(layers)))
            x = conv(x, next(layers)) if block == 0 else x
            x = node("Relu", node("Add", conv(inner, next(layers)), x))
    x = node("Flatten", node("GlobalAveragePool", x))
    nodes.append(onnx.helper.make_node("Gemm", [x, weight(1000, 2048), weight(1000)], ["scores"], transB=1))
    floats = onnx.TensorProto.FLOAT
    image = onnx.helper.make_tensor_value_info("image", floats, [1, 3, 224, 224])
    scores = onnx.helper.make_tensor_value_info("scores", floats, [1, 1000])
    graph = onnx.helper.make_graph(nodes, "resnet50", [image], [scores], weights)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)


def bert(path, inside):
    """Writes BERT-base, its weights in the file or in one beside it."""
    graph = minilm.Graph(Weights())
    x, mask = graph.embeddings(CONFIG["layer_norm_eps"]), graph.mask()
    for number in range(CONFIG["num_hidden_layers"]):
        x = graph.layer(x, mask, number, CONFIG)
    graph.nodes.append(onnx.helper.make_node("Identity", [graph.pooled(x)], ["embedding"]))
    names = ("input_ids", "token_type_ids", "attention_mask")
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch", "length"]) for name in names]
    output = onnx.helper.make_tensor_value_info("embedding", onnx.TensorProto.FLOAT, ["batch", CONFIG["hidden_size"]])
    graph = onnx.helper.make_graph(graph.nodes, "bert", inputs, [output], list(graph.initializers.values()))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path, save_as_external_data=not inside, location="weights.data", size_threshold=1024)


NETWORKS = {"bert": bert, "resnet50": resnet50}


def memory(process):
    """Megabytes of a process: its own, and those of files that others may have mapped too."""
    lines = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    of = {line.split(":")[0]: int(line.split()[1]) / 1e3 for line in lines[1:]}
    return of["Anonymous"], of["Rss"], of["Pss"]


def compile_apart(model, library, *options):
    """Compiles; the seconds and the peaks of private memory and of all, looked at fifty times a second."""
    start, most = time.perf_counter(), [0.0, 0.0]
    process = subprocess.Popen([COMMAND, "compile", model, "-o", library, "--quiet", *options])
    while process.poll() is None:
        try:
            private, resident, _ = memory(process.pid)
        except (FileNotFoundError, KeyError, ProcessLookupError):
            continue
        most = [max(most[0], private), max(most[1], resident)]
        time.sleep(0.02)
    assert process.returncode == 0
    return time.perf_counter() - start, *most


def serve(library, count):
    """Loads and runs the model in several processes: seconds of loading, and the memory of each while all are there."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "python"), RELAXIDE_NUM_THREADS="1")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    processes, seconds = [], []
    for _ in range(count):
        processes.append(subprocess.Popen([sys.executable, "-c", RUNNER, library], **pipes))
        seconds.append(float(processes[-1].stdout.readline()))
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
    figures = [memory(process.pid) for process in processes]
    for process in processes:
        process.communicate("\n")
    return seconds, figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", choices=NETWORKS, default="bert")
    parser.add_argument("--inside", action="store_true", help="weights in the ONNX file")
    parser.add_argument("--processes", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        folder = pathlib.Path(folder)
        model = folder / f"{args.network}.onnx"
        NETWORKS[args.network](model, args.inside)
        print(f"{model.name} and its weights: {sum(f.stat().st_size for f in folder.iterdir()) / 1e6:.0f} MB")
        for name, options in (("library", ()), ("safetensors", ("--weights", "safetensors"))):
            library = folder / name / f"{args.network}.so"
            library.parent.mkdir()
            took, private, resident = compile_apart(model, library, *options)
            sizes = {file.name: round(file.stat().st_size / 1e6, 1) for file in library.parent.iterdir()}
            print(f"\nweights in: {name}\n  files (MB)   {json.dumps(sizes)}")
            print(f"  compilation  {took:.1f} s, at most {private:.0f} MB of its own, {resident:.0f} MB with mapped files")
            if args.network != "bert":
                continue
            seconds, figures = serve(library, args.processes)
            print(f"  loading      {', '.join(f'{s * 1e3:.0f}' for s in seconds)} ms")
            own = ", ".join(f"{private:.0f}" for private, _, _ in figures)
            print(f"  {args.processes} processes  {own} MB of their own, {sum(pss for _, _, pss in figures):.0f} MB together")


if __name__ == "__main__":
    main()
