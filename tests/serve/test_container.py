"""The container image of the server: what `scripts/container` gathers serves a model in a root that holds nothing else."""

import contextlib
import json
import os
import shutil
import subprocess
import urllib.request

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from serving import COMMAND, ROOT, _wait

PROGRAM = COMMAND.resolve().parent / "relaxide-serve"

pytestmark = [
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
    pytest.mark.skipif(not PROGRAM.exists(), reason="relaxide-serve is not built (`cargo build --release -p relaxide-serve`)"),
]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """What an image is built from."""
    folder = tmp_path_factory.mktemp("container")
    subprocess.run([ROOT / "scripts/container", folder, "--program", PROGRAM], check=True, stdout=subprocess.DEVNULL)
    return folder


@pytest.fixture
def models(tmp_path):
    """A folder with a model that doubles."""
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 3]) for name in ("x", "y")]
    two = numpy_helper.from_array(np.float32(2), "two")
    graph = helper.make_graph([helper.make_node("Mul", ["x", "two"], ["y"])], "double", ends[:1], ends[1:], [two])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "double.onnx")
    subprocess.run([COMMAND, "compile", "-q", tmp_path / "double.onnx"], check=True)
    return tmp_path


@contextlib.contextmanager
def running(root):
    """The server in that root, as nobody; its address. Processes are seen there, as in every container."""
    (root / "proc").mkdir()
    enter = 'mount --bind /proc "$0/proc" && exec chroot --userspec=65534:65534 "$0" /relaxide-serve "$@"'
    words = ["unshare", "--mount", "sh", "-c", enter, root, "--grpc", "off", "--http", "127.0.0.1:0", "/models/double.so"]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as process:
        try:
            address = next((line.partition(" on ")[2].strip() for line in process.stdout if line.startswith("http on ")), None)
            assert address, "the server did not start"
            yield f"http://{address}"
        finally:
            process.terminate()
        assert process.wait(60) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="another root is for root alone")
def test_a_model_is_served_in_a_root_of_its_own(image, models, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(image / "root", root)
    (root / "models").mkdir()
    shutil.copy(models / "double.so", root / "models")
    assert not (root / "bin").exists() and not (root / "tmp").exists()
    with running(root) as address:
        _wait(f"{address}/v2/health/ready")
        asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 3], "data": [1, 2, 3]}]}
        request = urllib.request.Request(f"{address}/v2/models/double/infer", json.dumps(asked).encode())
        with urllib.request.urlopen(request, timeout=60) as answer:
            assert json.load(answer)["outputs"][0]["data"] == [2, 4, 6]


@pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is missing: `apt-get install buildah`")
def test_the_image_is_built(image, tmp_path):
    places = ["--root", tmp_path / "storage", "--runroot", tmp_path / "run", "--storage-driver", "vfs"]
    buildah = ["buildah", *map(str, places)]
    made = subprocess.run([*buildah, "bud", "--isolation", "chroot", "--tag", "serve", image], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    said = json.loads(subprocess.run([*buildah, "inspect", "--type", "image", "serve"], capture_output=True, text=True, check=True).stdout)
    config = said["OCIv1"]["config"]
    assert config["Entrypoint"][0] == "/relaxide-serve" and config["User"] == "65534:65534" and "8000/tcp" in config["ExposedPorts"]


def test_what_is_no_program_is_refused(tmp_path):
    done = subprocess.run([ROOT / "scripts/container", tmp_path / "out", "--program", tmp_path / "none"], capture_output=True, text=True)
    assert done.returncode == 1 and "is no program" in done.stderr
    assert not (tmp_path / "out").exists() and (ROOT / "scripts/container").stat().st_mode & 0o111
