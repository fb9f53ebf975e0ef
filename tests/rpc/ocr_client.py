"""Reads pictures with the three networks of the OCR example, here or on a server: `ocr_client.py BUILD [HOST PORT]`."""

import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples/ocr"))

import cv2  # noqa: E402
import onnx  # noqa: E402
import recognition  # noqa: E402
from ocr import Relaxide, network_files, read  # noqa: E402


class Far:
    """The networks on a server: inputs go there, results come back."""

    def __init__(self, build, host, port):
        import relaxide as tvm
        from relaxide import rpc

        self.remote = rpc.connect(host, port)
        self.tensor, self.functions = tvm.runtime.tensor, {}
        for library in sorted(build.glob("*.so")):
            self.remote.upload(str(library))
            module = self.remote.load_module(library.name)
            self.functions[library.stem] = tvm.relax.VirtualMachine(module, self.remote.cpu())["main"]

    def run(self, stage, x):
        return self.functions[stage](self.tensor(x, self.remote.cpu())).numpy()


def main():
    build, *server = sys.argv[1:]
    build, files = pathlib.Path(build), network_files()
    engine = Far(build, server[0], int(server[1])) if server else Relaxide(files, build, 2)
    characters = recognition.alphabet(onnx.load(files["recognition"]))
    results = {}
    for path in sorted((ROOT / "examples/ocr/images").glob("*.png")):
        lines, _ = read(engine, cv2.imread(str(path)), characters)
        results[path.name] = [[text, float(confidence)] for text, confidence, _ in lines]
    print(json.dumps(results))


main()
