"""A library for several processors: the kernels of each agree, TVM runs those of the least, and a damaged table is refused."""

import os
import pathlib
import platform
import subprocess
import sys

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import from_source

HERE = pathlib.Path(__file__).parent
LEVELS = ["x86-64-v2", "x86-64-v3", "x86-64-v4"]
PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32")) -> R.Tensor(("n", 64), "float32"):
        with R.dataflow():
            w = R.full(R.shape([64, 64]), R.const(0.03125, "float32"), dtype="float32")
            y = R.nn.softmax(R.nn.relu(R.matmul(x, R.multiply(w, R.exp(w)))))
            R.output(y)
        return y
"""

if platform.machine() != "x86_64":
    pytest.skip("names processors of x86-64", allow_module_level=True)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("processors") / "model.so"
    relax.build(from_source(PROGRAM), target=[LEVELS[2], f"llvm -mcpu={LEVELS[0]}", tvm.target.Target(f"llvm -mcpu={LEVELS[1]}")]).export_library(str(path))
    return path


def run(runtime, library, folder, processor=""):
    inputs, outputs = folder / "inputs.npz", folder / f"{runtime}{processor}.npz"
    rng = np.random.default_rng(3)
    np.savez(inputs, **{f"x{n}": rng.standard_normal((n, 64), "float32") for n in (1, 7, 32)})
    command = [sys.executable, HERE / "run_with.py", runtime, library, inputs, outputs]
    ended = subprocess.run(command, env={**os.environ, "RELAXIDE_PROCESSOR": processor}, capture_output=True, text=True, timeout=300)
    return ended, outputs


def reference(x):
    w = np.float32(0.03125) * np.exp(np.float32(0.03125))
    y = np.maximum(x @ np.full((64, 64), w, "float32"), 0)
    e = np.exp(y - y.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def assert_right(folder, outputs):
    with np.load(folder / "inputs.npz") as inputs, np.load(outputs) as results:
        for name in inputs.files:
            np.testing.assert_allclose(results[name], reference(inputs[name]), rtol=2e-5)


@pytest.mark.parametrize("processor", ["", *LEVELS])
def test_the_kernels_of_each_processor_agree(library, tmp_path, processor):
    ended, outputs = run("relaxide", library, tmp_path, processor)
    if ended.returncode and "this one lacks" in ended.stderr:
        pytest.skip("this machine lacks its instructions")
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert_right(tmp_path, outputs)


def test_tvm_runs_the_kernels_of_the_least(library, tmp_path):
    pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")
    ended, outputs = run("tvm", library, tmp_path)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert_right(tmp_path, outputs)


def test_a_name_that_is_not_there_is_an_error(library, tmp_path):
    ended, _ = run("relaxide", library, tmp_path, "i486")
    assert ended.returncode and 'RELAXIDE_PROCESSOR is "i486"' in ended.stderr and ", ".join(LEVELS) in ended.stderr


def test_a_damaged_table_is_refused(library, tmp_path):
    whole = library.read_bytes()
    table = whole.index(b"x86-64-v2 x86_64 x86-64-v2 ")
    for at, change in [(9, b"_"), (0, b" "), (26, b"\n"), (0, b"\0"), (3, b"\xff")]:
        damaged = tmp_path / f"{at}{change[0]}.so"
        damaged.write_bytes(whole[: table + at] + change + whole[table + at + 1 :])
        with pytest.raises(ValueError, match="table of processors cannot be read"):
            tvm.runtime.load_module(str(damaged))


def test_a_list_that_cannot_be_together_is_refused():
    module = from_source(PROGRAM)
    for targets, said in [(["llvm", "c"], "no native code"), ([], "empty list"), (["x86-64-v2", "x86-64-v2"], "the same instructions")]:
        with pytest.raises(Exception, match=said):
            relax.build(module, target=targets)
