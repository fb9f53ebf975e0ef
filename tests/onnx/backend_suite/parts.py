"""Which cases a script of this folder executes, and a file of results that a later run goes on from.

``--part 3/16`` takes every sixteenth case, drawn by the hash of its name, so that each part has all kinds of operators;
``-k`` takes those whose names match a pattern. With ``--results FILE`` each outcome is a line of that file as soon as it is known,
and what the file has is not executed again. ``--cases FILE`` has the cases themselves, pickled by whoever has them loaded: to make all of
them takes longer than what a part of them is executed for.
"""

import argparse
import json
import os
import pathlib
import pickle
import re
import zlib
from dataclasses import asdict

from cases import load_cases
from exceptions import read_exceptions
from pool import Outcome, run_cases


def arguments(text, usual, add=lambda parser: None):
    """The command line's, with what `add` puts to it; without `--part`, every case under RELAXIDE_DEEP and else one in `usual`."""
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--part", metavar="I/N", type=_part, help="the I-th of N parts, counted from 0")
    parser.add_argument("-k", metavar="PATTERN", default="", help="only cases whose names match")
    parser.add_argument("--results", metavar="FILE", type=pathlib.Path, help="where outcomes are kept, a line each")
    parser.add_argument("--cases", metavar="FILE", type=pathlib.Path, help="a file of cases to choose from, in place of the suite")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a case may take")
    add(parser)
    given = parser.parse_args()
    given.part = given.part or ((0, 1) if os.environ.get("RELAXIDE_DEEP") or given.k else (0, usual))
    return given


def _part(text):
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or int(found[1]) >= int(found[2]):
        raise argparse.ArgumentTypeError(f"`{text}` is no part; the third of sixteen is `2/16`")
    return int(found[1]), int(found[2])


def chosen_cases(given):
    """Those that pass on the processor and that the arguments ask for."""
    exceptions = read_exceptions()
    cases = pickle.loads(given.cases.read_bytes()) if given.cases else load_cases()
    return [case for case in cases if case.name not in exceptions and in_part(case, given.part) and re.search(given.k, case.name)]


def in_part(case, part):
    """Whether a case is in the I-th of N parts."""
    at, count = part
    return zlib.crc32(case.name.encode()) % count == at


def outcomes_of(cases, backend, given):
    """The outcomes of all cases, from the file of results where it has them."""
    known = _read(given.results)
    todo = [case for case in cases if case.name not in known]
    fresh = run_cases(todo, backend, given.processes, given.limit, tell=lambda outcome: _tell(outcome, given.results))
    known |= {outcome.name: outcome for outcome in fresh}
    return [known[case.name] for case in cases]


def _read(path):
    if path is None or not path.exists():
        return {}
    outcomes = (Outcome(**json.loads(line)) for line in path.read_text().splitlines())
    return {outcome.name: outcome for outcome in outcomes}


def _tell(outcome, path):
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")
