"""The three networks of the OCR example on a server in another network: it reads what they read here, to the bit."""

import json
import pathlib
import subprocess
import sys

import pytest
from ends import Network, can_make_networks, command

for package in ("relaxide", "rapidocr_onnxruntime", "cv2", "onnx"):
    pytest.importorskip(package)
CLIENT = pathlib.Path(__file__).with_name("ocr_client.py")


@pytest.mark.skipif(not can_make_networks(), reason="network namespaces need root")
def test_pictures_are_read_alike(tmp_path):
    build = tmp_path / "build"
    here = subprocess.run([sys.executable, CLIENT, build], capture_output=True, text=True, check=True)
    here = json.loads(here.stdout.splitlines()[-1])
    assert sum(map(len, here.values())) > 5
    with Network() as network:
        words = ["serve", "--silent", "--protocol", "tvm", "--host", "10.77.0.1", "--port", "9090"]
        server = network.run(0, command(), *words, stdout=subprocess.PIPE)
        try:
            server.stdout.readline()
            client = network.run(1, sys.executable, CLIENT, build, "10.77.0.1", "9090", stdout=subprocess.PIPE)
            there, _ = client.communicate(timeout=300)
            assert client.returncode == 0
            assert json.loads(there.splitlines()[-1]) == here
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
