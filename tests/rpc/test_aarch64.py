"""A server for AArch64 under QEMU: a model is compiled here for it, and runs and is timed there."""

import os
import pathlib
import platform
import shutil
import subprocess

import numpy as np
import pytest
from ends import ROOT, free_port

tvm = pytest.importorskip("relaxide")
from relaxide import relax, rpc  # noqa: E402

TARGET = "aarch64-unknown-linux-gnu"
SYSROOT = "/usr/aarch64-linux-gnu"
PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), w: R.Tensor((16, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        with R.dataflow():
            y = R.nn.softmax(R.nn.relu(R.matmul(x, w)))
            R.output(y)
        return y
"""


if not os.environ.get("RELAXIDE_DEEP"):
    pytest.skip("builds the server for another processor, which takes minutes: part of `make test-deep`", allow_module_level=True)


@pytest.fixture(scope="module")
def server():
    emulator = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    targets = subprocess.run(["rustup", "target", "list", "--installed"], capture_output=True, text=True) if shutil.which("rustup") else None
    if platform.machine() != "x86_64" or not emulator or not pathlib.Path(SYSROOT).exists():
        pytest.skip("needs qemu-user-static and libc6-dev-arm64-cross")
    if targets is None or TARGET not in targets.stdout:
        pytest.skip(f"needs `rustup target add {TARGET}`")
    gcc = "aarch64-linux-gnu-gcc"
    environment = {**os.environ, "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER": gcc, "CC_aarch64_unknown_linux_gnu": gcc}
    build = ["cargo", "build", "--quiet", "-p", "relaxide-rpc", "--no-default-features", "--target", TARGET]
    # Whether it works, not how fast: half the time to build.
    build += ["--config", 'profile.dev.package."*".opt-level=0', "--config", "profile.dev.debug=false"]
    subprocess.run(build, cwd=ROOT, env=environment, check=True)
    port = free_port()
    command = [emulator, "-L", SYSROOT, ROOT / "target" / TARGET / "debug/relaxide-rpc"]
    # An emulated program cannot start itself again without the system's help: sessions are threads.
    process = subprocess.Popen(
        [*command, "serve", "--silent", "--in-process", "--key", "arm", "--port", str(port)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert "listening" in process.stdout.readline()
        yield port
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_model_runs_and_is_timed_there(server, tmp_path):
    remote = rpc.connect("127.0.0.1", server, key="arm")
    target = remote.get_function("tvm.rpc.server.target")()
    assert "aarch64" in target
    path = tmp_path / "arm.so"
    tvm.compile(tvm.script.from_source(PROGRAM), target=target).export_library(str(path))
    remote.upload(str(path))
    vm = relax.VirtualMachine(remote.load_module("arm.so"), remote.cpu())
    rng = np.random.default_rng(0)
    x, w = rng.random((3, 16), "float32"), rng.random((16, 8), "float32")
    a, b = (tvm.runtime.tensor(value, remote.cpu()) for value in (x, w))
    expected = np.exp(np.maximum(x @ w, 0))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(vm["main"](a, b).numpy(), expected, rtol=1e-5)
    times = vm.time_evaluator("main", remote.cpu(), number=2, repeat=3)(a, b)
    assert len(times.results) == 3 and min(times.results) > 0


def test_kernels_with_and_without_dot_products_are_in_one_file(server, tmp_path):
    """The emulated processor has dot products; a library that needs what it lacks is refused there."""
    remote = rpc.connect("127.0.0.1", server, key="arm")
    path, beyond = tmp_path / "arm-both.so", tmp_path / "arm-beyond.so"
    program = tvm.script.from_source(PROGRAM)
    relax.build(program, target=["cortex-a72", "neoverse-n1"]).export_library(str(path))
    remote.upload(str(path))
    vm = relax.VirtualMachine(remote.load_module("arm-both.so"), remote.cpu())
    rng = np.random.default_rng(0)
    x, w = rng.random((3, 16), "float32"), rng.random((16, 8), "float32")
    expected = np.exp(np.maximum(x @ w, 0))
    expected /= expected.sum(1, keepdims=True)
    a, b = (tvm.runtime.tensor(value, remote.cpu()) for value in (x, w))
    np.testing.assert_allclose(vm["main"](a, b).numpy(), expected, rtol=1e-5)
    relax.build(program, target=["x86-64-v2", "x86-64-v3"]).export_library(str(beyond))
    remote.upload(str(beyond))
    with pytest.raises(Exception, match="x86"):
        remote.load_module("arm-beyond.so")


def test_deterministic_results_have_the_bits_of_other_processors(server, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests/onnx"))
    import sums
    from relaxide.relax.frontend.onnx import from_onnx

    remote = rpc.connect("127.0.0.1", server, key="arm")
    differ = []
    for at, make in enumerate(sums.MAKERS):
        for seed in range(3):
            call = make(np.random.default_rng([seed, at]))
            model, feeds = call.model("fixed")
            target = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "deterministic": True}
            tvm.compile(from_onnx(model), target=target).export_library(str(tmp_path / "bits.so"))
            remote.upload(str(tmp_path / "bits.so"))
            there = relax.VirtualMachine(remote.load_module("bits.so"), remote.cpu())["main"]
            here = {"kind": "llvm", "mcpu": "x86-64-v3", "deterministic": True}
            here = relax.VirtualMachine(tvm.compile(from_onnx(model), target=here), tvm.cpu())["main"]
            far, near = (main(*(tvm.runtime.tensor(x, device) for x in feeds.values())) for main, device in ((there, remote.cpu()), (here, tvm.cpu())))
            pairs = zip(far, near) if call.outputs > 1 else [(far, near)]
            if any(a.numpy().tobytes() != b.numpy().tobytes() for a, b in pairs):
                differ.append(str(call)[:200])
    assert not differ, "\n".join(differ)


def test_tvms_client_uses_it_too(server):
    import tvm as theirs
    from tvm import rpc as their_rpc

    remote = their_rpc.connect("127.0.0.1", server, key="arm")
    x = np.arange(12, dtype="int16").reshape(3, 4)
    assert np.array_equal(theirs.runtime.tensor(x, remote.cpu()).numpy(), x)


def network(path):
    """A small network of images, as an ONNX file: a convolution, a pooling, a product; the number of images is open."""
    onnx = pytest.importorskip("onnx")
    helper, rng = onnx.helper, np.random.default_rng(1)
    weights = {"k": rng.standard_normal((4, 3, 3, 3)), "w": rng.standard_normal((4, 5)), "b": rng.standard_normal(5)}
    nodes = [
        helper.make_node("Conv", ["x", "k"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w", "b"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"], axis=1),
    ]
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)  # noqa: E731
    constants = [onnx.numpy_helper.from_array(array.astype("float32"), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", [value("x", ["n", 3, 16, 16])], [value("y", ["n", 5])], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_the_command_compiles_a_network_here_and_runs_it_there(server, tmp_path):
    command = ROOT / "build/relaxide"
    if not command.exists():
        pytest.skip("needs `make build`")
    model = tmp_path / "model.onnx"
    network(model)
    words = [command, "run", model, "--on", f"arm@127.0.0.1:{server}", "--dim", "n=3", "--json"]
    far = subprocess.run(words, capture_output=True, text=True, check=True)
    here = subprocess.run([*words[:3], *words[5:]], capture_output=True, text=True, check=True)
    import json

    a, b = (json.loads(run.stdout)["outputs"][0] for run in (far, here))
    assert a["shape"] == b["shape"] == [3, 5]
    assert a["mean"] == pytest.approx(b["mean"], rel=1e-4)
    timed = subprocess.run([command, "bench", *words[2:], "--runs", "3"], capture_output=True, text=True, check=True)
    assert json.loads(timed.stdout)["relaxide"]["median_ms"] > 0
