"""Makes a page that reads the text in pictures, and serves it on this machine.

usage: serve.py [--port 8000] [--build DIRECTORY] [--only-build]

The page is a folder of files (`build/browser`) that any web server can offer: what is beside this script, the npm package, three networks as
WebAssembly modules with their weights apart, and three pictures. The networks come with the package rapidocr-onnxruntime.
"""

import argparse
import functools
import http.server
import json
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "ocr"))

import ocr  # noqa: E402

PAGE = ("index.html", "style.css", "page.js", "reader.js", "picture.js", "detection.js", "recognition.js")


def command():
    """The `relaxide` command: the one that was built here, or else the installed one."""
    built = ROOT / "build" / "relaxide"
    found = str(built) if built.exists() else shutil.which("relaxide")
    return found or sys.exit("the command `relaxide` is missing: run `make build` first")


def characters(network):
    """The characters that the recognition network knows, from the notes in its file; the first class is "no character"."""
    import onnx

    notes = {entry.key: entry.value for entry in onnx.load(network).metadata_props}
    return ["", *notes["character"].splitlines(), " "]


def compile_network(source, module):
    """Compiles a network, if that was not done since it and the compiler changed. How many bytes are loaded of it."""
    files = [module, module.with_suffix(".safetensors")]
    compiler = command()
    newest = max(source.stat().st_mtime, pathlib.Path(compiler).stat().st_mtime)
    if not all(file.exists() and file.stat().st_mtime >= newest for file in files):
        print(f"compiling {source.name} …", flush=True)
        subprocess.run([compiler, "compile", "-q", source, "--target", "wasm", "--weights", "safetensors", "-o", module], check=True)
    return sum(file.stat().st_size for file in files)


def build(folder):
    """Makes the folder."""
    for name in ("models", "pictures", "relaxide"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in PAGE:
        shutil.copy(HERE / name, folder)
    for file in (ROOT / "packages" / "npm").glob("*.js"):
        shutil.copy(file, folder / "relaxide")
    for file in (HERE.parent / "ocr" / "images").glob("*.png"):
        shutil.copy(file, folder / "pictures")
    files = ocr.network_files()
    sizes = {name: compile_network(source, folder / "models" / f"{name}.wasm") for name, source in files.items()}
    described = {
        "networks": [{"name": name, "bytes": size} for name, size in sizes.items()],
        "characters": characters(files["recognition"]),
    }
    (folder / "models" / "models.json").write_text(json.dumps(described, ensure_ascii=False))
    return folder


class Files(http.server.SimpleHTTPRequestHandler):
    """Files, with the types that browsers want of modules."""

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm", ".js": "text/javascript"}

    def log_message(self, *arguments):
        pass


def server(folder, port):
    """A server of the folder, for this machine alone."""
    return http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Files, directory=folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "browser")
    parser.add_argument("--only-build", action="store_true", help="make the folder and serve nothing")
    arguments = parser.parse_args()
    folder = build(arguments.build)
    if arguments.only_build:
        print(f"made {folder}")
        return
    with server(folder, arguments.port) as running:
        print(f"open http://127.0.0.1:{running.server_address[1]}/ (Ctrl-C ends)", flush=True)
        try:
            running.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
