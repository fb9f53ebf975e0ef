"""Times Relaxide, ONNX Runtime and TVM on the networks of ``tests/models``, side by side.

Each contender lives in a process of its own, pinned to a number of threads, and runs one inference when it is told to. The
contenders take turns (A, B, C, A, B, C …), so that a busy moment of the machine hits all of them alike; medians are
reported. TVM is its default build for the CPU, where it imports the network at all; where it does not, its reason is printed.

usage: models.py [--models det,rec] [--threads 1,2] [--rounds 15] [--contenders relaxide,onnxruntime,tvm] [--json FILE]
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "models"))

import zoo  # noqa: E402
from turns import Contender, serve  # noqa: E402

#: What each network is timed on: a page, a line, a line, a file, a photograph.
SHAPES = {
    "det": (1, 3, 480, 640),
    "rec": (1, 3, 48, 320),
    "cls": (1, 3, 48, 192),
    "magika": (1, 2048),
    "resnet18": (1, 3, 224, 224),
}


def relaxide_runner(model, x, threads):
    os.environ["RELAXIDE_NUM_THREADS"] = str(threads)
    import tempfile

    import onnx

    import relaxide as tvm

    module = tvm.relax.frontend.onnx.from_onnx(onnx.load(model.path))
    with tempfile.TemporaryDirectory() as directory:
        library = os.path.join(directory, "model.so")
        tvm.compile(module, target="llvm").export_library(library)
        vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
    main, x = vm["main"], tvm.runtime.tensor(x)
    return lambda: main(x)


def onnxruntime_runner(model, x, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {model.input: x})


def tvm_runner(model, x, threads):
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import onnx
    import tvm
    from tvm.relax.frontend.onnx import from_onnx

    # TVM's importer needs fixed shapes for networks that resize.
    module = from_onnx(onnx.load(model.path), shape_dict={model.input: list(x.shape)})
    vm = tvm.relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    main, x = vm["main"], tvm.runtime.tensor(x)
    return lambda: main(x)


RUNNERS = {"relaxide": relaxide_runner, "onnxruntime": onnxruntime_runner, "tvm": tvm_runner}


def runner(contender, name, threads):
    """What runs one inference, after the first."""
    model = zoo.MODELS[name]
    run = RUNNERS[contender](model, model.make(SHAPES[name]), threads)
    run()
    return lambda _: run()


def measure(name, threads, contenders, rounds):
    """The medians in milliseconds, and why a contender has none."""
    entries = [Contender(contender, [__file__, "--serve", contender, name, str(threads)]) for contender in contenders]
    for _ in range(rounds):
        for entry in entries:
            if entry.refused is None:
                entry.run()
                # Idle threads of some runtimes spin for tens of milliseconds; let them come to rest before the next call.
                time.sleep(0.05)
    for entry in entries:
        entry.close()
    return {entry.name: {"ms": entry.median(), "refused": entry.refused} for entry in entries}


def ratio(result, other):
    mine, theirs = result.get("relaxide", {}).get("ms"), result.get(other, {}).get("ms")
    return theirs / mine if mine and theirs else None


def text(value, unit=""):
    return "-" if value is None else f"{value:.2f}{unit}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(SHAPES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--contenders", default=",".join(RUNNERS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        contender, name, threads = arguments.serve
        return serve(lambda: runner(contender, name, int(threads)), int(threads))

    contenders = arguments.contenders.split(",")
    print("medians in ms; speed is the other's time over Relaxide's: above 1, Relaxide is faster\n")
    print(f"{'network':10} {'threads':>7}" + "".join(f" {c:>12}" for c in contenders) + f" {'speed/ORT':>10} {'speed/TVM':>10}")
    results = []
    for threads in map(int, arguments.threads.split(",")):
        for name in arguments.models.split(","):
            result = measure(name, threads, contenders, arguments.rounds)
            results.append({"model": name, "shape": SHAPES[name], "threads": threads, **result})
            times = "".join(f" {text(result[c]['ms']):>12}" for c in contenders)
            speeds = "".join(f" {text(ratio(result, other), 'x'):>10}" for other in ("onnxruntime", "tvm"))
            print(f"{name:10} {threads:>7}{times}{speeds}", flush=True)
            for contender in contenders:
                if result[contender]["refused"]:
                    print(f"{'':18} {contender}: {result[contender]['refused'][:150]}")
    for other in ("onnxruntime", "tvm"):
        speeds = [speed for speed in (ratio(result, other) for result in results) if speed]
        if speeds:
            mean = math.exp(statistics.fmean(map(math.log, speeds)))
            print(f"\ngeometric mean of the speed over {other}: {mean:.2f}x of {len(speeds)} measurements")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
