"""The commands and programs of README, `docs/` and `examples/` run as they stand there.

Blocks of a document run in order, in a folder of their own with a small model (`model.onnx`, input `image: float32[batch, 3, 8, 8]`), a photograph
and an array. What a block needs that not every machine has is said behind its language (`needs=opencl`), as is why one does not run here
(`untested="…"`), which stands in the text for the reader too. Those that take long (`long`) run where RELAXIDE_DEEP is set.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))
ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/relaxide"
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
#: Documents whose blocks another test runs.
ELSEWHERE = {"command-line.md": "crates/cli/tests/command/documentation.rs", "serving.md": "tests/serve/test_serving_document.py"}
#: What stands before the programs of a document.
PRELUDE = """
import numpy as np, onnx
import relaxide, relaxide as tvm
from relaxide import relax
from relaxide.script import ir as I, relax as R, tir as T
image = np.load("image.npy")
x = image
model = onnx.load("named.onnx" if {named} else "model.onnx")
module = relax.frontend.onnx.from_onnx(onnx.load("model.onnx"))
"""


class Block:
    def __init__(self, language, rest, text):
        self.language, self.text = language, text
        self.needs = re.findall(r"needs=(\w+)", rest)
        self.untested = re.search(r'untested="(.+)"', rest)
        self.long = "long" in rest.split()
        self.role = rest.strip() in ("board", "laptop")

    def lines(self):
        return [line[2:] for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(document):
    found = re.findall(r"^( *)```(\w*)([^\n]*)\n(.*?)^ *```", document.read_text(), re.M | re.S)
    return [Block(language, rest, "\n".join(line.removeprefix(indent) for line in text.splitlines())) for indent, language, rest, text in found]


def made(name, dims):
    import onnx
    from onnx import helper as h
    from onnx import numpy_helper as nh

    rng = np.random.default_rng(0)
    shape = dims[1]
    nodes = [h.make_node("Conv", [name, "w"], ["c"], pads=[1, 1, 1, 1]), h.make_node("Relu", ["c"], ["r"]), h.make_node("GlobalAveragePool", ["r"], ["y"])]
    weights = [nh.from_array(rng.standard_normal((4, 3, 3, 3)).astype("float32"), "w")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)], [h.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], weights)
    onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8), dims[0])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with what the documents speak of, beside the sources."""
    monkeypatch.chdir(tmp_path)
    made("image", ("model.onnx", ["batch", 3, 8, 8]))
    made("x", ("named.onnx", ["batch", 3, "length", "heads"]))
    np.save("image.npy", np.random.default_rng(1).random((1, 3, 8, 8), "float32"))
    np.save("x.npy", np.random.default_rng(1).random((2, 8), "float32"))
    pathlib.Path("elsewhere").mkdir()
    for name in ("crates", "examples", "target", "Cargo.toml", "Cargo.lock", "tests", "Makefile", "packages", "scripts"):
        pathlib.Path(name).symlink_to(ROOT / name)
    return tmp_path


def has(what):
    if what == "opencl":
        devices = subprocess.run([COMMAND, "devices"], capture_output=True, text=True).stdout
        return "opencl:0" in devices
    return importlib.util.find_spec(what) is not None


def program(blocks, named):
    return PRELUDE.format(named=named) + "\n".join(block.text for block in blocks)


def run(command, what, **environment):
    shell = isinstance(command, str)
    done = subprocess.run(command, shell=shell, capture_output=True, text=True, timeout=300, env=os.environ | environment)
    assert done.returncode == 0, f"{what}\n{done.stdout[-2000:]}{done.stderr[-3000:]}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_document_shows_runs(document, place):
    if document.name in ELSEWHERE:
        assert document.name in (ROOT / ELSEWHERE[document.name]).read_text()
        return
    if document.name == "onnxruntime.md":
        made("x", ("model.onnx", ["batch", 3, 8, 8]))
    programs = []
    # Sessions keep what they compiled where kernels are kept, which the programs of their page are not to find.
    cache = "0" if document.name == "onnxruntime.md" else os.environ.get("RELAXIDE_CACHE", "0")
    environment = {"RELAXIDE_CACHE": cache, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "RELAXIDE_PYTHON": sys.executable, "LD_LIBRARY_PATH": str(ROOT / "target/release")}
    for block in blocks(document):
        if block.untested or block.role or block.language == "text" or block.long and not DEEP or not all(has(what) for what in block.needs):
            continue
        if block.language == "python":
            programs.append(block)
            continue
        assert block.language in ("console", "sh"), f"{document.name}: a block of {block.language or 'nothing'} says why it does not run: untested=\"…\""
        if programs:
            run([sys.executable, _written(programs, document)], "the programs before", **environment)
            programs = []
        for line in block.lines() or block.text.splitlines():
            # Files that are the reader's own.
            line = line.replace("/elsewhere/", "elsewhere/").replace(".venv/bin/python", sys.executable)
            line = line.replace("cargo build", f"cargo build --quiet --manifest-path {ROOT / 'Cargo.toml'}")
            if "elsewhere/" in line:
                pathlib.Path("model.safetensors").rename("elsewhere/model.safetensors")
            run(line, line, **environment)
    if programs:
        run([sys.executable, _written(programs, document)], "the programs", **environment)


def _written(programs, document):
    path = pathlib.Path("program.py")
    path.write_text(program(programs, document.name == "onnx.md"))
    return path


def test_what_does_not_run_says_why():
    reasons = [block.untested[1] for document in DOCUMENTS for block in blocks(document) if block.untested]
    assert all(len(reason) > 10 for reason in reasons) and len(reasons) < 25
