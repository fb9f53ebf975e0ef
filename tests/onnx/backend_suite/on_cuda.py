"""PTX of the cases of ONNX's backend suite, assembled by NVIDIA's assembler: no device is needed.

``python tests/onnx/backend_suite/on_cuda.py``: every eightieth case, all of them under ``RELAXIDE_DEEP=1``, or what ``--part`` and
``-k`` say (``parts.py``), in turns for three generations of devices. It ends with 1 where one fails that ``KNOWN`` does not have, or fewer than 95 in 100 of all pass.

``--network NAME`` assembles a network of ``tests/models/networks.py`` instead, or each of them (``all``), for each generation, and says
how many functions there are and which of them keep registers in memory.
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

#: One case in so many is assembled, unless all are asked for.
USUAL = 80

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


def assembled(source, architecture):
    """What the assembler says of a source; an error where it refuses it."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(source)
        file.flush()
        words = [assembler(), "-v", f"-arch={architecture}", file.name, "-o", "/dev/null"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout + done.stderr


def assemble(model):
    import relaxide
    from relaxide.relax.frontend.onnx import from_onnx

    architecture = ARCHITECTURES[zlib.crc32(model.SerializeToString()) % len(ARCHITECTURES)]
    executable = relaxide.compile(from_onnx(model), target={"kind": "cuda", "arch": architecture})

    def run(_):
        for part in device_modules(executable.mod):
            assembled(part.inspect_source("ptx"), architecture)
        raise Assembled

    return run


def assemble_networks(names):
    """How many networks are refused."""
    import relaxide
    from relaxide.relax.frontend.onnx import from_onnx

    sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "models"))
    from networks import NETWORKS

    refused = 0
    for name in NETWORKS if names == ["all"] else names:
        module = from_onnx(NETWORKS[name]()[0])
        for architecture in ARCHITECTURES:
            try:
                executable = relaxide.compile(module, target={"kind": "cuda", "arch": architecture})
                said = "".join(
                    assembled(part.inspect_source("ptx"), architecture) for part in device_modules(executable.mod)
                )
            except Exception as error:  # noqa: BLE001 whatever it is, it is said, and the next network follows
                refused += 1
                print(f"{name}, {architecture}: {str(error)[-400:]}", flush=True)
                continue
            functions = re.findall(r"Function properties for (\w+)\s+.*?(\d+) bytes spill stores", said)
            spilling = [function for function, spilled in functions if spilled != "0"]
            print(f"{name}, {architecture}: {len(functions)} functions, spills in {spilling or 'none'}", flush=True)
    return refused


def main():
    networks = {"metavar": "NAME", "action": "append", "default": [], "help": "networks instead of cases, or `all`"}
    given = arguments(__doc__, usual=USUAL, add=lambda parser: parser.add_argument("--network", **networks))
    if assembler() is None:
        return NO_ASSEMBLER
    if given.network:
        return int(bool(assemble_networks(given.network)))
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
