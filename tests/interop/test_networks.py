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


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder of what both runtimes compute, each in one process: TVM takes seconds to import."""
    folder = tmp_path_factory.mktemp("networks")
    for name, model in zoo.MODELS.items():
        script("export_with.py", "relaxide", model.path, folder / f"{name}.so")
        np.savez(folder / f"{name}.npz", **{str(i): x for i, x in enumerate(model.inputs()[:2])})
    for runtime in ("relaxide", "tvm"):
        files = [(f"{name}.so", f"{name}.npz", f"{name}.{runtime}.npz") for name in zoo.MODELS]
        script("run_with.py", runtime, *(folder / file for three in files for file in three))
    return folder


@pytest.mark.parametrize("name", zoo.MODELS)
def test_a_network_exported_by_relaxide_runs_in_tvm(results, name):
    with np.load(results / f"{name}.relaxide.npz") as ours, np.load(results / f"{name}.tvm.npz") as theirs:
        for key in ours.files:
            assert theirs[key].tobytes() == ours[key].tobytes(), f"{zoo.MODELS[name].shapes[int(key)]}: outputs differ"
