"""Cases of ONNX's backend suite that pass on the processor, on a device of OpenCL.

``python tests/onnx/backend_suite/on_opencl.py``: every fortieth case, all of them under ``RELAXIDE_DEEP=1``, or what ``--part`` and
``-k`` say (``parts.py``). It ends with 1 where one fails that ``KNOWN`` does not have, or fewer than 97 in 100 of all pass.
"""

import re
import subprocess
import sys

from backends import backend
from parts import arguments, chosen_cases, outcomes_of

#: How the script ends where there is no driver.
NO_DRIVER = 77

#: One case in so many is executed, unless all are asked for.
USUAL = 40

#: Cases that fail there, as patterns of their names, and why.
KNOWN = {
    "^test_loop16_seq_none$": "whether an optional value is there is a number of the host",
}


def is_known(name):
    return any(re.search(pattern, name) for pattern in KNOWN)


def has_driver():
    """Asked of another process: this one's children execute the cases."""
    program = "import sys, relaxide; sys.exit(not relaxide.opencl(0).exist)"
    return subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def main():
    given = arguments(__doc__, usual=USUAL)
    if not has_driver():
        return NO_DRIVER
    cases = chosen_cases(given)
    outcomes = outcomes_of(cases, backend("opencl"), given)
    passed = sum(outcome.passed for outcome in outcomes)
    wrong = [outcome for outcome in outcomes if not outcome.passed and not is_known(outcome.name)]
    print(f"{passed} of {len(cases)} pass on a device of OpenCL")
    for outcome in wrong:
        print(f"{outcome.name}: {outcome.stage}: {outcome.reason}")
    everything = given.part == (0, 1) and not given.k
    return int(bool(wrong) or not cases or (everything and passed < 0.97 * len(cases)))


if __name__ == "__main__":
    sys.exit(main())
