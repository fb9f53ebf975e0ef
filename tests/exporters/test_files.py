"""Files that exporters write give what ONNX Runtime gives.

Some small ones are in `files/`, as their tools wrote them. All that `write.py` makes are tried where RELAXIDE_DEEP is set, with the
Python that RELAXIDE_EXPORTERS names (one with skl2onnx, onnxmltools, catboost, lightgbm, xgboost, torch, onnxscript, onnxslim, onnxsim,
spox and onnxruntime), or with this one for the tools that it has.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import case  # noqa: E402
import compare  # noqa: E402

FILES = HERE / "files"
NAMES = sorted(path.stem for path in FILES.glob("*.onnx"))


def test_there_are_files_of_every_tool():
    tools = {name.split("-")[0] for name in NAMES}
    assert {"sklearn", "catboost", "lightgbm", "xgboost", "torch", "quantized", "optimized", "slim", "sim", "spox"} <= tools
    assert len(NAMES) >= 60


@pytest.mark.parametrize("share", range(8))
def test_small_files(share):
    wrong = []
    for name, model, feeds in list(case.load(FILES))[share::8]:
        why = compare.problem(model, feeds, compare.tolerance_of(name))
        if why is None or why:
            wrong.append(f"{name}: {why or 'ONNX Runtime does not run it'}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="takes many minutes: RELAXIDE_DEEP=1")
def test_all_that_exporters_write(tmp_path):
    python = os.environ.get("RELAXIDE_EXPORTERS", sys.executable)
    subprocess.run([python, HERE / "write.py", tmp_path], check=True)
    found = list(tmp_path.glob("*.onnx"))
    if not found:
        pytest.skip("this Python has no exporters: set RELAXIDE_EXPORTERS to one that has")
    assert compare.main(tmp_path, []) == 0
