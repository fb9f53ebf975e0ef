"""Times single operators of real networks beside ONNX Runtime, one by one in one process, with fixed and with named lengths.

Both engines run a call in turns for a moment, and the medians are compared; results are compared first. A class of operators is as fast as
its slowest case: the table shows the geometric mean and the worst of each class, ``--all`` every case.

usage: operators.py [--only REGEX] [--named fixed|named|both] [--threads 1] [--seconds 0.1] [--all] [--avx2]
"""

import argparse
import math
import os
import re
import statistics
import sys
import time
import warnings

import numpy as np

import avx2
import operator_cases

#: Ratios that no case should exceed; of calls that take less than so many seconds, whose cost is that of a call.
MOST, MOST_OF_SHORT, SHORT = 1.2, 1.5, 20e-6
#: Seconds until an engine's idle threads sleep.
REST = 0.05


def median_times(calls, seconds, threads):
    """The medians of the times of calls that take turns.

    With several threads, idle ones of an engine go on looking for work for some milliseconds, and would hold the cores that the other's
    need: a turn begins behind a rest, with calls that wake the own ones and are not counted, and has several calls.
    """
    times = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 5:
        for own, call in zip(times, calls):
            if threads > 1:
                time.sleep(REST)
                call()
                call()
            turn = time.perf_counter() + (seconds / 4 if threads > 1 else 0)
            while True:
                start = time.perf_counter()
                call()
                own.append(time.perf_counter() - start)
                if time.perf_counter() >= turn:
                    break
        if time.perf_counter() > end + 10 * seconds:
            break
    return [statistics.median(own) for own in times]


def prepared(made, named, threads):
    """Calls of both engines, how long Relaxide compiled, and whether the results agree."""
    import onnxruntime
    import relaxide as tvm

    network = operator_cases.model(made, named)
    if network is None:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    session = onnxruntime.InferenceSession(network.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {name: np.ascontiguousarray(value) for name, value in made.inputs.items()}
    expected = session.run(None, feed)
    binding = session.io_binding()
    for name, value in feed.items():
        binding.bind_cpu_input(name, value)
    for name in made.outputs:
        binding.bind_output(name, "cpu")

    start = time.perf_counter()
    module = tvm.relax.frontend.onnx.from_onnx(network)
    main = tvm.relax.VirtualMachine(tvm.compile(module, target={"kind": "llvm", **avx2.options()}), tvm.cpu())["main"]
    compiled = time.perf_counter() - start
    args = [tvm.runtime.tensor(value) for value in feed.values()]
    got = main(*args)
    got = [got] if len(made.outputs) == 1 else list(got)
    agree = all(close(a.numpy(), b) for a, b in zip(got, expected))
    return lambda: main(*args), lambda: session.run_with_iobinding(binding), compiled, agree


def close(a, b):
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f":
        return np.mean(a != b) < 0.01
    return np.allclose(a, b, rtol=1e-3, atol=1e-3 * max(float(np.abs(b[np.isfinite(b)]).max(initial=0)), 1e-6), equal_nan=True)


def measured(arguments):
    """Rows: class, name, ratio, both times in seconds, seconds of compilation."""
    variants = {"fixed": [False], "named": [True], "both": [False, True]}[arguments.named]
    chosen = [c for c in operator_cases.cases() if re.search(arguments.only, str(c))]
    for number, made in enumerate(chosen):
        for named in variants:
            label = f"{made.name}{' named' if named else ''}"
            print(f"\r{number + 1} of {len(chosen)}  {made.kind}/{label}"[:118].ljust(118), end="", file=sys.stderr, flush=True)
            try:
                ready = prepared(made, named, arguments.threads)
            except Exception as error:  # noqa: BLE001 - a case that does not run is a row of the table
                yield made.kind, label, f"{type(error).__name__}: {str(error).strip().splitlines()[0][:120]}", None, None, None
                continue
            if ready is None:
                continue
            ours, theirs, compiled, agree = ready
            own, other = median_times([ours, theirs], arguments.seconds, arguments.threads)
            yield made.kind, label, "differs" if not agree else None, own, other, compiled
    print("\r".ljust(119), end="\r", file=sys.stderr, flush=True)


def bad(own, other):
    return own / other > (MOST_OF_SHORT if other < SHORT else MOST)


def mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else float("nan")


def report(rows, show_all):
    problems = [row for row in rows if row[2]]
    good = [row for row in rows if row[3]]
    kinds = list(dict.fromkeys(row[0] for row in good))
    print(f"{'class':22} cases   mean  worst  which")
    for kind in kinds:
        own = [(row[3] / row[4], row) for row in good if row[0] == kind]
        ratio, worst = max(own, key=lambda pair: pair[0])
        print(f"{kind:22} {len(own):5} {mean([r for r, _ in own]):6.2f} {ratio:6.2f}  {worst[1]}")
        if show_all:
            for ratio, row in sorted(own, key=lambda pair: -pair[0]):
                print(f"    {ratio:7.2f}  {row[3] * 1e6:10.1f} us {row[4] * 1e6:10.1f} us  compiled in {row[5]:5.2f} s  {row[1]}")
    for kind, label, problem, *_ in problems:
        print(f"{kind}/{label}: {problem}")
    ratios = [row[3] / row[4] for row in good]
    above = sum(bad(row[3], row[4]) for row in good)
    slow = sum(row[5] > 2 for row in good)
    print(
        f"\n{len(good)} cases: geometric mean {mean(ratios):.2f} of ONNX Runtime's time, {sum(r < 1 for r in ratios)} faster, {above} above the bar "
        f"({MOST}; {MOST_OF_SHORT} for calls below {SHORT * 1e6:.0f} us), {slow} compiled in more than 2 s, {len(problems)} with problems"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="a regular expression that class/name must contain")
    parser.add_argument("--named", choices=["fixed", "named", "both"], default="both")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1, help="how long each case is timed")
    parser.add_argument("--all", action="store_true", help="print every case")
    parser.add_argument("--avx2", action="store_true", help="hold both to AVX2")
    arguments = parser.parse_args()
    if arguments.avx2:
        avx2.hold()
        avx2.prefer_copy()
    os.environ["RELAXIDE_NUM_THREADS"] = str(arguments.threads)
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[: arguments.threads]))
    warnings.filterwarnings("ignore")
    report(list(measured(arguments)), arguments.all)


if __name__ == "__main__":
    main()
