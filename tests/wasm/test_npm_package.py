"""The npm package: weights in a file of their own, models in workers, types."""

import hashlib
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
PACKAGE = ROOT / "packages" / "npm"

pytestmark = [
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is missing"),
    pytest.mark.skipif(
        not (COMMAND.resolve().parent / "relaxide_runtime.wasm").exists(),
        reason="the runtime for WebAssembly is not built (`scripts/wasm-runtime`)",
    ),
]


def dense(path, seed=0):
    """A model of two layers, whose second weight is no multiple of a cache line."""
    rng = np.random.default_rng(seed)
    weights = {"w": rng.standard_normal((64, 48), "float32"), "v": rng.standard_normal((48, 5), "float32")}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 64), ("y", 5))]
    made = helper.make_graph(nodes, "dense", ends[:1], ends[1:], [numpy_helper.from_array(array, name) for name, array in weights.items()])
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return weights


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with one model, with its weights inside and apart, and another's weights."""
    folder = tmp_path_factory.mktemp("package")
    weights = dense(folder / "dense.onnx")
    dense(folder / "other.onnx", 1)
    run = [COMMAND, "compile", "-q", "--target", "wasm"]
    subprocess.run([*run, folder / "dense.onnx", "-o", folder / "inside.wasm"], check=True)
    for name, source in (("apart", "dense"), ("other", "other")):
        command = [*run, folder / f"{source}.onnx", "--weights", "safetensors", "-o", folder / f"{name}.wasm"]
        subprocess.run(command, check=True)
    x = np.random.default_rng(2).standard_normal((3, 64), "float32")
    expected = np.maximum(x @ weights["w"], 0) @ weights["v"]
    (folder / "call.json").write_text(json.dumps({"x": x.ravel().tolist(), "y": expected.ravel().tolist()}))
    return folder


def in_node(folder, text):
    """Runs a script beside the models; it fails by throwing."""
    script = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.mjs"
    script.write_text(f"""import assert from "node:assert";
import {{ readFileSync }} from "node:fs";
import {{ load, RelaxideError }} from {json.dumps((PACKAGE / "index.js").as_uri())};
import {{ load as remote }} from {json.dumps((PACKAGE / "worker.js").as_uri())};
const folder = {json.dumps(str(folder))};
const {{ x, y }} = JSON.parse(readFileSync(`${{folder}}/call.json`));
const input = () => ({{ shape: [3, 64], data: Float32Array.from(x) }});
const near = (data) => {{ assert.equal(data.length, y.length); y.forEach((value, i) => assert(Math.abs(value - data[i]) < 1e-4, `${{i}}: ${{data[i]}} for ${{value}}`)); }};
{text}
console.log("done");
""")
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout == "done\n", done.stdout + done.stderr


def test_weights_apart_are_found_beside_the_module(made):
    assert (made / "apart.safetensors").stat().st_size > 64 * 48 * 4
    in_node(made, """
const heard = [];
const model = await load(`${folder}/apart.wasm`, { onProgress: (...said) => heard.push(said) });
near(model.run({ x: input() }).y.data);
assert.deepEqual([...new Set(heard.map(([, , part]) => part))], ["module", "weights"]);
const [loaded, total] = heard.at(-1);
assert(loaded === total && total === readFileSync(`${folder}/apart.safetensors`).length, `${loaded} of ${total}`);
const { pathToFileURL } = await import("node:url");
near((await load(pathToFileURL(`${folder}/apart.wasm`))).run({ x: input() }).y.data);
const weights = readFileSync(`${folder}/apart.safetensors`);
near((await load(readFileSync(`${folder}/apart.wasm`), { weights })).run({ x: input() }).y.data);
const response = new Response(weights);
near((await load(readFileSync(`${folder}/apart.wasm`), { weights: response })).run({ x: input() }).y.data);
""")


def test_weights_that_do_not_fit_are_errors(made):
    in_node(made, """
const module = readFileSync(`${folder}/apart.wasm`);
const weights = readFileSync(`${folder}/apart.safetensors`);
const refused = (options, words, source = module) => assert.rejects(load(source, options), words);
await refused({}, /say where/);
await refused({ weights: `${folder}/missing.safetensors` }, /ENOENT/);
await refused({ weights: weights.subarray(0, 100) }, /have 100 bytes/);
await refused({ weights: new Uint8Array([...weights, 0]) }, /more than/);
await refused({ weights: `${folder}/other.safetensors` }, /not those that the program was compiled with/);
await refused({ weights: new Uint8Array(weights.length).fill(255) }, (error) => error instanceof RelaxideError && /cannot read the weights/.test(error.message));
await refused({ weights: new Response("", { status: 404 }) }, /404/);
await refused({ weights: 5 }, TypeError);
await refused({ weights }, /inside/, readFileSync(`${folder}/inside.wasm`));
""")


def test_modules_without_weights_apart_have_nothing_for_them(made):
    assert b"relaxide_weights_take" in (made / "apart.wasm").read_bytes()
    assert b"relaxide_weights_take" not in (made / "inside.wasm").read_bytes()


@pytest.mark.parametrize("name", ["inside", "apart"])
def test_workers_answer_as_models_do(made, name):
    in_node(made, f"const name = {json.dumps(name)};" + """
const heard = [];
const model = await remote(`${folder}/${name}.wasm`, { onProgress: (...said) => heard.push(said) });
assert(heard.length > 0 && heard.every(([loaded, total]) => loaded <= total));
assert.deepEqual(model.inputs.map(({ name, dtype, shape }) => [name, dtype, shape]), [["x", "float32", [null, 64]]]);
assert.deepEqual(model.outputs, ["y"]);
const given = input();
const { y: found } = await model.run({ x: given });
near(found.data);
assert.deepEqual([found.dtype, found.shape, found.size], ["float32", [3, 5], 15]);
assert.equal(given.data.length, 192, "what goes in is copied");
// Three at once, in their order, one of which gives its array up.
const all = await Promise.all([model.run({ x: given }, { transfer: true }), model.call("main", input()), model.run({ x: input() })]);
assert.equal(given.data.length, 0, "what is given up moves");
[all[0].y, all[1], all[2].y].forEach(({ data }) => near(data));
// A part of a larger array travels alone, and the rest stays.
const large = new Float32Array(1000);
large.set(x, 100);
near((await model.run({ x: { shape: [3, 64], data: large.subarray(100, 292) } }, { transfer: true })).y.data);
assert.equal(large.length, 1000);
const local = await load(`${folder}/inside.wasm`);
near((await model.run({ x: local.tensor("float32", [3, 64], x) })).y.data);
model.terminate();
""")


def test_errors_come_back_by_their_names(made):
    in_node(made, """
const model = await remote(`${folder}/inside.wasm`);
const fails = (promise, kind, words) => assert.rejects(promise, (error) => error instanceof RelaxideError && error.kind === kind && words.test(error.message));
await fails(model.run({ x: { shape: [3, 63], data: new Float32Array(189) } }), "ShapeError", /63/);
await fails(model.run({ z: input() }), "ValueError", /unknown input "z"/);
await fails(model.run({ x: "text" }), "TypeError", /./);
await fails(model.call("other"), "ValueError", /no function "other"/);
await assert.rejects(model.run({ x: { shape: [3, 64], data: () => 1 } }), { name: "DataCloneError" });
near((await model.run({ x: input() })).y.data);
await assert.rejects(remote(`${folder}/missing.wasm`), /ENOENT/);
await assert.rejects(remote(`${folder}/call.json`), { name: "CompileError" });
await assert.rejects(remote(5), TypeError);
const waiting = model.run({ x: input() });
model.terminate();
await fails(waiting, "RuntimeError", /was ended/);
await fails(model.run({ x: input() }), "RuntimeError", /was ended/);
// A worker that waits keeps no program running: this one ends.
await remote(`${folder}/inside.wasm`);
""")


def test_the_types_fit(tmp_path):
    compiler = shutil.which("tsc") or os.environ.get("TSC")
    if compiler is None:
        pytest.skip("TypeScript is missing: `npm install -g typescript`, or name its `tsc` in the environment variable TSC")
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "relaxide").symlink_to(PACKAGE)
    shutil.copy(ROOT / "tests/wasm/typed.ts", tmp_path)
    options = ["--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", "--lib", "es2022,dom"]
    done = subprocess.run([compiler, *options, "--types", "", "typed.ts"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_files_are_in_the_package(tmp_path):
    listed = json.loads((PACKAGE / "package.json").read_text())["files"]
    assert sorted(listed) == sorted(file.name for file in PACKAGE.iterdir() if file.name != "package.json")


@pytest.mark.skipif(importlib.util.find_spec("rapidocr_onnxruntime") is None, reason="the networks come with the package rapidocr-onnxruntime")
@pytest.mark.parametrize("name", ["encoder", "mobilenetv2"])
def test_networks_of_the_benchmark_compute_what_they_do_natively(name, tmp_path):
    sys.path[:0] = [str(ROOT / "bench/web")]
    try:
        import web_networks
    finally:
        sys.path.remove(str(ROOT / "bench/web"))
    web_networks.write(name, tmp_path)
    subprocess.run([COMMAND, "compile", "-q", tmp_path / f"{name}.onnx", "--target", "wasm", "-o", tmp_path / f"{name}.wasm"], check=True)
    options = json.dumps({"names": [name], "rounds": 0, "seconds": 0})
    done = subprocess.run(["node", ROOT / "bench/web/node.mjs", tmp_path, "", options], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["relaxide"]["distance"] < 1e-4
