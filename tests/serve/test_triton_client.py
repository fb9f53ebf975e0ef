"""PyPI's `tritonclient` beside the module run directly, over both protocols."""

import pathlib
import sys

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax
from relaxide.script import from_source

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from serving import COMMAND, served  # noqa: E402

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="needs `make build`")

PROGRAMS = {
    "rows": """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32"), k: R.Tensor(("n", 2), "int64")):
        with R.dataflow():
            h = R.nn.relu(R.matmul(x, R.full((16, 32), R.const(0.37, "float32"), "float32")))
            y = R.nn.softmax(R.add(h, R.astype(R.sum(k, axis=1, keepdims=True), "float32")))
            z = R.multiply(k, R.const(3, "int64"))
            gv = (y, z, R.greater(x, R.const(0, "float32")))
            R.output(gv)
        return gv
""",
    "masked": """
@I.ir_module
class Module:
    @R.function
    def main(ids: R.Tensor(("n", "m"), "int64"), mask: R.Tensor(("n", "m"), "int64")):
        with R.dataflow():
            h = R.multiply(R.astype(ids, "float32"), R.const(0.5, "float32"))
            gv = (h, R.sum(R.multiply(ids, mask), axis=1))
            R.output(gv)
        return gv
""",
    "half": """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "m"), "float16")):
        with R.dataflow():
            gv = R.multiply(x, R.const(2, "float16"))
            R.output(gv)
        return gv
""",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    made = {}
    for name, text in PROGRAMS.items():
        made[name] = folder / f"{name}.so"
        tvm.compile(from_source(text), target="llvm").export_library(str(made[name]))
    return made


@pytest.fixture(scope="module", params=["here", "workers"])
def server(models, request):
    buckets = ["--bucket", "ids:1=8,16", "--pad", "ids=9", "--pad", "mask=0", "--check-padding", "2"]
    options = ["--max-batch", "16", *buckets, *(["--workers", "2"] if request.param == "workers" else [])]
    with served(models.values(), *options) as addresses:
        yield addresses


def connected(kind, server):
    module = pytest.importorskip(f"tritonclient.{kind}", reason=f"tritonclient[{kind}] is not installed")
    return module, module.InferenceServerClient(server[kind == "grpc"])


def directly(models, name, *arrays):
    machine = relax.VirtualMachine(tvm.runtime.load_module(str(models[name])), tvm.cpu())
    found = machine["main"](*map(tvm.runtime.tensor, arrays))
    return [part.numpy() for part in (found if not hasattr(found, "numpy") else [found])]


def inputs(module, arrays, **options):
    from tritonclient.utils import np_to_triton_dtype

    made = []
    for name, array in arrays.items():
        made.append(module.InferInput(name, list(array.shape), np_to_triton_dtype(array.dtype)))
        made[-1].set_data_from_numpy(array, **options)
    return made


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_results_are_those_of_the_module(kind, server, models):
    module, client = connected(kind, server)
    rng = np.random.default_rng(0)
    for rows in (1, 3, 40):
        arrays = {"k": rng.integers(-5, 5, (rows, 2)), "x": rng.standard_normal((rows, 16), "float32")}
        wanted = directly(models, "rows", arrays["x"], arrays["k"])
        found = client.infer("rows", inputs(module, arrays), request_id="7")
        for i, array in enumerate(wanted):
            np.testing.assert_array_equal(found.as_numpy(f"output_{i}"), array)
        only = client.infer("rows", inputs(module, arrays), outputs=[module.InferRequestedOutput("output_1")])
        np.testing.assert_array_equal(only.as_numpy("output_1"), wanted[1])
        assert only.as_numpy("output_0") is None
    half = rng.standard_normal((2, 5)).astype("float16")
    np.testing.assert_array_equal(client.infer("half", inputs(module, {"x": half})).as_numpy("output_0"), half * 2)


def test_json_gives_what_binary_form_gives(server, models):
    module, client = connected("http", server)
    rng = np.random.default_rng(1)
    arrays = {"x": rng.standard_normal((2, 16), "float32"), "k": rng.integers(0, 9, (2, 2))}
    wanted = directly(models, "rows", *arrays.values())
    outputs = [module.InferRequestedOutput(f"output_{i}", binary_data=False) for i in range(3)]
    found = client.infer("rows", inputs(module, arrays, binary_data=False), outputs=outputs)
    for i, array in enumerate(wanted):
        np.testing.assert_array_equal(found.as_numpy(f"output_{i}"), array)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_the_server_says_what_it_is(kind, server):
    module, client = connected(kind, server)
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("half")
    as_dict = (lambda found: found) if kind == "http" else lambda found: {"inputs": [{"shape": list(found.inputs[0].shape)}]}
    assert as_dict(client.get_model_metadata("half"))["inputs"][0]["shape"] in ([2, -1], ["2", "-1"])
    assert {"rows", "half"} <= set(str(client.get_model_repository_index()).replace('"', "'").split("'"))
    from tritonclient.utils import InferenceServerException

    with pytest.raises(InferenceServerException, match="there is no model 'other'|there is no model \"other\""):
        client.get_model_metadata("other")
    with pytest.raises(InferenceServerException, match="is of FP32; the model takes FP16"):
        client.infer("half", inputs(module, {"x": np.zeros((2, 2), "float32")}))


def test_many_at_once(server, models):
    module, _ = connected("http", server)
    client = module.InferenceServerClient(server[0], concurrency=16)
    rng = np.random.default_rng(2)
    cases = [{"x": rng.standard_normal((1, 16), "float32"), "k": rng.integers(0, 9, (1, 2))} for _ in range(64)]
    asked = [client.async_infer("rows", inputs(module, case)) for case in cases]
    for case, answer in zip(cases, asked):
        found = answer.get_result()
        for i, array in enumerate(directly(models, "rows", *case.values())):
            np.testing.assert_allclose(found.as_numpy(f"output_{i}"), array, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_padded_requests_give_what_they_give_alone(kind, server, models):
    module, client = connected(kind, server)
    rng = np.random.default_rng(3)
    for length in (1, 5, 8, 13, 16, 40):
        arrays = {"ids": rng.integers(0, 99, (2, length)), "mask": rng.integers(0, 2, (2, length))}
        wanted = directly(models, "masked", *arrays.values())
        found = client.infer("masked", inputs(module, arrays))
        for i, array in enumerate(wanted):
            np.testing.assert_array_equal(found.as_numpy(f"output_{i}"), array)


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_statistics_count_what_was_asked(kind, server):
    module, client = connected(kind, server)
    options = {} if kind == "http" else {"as_json": True}
    read = lambda: client.get_inference_statistics("half", **options)["model_stats"][0]  # noqa: E731
    before = read()
    for _ in range(3):
        client.infer("half", inputs(module, {"x": np.ones((2, 4), "float16")}))
    after = read()
    assert (after["name"], after["version"]) == ("half", "1")
    grown = lambda *path: [int(_at(found, path)) for found in (before, after)]  # noqa: E731
    for path in [("inference_count",), ("execution_count",), ("inference_stats", "success", "count"), ("inference_stats", "queue", "count")]:
        first, then = grown(*path)
        assert then - first == 3, path
    first, then = grown("inference_stats", "compute_infer", "ns")
    assert then > first
    assert {model["name"] for model in client.get_inference_statistics(**options)["model_stats"]} == set(PROGRAMS)


def _at(found, path):
    for name in path:
        found = found.get(name, 0) if found else 0
    return found


@pytest.mark.parametrize("kind", ["http", "grpc"])
def test_clients_load_and_unload(kind, models):
    from tritonclient.utils import InferenceServerException

    folder = models["rows"].parent
    with served([models["rows"]], "--repository", folder) as addresses:
        module, client = connected(kind, addresses)
        options = {} if kind == "http" else {"as_json": True}

        def index():
            found = client.get_model_repository_index(**options)
            return {model["name"]: model["state"] for model in (found if kind == "http" else found["models"])}

        arguments = inputs(module, {"x": np.ones((2, 4), "float16")})
        assert index() == {"half": "UNAVAILABLE", "masked": "UNAVAILABLE", "rows": "READY"}
        client.load_model("half")
        assert index()["half"] == "READY" and client.is_model_ready("half")
        np.testing.assert_array_equal(client.infer("half", arguments).as_numpy("output_0"), np.full((2, 4), 2, "float16"))
        client.unload_model("half")
        assert index()["half"] == "UNAVAILABLE"
        with pytest.raises(InferenceServerException, match="there is no model"):
            client.infer("half", arguments)
        with pytest.raises(InferenceServerException, match="`config` and `files` are not taken"):
            client.load_model("half", config="{}")
