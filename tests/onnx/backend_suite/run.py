"""Runs ONNX's backend test suite and counts.

python tests/onnx/backend_suite/run.py --backend relaxide|onnxruntime|openvino|tract|tvm|reference [-k SUBSTRING] [--list-failures]

`--bless` brings `exceptions.txt` up to date.
"""

import argparse
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from backends import BACKENDS, backend
from cases import load_cases
from exceptions import read_exceptions, write_exceptions
from pool import run_cases


def kind_of(outcome):
    """The reason of a failure without names and numbers, so that like ones are counted together."""
    if outcome.stage == "compare":
        text = next((t for t in ("shape", "dtype", "length") if t in outcome.reason.lower()[:200]), "values")
        return f"compare: {text}"
    lines = [line.strip() for line in outcome.reason.splitlines() if line.strip()]
    text = lines[1] if len(lines) > 1 and "problem" in lines[0] else (lines or [""])[0]
    text = re.sub(r"`[^`]*`|\"[^\"]*\"|'[^']*'", "…", text)
    return f"{outcome.stage}: {re.sub(r'[0-9]+', 'N', text)[:150]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=sorted(BACKENDS), default="relaxide")
    parser.add_argument("-k", default="", metavar="SUBSTRING", help="only cases whose name contains it (several: a,b)")
    parser.add_argument("--list-failures", action="store_true", help="name every case that fails, with its reason")
    parser.add_argument("--full", action="store_true", help="whole reasons")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a case may take")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--bless", action="store_true", help="write exceptions.txt anew; reasons that are there stay")
    args = parser.parse_args()

    wanted = args.k.split(",")
    cases = [case for case in load_cases() if any(part in case.name for part in wanted)]
    outcomes = run_cases(cases, backend(args.backend), args.processes, args.limit)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    if args.list_failures or args.full:
        for outcome in failed:
            reason = outcome.reason if args.full else " ".join(outcome.reason.split())[:230]
            print(f"{outcome.name}: {outcome.stage}: {reason}")
    if args.bless:
        known = read_exceptions()
        others = {name: reason for name, reason in known.items() if name not in {case.name for case in cases}}
        write_exceptions(others | {outcome.name: known.get(outcome.name, kind_of(outcome)) for outcome in failed})
    for reason, count in collections.Counter(map(kind_of, failed)).most_common(40):
        print(f"{count:5}  {reason}")
    kinds = collections.Counter(case.kind for case in cases)
    good = collections.Counter(case.kind for case, outcome in zip(cases, outcomes) if outcome.passed)
    for kind, count in kinds.items():
        print(f"{kind}: {good[kind]} of {count}")
    passed = len(outcomes) - len(failed)
    seconds = sum(outcome.seconds for outcome in outcomes)
    print(f"{args.backend}: {passed} of {len(outcomes)} pass ({100 * passed / max(1, len(outcomes)):.1f} %), {seconds:.0f} s in all")


if __name__ == "__main__":
    main()
