"""A page as a server: Chromium shows one that the proxy gave, and Python sends it a model, calls and times it there."""

import subprocess
import sys

import numpy as np
import pytest
import tvm
from ends import ROOT
from test_web import COMMAND, PACKAGE, our_proxy
from tvm import rpc

sys.path.insert(0, str(ROOT / "tests" / "wasm"))
import chromium

pytestmark = [
    pytest.mark.skipif(chromium.program() is None, reason="there is no Chromium"),
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
]

PAGE = """
<!doctype html><meta charset="utf-8"><title>server</title>
<script type="module">
import { serve } from "./rpc.js";
const functions = {
  "page.title": () => document.title,
  "page.scale": (x, by) => ({ ...x, shape: x.shape, dtype: x.dtype, data: x.data.map((v) => v * by) }),
};
window.failed = [];
serve(`ws://${location.host}/ws`, { key: "page", functions, onError: (error) => window.failed.push(String(error)) });
</script>
"""

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            y = R.nn.softmax(R.add(x, x), axis=-1)
            R.output(y)
        return y
"""


def test_a_page_serves_functions_and_runs_models(tmp_path):
    (tmp_path / "index.html").write_text(PAGE)
    sources = ":".join(str(path) for path in sorted(PACKAGE.glob("*.js")))
    options = ["--index-page", tmp_path / "index.html", "--resource-files", sources]
    with our_proxy(*options) as (port, web), chromium.page(tmp_path / "profile") as page:
        page.open(f"http://127.0.0.1:{web}/")
        session = rpc.connect("127.0.0.1", port, key="page", session_timeout=60)
        x = np.random.default_rng(3).standard_normal((5, 4)).astype("float32")
        there = tvm.runtime.tensor(x, session.cpu())
        assert session.get_function("page.title")() == "server"
        np.testing.assert_array_equal(session.get_function("page.scale")(there, 3).numpy(), x * 3)
        with pytest.raises(AttributeError):
            session.get_function("page.none")
        if (COMMAND.resolve().parent / "relaxide_runtime.wasm").exists():
            runs_a_model(session, tmp_path, x, there)
        assert page.evaluate("window.failed") == []


def runs_a_model(session, folder, x, there):
    (folder / "model.relax").write_text(PROGRAM)
    subprocess.run([COMMAND, "compile", "-q", "--target", "wasm", folder / "model.relax", "-o", folder / "model.wasm"], check=True)
    session.upload(str(folder / "model.wasm"))
    vm = tvm.relax.VirtualMachine(session.load_module("model.wasm"), session.cpu())
    powers = np.exp(2 * x)
    np.testing.assert_allclose(vm["main"](there).numpy(), powers / powers.sum(-1, keepdims=True), rtol=1e-5)
    timed = vm.time_evaluator("main", session.cpu(), number=3, repeat=2)(there)
    assert len(timed.results) == 2 and min(timed.results) >= 0
