"""Networks that Relaxide exports, loaded and run by TVM."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "models"))

import zoo  # noqa: E402

pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")


def script(name, *arguments):
    result = subprocess.run([sys.executable, HERE / name, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-3000:]


def outputs(runtime, library, arrays, directory):
    """What a runtime computes from an exported file."""
    inputs, results = directory / "inputs.npz", directory / f"{runtime}.npz"
    np.savez(inputs, **arrays)
    script("run_with.py", runtime, library, inputs, results)
    with np.load(results) as loaded:
        return {name: loaded[name] for name in loaded.files}


@pytest.mark.parametrize("name", zoo.MODELS)
def test_a_network_exported_by_relaxide_runs_in_tvm(name, tmp_path):
    model, library = zoo.MODELS[name], tmp_path / f"{name}.so"
    script("export_with.py", "relaxide", model.path, library)
    arrays = {str(i): x for i, x in enumerate(model.inputs()[:2])}
    theirs = outputs("tvm", library, arrays, tmp_path)
    ours = outputs("relaxide", library, arrays, tmp_path)
    for key, expected in ours.items():
        assert theirs[key].tobytes() == expected.tobytes(), f"{model.shapes[int(key)]}: outputs differ"
