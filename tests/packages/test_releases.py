"""Files of every release: a model in WebAssembly runs in Node, and the command reads what the others say. `crates/relaxide/tests/releases.rs` runs
the libraries; the crates that it needs are those of a program without LLVM."""

import json
import os
import pathlib
import platform
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
RELEASES = sorted(path for path in (ROOT / "tests/artifacts").iterdir() if path.is_dir())


def version():
    return (ROOT / "Cargo.toml").read_text().split("[workspace.package]")[1].split('version = "')[1].split('"')[0]


def test_this_release_has_files():
    assert version() in [path.name for path in RELEASES], "make them: python tests/artifacts/make.py"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_modules_of_releases_run_in_node(release, tmp_path):
    script = tmp_path / "run.mjs"
    script.write_text(f"""
import assert from "node:assert";
import {{ load }} from {json.dumps((ROOT / "packages/npm/index.js").as_uri())};
const model = await load({json.dumps(str(release / "model.wasm"))});
const x = Float32Array.from({{ length: 64 }}, (_, i) => ((i * 7) % 11) - 5);
const value = (row, j) => x.subarray(32 * row, 32 * row + 32).reduce((sum, v, i) => sum + v * (2 * i + j), 0);
for (const k of [3n, -3n]) {{
  const [y, total] = model.call("main", {{ shape: [2, 32], data: x }}, {{ dtype: "int64", shape: [], data: BigInt64Array.of(k) }});
  const wanted = [0, 1].flatMap((row) => [0, 1].map((j) => (k > 0 ? Math.max(value(row, j), 0) : -value(row, j))));
  assert.deepEqual([...y.data], wanted);
  assert.deepEqual([...total.data], [wanted[0] + wanted[1], wanted[2] + wanted[3]]);
}}
""")
    done = subprocess.run(["node", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)")
@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.name)
def test_files_of_releases_say_what_they_are(release):
    for path in sorted(release.glob("*.so")):
        done = subprocess.run([COMMAND, "inspect", path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "main" in done.stdout, (path, done.stderr)


def tree(*options):
    done = subprocess.run(["cargo", "tree", "--locked", "-e", "normal", "--prefix", "none", "-f", "{p}", *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {line.split()[0] for line in done.stdout.splitlines() if line}


def test_a_program_that_runs_models_needs_no_compiler():
    without = tree("-p", "relaxide", "--no-default-features")
    assert {"relaxide-runtime", "relaxide-vm"} <= without
    compiler = {"llvm-sys", "inkwell", "relaxide-codegen", "relaxide-ir", "relaxide-tir", "relaxide-relax", "relaxide-onnx", "rustls", "rusqlite"}
    assert not without & compiler
    assert len(without) < 45, sorted(without)


@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="builds crates a second time (RELAXIDE_DEEP)")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the file is for x86-64")
def test_such_a_program_is_built_and_runs_without_llvm(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LLVM_SYS")}
    run = ["cargo", "run", "--quiet", "--release", "--manifest-path", ROOT / "examples/run/Cargo.toml", "--target-dir", tmp_path, "--"]
    for release in RELEASES:
        words = [*run, release / "model.so", "2x32:float32", ":int64"]
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "[2, 2] [992.0, 1024.0, 992.0, 1024.0]\n[2] [2016.0, 2016.0]\n"
