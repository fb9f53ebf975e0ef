"""Reads the text in pictures with three compiled networks: detection, orientation, recognition.

usage: ocr.py [--threads N] [--build DIRECTORY] [--no-compare] [PICTURE ...]

Each network is compiled once, to one shared library with symbolic shapes; pictures and lines of any size run through it. What
ONNX Runtime needs for the same work is printed beside it.
"""

import argparse
import importlib.util
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = {"detection": "det", "orientation": "cls", "recognition": "rec"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pictures", nargs="*", type=pathlib.Path, help="by default those in examples/ocr/images")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "ocr")
    parser.add_argument("--no-compare", action="store_true", help="leave ONNX Runtime out")
    return parser.parse_args()


def network_files():
    """The networks that come with the package rapidocr-onnxruntime."""
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None:
        sys.exit("the networks come with a package: pip install rapidocr-onnxruntime")
    directory = pathlib.Path(spec.submodule_search_locations[0]) / "models"
    return {stage: next(directory.glob(f"*_{part}_infer.onnx")) for stage, part in NETWORKS.items()}


class Relaxide:
    """The networks as compiled libraries."""

    name = "Relaxide"

    def __init__(self, files, build, threads):
        os.environ["RELAXIDE_NUM_THREADS"] = str(threads)
        import relaxide as tvm

        self.tensor = tvm.runtime.tensor
        self.functions = {}
        build.mkdir(parents=True, exist_ok=True)
        for stage, path in files.items():
            library = build / f"{stage}.so"
            if not library.exists() or library.stat().st_mtime < max(path.stat().st_mtime, _compiler_time(tvm)):
                start = time.perf_counter()
                module = tvm.relax.frontend.onnx.from_onnx(path)
                tvm.compile(module, target="llvm").export_library(str(library))
                seconds, size = time.perf_counter() - start, library.stat().st_size / 1e6
                print(f"compiled {path.name} to {_short(library)}: {size:.1f} MB in {seconds:.1f} s", flush=True)
            vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(library)), tvm.cpu())
            self.functions[stage] = vm["main"]

    def run(self, stage, x):
        return self.functions[stage](self.tensor(x)).numpy()


class OnnxRuntime:
    """The networks as they are."""

    name = "ONNX Runtime"

    def __init__(self, files, threads):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.sessions = {stage: onnxruntime.InferenceSession(path, options) for stage, path in files.items()}

    def run(self, stage, x):
        session = self.sessions[stage]
        return session.run(None, {session.get_inputs()[0].name: x})[0]


def _compiler_time(tvm):
    package = pathlib.Path(tvm.__file__).parent
    return max(path.stat().st_mtime for path in package.glob("_core*"))


def _short(path):
    try:
        return path.absolute().relative_to(pathlib.Path.cwd())
    except ValueError:
        return path


def read(engine, picture, characters):
    """The lines of a picture, and the milliseconds of each stage, inside the networks and around them."""
    import detection
    import recognition

    times = dict.fromkeys(["detection", "orientation", "recognition"], 0.0)
    start = time.perf_counter()

    def run(stage, x):
        before = time.perf_counter()
        result = engine.run(stage, x)
        times[stage] += (time.perf_counter() - before) * 1e3
        return result

    probability = run("detection", detection.to_input(picture))
    lines = []
    for quad in detection.quads(probability, picture.shape):
        line = detection.crop(picture, quad)
        line = recognition.upright(line, run("orientation", recognition.orientation_input(line)))
        text, confidence = recognition.decode(run("recognition", recognition.recognition_input(line)), characters)
        if text and confidence > 0.5:
            lines.append((text, confidence, quad))
    times["around them"] = (time.perf_counter() - start) * 1e3 - sum(times.values())
    return lines, times


def main():
    args = arguments()
    import cv2
    import onnx

    import recognition

    pictures = args.pictures or [HERE / "images" / name for name in ("notice.png", "receipt.png")]
    files = network_files()
    characters = recognition.alphabet(onnx.load(files["recognition"]))
    engines = [Relaxide(files, args.build, args.threads)]
    if not args.no_compare:
        engines.append(OnnxRuntime(files, args.threads))
    for path in pictures:
        picture = cv2.imread(str(path))
        if picture is None:
            sys.exit(f"{path} is not a picture that can be read")
        print(f"\n{_short(path)}, {picture.shape[1]} x {picture.shape[0]}")
        report(engines, picture, characters)
    print("\nnext: a sign that hangs upside down, or a picture of your own:")
    command = f"{_short(pathlib.Path(sys.executable))} {_short(pathlib.Path(__file__))}"
    print(f"  {command} {_short(HERE / 'images' / 'sign.png')}")
    print("or see how fast each network is with  make bench")


def report(engines, picture, characters):
    """Prints what is read and how long it took, the second of two runs: the first meets cold caches and new shapes."""
    results = {}
    for engine in engines:
        read(engine, picture, characters)
        results[engine.name] = read(engine, picture, characters)
    lines, _ = results["Relaxide"]
    for text, confidence, _ in lines:
        print(f"  {confidence:4.0%}  {text}")
    stages = list(results["Relaxide"][1])
    print(f"  {'ms':14}" + "".join(f"{stage:>14}" for stage in stages) + f"{'total':>14}")
    for name, (_, times) in results.items():
        print(f"  {name:14}" + "".join(f"{times[stage]:14.1f}" for stage in stages) + f"{sum(times.values()):14.1f}")
    for name, (other, _) in results.items():
        if [text for text, *_ in other] != [text for text, *_ in lines]:
            print(f"  {name} read something else: {[text for text, *_ in other]}")


if __name__ == "__main__":
    main()
