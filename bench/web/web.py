"""Times Relaxide's WebAssembly modules beside onnxruntime-web, in the same Node process and the same page of Chromium.

usage: web.py [--networks det,rec] [--seconds 8] [--where node,chromium] [--relaxed] [--json FILE]

Both engines use one thread and vectors of 128 bits, and take turns; medians are reported, in Node of processor time. Beside them: how far
results are from what ONNX Runtime computes natively here, and what a browser has to load, compressed as servers do (gzip). onnxruntime-web
comes from npm, into build/web; networks are those of web_networks.py. `--relaxed` compiles for relaxed SIMD, which Node wants version 22 for.
"""

import argparse
import functools
import gzip
import http.server
import json
import math
import os
import pathlib
import queue
import shutil
import statistics
import subprocess
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "web"
PEER = BUILD / "node_modules" / "onnxruntime-web"
#: What a page loads of the peer, besides the network.
PEER_FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")

PAGE = """<!doctype html><script type="module">
import { load } from "./relaxide/index.js";
import * as ort from "./peer/ort.wasm.min.mjs";
import { measure } from "./measure.mjs";
const say = (found) => fetch("/answer", { method: "POST", body: JSON.stringify(found) });
const read = async (file) => new Uint8Array(await (await fetch(file)).arrayBuffer());
ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = new URL("./peer/", location.href).href;
const { names, ...limits } = await (await fetch("options.json")).json();
try {
  for (const name of names) {
    const described = await (await fetch(`${name}.json`)).json();
    await say({ name, ...(await measure({ relaxide: { load }, onnxruntime: ort }, described, read, limits)) });
  }
} catch (error) {
  await say({ error: String(error.stack ?? error) });
}
</script>"""


def prepare(names, target):
    """Networks, modules and the peer, in the build folder."""
    import web_networks

    BUILD.mkdir(parents=True, exist_ok=True)
    if not PEER.exists():
        print("installing onnxruntime-web …", file=sys.stderr)
        subprocess.run(["npm", "install", "--silent", "--prefix", BUILD, "onnxruntime-web"], check=True)
    for name in names:
        web_networks.write(name, BUILD)
        command = [ROOT / "build/relaxide", "compile", "-q", BUILD / f"{name}.onnx", "--target", target, "-o", BUILD / f"{name}.wasm"]
        subprocess.run(command, check=True)


def in_node(options):
    """What Node measures, network by network."""
    command = ["node", HERE / "node.mjs", BUILD, PEER, json.dumps(options)]
    # onnxruntime-web looks at the processors when it is loaded.
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout:
            if line.startswith("{"):
                yield json.loads(line)
    if running.returncode:
        sys.exit("Node failed")


class Site(http.server.SimpleHTTPRequestHandler):
    """The build folder; what a page posts is put into a queue."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".mjs": "text/javascript"}

    def __init__(self, answers, *arguments, **named):
        self.answers = answers
        super().__init__(*arguments, **named)

    def do_POST(self):
        self.answers.put(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


def in_chromium(options):
    """What a page of Chromium measures, network by network."""
    browser = shutil.which("chromium") or shutil.which("chromium-headless-shell") or shutil.which("google-chrome")
    if browser is None:
        print("no Chromium is installed: not measured there")
        return
    for name, source in (("relaxide", ROOT / "packages/npm"), ("peer", PEER / "dist")):
        shutil.copytree(source, BUILD / name, dirs_exist_ok=True)
    shutil.copy(HERE / "measure.mjs", BUILD)
    (BUILD / "index.html").write_text(PAGE)
    (BUILD / "options.json").write_text(json.dumps(options))
    answers = queue.Queue()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Site, answers, directory=BUILD)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = f"http://127.0.0.1:{server.server_address[1]}/index.html"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={BUILD / 'profile'}", "--remote-debugging-port=0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([browser, *flags, page], **quiet) as running:
            try:
                for _ in options["names"]:
                    answer = json.loads(answers.get(timeout=300))
                    if "error" in answer:
                        sys.exit(f"the page failed: {answer['error']}")
                    yield answer
            finally:
                running.terminate()
        server.shutdown()


@functools.cache
def compressed(path):
    return len(gzip.compress(path.read_bytes(), 6))


def sizes(name):
    """Bytes that a page loads, compressed, of ours and of the peer's."""
    own = [*(ROOT / "packages/npm").glob("*.js"), BUILD / f"{name}.wasm"]
    return sum(map(compressed, own)), sum(compressed(PEER / "dist" / file) for file in PEER_FILES) + compressed(BUILD / f"{name}.onnx")


def main():
    sys.path.insert(0, str(HERE))
    known = ["encoder", "det", "rec", "cls", "silero_vad", "mobilenetv2"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(known))
    parser.add_argument("--seconds", type=float, default=8, help="for each network and place")
    parser.add_argument("--where", default="node,chromium")
    parser.add_argument("--relaxed", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    names = arguments.networks.split(",")
    prepare(names, "wasm/relaxed-simd" if arguments.relaxed else "wasm")
    # Neither engine shall use threads that the other does not.
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))
    options = {"names": names, "rounds": 1000, "seconds": arguments.seconds}
    results = []
    print("medians in ms; speed is the other's time over Relaxide's: above 1, Relaxide is faster")
    print(f"{'where':10}{'network':13}{'relaxide':>10}{'ort-web':>10}{'speed':>8}{'distance':>10}{'MB':>8}{'their MB':>10}")
    for where, measured in (("node", in_node), ("chromium", in_chromium)):
        if where not in arguments.where.split(","):
            continue
        for found in measured(options):
            mine, theirs = found["relaxide"], found["onnxruntime"]
            own, peer = sizes(found["name"])
            speed = theirs["ms"] / mine["ms"]
            results.append({"where": where, **found, "speed": speed, "bytes": own, "their_bytes": peer})
            text = f"{mine['ms']:10.2f}{theirs['ms']:10.2f}{speed:7.2f}x{mine['distance']:10.0e}{own / 1e6:8.2f}{peer / 1e6:10.2f}"
            print(f"{where:10}{found['name']:13}{text}", flush=True)
    if results:
        mean = math.exp(statistics.fmean(math.log(result["speed"]) for result in results))
        print(f"\ngeometric mean of the speed: {mean:.2f}x of {len(results)} measurements")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
