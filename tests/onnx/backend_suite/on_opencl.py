"""Cases of ONNX's backend suite that pass on the processor, on a device of OpenCL.

``python tests/onnx/backend_suite/on_opencl.py``: every fortieth case, all of them under ``RELAXIDE_DEEP=1``. It ends with 1 where one
fails that ``KNOWN`` does not have, or fewer than 97 in 100 of all pass.
"""

import os
import re
import subprocess
import sys
import zlib

from backends import backend
from cases import load_cases
from exceptions import read_exceptions
from pool import run_cases

#: How the script ends where there is no driver.
NO_DRIVER = 77

#: Cases that fail there, as patterns of their names, and why.
KNOWN = {
    "float8|float4|float6|FLOAT8|FLOAT4|FLOAT6|e8m0|E8M0": "there is no code for elements of eight bits and fewer that are floats",
    "regex_full_match": "texts are looked at by the host, where its result stays",
}


def is_known(name):
    return any(re.search(pattern, name) for pattern in KNOWN)


def has_driver():
    """Asked of another process: this one's children carry out the cases."""
    program = "import sys, relaxide; sys.exit(not relaxide.opencl(0).exist)"
    return subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def main():
    if not has_driver():
        return NO_DRIVER
    exceptions = read_exceptions()
    everything = bool(os.environ.get("RELAXIDE_DEEP"))
    cases = [case for case in load_cases() if case.name not in exceptions]
    cases = [case for case in cases if everything or zlib.crc32(case.name.encode()) % 40 == 0]
    outcomes = run_cases(cases, backend("opencl"))
    passed = sum(outcome.passed for outcome in outcomes)
    wrong = [outcome for outcome in outcomes if not outcome.passed and not is_known(outcome.name)]
    print(f"{passed} of {len(cases)} pass on a device of OpenCL")
    for outcome in wrong:
        print(f"{outcome.name}: {outcome.stage}: {outcome.reason}")
    return int(bool(wrong) or len(cases) < 30 or (everything and passed < 0.97 * len(cases)))


if __name__ == "__main__":
    sys.exit(main())
