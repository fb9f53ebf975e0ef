"""Relaxide's C library in the place of `libtvm_ffi.so`: the `tvm_ffi` package works on it, and so does its own suite."""

import os
import pathlib
import subprocess
import sys

import pytest
import tvm_ffi_suite as suite

DIFFERENCES = pathlib.Path(__file__).with_name("differences.txt")
#: Cases that compare times with each other: on a busy machine either package fails them.
TIMED = {"test_dataclass_hash::test_shared_dag_hash_scaling_not_exponential"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """Where to import the package from: as it is, and with Relaxide's library."""
    try:
        suite.sources()
    except suite.Unavailable as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("packages")
    library = suite.build_library()
    return suite.copy_package(folder / "theirs"), suite.copy_package(folder / "ours", library)


def differences():
    """The cases that are known to end differently, each with its reason."""
    lines = DIFFERENCES.read_text().splitlines()
    entries = [line.partition("  # ") for line in lines if line and not line.startswith("#")]
    assert all(reason for _, _, reason in entries), "each case needs a reason"
    return {case for case, _, _ in entries}


def test_the_package_finds_our_library(packages):
    program = "import tvm_ffi, ctypes, os; lib = os.path.join(os.path.dirname(tvm_ffi.__file__), 'lib', 'libtvm_ffi.so');"
    program += "ctypes.CDLL(lib).relaxide_version; print(list(tvm_ffi.convert([1, 'a', 2.5])))"
    environment = {**os.environ, "PYTHONPATH": str(packages[1])}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[1, 'a', 2.5]\n"


def compare(packages, folder, compiling):
    """Runs the suite on both and checks what passes on the original."""
    theirs, ours = outcomes_of(packages, folder, compiling)
    passed = {case for case, outcome in theirs.items() if outcome == "passed"} - TIMED
    lost = {case for case in passed if ours.get(case) != "passed"}
    print(f"{len(passed) - len(lost)} of the {len(passed)} cases that pass on the original pass")
    assert len(passed) > 2000, "the suite did not run"
    assert lost <= differences(), sorted(lost - differences())
    mended = differences() & passed - lost
    assert not mended, f"these pass: take them out of {DIFFERENCES.name}"


def outcomes_of(sites, folder, compiling):
    """What became of the cases where the package is imported from each of the places."""
    reports = [folder / f"{number}.xml" for number, _ in enumerate(sites)]
    runs = [suite.start(site, report, report.with_suffix(".cache"), compiling) for site, report in zip(sites, reports)]
    try:
        for run in runs:
            run.wait(timeout=1200)
    finally:
        for run in runs:
            run.kill()
    return [suite.outcomes(report) for report in reports]


def test_no_case_fails_on_ours(packages, tmp_path):
    """The original passes what it does not skip, so that it need not run each time."""
    (ours,) = outcomes_of(packages[1:], tmp_path, compiling=False)
    assert sum(outcome == "passed" for outcome in ours.values()) > 2450, "the suite did not run, or skipped more than the original"
    failed = {case for case, outcome in ours.items() if outcome == "failed"} - TIMED
    assert failed <= differences(), sorted(failed - differences())
    # A known difference may end in an expected failure, which the report counts as skipped.
    mended = {case for case in differences() if ours.get(case) == "passed"}
    assert not mended, f"these pass: take them out of {DIFFERENCES.name}: {sorted(mended)}"


@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="runs the suite on both: part of `make test-deep`")
def test_what_passes_on_the_original_passes_on_ours(packages, tmp_path):
    compare(packages, tmp_path, compiling=False)


@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="compiling C++ takes minutes: part of `make test-deep`")
def test_what_is_compiled_against_the_headers_runs_on_ours(packages, tmp_path):
    compare(packages, tmp_path, compiling=True)
