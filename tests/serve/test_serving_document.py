"""What `docs/serving.md` shows runs as it stands there, on ports that are free."""

import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from serving import COMMAND, ROOT, served  # noqa: E402

DOCUMENT = (ROOT / "docs/serving.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.S)


@pytest.mark.skipif(not COMMAND.exists(), reason="needs `make build`")
def test_the_examples_run(tmp_path, monkeypatch):
    onnx = pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 4])  # noqa: E731
    graph = onnx.helper.make_graph([node], "g", [value("x")], [value("y")])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), "model.onnx")
    pathlib.Path("request.json").write_text(blocks("json")[0])

    first, second = blocks("console")
    compiled, serve = [line[2:] for line in first.splitlines()]
    environment = os.environ | {"PATH": f"{COMMAND.parent}:{os.environ['PATH']}"}
    subprocess.run(compiled, shell=True, check=True, env=environment)
    assert serve.startswith("relaxide serve ")
    with served(serve.split()[2:]) as (http, grpc):
        said = []
        for line in second.splitlines():
            words = line[2:].replace("localhost:8000", http)
            if shutil.which("curl"):
                said.append(subprocess.run(words, shell=True, check=True, capture_output=True, text=True).stdout)
        if said:
            assert json.loads(said[0])["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
            assert json.loads(said[1])["outputs"][0] == {"name": "y", "datatype": "FP32", "shape": [2, 4], "data": [1, 2, 3, 4, 5, 6, 7, 8]}
            assert 'relaxide_requests_total{model="model"} 1' in said[2]
        if importlib.util.find_spec("tritonclient"):
            program = blocks("python")[0].replace("localhost:8000", http)
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
            assert "[[1. 1. 1. 1.]" in done.stdout
