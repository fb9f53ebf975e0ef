"""The walk-through of `docs/rpc.md`, as it stands there, with two folders for two machines."""

import os
import re
import subprocess
import sys

import pytest
from ends import ROOT, free_port

COMMAND = ROOT / "build/relaxide"


def blocks():
    text = (ROOT / "docs/rpc.md").read_text()
    found = re.findall(r"```console (board|laptop)\n(.*?)```", text, re.S)
    return [(who, [line[2:] for line in block.splitlines() if line.startswith("$ ")]) for who, block in found]


@pytest.mark.skipif(not COMMAND.exists(), reason="needs `make build`")
def test_two_fresh_machines_come_to_a_timed_model(tmp_path):
    onnx = pytest.importorskip("onnx")
    folders = {who: tmp_path / who for who in ("board", "laptop")}
    for folder in folders.values():
        folder.mkdir()
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 8])  # noqa: E731
    graph = onnx.helper.make_graph([node], "g", [value("x")], [value("y")])
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, folders["laptop"] / "model.onnx")

    port, keys, environment, served, said = free_port(), {}, dict(os.environ), None, []
    environment["RELAXIDE_PYTHON"] = sys.executable
    environment["PATH"] = f"{COMMAND.parent}:{environment['PATH']}"
    commands = [(who, line) for who, lines in blocks() for line in lines]
    assert len(commands) <= 10
    try:
        for who, line in commands:
            line = line.replace("BOARD-KEY", keys.get("board", "")).replace("LAPTOP-KEY", keys.get("laptop", ""))
            line = line.replace("--host 0.0.0.0", "--host 127.0.0.1").replace("@BOARD:9090", f"@127.0.0.1:{port}")
            line = line.replace("--port 9090", f"--port {port}")
            if line.startswith("export "):
                environment |= dict(word.split("=", 1) for word in line.split()[1:])
                continue
            if " serve " in line:
                served = subprocess.Popen(line, shell=True, cwd=folders[who], env=environment, stdout=subprocess.PIPE, text=True, process_group=0)
                while "listening" not in served.stdout.readline():
                    assert served.poll() is None
                continue
            done = subprocess.run(line, shell=True, cwd=folders[who], env=environment, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, (line, done.stderr)
            said.append(done.stdout)
            if "--out" in line:
                keys[who] = done.stdout.strip()
        assert any("median" in text for text in said), "bench says how long it takes"
        assert any("relu" in text for text in said), "profile names the kernel"
        log = (folders["board"] / "audit.log").read_text()
        assert '"user":"laptop","what":"let in"' in log.replace(": ", ":").replace(", ", ",") or "let in" in log
    finally:
        if served is not None:
            os.killpg(served.pid, 9)
            served.wait()
            served.stdout.close()
