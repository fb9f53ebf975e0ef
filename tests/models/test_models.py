"""Every network, exported once and run in a fresh process, agrees with ONNX Runtime at several shapes and thread counts."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

import relaxide as tvm

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE))

import zoo  # noqa: E402

#: Of the largest output.
TOLERANCE = 1e-4


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """Compiles a network the first time that it is asked for."""
    directory = tmp_path_factory.mktemp("exported")

    def export(model):
        library = directory / f"{model.name}.so"
        if not library.exists():
            module = tvm.relax.frontend.onnx.from_onnx(onnx.load(model.path))
            tvm.compile(module, target="llvm").export_library(str(library))
        return library

    return export


@pytest.fixture(scope="session")
def expected():
    """ONNX Runtime's outputs, computed once for each network."""
    known = {}

    def run(model):
        if model.name not in known:
            session = onnxruntime.InferenceSession(model.path, providers=["CPUExecutionProvider"])
            known[model.name] = [session.run(None, {model.input: x})[0] for x in model.inputs()]
        return known[model.name]

    return run


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", zoo.MODELS)
def test_agrees_with_onnx_runtime(name, threads, exported, expected, tmp_path):
    model = zoo.MODELS[name]
    library = exported(model)
    inputs, outputs = tmp_path / "inputs.npz", tmp_path / "outputs.npz"
    np.savez(inputs, **{str(i): x for i, x in enumerate(model.inputs())})
    environment = dict(os.environ, RELAXIDE_NUM_THREADS=str(threads))
    command = [sys.executable, HERE / "run_exported.py", library, inputs, outputs]
    subprocess.run(command, check=True, env=environment, timeout=600)

    faults = []
    with np.load(outputs) as results:
        for i, (shape, wanted) in enumerate(zip(model.shapes, expected(model))):
            got = results[str(i)]
            if got.shape != wanted.shape:
                faults.append(f"{shape}: the output has shape {got.shape}, not {wanted.shape}")
                continue
            error = np.abs(got - wanted).max() / np.abs(wanted).max()
            if not error <= TOLERANCE:
                faults.append(f"{shape}: off by {error:.2e} of the largest output")
    assert not faults, "\n".join(faults)
