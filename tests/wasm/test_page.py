"""The page that reads the text in pictures (`examples/browser`), in a real browser."""

import importlib.util
import os
import pathlib
import shutil
import sys
import threading

import chromium
import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
#: What is read by choosing it; another picture is dropped.
PICTURES = ("notice", "receipt", "sign") if os.environ.get("RELAXIDE_DEEP") else ("sign",)

pytestmark = [
    pytest.mark.skipif(chromium.program() is None, reason="Chromium is missing: `apt-get install chromium` installs it"),
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
    pytest.mark.skipif(
        not (COMMAND.resolve().parent / "relaxide_runtime.wasm").exists(),
        reason="the runtime for WebAssembly is not built (`scripts/wasm-runtime`)",
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("rapidocr_onnxruntime") is None, reason="the networks come with the package rapidocr-onnxruntime"
    ),
]


@pytest.fixture(scope="module")
def example():
    """The script that makes the page."""
    sys.path[:0] = [str(ROOT / "examples/browser")]
    import serve

    yield serve
    sys.path.remove(str(ROOT / "examples/browser"))


@pytest.fixture(scope="module")
def address(example):
    folder = example.build(ROOT / "build" / "browser")
    with example.server(folder, 0) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}/"
        running.shutdown()


@pytest.fixture(scope="module")
def page(address, tmp_path_factory):
    with chromium.page(tmp_path_factory.mktemp("profile")) as page:
        page.call("Page.addScriptToEvaluateOnNewDocument", source="""
            globalThis.heard = [];
            const Plain = Worker;
            globalThis.Worker = class extends Plain {
              constructor(...of) { super(...of); this.addEventListener("message", ({ data }) => heard.push(data)); }
            };""")
        page.open(address)
        page.wait_for("document.documentElement.dataset.ready || document.documentElement.dataset.failed")
        assert page.evaluate("document.documentElement.dataset.failed") is None
        yield page


@pytest.mark.parametrize(("network", "name"), [("detection", "det"), ("recognition", "rec")])
def test_networks_compute_in_the_browser_what_they_do_natively(page, network, name):
    folder = ROOT / "build" / "browser" / "check"
    folder.mkdir(exist_ok=True)
    sys.path[:0] = [str(ROOT / "bench/web")]
    try:
        import web_networks
    finally:
        sys.path.remove(str(ROOT / "bench/web"))
    web_networks.write(name, folder)
    shutil.copy(ROOT / "bench/web/measure.mjs", folder / "measure.js")
    distance = page.evaluate(f"""(async () => {{
        const {{ load }} = await import("./relaxide/index.js");
        const {{ arrays, distance }} = await import("./check/measure.js");
        const read = async (file) => new Uint8Array(await (await fetch(`check/${{file}}`)).arrayBuffer());
        const {{ inputs, outputs }} = await (await fetch("check/{name}.json")).json();
        const results = Object.entries((await load("models/{network}.wasm")).run(await arrays(inputs, read)));
        return distance(Object.fromEntries(results.map(([of, tensor]) => [of, tensor.data])), await arrays(outputs, read));
    }})()""")
    assert distance < 1e-4
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def native(example):
    """What the networks read natively, by ONNX Runtime, with the example's own code around them."""
    import cv2
    import onnx
    import recognition

    files = example.ocr.network_files()
    engine = example.ocr.OnnxRuntime(files, 1)
    characters = recognition.alphabet(onnx.load(files["recognition"]))

    def read(name):
        return example.ocr.read(engine, cv2.imread(str(ROOT / f"examples/ocr/images/{name}.png")), characters)[0]

    return read


def read(page, choose):
    """Has a picture read, and gives what the page shows of it."""
    before = int(page.evaluate("document.documentElement.dataset.done ?? 0"))
    page.evaluate(choose)
    page.wait_for(f"Number(document.documentElement.dataset.done ?? 0) > {before}")
    return page.evaluate("[...document.querySelectorAll('#lines span')].map((line) => line.textContent)")


def test_weights_arrive_in_pieces_and_the_page_says_how_much(page):
    loaded = page.evaluate("heard.filter(({ is }) => is === 'progress').map(({ loaded }) => loaded)")
    total = page.evaluate("heard.find(({ is }) => is === 'progress').total")
    assert len(loaded) > 6 and loaded == sorted(loaded) and loaded[-1] == total, (loaded, total)


@pytest.mark.parametrize("name", PICTURES)
def test_it_reads_what_the_networks_read_natively(page, native, name):
    lines = read(page, f"document.querySelector('[data-picture$=\"{name}.png\"]').click()")
    expected = native(name)
    assert lines == [text for text, *_ in expected]
    quads = page.evaluate("[...document.querySelectorAll('#boxes polygon')].map((box) => box.getAttribute('points').split(/[ ,]/).map(Number))")
    for quad, (_, _, corners) in zip(quads, expected, strict=True):
        # Rectangles around the same pixels, by another algorithm.
        assert abs(quad - corners.ravel()).max() < 3, (quad, corners)


def test_pictures_are_dropped_and_other_files_refused(page, native):
    drop = """(async () => {
        const file = new File([await (await fetch("pictures/receipt.png")).blob()], "receipt", { type: "%s" });
        const files = new DataTransfer();
        files.items.add(file);
        document.querySelector("#drop").dispatchEvent(new DragEvent("drop", { bubbles: true, cancelable: true, dataTransfer: files }));
    })()"""
    assert read(page, drop % "image/png") == [text for text, *_ in native("receipt")]
    page.evaluate(drop % "text/plain")
    assert "picture" in page.wait_for("document.querySelector('#status.wrong')?.textContent")


def test_it_is_light_and_dark(page, tmp_path):
    import cv2

    if not page.evaluate("document.documentElement.dataset.done"):
        read(page, "document.querySelector('[data-picture$=\"sign.png\"]').click()")
    means = []
    for scheme in ("light", "dark"):
        page.screenshot(tmp_path / f"{scheme}.png", scheme)
        means.append(cv2.imread(str(tmp_path / f"{scheme}.png")).mean())
    assert means[0] > means[1] + 60, means
    page.screenshot(tmp_path / "narrow.png", "light", 390, 844)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than a telephone"


def test_networks_that_are_not_there_are_said(page, address, example, tmp_path):
    folder = tmp_path / "page"
    shutil.copytree(ROOT / "build" / "browser", folder)
    (folder / "models" / "detection.safetensors").unlink()
    with example.server(folder, 0) as running, chromium.page(tmp_path / "profile") as other:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        other.open(f"http://127.0.0.1:{running.server_address[1]}/")
        assert "404" in other.wait_for("document.documentElement.dataset.failed")
        assert "not loaded" in other.evaluate("document.querySelector('#status.wrong').textContent")
        running.shutdown()
