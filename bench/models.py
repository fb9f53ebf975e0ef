"""Times Relaxide beside other runtimes on whole networks.

Each contender lives in a process of its own, pinned to a number of threads, and runs one inference when it is told to. The
contenders take turns (A, B, C, A, B, C …), so that a busy moment of the machine hits all of them alike; medians are
reported. Of Relaxide's first result it is said how far it is from ONNX Runtime's. Why a contender does not run a network is
printed. Networks that are exported from PyTorch are kept in a folder.

usage: models.py [--all] [--quantized] [--models det,rec] [--threads 1,2] [--rounds 15]
                 [--contenders relaxide,deterministic,onnxruntime,openvino,tract,torch,tvm]
                 [--folder FOLDER] [--json FILE] [--svg FILE] [--avx2]
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

import avx2  # noqa: E402
import network_cases  # noqa: E402
import quantized_cases  # noqa: E402
from contenders import RUNNERS, first_result  # noqa: E402
from turns import Contender, serve  # noqa: E402

#: Whom Relaxide is compared with where all networks are asked for; TVM takes minutes for each.
PEERS = ["onnxruntime", "openvino", "tract", "torch"]


def runner(contender, name, threads, folder):
    """What runs one inference, after the first, whose result is kept."""
    import numpy as np

    network = network_cases.NETWORKS[name]
    run = RUNNERS[contender](network, network.file(folder), network.feed(), threads)
    np.save(folder / f"{name}.{contender}.npy", first_result(run()))
    run()
    return lambda _: run() and None


def difference(name, folder):
    """How far Relaxide's first result is from ONNX Runtime's, as a part of the largest number in it."""
    import numpy as np

    paths = [folder / f"{name}.{contender}.npy" for contender in ("relaxide", "onnxruntime")]
    if not all(path.exists() for path in paths):
        return None
    ours, theirs = map(np.load, paths)
    if ours.shape != theirs.shape:
        return math.inf
    return float(np.max(np.abs(ours - theirs), initial=0) / max(np.max(np.abs(theirs), initial=0), 1e-30))


def measure(name, threads, contenders, rounds, folder):
    """The medians in milliseconds, and why a contender has none."""
    for contender in contenders:
        (folder / f"{name}.{contender}.npy").unlink(missing_ok=True)
    command = [str(HERE / "models.py"), "--folder", str(folder), "--serve"]
    entries = [Contender(contender, [*command, contender, name, str(threads)]) for contender in contenders]
    for _ in range(rounds):
        for entry in entries:
            if entry.refused is None:
                entry.run()
                # Idle threads of some runtimes spin for tens of milliseconds; let them come to rest before the next call.
                time.sleep(0.05)
    for entry in entries:
        entry.close()
    result = {entry.name: {"ms": entry.median(), "refused": entry.refused} for entry in entries}
    return {"model": name, "threads": threads, **result, "difference": difference(name, folder)}


def ratio(result, others):
    """Relaxide's time over that of the fastest of the others."""
    mine = result["relaxide"]["ms"]
    theirs = [result[other]["ms"] for other in others if other in result and result[other]["ms"]]
    return mine / min(theirs) if mine and theirs else None


def text(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def said(result, contenders):
    """A network's line, and why somebody is missing in it."""
    times = "".join(f" {text(result[c]['ms']):>11}" for c in contenders)
    others = [c for c in contenders if c != "relaxide"]
    different = "-" if result["difference"] is None else f"{result['difference']:.0e}"
    lines = [f"{result['model']:24} {result['threads']:>7}{times} {text(ratio(result, others)):>10} {different:>10}"]
    lines += [f"{'':24} {c}: {result[c]['refused'][:150]}" for c in contenders if result[c]["refused"]]
    return "\n".join(lines)


def picture(results, others):
    """The times over the fastest peer's as bars, the losses in another colour."""
    bars = sorted(((ratio(result, others), f"{result['model']}, {result['threads']}") for result in results if ratio(result, others)))
    height, width = 18 * len(bars) + 30, 700
    most = max([value for value, _ in bars], default=1.0)
    scale = 400 / max(most, 1.2)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">']
    parts.append('<text x="4" y="14">Time over that of the fastest peer: below 1, Relaxide is faster. Network, threads</text>')
    for at, (value, name) in enumerate(bars):
        y = 24 + 18 * at
        colour = "#2a7f62" if value <= 1 else "#c0504d"
        parts.append(f'<text x="196" y="{y + 11}" text-anchor="end">{name}</text>')
        parts.append(f'<rect x="200" y="{y}" width="{value * scale:.1f}" height="14" fill="{colour}"/>')
        parts.append(f'<text x="{204 + value * scale:.1f}" y="{y + 11}">{value:.2f}</text>')
    parts.append(f'<line x1="{200 + scale:.1f}" x2="{200 + scale:.1f}" y1="20" y2="{height}" stroke="#888"/></svg>')
    return "\n".join(parts) + "\n"


def summary(results, others):
    """Geometric means over each peer and over the fastest, and how often Relaxide is the fastest."""
    for name, those in [*((other, [other]) for other in others), ("the fastest", others)]:
        ratios = [value for value in (ratio(result, those) for result in results) if value]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            ahead = sum(value <= 1 for value in ratios)
            print(f"of {name}'s time: {mean:.2f} (geometric mean of {len(ratios)}), {ahead} at most 1, worst {max(ratios):.2f}")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="all networks, beside " + ", ".join(PEERS))
    parser.add_argument("--quantized", action="store_true", help="networks of 8-bit integers, and the float ones that they are made of")
    parser.add_argument("--models", help="some networks: " + ", ".join(network_cases.NETWORKS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--contenders")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--folder", type=pathlib.Path, help="where exported networks are kept")
    parser.add_argument("--json", type=pathlib.Path, help="also write what was measured")
    parser.add_argument("--svg", type=pathlib.Path, help="also draw it")
    parser.add_argument("--avx2", action="store_true", help="hold Relaxide, ONNX Runtime and OpenVINO to AVX2")
    parser.add_argument("--export", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    return parser, parser.parse_args()


def main():
    parser, arguments = parsed()
    if arguments.serve:
        contender, name, threads = arguments.serve
        return serve(lambda: runner(contender, name, int(threads), arguments.folder), int(threads))
    if arguments.export:
        network_cases.NETWORKS[arguments.export].file(arguments.folder)
        return None
    usual = [network.name for network in network_cases.USUAL]
    every = [network.name for network in [*network_cases.USUAL, *network_cases.FURTHER]]
    quantized = [network.name for network in quantized_cases.QUANTIZED]
    chosen = quantized if arguments.quantized else every if arguments.all else usual
    names = arguments.models.split(",") if arguments.models else chosen
    contenders = arguments.contenders.split(",") if arguments.contenders else ["relaxide", *(PEERS if arguments.all else ["onnxruntime", "tvm"])]
    for kind, given, known in [("network", names, network_cases.NETWORKS), ("contender", contenders, RUNNERS)]:
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"there is no {kind} {', '.join(unknown)}; there are {', '.join(known)}")
    if arguments.avx2:
        avx2.hold()
        if not {*contenders} <= {"relaxide", "deterministic", "onnxruntime", "openvino"}:
            parser.error("--avx2: only Relaxide, onnxruntime and openvino can be held to it")
    if "relaxide" not in contenders:
        parser.error("--contenders: relaxide is what the others are compared with")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = compare(names, [*map(int, arguments.threads.split(","))], contenders, arguments.rounds, folder)
    others = [contender for contender in contenders if contender != "relaxide"]
    print()
    summary(results, others)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")
    if arguments.svg:
        arguments.svg.write_text(picture(results, others))
    return None


def compare(names, threads, contenders, rounds, folder):
    """Measures and prints network by network."""
    print("medians in ms; time is Relaxide's over the fastest other's: below 1, Relaxide is faster\n")
    print(f"{'network':24} {'threads':>7}" + "".join(f" {c:>11}" for c in contenders) + f" {'time':>10} {'difference':>10}")
    results = []
    for name in names:
        # In a process of its own: what exports needs memory that those who are timed shall have.
        made = subprocess.run(
            [sys.executable, str(HERE / "models.py"), "--folder", str(folder), "--export", name], capture_output=True, text=True
        )
        if made.returncode != 0:
            lines = made.stderr.strip().splitlines()
            print(f"{name:24} not exported: {lines[-1] if lines else made.returncode}", flush=True)
            continue
        for count in threads:
            results.append(measure(name, count, contenders, rounds, folder))
            print(said(results[-1], contenders), flush=True)
    return results


if __name__ == "__main__":
    main()
