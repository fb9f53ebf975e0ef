"""Programs and packages that import ONNX Runtime run unchanged on the door, with its results."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest
from door_programs import FURTHER, HEAD, USUAL

LAUNCHER = ["-m", "relaxide.onnxruntime"]
#: That of all tests, where there is one: most kernels of these networks are in it.
CACHE = os.environ.get("RELAXIDE_CACHE")
PYTHON = pathlib.Path(__file__).parents[2] / "python"


def result_of(folder, *words):
    """What a program shows that is run in a folder."""
    environment = {**os.environ, "RELAXIDE_CACHE": CACHE or str(folder / "cache"), "PYTHONPATH": str(PYTHON)}
    ran = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=900, cwd=folder, env=environment)
    assert ran.returncode == 0, ran.stderr
    [shown] = [line for line in ran.stdout.splitlines() if line.startswith("shown:")]
    return json.loads(shown.removeprefix("shown:"))


def is_close(one, other):
    if isinstance(one, float) and isinstance(other, (int, float)):
        return abs(one - other) <= 1e-3 * max(1, abs(one))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_close, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in one)
    return one == other


def is_installed(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # Not even what it is a part of.
        return False


def programs():
    for module, text in USUAL.items():
        yield pytest.param(module, text, id=module)
    deep = pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="compiles large networks (RELAXIDE_DEEP)")
    for module, text in FURTHER.items():
        absent = pytest.mark.skipif(not is_installed(module), reason=f"{module} is not installed")
        yield pytest.param(module, text, id=module, marks=[deep, absent])


@pytest.mark.parametrize(("module", "text"), list(programs()))
def test_packages_run_unchanged(module, text, tmp_path):
    (tmp_path / "first_example.py").write_text(HEAD + text)
    theirs = result_of(tmp_path, "first_example.py")
    ours = result_of(tmp_path, *LAUNCHER, "first_example.py")
    assert theirs and is_close(theirs, ours), f"{theirs}\n{ours}"
    # From the cache, too.
    assert is_close(theirs, result_of(tmp_path, *LAUNCHER, "first_example.py"))


def test_programs_import_what_lies_beside_them(tmp_path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "of_the_program.py").write_text("import onnxruntime\nNAME = onnxruntime.__name__\n")
    (folder / "program.py").write_text("import json, sys, of_the_program\nprint('shown:' + json.dumps([of_the_program.NAME, sys.argv[1:]]))")
    assert result_of(tmp_path, *LAUNCHER, "elsewhere/program.py", "-m", "x") == ["relaxide.onnxruntime", ["-m", "x"]]


ABSENT = """
import importlib.machinery, json, sys
# As where ONNX Runtime's package is not installed.
find = importlib.machinery.PathFinder.find_spec
importlib.machinery.PathFinder.find_spec = lambda name, *rest: None if name.split(".")[0] == "onnxruntime" else find(name, *rest)
import relaxide.onnxruntime
said = []
def ask(name):
    try:
        __import__(name)
    except ImportError as error:
        said.append(f"{error.name}: {error}")
ask("relaxide.onnxruntime.tools")
relaxide.onnxruntime.install()
ask("onnxruntime.quantization")
ask("onnxruntime.no_such_part")
print("shown:" + json.dumps(said))
"""


def test_tools_that_are_not_installed_say_what_to_install(tmp_path):
    (tmp_path / "program.py").write_text(ABSENT)
    absent = "which is not installed: pip install onnxruntime"
    found = result_of(tmp_path, "program.py")
    for name, error in zip(["relaxide.onnxruntime.tools", "onnxruntime.quantization"], found[:2], strict=True):
        assert error.startswith(f"{name}: `onnxruntime.{name.rsplit('.')[-1]}`") and error.endswith(absent), error
    assert found[2] == "onnxruntime.no_such_part: No module named 'onnxruntime.no_such_part'"


TOOLS = """
import json
import numpy as np
import onnx
import onnxruntime
import onnxruntime.backend
from onnx import helper as h
from onnx import numpy_helper as nh
from onnxruntime.quantization import CalibrationDataReader, quantize_dynamic, quantize_static

draw = np.random.default_rng(0).standard_normal
weights = [nh.from_array(draw((16, 32)).astype("float32"), "w"), nh.from_array(draw((32, 4)).astype("float32"), "v")]
nodes = [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Relu", ["a"], ["r"]), h.make_node("MatMul", ["r", "v"], ["y"])]
value = lambda name, shape: h.make_tensor_value_info(name, 1, shape)
graph = h.make_graph(nodes, "g", [value("x", ["n", 16])], [value("y", ["n", 4])], weights)
onnx.save(h.make_model(graph, opset_imports=[h.make_opsetid("", 13)], ir_version=8), "model.onnx")

class Rows(CalibrationDataReader):
    def __init__(self):
        self.rows = iter([{"x": draw((3, 16)).astype("float32")} for _ in range(5)])

    def get_next(self):
        return next(self.rows, None)

quantize_dynamic("model.onnx", "dynamic.onnx")
quantize_static("model.onnx", "static.onnx", Rows())
x = draw((3, 16)).astype("float32")
y = onnxruntime.backend.prepare("model.onnx", "CPU").run(x)[0]
of = lambda name: onnxruntime.InferenceSession(name).run(None, {"x": x})[0]
errors = [float(np.abs(of(f"{name}.onnx") - y).max() / np.abs(y).max()) for name in ("model", "dynamic", "static")]
print("shown:" + json.dumps([onnxruntime.__name__, errors]))
"""


def test_tools_of_the_package_run_on_our_sessions(tmp_path):
    (tmp_path / "program.py").write_text(TOOLS)
    name, (own, *quantized) = result_of(tmp_path, *LAUNCHER, "program.py")
    assert name == "relaxide.onnxruntime" and own < 1e-6 and max(quantized) < 0.05, quantized
