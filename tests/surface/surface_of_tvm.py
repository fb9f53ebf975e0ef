"""What TVM's Python package has and Relaxide's does not.

``python tests/surface/surface_of_tvm.py --bless`` writes ``missing.txt`` anew: a line for each module, name and member that is missing, with
the reason that ``REASONS`` gives for it.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
MISSING = HERE / "missing.txt"
COUNT = re.compile(r"(\d+) of (\d+) public names")
GUIDE = HERE.parents[1] / "docs" / "python.md"

#: Why names are missing: the first row whose pattern matches.
REASONS = (
    (r"(runtime\.disco|exec\.disco|relax\.(op\.|script\.builder\.|script\.parser\.)?dist|.*\bccl|.*(IPC|ipc_))", "several machines come later"),
    (r"s_tir\.meta_schedule\.post_optimization\b", "tuning of the best schedules beyond the search is not here"),
    (r"(s_tir\.meta_schedule|.*MetaSchedule)", "rules for tensor cores and anchors of traces are not here"),
    (r"relax\.frontend\.(tflite|stablehlo|tensorflow)\b", "an importer that is not here"),
    (r"(s_tir\.)?dlight\b", "rules for tensor cores, and benchmarks of kernels, are not here"),
    (r"(contrib|runtime|rpc)\..*(hexagon|vulkan|metal|rocm|cuda|nvcc|cudnn|cublas|thrust)", "a vendor's hardware or library"),
    (r"tirx\.(exec_context|exec_scope|layout|tile_primitive|.*Layout|DispatchContext|ExecScope|ScopeId|Tile|TensorMap)", "programs of tiles for one vendor's GPUs"),
    (r"ir\.(expr\.)?Var\.", "buffers are no variables here: these are members of buffers"),
    (r"(s_tir|tirx)\.transform\b", "kernels are lowered by the back ends, in one piece"),
    (r"relax\.transform\.legalize_ops\b", "legalization is the compiler's, not Python's"),
    (r"rpc\.(proxy|tracker|tornado)", "trackers and proxies are the compiler's, not Python's"),
    (r"(sym|arith)\b", "what the solver Z3 and sets of polyhedra are about"),
    (r"topi\b", "operators of the inventory that no operator of Relax stands behind"),
    (r"script\b", "the parser of the text is the compiler's, not Python's"),
    (r".*", "not here yet"),
)


def names_of(package, wanted=None):
    command = [sys.executable, str(HERE / "public_names.py"), package, *([] if wanted is None else ["held"])]
    given = None if wanted is None else json.dumps(wanted)
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    # Packages may print while they are imported.
    return json.loads(done.stdout[done.stdout.index("{") :])


def compare():
    """``(missing names, number of all)``; a module that is missing stands for all in it."""
    theirs = names_of("tvm")
    ours = names_of("relaxide", theirs)
    missing, count, absent = [], 0, 0
    for module, names in theirs.items():
        count += sum(1 + len(what.get("members", ())) for what in names.values())
        if module not in ours:
            size = sum(1 + len(what.get("members", ())) for what in names.values())
            absent += size
            missing.append((module, f"module of {size} names"))
            continue
        for name, what in names.items():
            whole = f"{module}.{name}".lstrip(".")
            if name not in ours[module]:
                absent += 1 + len(what.get("members", ()))
                missing.append((whole, f"class of {len(what['members'])} members" if "members" in what else "function"))
                continue
            for member in what.get("members", ()):
                if member not in ours[module][name].get("members", ()):
                    absent += 1
                    missing.append((f"{whole}.{member}", "member"))
    return sorted(missing), count - absent, count


def reason(name):
    return next(text for pattern, text in REASONS if re.match(pattern, name))


def lines(missing):
    return [f"{name} ({kind}): {reason(name)}" for name, kind in missing]


if __name__ == "__main__":
    missing, present, count = compare()
    print(f"{present} of {count} public names are here ({present / count:.0%})")
    if "--bless" in sys.argv:
        head = "# Public names of TVM's Python package that are not here, and why. `surface_of_tvm.py --bless` writes the list anew."
        MISSING.write_text("\n".join([head, *lines(missing)]) + "\n")
        GUIDE.write_text(COUNT.sub(f"{present} of {count} public names", GUIDE.read_text()))
