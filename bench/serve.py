"""Requests a second and the times of answers of a small MLP on loopback, beside a server of FastAPI, uvicorn and ONNX Runtime.

usage: python bench/serve.py [--quick] [--rate N] [--connections N] [--workers N]

The client is `cargo run --release -p relaxide-serve --example load`, the same for both, with JSON of the same protocol: one row of 64 floats in, ten out.
Servers take turns, each alone; the client and the server share the machine's cores. Two kinds of rounds: as many requests as the server answers,
and `--rate` a second, where a request's time runs from its turn. Printed are medians over the rounds, and the median of the ratios of rounds
side by side. Where fastapi, uvicorn or onnxruntime is not installed, that server is left out, and said so.
"""

import argparse
import contextlib
import importlib.util
import json
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import helper as h
from onnx import numpy_helper as nh

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "serve"))
from serving import COMMAND, served  # noqa: E402

#: The lengths of the network's layers.
LAYERS = [64, 128, 128, 10]

FASTAPI = """
import sys
import numpy as np, onnxruntime, uvicorn
from fastapi import FastAPI, Request

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
app = FastAPI()

@app.post("/v2/models/mlp/infer")
async def infer(request: Request):
    given = (await request.json())["inputs"][0]
    x = np.asarray(given["data"], dtype="float32").reshape(given["shape"])
    y = session.run(["y"], {"x": x})[0]
    output = {"name": "y", "datatype": "FP32", "shape": list(y.shape), "data": y.ravel().tolist()}
    return {"model_name": "mlp", "outputs": [output]}

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error", access_log=False)
"""


def network(path):
    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for i, (rows, columns) in enumerate(zip(LAYERS, LAYERS[1:])):
        end = i + 2 == len(LAYERS)
        weights.append(nh.from_array((rng.standard_normal((rows, columns)) / rows**0.5).astype("float32"), f"w{i}"))
        weights.append(nh.from_array(rng.standard_normal(columns).astype("float32"), f"b{i}"))
        nodes.append(h.make_node("Gemm", [last, f"w{i}", f"b{i}"], ["y" if end else f"g{i}"]))
        if not end:
            nodes.append(h.make_node("Relu", [f"g{i}"], [f"r{i}"]))
            last = f"r{i}"
    value = lambda name, length: h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", length])  # noqa: E731
    graph = h.make_graph(nodes, "mlp", [value("x", LAYERS[0])], [value("y", LAYERS[-1])], weights)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), path)


@contextlib.contextmanager
def fastapi(model):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", FASTAPI, str(model), str(port)])
    try:
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None
            time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def load(address, body, connections, seconds, rate=None):
    words = [ROOT / "target/release/examples/load", address, "/v2/models/mlp/infer", body, connections, seconds, *([rate] if rate else [])]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["failed"] == 0, found
    return found


def said(name, found):
    of = lambda key: statistics.median(one[key] for one in found)  # noqa: E731
    print(f"  {name:28} {of('requests_per_second'):9.0f} requests/s   p50 {of('p50_ms'):8.2f} ms   p99 {of('p99_ms'):8.2f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three rounds of two seconds")
    parser.add_argument("--rate", type=int, default=10_000, help="requests a second of the rounds at a rate")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0, help="as `relaxide serve` has it")
    args = parser.parse_args()
    rounds, seconds = (3, 2) if args.quick else (5, 8)

    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "relaxide-serve", "--example", "load"], cwd=ROOT, check=True)
    lacking = [name for name in ("fastapi", "uvicorn", "onnxruntime") if importlib.util.find_spec(name) is None]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        model, library, body = folder / "mlp.onnx", folder / "mlp.so", folder / "body.json"
        network(model)
        subprocess.run([COMMAND, "compile", model, "-o", library], check=True, capture_output=True)
        x = np.random.default_rng(1).standard_normal((1, LAYERS[0])).round(4).tolist()
        body.write_text(json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, LAYERS[0]], "data": x}]}))

        options = {"one by one": [], "batches of 32": ["--max-batch", 32]}
        servers = {f"relaxide, {name}": lambda words=words: served([library], "--threads", 1, "--workers", args.workers, *words) for name, words in options.items()}
        if lacking:
            print(f"FastAPI with ONNX Runtime is left out: {', '.join(lacking)} is not installed")
        else:
            servers["FastAPI, ONNX Runtime"] = lambda: fastapi(model)
        most, rated = {name: [] for name in servers}, {name: [] for name in servers}
        for _ in range(rounds):
            for name, start in servers.items():
                with start() as address:
                    address = address if isinstance(address, str) else address[0]
                    load(address, body, args.connections, 0.5)
                    most[name].append(load(address, body, args.connections, seconds))
                    # A server that cannot do the rate only falls further and further behind.
                    if "relaxide" in name:
                        rated[name].append(load(address, body, args.connections, seconds, args.rate))
        print(f"as many as the server answers, {args.connections} connections")
        for name, found in most.items():
            said(name, found)
        if not lacking:
            for name in list(servers)[:-1]:
                pairs = zip(most[name], most["FastAPI, ONNX Runtime"])
                ratio = statistics.median(one["requests_per_second"] / other["requests_per_second"] for one, other in pairs)
                print(f"  {name}: {ratio:.1f} times FastAPI's requests/s")
        print(f"{args.rate} a second")
        for name, found in rated.items():
            if found:
                said(name, found)


if __name__ == "__main__":
    main()
