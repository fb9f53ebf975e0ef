"""Models on a local cluster of Ray: every row once though a worker is killed, files once a machine, a deployment, measurements."""

import json
import os
import signal
import socket
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("pyarrow", reason="ray[data] is not installed")

import relaxide as tvm  # noqa: E402
import relaxide.ray  # noqa: E402
from relaxide import relax  # noqa: E402
from relaxide.script import from_source  # noqa: E402

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), k: R.Tensor(("n",), "int64")):
        with R.dataflow():
            gv = (R.multiply(x, R.const(2, "float32")), R.add(k, R.const(1, "int64")))
            R.output(gv)
        return gv
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.so"
    relax.build(from_source(PROGRAM), "llvm").export_library(str(path))
    return path


@pytest.fixture(scope="module", autouse=True)
def cluster(tmp_path_factory):
    # A proxy that is not ready within five seconds is started anew, for ever where other processes keep the cores busy. Processes of the cluster read it.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "120")
    # A short path: sockets lie below it.
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, configure_logging=False, object_store_memory=100 << 20)
    yield
    ray.shutdown()


def rows(count):
    return ray.data.from_items([{"x": np.full(4, i, "float32"), "k": i} for i in range(count)], override_num_blocks=16)


def test_rows_come_out_once_with_their_results(library):
    model = relaxide.ray.put(library)
    out = relaxide.ray.predict(rows(1000), model, batch_size=64, concurrency=2, outputs=["doubled", "next"]).take_all()
    assert sorted(row["k"] for row in out) == list(range(1000))
    assert all(row["next"] == row["k"] + 1 and (row["doubled"] == 2 * row["k"]).all() for row in out)


def test_a_killed_worker_loses_and_doubles_nothing(library, tmp_path):
    model, killed = relaxide.ray.put(library), tmp_path / "killed"

    class Killed(relaxide.ray.Predictor):
        """The first process that comes to its third batch dies in the middle of it."""

        def __call__(self, batch):
            time.sleep(0.05)
            self.batches = getattr(self, "batches", 0) + 1
            if self.batches == 3:
                try:
                    killed.touch(exist_ok=False)
                except FileExistsError:
                    pass
                else:
                    os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(batch)

    mapped = rows(800).map_batches(Killed, fn_constructor_args=(model,), batch_size=25, batch_format="numpy", concurrency=4, num_cpus=1)
    out = mapped.take_all()
    assert killed.exists()
    assert sorted(row["k"] for row in out) == list(range(800))
    assert all((row["output_0"] == 2 * row["k"]).all() for row in out)


def test_a_machine_has_a_model_once(library):
    model = relaxide.ray.put(library)

    @ray.remote
    def place(model):
        return model.local(), os.stat(model.local()).st_ino

    places = ray.get([place.remote(model) for _ in range(6)])
    assert len(set(places)) == 1 and os.stat(places[0][0]).st_mode & 0o077 == 0
    assert open(places[0][0], "rb").read() == library.read_bytes()


def test_what_does_not_fit_is_said(library):
    with pytest.raises(ValueError, match="no parameter y; it has x, k"):
        relaxide.ray.Predictor(library, inputs={"y": "x"})
    with pytest.raises(ValueError, match="Unknown function: other"):
        relaxide.ray.Predictor(library, function="other")
    predictor = relaxide.ray.Predictor(library)
    with pytest.raises(KeyError, match="no column k"):
        predictor({"x": np.zeros((1, 4), "float32")})
    with pytest.raises(ValueError):
        predictor({"x": np.zeros((1, 5), "float32"), "k": np.zeros(1, "int64")})
    with pytest.raises(ValueError, match="gives 2 results"):
        relaxide.ray.Predictor(library, outputs=["one"])({"x": np.zeros((1, 4), "float32"), "k": np.zeros(1, "int64")})
    with pytest.raises(FileNotFoundError):
        relaxide.ray.put("no/such/model.so")


def test_kernels_are_measured_on_the_cluster(tmp_path):
    from relaxide.s_tir import meta_schedule as ms

    kernel = from_source("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.sblock("b"):
            v = T.axis.spatial(64, i)
            B[v] = A[v] + T.float32(1)
""")
    path = tmp_path / "kernel.so"
    tvm.compile(tvm.IRModule({"main": kernel.with_attr("global_symbol", "main")}), target="llvm").export_library(str(path))
    info = [ms.arg_info.TensorInfo("float32", [64])] * 2
    runner = relaxide.ray.RayRunner(timeout_sec=60, evaluator_config=ms.runner.EvaluatorConfig(1, 2, 1, False))
    inputs = [ms.runner.RunnerInput(str(path), "cpu", info), ms.runner.RunnerInput(str(path), "cpu", info[:1])]
    good, bad = (future.result() for future in runner.run(inputs))
    assert good.error_msg is None and len(good.run_secs) == 2 and all(float(sec) > 0 for sec in good.run_secs)
    assert bad.run_secs is None and "exception" in bad.error_msg


def test_a_deployment_serves_handles_and_requests(library):
    pytest.importorskip("ray.serve", reason="ray[serve] is not installed")
    from ray import serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        serve.start(http_options={"port": port, "host": "127.0.0.1"})
        handle = serve.run(relaxide.ray.deployment(relaxide.ray.put(library), outputs=["doubled", "next"]))
        x, k = np.arange(8, dtype="float32").reshape(2, 4), np.array([4, 5])
        found = handle.predict.remote(x=x, k=k).result(timeout_s=60)
        np.testing.assert_array_equal(found["doubled"], 2 * x)

        def post(inputs):
            request = urllib.request.Request(f"http://127.0.0.1:{port}/", json.dumps({"inputs": inputs}).encode(), {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status, json.load(answer)
            except urllib.error.HTTPError as error:
                return error.code, json.load(error)

        inputs = [
            {"name": "x", "datatype": "FP32", "shape": [2, 4], "data": x.ravel().tolist()},
            {"name": "k", "datatype": "INT64", "shape": [2], "data": [4, 5]},
        ]
        status, answer = post(inputs)
        assert status == 200 and answer["outputs"][1] == {"name": "next", "datatype": "INT64", "shape": [2], "data": [5, 6]}
        status, answer = post(inputs[:1])
        assert status == 400 and "no column k" in answer["error"]
        status, answer = post([{**inputs[0], "datatype": "FP13"}, inputs[1]])
        assert status == 400 and "FP13" in answer["error"]
        status, answer = post([{"name": "x", "datatype": "FP32", "data": []}])
        assert status == 400 and "shape" in answer["error"]
    finally:
        serve.shutdown()
