"""Libraries whose weights lie beside them: found, named, shared by processes, read by others, and refused by TVM with a reason."""

import json
import os
import pathlib
import struct
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxide as tvm

#: Loads a library, runs it, prints what it returns and what it has of the mapped weights, and waits.
RUNNER = """
import json, sys
import numpy as np
import relaxide as tvm
machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
x = tvm.runtime.tensor(np.ones((2, 256), "float32"))
total = float(machine["main"](x).numpy().sum())
sys.stdin.readline()
mapped, inside = {}, False
for line in open("/proc/self/smaps"):
    head = line.split()[0]
    if "-" in head and not head.endswith(":"):
        inside = line.rstrip().endswith(".safetensors")
    elif inside and head in ("Rss:", "Pss:", "Anonymous:"):
        mapped[head[:-1]] = mapped.get(head[:-1], 0) + int(line.split()[1])
print(json.dumps([total, mapped]), flush=True)
sys.stdin.readline()
"""

#: What TVM says of a library.
OF_TVM = """
import sys, tvm
from tvm import relax
try:
    relax.VirtualMachine(tvm.runtime.load_module(sys.argv[1]), tvm.cpu())
    print("loaded")
except Exception as error:
    print(error)
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A folder with a model of one large matrix, its weights apart, and what it computes of ones."""
    rng = np.random.default_rng(0)
    matrix, bias = rng.standard_normal((256, 2048), "float32"), rng.standard_normal(2048, "float32")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["scores:0"])]
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
        [helper.make_tensor_value_info("scores:0", TensorProto.FLOAT, ["n", 2048])],
        [numpy_helper.from_array(matrix, "w"), numpy_helper.from_array(bias, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder = tmp_path_factory.mktemp("apart")
    onnx.save(model, folder / "dense.onnx")
    executable = tvm.compile(tvm.relax.frontend.onnx.from_onnx(folder / "dense.onnx"), target="llvm")
    assert executable.output_names() == ["scores:0"]
    executable.export_library(folder / "dense.so", weights="safetensors")
    with pytest.raises(ValueError, match="place for weights"):
        executable.export_library(folder / "other.so", weights="elsewhere")
    return folder, np.ones((2, 256), "float32") @ matrix + bias


def run(module):
    machine = tvm.relax.VirtualMachine(module, tvm.cpu())
    assert machine.output_names() == ["scores:0"]
    return machine["main"](tvm.runtime.tensor(np.ones((2, 256), "float32"))).numpy()


def test_weights_are_found_beside_the_library_or_where_it_is_said(exported, tmp_path):
    folder, expected = exported
    assert (folder / "dense.so").stat().st_size < 256 * 2048
    np.testing.assert_allclose(run(tvm.runtime.load_module(folder / "dense.so")), expected, rtol=1e-4, atol=1e-4)
    alone = tmp_path / "alone.so"
    alone.write_bytes((folder / "dense.so").read_bytes())
    with pytest.raises(Exception, match="dense.safetensors; put it beside the library"):
        run(tvm.runtime.load_module(alone))
    moved = tvm.runtime.load_module(alone, weights=folder / "dense.safetensors")
    np.testing.assert_allclose(run(moved), expected, rtol=1e-4, atol=1e-4)


def test_processes_share_the_pages_of_weights(exported):
    folder, expected = exported
    environment = dict(os.environ, RELAXIDE_NUM_THREADS="1")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    processes = [subprocess.Popen([sys.executable, "-c", RUNNER, folder / "dense.so"], **pipes) for _ in range(2)]
    # Both have run, and wait, when the first is asked.
    for process in processes:
        process.stdin.write("\n" if process is not processes[0] else "")
        process.stdin.flush()
    second = json.loads(processes[1].stdout.readline())
    processes[0].stdin.write("\n")
    processes[0].stdin.flush()
    first = json.loads(processes[0].stdout.readline())
    for process in processes:
        process.communicate("\n")
    for total, mapped in (first, second):
        assert abs(total - expected.sum()) <= 1e-3 * np.abs(expected).sum()
        assert mapped["Rss"] * 1024 >= 256 * 2048 * 4
        # What a process has of its own would be a copy.
        assert mapped["Anonymous"] == 0
    # The first is asked last, when the other has loaded the file too: its share is half of it.
    assert first[1]["Pss"] <= 0.6 * first[1]["Rss"]


def test_the_file_is_one_of_safetensors(exported):
    folder, _ = exported
    data = (folder / "dense.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    assert (8 + size) % 64 == 0
    header.pop("__metadata__")
    bias, matrix = sorted((entry["shape"] for entry in header.values()), key=len)
    # The matrix lies in panels, as wide as the processor's tiles are.
    panels, rows, width = matrix
    assert bias == [2048] and (panels * width, rows) == (2048, 256)
    ends = [8 + size + entry["data_offsets"][1] for entry in header.values()]
    assert max(ends) == len(data)


def test_tvm_says_what_it_misses(exported):
    pytest.importorskip("tvm")
    folder, _ = exported
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run([sys.executable, "-c", OF_TVM, folder / "dense.so"], capture_output=True, text=True, env=environment)
    assert "relaxide.weights_apart" in said.stdout, said.stdout + said.stderr
