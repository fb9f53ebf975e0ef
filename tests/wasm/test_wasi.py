"""The tests of the runtime's crates, compiled for WASI and run in Wasmtime: where an address has 32 bits, and there are no threads."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TARGET = "wasm32-wasip1"


def library_folder():
    if shutil.which("rustc") is None:
        return pathlib.Path("none")
    asked = subprocess.run(["rustc", "--print", "target-libdir", "--target", TARGET], capture_output=True, text=True, cwd=ROOT)
    return pathlib.Path(asked.stdout.strip() or "none")


@pytest.mark.skipif(importlib.util.find_spec("wasmtime") is None, reason="wasmtime is missing: `scripts/setup test-tools` installs it")
@pytest.mark.skipif(not library_folder().is_dir(), reason=f"Rust's target {TARGET} is missing: `rustup target add {TARGET}`")
def test_the_runtime_passes_its_tests_on_wasi():
    crates = ["relaxide-ffi", "relaxide-runtime", "relaxide-vm"]
    # Without optimization. With the profile of the other tests, whose build scripts and macros are there.
    command = ["cargo", "test", "--release", "--config", "profile.release.opt-level=0", "--target", TARGET]
    command += ["--lib", "--no-fail-fast", "--no-default-features"]
    command += [word for crate in crates for word in ("--package", crate, "--features", f"{crate}/front-ends")]
    environment = {**os.environ, "CARGO_TARGET_WASM32_WASIP1_RUNNER": f"{sys.executable} {ROOT / 'tests/wasm/wasi.py'}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    results = re.findall(r"test result: (\w+)\. (\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert len(results) == len(crates) and all(said == "ok" and int(passed) > 20 for said, passed in results), results
