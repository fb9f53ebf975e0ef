"""PTX of the cases of ONNX's backend suite, assembled by NVIDIA's assembler: no device is needed.

``python tests/onnx/backend_suite/on_cuda.py``: every eightieth case, all of them under ``RELAXIDE_DEEP=1``, or what ``--part`` and
``-k`` say (``parts.py``), in turns for three generations of devices. It ends with 1 where one fails that ``KNOWN`` does not have, or fewer than 95 in 100 of all pass.
"""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zlib

from parts import arguments, chosen_cases, outcomes_of

#: How the script ends where there is no assembler.
NO_ASSEMBLER = 77

ARCHITECTURES = ["sm_80", "sm_90", "sm_100"]

#: Cases that are refused, as patterns of what is said, and why: none.
KNOWN = {}


class Assembled(Exception):
    """Everything that a device runs was assembled."""


def assembler():
    """NVIDIA's assembler, from the package `nvidia-cuda-nvcc-cu12` or a toolkit."""
    try:
        found = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        found = None
    for folder in found.submodule_search_locations if found else []:
        program = pathlib.Path(folder) / "bin" / "ptxas"
        if program.exists():
            return str(program)
    return shutil.which("ptxas")


def device_modules(module):
    for part in module.imports:
        if part.kind == "cuda":
            yield part
        yield from device_modules(part)


def assemble(model):
    import relaxide
    from relaxide.relax.frontend.onnx import from_onnx

    architecture = ARCHITECTURES[zlib.crc32(model.SerializeToString()) % len(ARCHITECTURES)]
    executable = relaxide.compile(from_onnx(model), target={"kind": "cuda", "arch": architecture})

    def run(_):
        for part in device_modules(executable.mod):
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(part.inspect_source("ptx"))
                file.flush()
                words = [assembler(), f"-arch={architecture}", file.name, "-o", "/dev/null"]
                done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stdout + done.stderr)
        raise Assembled

    return run


def main():
    given = arguments(__doc__, usual=80)
    if assembler() is None:
        return NO_ASSEMBLER
    cases = chosen_cases(given)
    outcomes = outcomes_of(cases, assemble, given)
    failed = [outcome for outcome in outcomes if not outcome.reason.startswith("Assembled")]
    wrong = [outcome for outcome in failed if not any(re.search(pattern, outcome.reason) for pattern in KNOWN)]
    print(f"{len(cases) - len(failed)} of {len(cases)} assemble")
    for outcome in wrong:
        print(f"{outcome.name}: {outcome.stage}: {outcome.reason[-400:]}")
    everything = given.part == (0, 1) and not given.k
    return int(bool(wrong) or not cases or (everything and len(cases) - len(failed) < 0.95 * len(cases)))


if __name__ == "__main__":
    sys.exit(main())
