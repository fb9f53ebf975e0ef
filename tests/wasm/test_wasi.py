"""The tests of the runtime's crates, compiled for WASI and run in Node: where an address has 32 bits, and there are no threads."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
TARGET = "wasm32-wasip1"


def library_folder():
    if shutil.which("rustc") is None:
        return pathlib.Path("none")
    asked = subprocess.run(["rustc", "--print", "target-libdir", "--target", TARGET], capture_output=True, text=True, cwd=ROOT)
    return pathlib.Path(asked.stdout.strip() or "none")


# Node 20 ends with a signal now and then behind tests that all passed, so this is no test that every change can be held to.
@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="runs in make test-deep")
@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
@pytest.mark.skipif(not library_folder().is_dir(), reason=f"Rust's target {TARGET} is missing: `rustup target add {TARGET}`")
def test_the_runtime_passes_its_tests_on_wasi():
    crates = ["relaxide-ffi", "relaxide-runtime", "relaxide-vm"]
    command = ["cargo", "test", "--target", TARGET, "--lib", "--no-fail-fast", "--no-default-features"]
    command += [word for crate in crates for word in ("--package", crate, "--features", f"{crate}/front-ends")]
    environment = {**os.environ, "CARGO_TARGET_WASM32_WASIP1_RUNNER": f"node --no-warnings {ROOT / 'tests/wasm/wasi.mjs'}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    results = re.findall(r"test result: (\w+)\. (\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert len(results) == len(crates) and all(said == "ok" and int(passed) > 20 for said, passed in results), results
