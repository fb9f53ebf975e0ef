"""Models as WebAssembly modules, run in Node beside ONNX Runtime: results, errors, memory and size."""

import base64
import functools
import gzip
import http.server
import importlib.util
import json
import os
import pathlib
import queue
import shutil
import subprocess
import threading

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
RUNTIME = pathlib.Path(os.environ.get("RELAXIDE_WASM_RUNTIME", COMMAND.resolve().parent))

pytestmark = [
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is missing"),
    pytest.mark.skipif(
        not (RUNTIME / "relaxide_runtime.wasm").exists(),
        reason="the runtime for WebAssembly is not built (`scripts/wasm-runtime`, which needs `rustup target add wasm32-unknown-unknown`)",
    ),
]

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, "float32")


def value(name, shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, inputs, outputs, weights=None, opset=17):
    weights = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def perceptron():
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "c"], ["s"]),
        helper.make_node("Softmax", ["s"], ["scores"]),
    ]
    weights = {"w": numbers(64, 32), "b": numbers(32), "v": numbers(32, 10), "c": numbers(10)}
    return model(nodes, [value("x", [2, 64])], [value("scores", [2, 10])], weights), [{"x": numbers(2, 64, seed=1)}]


def convolutions():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p", "v", "b"], ["d"], strides=[2, 2], pads=[1, 1, 1, 1], group=2),
        helper.make_node("HardSwish", ["d"], ["s"]),
        helper.make_node("GlobalAveragePool", ["s"], ["g"]),
        helper.make_node("Flatten", ["g"], ["y"]),
    ]
    weights = {"w": numbers(8, 3, 3, 3), "v": numbers(16, 4, 3, 3), "b": numbers(16)}
    return model(nodes, [value("x", [1, 3, 20, 20])], [value("y", [1, 16])], weights), [{"x": numbers(1, 3, 20, 20, seed=1)}]


def open_lengths():
    """Attention over a number of rows that each call chooses, and one of them by an index."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["q"]),
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["q", "t"], ["a"]),
        helper.make_node("Softmax", ["a"], ["p"]),
        helper.make_node("MatMul", ["p", "x"], ["o"]),
        helper.make_node("LayerNormalization", ["o", "g"], ["y"], axis=-1),
        helper.make_node("Gather", ["y", "i"], ["row"], axis=0),
    ]
    inputs = [value("x", ["n", 24]), value("i", ["k"], INT64)]
    outputs = [value("y", ["n", 24]), value("row", ["k", 24])]
    calls = [{"x": numbers(n, 24, seed=n), "i": np.array([n - 1, 0], "int64")} for n in (1, 7, 33)]
    return model(nodes, inputs, outputs, {"w": numbers(24, 24), "g": numbers(24)}), calls


def control_flow():
    """A loop whose iterations are counted by an input, with a branch in it."""
    then = helper.make_graph([helper.make_node("Add", ["state", "one"], ["up"])], "then", [], [value("up", [3])])
    other = helper.make_graph([helper.make_node("Mul", ["state", "half"], ["down"])], "other", [], [value("down", [3])])
    body = helper.make_graph(
        [
            helper.make_node("ReduceSum", ["state"], ["sum"], keepdims=0),
            helper.make_node("Less", ["sum", "limit"], ["less"]),
            helper.make_node("If", ["less"], ["next"], then_branch=then, else_branch=other),
            helper.make_node("Identity", ["cond_in"], ["cond_out"]),
            helper.make_node("Identity", ["next"], ["kept"]),
        ],
        "body",
        [value("turn", [], INT64), value("cond_in", [], BOOL), value("state", [3])],
        [value("cond_out", [], BOOL), value("next", [3]), value("kept", [3])],
    )
    nodes = [helper.make_node("Loop", ["turns", "true", "x"], ["y", "all"], body=body)]
    weights = {
        "true": np.array(True),
        "one": np.ones(3, "float32"),
        "half": np.full(3, 0.5, "float32"),
        "limit": np.float32(4).reshape(()),
    }
    inputs, outputs = [value("turns", [], INT64), value("x", [3])], [value("y", [3]), value("all", ["turns", 3])]
    return model(nodes, inputs, outputs, weights), [{"turns": np.array(n, "int64"), "x": numbers(3)} for n in (1, 6, 40)]


def mathematics():
    """Functions that processors have no instruction for."""
    names = "Exp Erf Tanh Sigmoid Sin Cos Tan Atan Asinh Softplus Round Floor Neg Gelu".split()
    nodes = [helper.make_node(name, ["x"], [name.lower()]) for name in names]
    nodes += [helper.make_node("Abs", ["x"], ["positive"])]
    nodes += [helper.make_node(name, ["positive"], [f"{name.lower()}_"]) for name in ("Log", "Sqrt")]
    nodes += [helper.make_node("Pow", ["positive", "x"], ["pow"]), helper.make_node("Mod", ["x", "positive"], ["mod"], fmod=1)]
    names = [node.output[0] for node in nodes]
    return model(nodes, [value("x", ["n"])], [value(name, ["n"]) for name in names], opset=20), [{"x": 3 * numbers(1000)}]


def sequences():
    """A recurrent layer, and what few programs need: the places of what is not zero."""
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=8),
        helper.make_node("Greater", ["h", "zero"], ["is"]),
        helper.make_node("NonZero", ["is"], ["places"]),
    ]
    weights = {"w": numbers(1, 32, 6), "r": numbers(1, 32, 8), "b": numbers(1, 64), "zero": np.zeros([], "float32")}
    outputs = [value("y", ["n", 1, 2, 8]), value("places", [3, "found"], INT64)]
    return model(nodes, [value("x", ["n", 2, 6])], outputs, weights), [{"x": numbers(n, 2, 6, seed=n)} for n in (1, 5)]


MODELS = [perceptron, convolutions, open_lengths, control_flow, mathematics, sequences]


def sent(array):
    return {"dtype": str(array.dtype), "shape": list(np.shape(array)), "data": base64.b64encode(array.tobytes()).decode()}


def received(answer):
    return np.frombuffer(base64.b64decode(answer["data"]), answer["dtype"]).reshape(answer["shape"])


def in_node(script, *arguments, given=None):
    """What a program for Node prints."""
    done = subprocess.run(["node", str(script), *map(str, arguments)], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """The compiled models by their names."""
    folder, files = tmp_path_factory.mktemp("wasm"), {}
    for make in MODELS:
        onnx.save(make()[0], folder / f"{make.__name__}.onnx")
        files[make.__name__] = folder / f"{make.__name__}.wasm"
        subprocess.run([COMMAND, "compile", "-q", folder / f"{make.__name__}.onnx", "--target", "wasm"], check=True)
    return files


@pytest.fixture(scope="module")
def answers(modules):
    """What Node answers for all calls of all models, and for those that are wrong."""
    asked = [{"model": str(modules[make.__name__]), "calls": [{k: sent(v) for k, v in call.items()} for call in make()[1]]} for make in MODELS]
    x, i = numbers(4, 24), np.array([0], "int64")
    wrong = [
        {"x": x, "i": np.array([4], "int64")},
        {"x": x, "i": np.array([1 << 40], "int64")},
        {"x": numbers(4, 25), "i": i},
        {"x": numbers(24), "i": i},
        {"x": x.astype("float64"), "i": i},
        {"x": x, "z": i},
        {"x": x},
        {"x": x, "i": i},
    ]
    asked.append({"model": str(modules["open_lengths"]), "calls": [{k: sent(v) for k, v in call.items()} for call in wrong]})
    answers = json.loads(in_node(ROOT / "tests/wasm/driver.mjs", given=json.dumps(asked)))
    return dict(zip([make.__name__ for make in MODELS] + ["wrong"], answers))


@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_modules_compute_what_onnx_runtime_does(make, answers):
    proto, calls = make()
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for call, answer in zip(calls, answers[make.__name__]["calls"], strict=True):
        assert "error" not in answer, answer
        names = [output.name for output in session.get_outputs()]
        assert list(answer) == names
        for name, expected in zip(names, session.run(names, call)):
            assert answer[name]["dtype"] == str(expected.dtype)
            np.testing.assert_allclose(received(answer[name]), expected, rtol=1e-4, atol=1e-4, err_msg=name)


def package_file(package, path):
    """A file of a package, which is not imported: some want what is not here."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        pytest.skip(f"the package {package} is not installed")
    return pathlib.Path(spec.submodule_search_locations[0]) / path


def voices():
    call = {"input": 0.1 * numbers(2, 576), "state": np.zeros((2, 2, 128), "float32"), "sr": np.array(16000, "int64")}
    return package_file("silero_vad", "data/silero_vad.onnx"), call


def turned_texts():
    call = {"x": np.random.default_rng(0).random((2, 3, 48, 192), dtype="float32")}
    return package_file("rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"), call


@pytest.mark.parametrize("make", [voices, turned_texts], ids=lambda make: make.__name__)
def test_networks_of_packages_compute_what_onnx_runtime_does(make, tmp_path):
    file, call = make()
    module = tmp_path / "model.wasm"
    subprocess.run([COMMAND, "compile", "-q", file, "--target", "wasm", "-o", module], check=True)
    asked = [{"model": str(module), "calls": [{name: sent(array) for name, array in call.items()}]}]
    (answer,) = json.loads(in_node(ROOT / "tests/wasm/driver.mjs", given=json.dumps(asked)))[0]["calls"]
    assert "error" not in answer, answer
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    for output, expected in zip(session.get_outputs(), session.run(None, call), strict=True):
        np.testing.assert_allclose(received(answer[output.name]), expected, rtol=1e-4, atol=1e-4, err_msg=output.name)


def test_a_browser_runs_them(modules, tmp_path):
    browser = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if browser is None:
        pytest.skip("a browser is missing: `scripts/setup test-tools` installs one")
    shutil.copytree(ROOT / "packages/npm", tmp_path / "package")
    shutil.copy(modules["open_lengths"], tmp_path / "model.wasm")
    proto, (_, call, _) = open_lengths()
    (tmp_path / "index.html").write_text(f"""<!doctype html><script type="module">
import {{ load }} from "./package/index.js";
const say = (found) => fetch("/answer", {{ method: "POST", body: JSON.stringify(found) }});
try {{
  let seen = 0;
  const model = await load("model.wasm", {{ onProgress: (loaded) => (seen = loaded) }});
  const x = {{ shape: [7, 24], data: new Float32Array({json.dumps(call["x"].ravel().tolist())}) }};
  const {{ row }} = model.run({{ x, i: {{ shape: [2], data: [6n, 0n], dtype: "int64" }} }});
  const streamed = await load(await fetch("model.wasm"));
  say({{ seen, shape: row.shape, data: Array.from(row.data), inputs: streamed.inputs.length }});
}} catch (error) {{
  say(String(error));
}}
</script>""")
    answers = queue.Queue()
    handler = functools.partial(Quiet, answers, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_address[1]}/index.html"
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0"]
        with subprocess.Popen([browser, *options, page], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
            try:
                found = json.loads(answers.get(timeout=120))
            finally:
                running.terminate()
        server.shutdown()
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(["row"], call)
    assert isinstance(found, dict) and found["seen"] == modules["open_lengths"].stat().st_size, found
    np.testing.assert_allclose(np.reshape(found["data"], found["shape"]), expected, rtol=1e-4, atol=1e-4)
    assert found["inputs"] == 2


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Files, without a line for each; modules with the type that browsers stream. What a page sends is put into a queue."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".js": "text/javascript"}

    def __init__(self, answers, *arguments, **named):
        self.answers = answers
        super().__init__(*arguments, **named)

    def do_POST(self):
        self.answers.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def test_modules_say_what_they_take(answers):
    main = answers["open_lengths"]["functions"][0]
    assert [(p["name"], p["dtype"], p["shape"]) for p in main["params"]] == [("x", "float32", [None, 24]), ("i", "int64", [None])]
    assert main["outputs"] == ["y", "row"]


def test_what_is_wrong_is_an_error_and_the_model_goes_on(answers):
    *wrong, right = answers["wrong"]["calls"]
    said = [(answer["error"], answer["message"]) for answer in wrong]
    for (kind, message), (expected, words) in zip(
        said,
        [
            ("IndexError", "4"),
            ("IndexError", "1099511627776"),
            ("ShapeError", "dimension 1 is 25, not 24"),
            ("ValueError", "2"),
            ("ValueError", "dtype float32 but get float64"),
            ("ValueError", 'unknown input "z"'),
            ("ValueError", '"i" is missing'),
        ],
        strict=True,
    ):
        assert kind == expected and words in message, (kind, message)
    assert received(right["row"]).shape == (1, 24)


def test_a_small_model_is_small(modules):
    assert len(gzip.compress(modules["perceptron"].read_bytes(), 9)) < 200_000


def test_tensors_are_views_and_memory_is_given_back(modules, tmp_path):
    script = tmp_path / "views.mjs"
    package = (ROOT / "packages/npm/index.js").as_uri()
    script.write_text(f"""
import assert from "node:assert";
import {{ load, RelaxideError }} from {json.dumps(package)};
import {{ readFileSync }} from "node:fs";
const model = await load(readFileSync({json.dumps(str(modules["open_lengths"]))}));
const x = model.tensor("float32", [2, 24]);
const i = model.tensor("int64", [1], [1n]);
x.data.fill(3);
assert.equal(x.data, x.data, "one view");
const first = model.run({{ x, i }});
x.data.set(Array.from({{ length: 48 }}, (_, k) => k * k));
const second = model.run({{ x, i }});
assert.notDeepEqual(first.row.toArray(), second.row.toArray(), "what is written to the view is in the tensor");
assert.deepEqual(model.run({{ x: {{ shape: [2, 24], data: x.toArray() }}, i }}).row.toArray(), second.row.toArray());

// As large as what is there already: memory moves, and the view with it.
const size = 1 << 20;
const before = x.data;
const large = model.tensor("float32", [size]);
large.data[size - 1] = 7;
assert.equal(before.length, 0);
assert.equal(x.data[2], 4);
large.dispose();
assert.throws(() => large.data, RelaxideError);
large.dispose();

const turn = () => Object.values(model.run({{ x, i }})).forEach((tensor) => tensor.dispose());
for (let n = 0; n < 100; ++n) turn();
const bytes = x.data.buffer.byteLength;
for (let n = 0; n < 3000; ++n) turn();
assert.equal(x.data.buffer.byteLength, bytes, "calls leak");

assert.throws(() => model.run({{ x: "text", i }}), RelaxideError);
assert.throws(() => model.run({{ x: {{}}, i }}), /a typed array/);
assert.throws(() => model.run({{ x: new Float32Array(48), i }}), /needs a shape/);
assert.throws(() => model.tensor("float33", [1]), /unknown element type/);
assert.throws(() => model.tensor("float32", [2], [1]), /1 elements are given/);
assert.throws(() => model.tensor("float32", [1e9, 1e9]), RelaxideError);
assert.throws(() => model.call("other"), /no function "other"/);
const another = await load(readFileSync({json.dumps(str(modules["open_lengths"]))}));
assert.throws(() => another.run({{ x, i }}), /another model/);
await assert.rejects(load(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])), /is no model/);
await assert.rejects(load(5), TypeError);
console.log("done");
""")
    assert in_node(script) == "done\n"


def test_the_example_runs(modules):
    printed = in_node(ROOT / "examples/node/run.mjs", modules["open_lengths"], "n=5", "k=2")
    assert "x: float32 [5,24]" in printed and "row = float32 [2,24]" in printed, printed


def test_what_cannot_be_written_is_said(modules, tmp_path):
    source = modules["perceptron"].with_suffix(".onnx")
    for arguments, words in [
        (["-o", tmp_path / "m.wasm"], "compile for the target `wasm`"),
        (["--target", "wasm", "-o", tmp_path / "m.so"], "ends in .wasm"),
    ]:
        done = subprocess.run([COMMAND, "compile", "-q", source, *arguments], capture_output=True, text=True)
        assert done.returncode != 0 and words in done.stderr, done.stderr
    environment = {**os.environ, "RELAXIDE_WASM_RUNTIME": str(tmp_path)}
    command = [COMMAND, "compile", "-q", source, "--target", "wasm", "-o", tmp_path / "m.wasm"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode != 0 and "scripts/wasm-runtime" in done.stderr, done.stderr
    assert not (tmp_path / "m.wasm").exists()
