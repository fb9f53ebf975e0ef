"""The Java package: its jar is made, a program of checks runs on it, and its native half is held against the C header."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import relaxide
from relaxide import relax

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from java_programs import Programs  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
PACKAGE = ROOT / "packages" / "java"
RELEASE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
HEADER = ROOT / "crates" / "capi" / "include" / "relaxide.h"

missing = [tool for tool in ("javac", "jar", "cc") if shutil.which(tool) is None]
runs = [
    pytest.mark.skipif(bool(missing), reason=f"missing: {', '.join(missing)}"),
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
]


def needs_java(test):
    for mark in runs:
        test = mark(test)
    return test


def call(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


@pytest.fixture(scope="module")
def jar(tmp_path_factory):
    """The jar."""
    call("cargo", "build", "--quiet", "--release", "--package", "relaxide-capi", "--manifest-path", ROOT / "Cargo.toml")
    out = tmp_path_factory.mktemp("jar") / "relaxide.jar"
    call(ROOT / "scripts" / "java", out)
    return out


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, "float32")


def onnx_model(path, nodes, inputs, outputs, weights=None):
    weights = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    call(COMMAND, "compile", path, "--quiet", "-o", path.with_suffix(".so"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models, inputs, and what Python makes of them."""
    folder = tmp_path_factory.mktemp("models")
    value = helper.make_tensor_value_info
    relax.build(Programs, "llvm").export_library(str(folder / "programs.so"))
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("Gemm", ["h", "v"], ["s"]),
        helper.make_node("Softmax", ["s"], ["scores"]),
    ]
    outputs = [value("scores", TensorProto.FLOAT, [2, 10]), value("h", TensorProto.FLOAT, [2, 32])]
    weights = {"w": numbers(64, 32), "b": numbers(32), "v": numbers(32, 10)}
    onnx_model(folder / "mlp.onnx", nodes, [value("x", TensorProto.FLOAT, [2, 64])], outputs, weights)
    inputs = [value("x", TensorProto.FLOAT, [4]), value("i", TensorProto.INT64, ["k"])]
    onnx_model(folder / "gather.onnx", [helper.make_node("Gather", ["x", "i"], ["y"])], inputs, [value("y", TensorProto.FLOAT, ["k"])])
    for name, array in {"w": numbers(8, 4), "image": numbers(2, 64, seed=9), **{f"x{n}": numbers(n, 8, seed=n) for n in (1, 5, 33)}}.items():
        array.tofile(folder / f"{name}.bin")
    return folder


@pytest.fixture(scope="module")
def checks(jar, tmp_path_factory):
    """Runs one of the checks."""
    classes = tmp_path_factory.mktemp("classes")
    call("javac", "-Xlint:all,-try", "-Werror", "-cp", jar, "-d", classes, pathlib.Path(__file__).with_name("Checks.java"))

    def run(name, folder, *flags):
        return call("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", *flags, "-cp", f"{jar}{os.pathsep}{classes}", "Checks", name, folder)

    return run


@needs_java
def test_results_are_those_of_python(checks, folder):
    assert checks("results", folder).endswith("passed\n")
    w = relaxide.runtime.tensor(np.fromfile(folder / "w.bin", "float32").reshape(8, 4))

    def machine(name):
        return relax.VirtualMachine(relaxide.runtime.load_module(str(folder / name)), relaxide.cpu())

    def tensor(name, *shape):
        return relaxide.runtime.tensor(np.fromfile(folder / name, "float32").reshape(shape))

    # The programs call them, but not here.
    for name in ("test.java.echo", "test.java.triple"):
        relaxide.register_global_func(name, lambda *args: None, override=True)
    programs = machine("programs.so")
    for n in (1, 5, 33):
        expected = programs["main"](tensor(f"x{n}.bin", n, 8), w).numpy()
        np.testing.assert_array_equal(np.fromfile(folder / f"y{n}.bin", "float32").reshape(n, 4), expected)
    scores, hidden = machine("mlp.so")["main"](tensor("image.bin", 2, 64))
    np.testing.assert_array_equal(np.fromfile(folder / "scores.bin", "float32").reshape(2, 10), scores.numpy())
    np.testing.assert_array_equal(np.fromfile(folder / "hidden.bin", "float32").reshape(2, 32), hidden.numpy())


# -Xcheck:jni ends the virtual machine where native code breaks its rules.
@needs_java
@pytest.mark.parametrize("name", ["inspect", "values", "errors", "buffers", "closing", "functions", "threads"])
def test_the_package(checks, folder, name):
    said = checks(name, folder, "-Xcheck:jni")
    assert said.endswith("passed\n") and "WARNING" not in said and "FATAL" not in said, said


@needs_java
def test_calls_leave_nothing_behind(checks, folder):
    # A heap of a fixed size, all of it in memory from the start: what grows is outside of it.
    said = checks("growth", folder, "-Xms48m", "-Xmx48m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC")
    assert said.endswith("passed\n"), said


@needs_java
def test_the_example_runs(jar, tmp_path):
    """A classifier of an image, in a folder where the library is named by the property."""
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["p"]), helper.make_node("Flatten", ["p"], ["f"]), helper.make_node("Gemm", ["f", "w"], ["y"])]
    weights = {"w": np.array([[0, 0, 1, 0], [0, 1, 0.5, 0], [0, 0, 0.25, 0]], "float32")}
    onnx_model(tmp_path / "c.onnx", nodes, [value("x", TensorProto.FLOAT, [1, 3, 32, 32])], [value("y", TensorProto.FLOAT, [1, 4])], weights)
    example = ROOT / "examples" / "java" / "Classify.java"
    assert call("java", "-cp", jar, example, tmp_path / "c.so") == "class 2 of 4, with 0.875\n"
    assert len(example.read_text().splitlines()) <= 26
    runtime = f"-Drelaxide.library.path={RELEASE}"
    assert call("java", runtime, "-cp", jar, example, tmp_path / "c.so") == "class 2 of 4, with 0.875\n"
    absent = subprocess.run(["java", f"-Drelaxide.library.path={tmp_path}", "-cp", jar, example, tmp_path / "c.so"], capture_output=True, text=True)
    assert absent.returncode != 0 and "which has no librelaxide_runtime.so" in absent.stderr


def test_the_first_program_of_the_package_runs(jar, tmp_path):
    """`scripts/empty-roots` runs it in a root with Java alone."""
    [program] = re.findall(r"```java\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["p"]), helper.make_node("Flatten", ["p"], ["scores"])]
    onnx_model(tmp_path / "model.onnx", nodes, [value("x", TensorProto.FLOAT, [1, 3, 32, 32])], [value("scores", TensorProto.FLOAT, [1, 3])])
    (tmp_path / "First.java").write_text(program.replace("model.so", str(tmp_path / "model.so")))
    assert call("java", "-cp", jar, tmp_path / "First.java") == "[0.0, 0.0, 0.0]\n"


def test_the_package_uses_the_header_and_nothing_else():
    """Every function of relaxide.h is used, or listed with a reason; nothing else of the library is declared or called."""
    source = (PACKAGE / "native" / "relaxide_java.c").read_text()
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    header = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    declared = set(re.findall(r"\b(relaxide_\w+)\(", header))
    used = set(re.findall(r"\b(relaxide_\w+)\(", code))
    lines = [line for line in (PACKAGE / "unused.txt").read_text().splitlines() if not line.startswith("#")]
    unused = dict(line.split(": ", 1) for line in lines)
    assert len(declared) > 40 and used <= declared, used - declared
    assert declared - used == set(unused), (declared - used) ^ set(unused)
    assert all(unused.values())
    # What it knows of the library it has from the header: no names of other interfaces, no declarations of its own.
    assert not re.findall(r"\b(TVM\w+|extern|dlsym|dlopen)\b", code)
    assert not re.findall(r"^\w[\w ]*[ *]relaxide_\w+\(", code, flags=re.MULTILINE)
    # Types of the header are named as it names them, and numbers of kinds are its own.
    types = set(re.findall(r"\bRelaxide\w+\b", code))
    assert types <= set(re.findall(r"\bRelaxide\w+\b", header)), types
    kinds = {name: int(number) for name, number in re.findall(r"RELAXIDE_(\w+) = (\d+)", header)}
    java = (PACKAGE / "src" / "relaxide" / "Values.java").read_text()
    ours = {name: int(number) for name, number in re.findall(r"static final int (\w+) = (\d+);", java)}
    assert ours == {name: number for name, number in kinds.items() if name != "OTHER"}


def test_every_native_method_has_its_function():
    """The compiler checks signatures against javac's header; that none is forgotten is checked here."""
    methods = re.findall(r"static native [\w\[\]]+ (\w+)\(", (PACKAGE / "src" / "relaxide" / "Native.java").read_text())
    functions = re.findall(r"^NATIVE\(\w+, (\w+)", (PACKAGE / "native" / "relaxide_java.c").read_text(), flags=re.MULTILINE)
    assert len(methods) > 35 and sorted(methods) == sorted(functions)
