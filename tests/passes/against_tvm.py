"""What tests of passes beside TVM's share: our command, text between the two, and one form for both results."""

import os
import pathlib
import subprocess

import pytest

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from tvm import relax  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
T = relax.transform
#: Passes of TVM that bring both results to one form, where both say the same in another order or by other names.
TIDY = ["CanonicalizeBindings", "EliminateCommonSubexpr", "DeadCodeElimination", "TopologicalSort"]


def command():
    """Our command line."""
    given = os.environ.get("RELAXIDE_COMMAND")
    candidates = [pathlib.Path(given)] if given else [ROOT / "build/relaxide", ROOT / "target/debug/relaxide"]
    found = [path for path in candidates if path.exists()]
    if not found:
        pytest.skip("there is no relaxide command; `make build` makes it")
    return found[0]


def parse(text):
    """A module that TVM reads of ours."""
    lines = [line for line in text.splitlines() if not line.startswith(("from tvm.script", "# from tvm.script"))]
    return tvm.script.from_source("\n".join(lines) + "\n")


def ours(passes, path, *options):
    """``(text, None)`` of what our passes make of a file, or ``(None, why)`` where they refuse it."""
    words = [command(), "opt", path, "--no-verify", "--passes", passes, *options]
    result = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return (result.stdout, None) if result.returncode == 0 else (None, result.stderr)


#: Maps of indices that TVM's passes make are over int32, those that it reads over int64.
REREAD = "reread"


def tidy(module, passes):
    """A module in the form that passes of TVM bring it to."""
    for name in passes:
        module = parse(module.script(show_meta=True)) if name == REREAD else getattr(T, name)()(module)
    return module


def unequal(printed, theirs, modulo, last=lambda module: module):
    """``None`` where our print and TVM's module are structurally equal, else what is different."""
    try:
        read = parse(printed)
    except Exception as error:
        return f"TVM does not read our result: {str(error)[-500:]}\n{printed}"
    left, right = last(tidy(read, modulo)), last(tidy(theirs, modulo))
    try:
        tvm.ir.assert_structural_equal(left, right, map_free_vars=True)
    except ValueError as error:
        return f"{str(error)[-400:]}\nours:\n{left.script(show_meta=False)}\nTVM's:\n{right.script(show_meta=False)}"
    return None
