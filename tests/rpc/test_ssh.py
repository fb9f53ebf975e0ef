"""Models on a machine that `ssh` leads to, from the command line and from Python. What stands for `ssh` here runs the command on this machine."""

import json
import os
import subprocess

import numpy as np
import pytest
from ends import ROOT, command

COMMAND = ROOT / "build/relaxide"
PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 8), "float32")) -> R.Tensor((2, 8), "float32"):
        with R.dataflow():
            y = R.nn.relu(x)
            R.output(y)
        return y
"""
#: Says what it was told, leaves its own options, and does on this machine what would be done on the other.
SSH = """#!/bin/sh
echo "$@" >> "$SSH_LOG"
while [ "$1" != -- ]; do shift; done
shift 2
exec sh -c "$1"
"""


@pytest.fixture
def environment(tmp_path):
    script = tmp_path / "ssh"
    script.write_text(SSH)
    script.chmod(0o755)
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SSH_LOG": str(tmp_path / "log"), "RELAXIDE_RPC_FAR": command()}


@pytest.mark.skipif(not COMMAND.exists(), reason="needs `make build`")
def test_the_command_runs_a_model_there(environment, tmp_path):
    model = tmp_path / "model.relax"
    model.write_text(PROGRAM)

    def run(*words):
        done = subprocess.run([COMMAND, *map(str, words)], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    far = run("run", model, "--on", "ssh:me@board:2222", "--json")
    assert far["outputs"] == run("run", model, "--json")["outputs"]
    assert (tmp_path / "log").read_text().splitlines() == [f"-T -p 2222 -- me@board {command()} pipe --own"]
    timed = run("bench", model, "--on", "ssh:board", "--runs", 3, "--json")
    assert timed["relaxide"]["median_ms"] > 0 and timed["on"] == "ssh:board"
    absent = subprocess.run(
        [COMMAND, "run", model, "--on", "ssh:board"], env={**environment, "RELAXIDE_RPC_FAR": "/no/such/command"}, capture_output=True, text=True
    )
    assert absent.returncode != 0 and "RELAXIDE_RPC_FAR" in absent.stderr and "/no/such/command pipe" in absent.stderr


MATRIX = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((64, 96), "float32"), w: R.Tensor((96, 80), "float32")) -> R.Tensor((64, 80), "float32"):
        with R.dataflow():
            y = R.nn.softmax(R.matmul(x, w))
            R.output(y)
        return y
"""


@pytest.mark.skipif(not COMMAND.exists(), reason="needs `make build`")
def test_the_command_tunes_kernels_there(environment, tmp_path):
    model, tuned = tmp_path / "model.relax", tmp_path / "tuned.json"
    model.write_text(MATRIX)

    def run(*words, **more):
        return subprocess.run([COMMAND, *map(str, words)], env={**environment, **more}, capture_output=True, text=True)

    search = ("tune", model, "-o", tuned, "--on", "ssh:board", "--target", "x86-64-v3" if os.uname().machine == "x86_64" else "llvm", "--trials", 4)
    done = run(*search, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["trials"] == 4 and all(kernel["wrong"] == 0 for kernel in answer["kernels"]), answer
    assert len((tmp_path / "log").read_text().splitlines()) >= 4
    assert isinstance(json.loads(tuned.read_text()), dict)
    absent = run(*search, RELAXIDE_RPC_FAR="/no/such/command")
    assert absent.returncode != 0 and "/no/such/command pipe" in absent.stderr, absent.stderr


def test_python_has_a_session_there(environment, tmp_path, monkeypatch):
    tvm = pytest.importorskip("relaxide")
    monkeypatch.setenv("SSH_LOG", environment["SSH_LOG"])
    remote = tvm.rpc.connect_command(str(tmp_path / "ssh"), "--", "board", f"{command()} pipe --own")
    x = np.arange(9, dtype="float32")
    assert np.array_equal(tvm.runtime.tensor(x, remote.cpu()).numpy(), x)
