"""Executables that cross between Relaxide and TVM: programs and networks compiled by TVM, and programs built by hand with
either package's builder. Each runtime runs in processes of its own; results are compared bit for bit."""

import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "models"))
sys.path.insert(0, str(HERE))

pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

import build_programs  # noqa: E402
import describe  # noqa: E402
import zoo  # noqa: E402

RUNTIMES = ("relaxide", "tvm")
#: The shape at which TVM compiles each network; its importer needs one.
NETWORKS = {"rec": (1, 3, 48, 160), "magika": (1, 2048)}
if os.environ.get("RELAXIDE_DEEP"):  # TVM takes far longer for these than for the others together
    NETWORKS |= {"det": (1, 3, 64, 96), "cls": (1, 3, 48, 192)}
SCRIPTS = "constants symbolic symbolic_compiled branches tuples foreign types closures kernels".split()


def script(name, *arguments):
    command = [sys.executable, HERE / name, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-3000:]


def arguments(path, calls):
    with open(f"{path}.args", "wb") as file:
        pickle.dump(calls, file)


def assert_same_results(directory, name):
    ours, theirs = (np.load(directory / f"{name}.{runtime}.npz") for runtime in RUNTIMES)
    assert sorted(ours.files) == sorted(theirs.files) and ours.files
    for place in ours.files:
        assert ours[place].dtype == theirs[place].dtype and ours[place].shape == theirs[place].shape
        assert ours[place].tobytes() == theirs[place].tobytes(), f"{name}: result {place} differs"


def assert_same_forms(*paths):
    first, *others = map(describe.forms, paths)
    for other in others:
        for form, expected in first.items():
            assert other[form] == expected, f"{form} differs"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The programs of ``scripts.py`` and the networks, compiled by TVM and run by both: one process each, as TVM takes seconds to import."""
    directory = tmp_path_factory.mktemp("compiled")
    networks = []
    for name, shape in NETWORKS.items():
        model = zoo.MODELS[name]
        networks += [name, model.path, f"{model.input}={','.join(map(str, shape))}"]
        arguments(directory / name, [[model.make(shape, seed)] for seed in range(3)])
    script("compile_with_tvm.py", directory, *networks)
    for name in SCRIPTS:
        assert (directory / f"{name}.args").exists(), f"{name} is not in scripts.py"
    for runtime in RUNTIMES:
        script("run_programs.py", runtime, directory, *SCRIPTS, *NETWORKS)
    return directory


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_compiled_by_tvm_runs_bit_for_bit(compiled, name):
    assert_same_results(compiled, name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_program_compiled_by_tvm_reads_and_saves_the_same(compiled, name):
    assert_same_forms(compiled / f"{name}.compiled", compiled / f"{name}.relaxide", compiled / f"{name}.tvm")


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_compiled_by_tvm_runs_bit_for_bit(compiled, name):
    assert_same_results(compiled, name)
    assert_same_forms(compiled / f"{name}.compiled", compiled / f"{name}.relaxide")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The programs of ``build_programs.py``, by builder."""
    root, directories, programs = tmp_path_factory.mktemp("built"), {}, []
    for runtime in RUNTIMES:
        directories[runtime] = directory = root / runtime
        directory.mkdir()
        script("build_programs.py", runtime, directory)
        for name in build_programs.PROGRAMS:
            arguments(directory / name, build_programs.ARGUMENTS[name])
            arguments(directory / f"{name}_library", build_programs.ARGUMENTS[name])
        libraries = [f"{name}_library" for name in build_programs.PROGRAMS] if runtime == "relaxide" else []
        programs += [f"{runtime}/{name}" for name in [*build_programs.PROGRAMS, *libraries]]
    for runner in RUNTIMES:
        script("run_programs.py", runner, root, *programs)
    return directories


@pytest.mark.parametrize("name", build_programs.PROGRAMS)
def test_both_builders_make_the_same_executable(built, name):
    assert_same_forms(*(built[runtime] / f"{name}.built" for runtime in RUNTIMES))


@pytest.mark.parametrize("name", build_programs.PROGRAMS)
@pytest.mark.parametrize("builder", RUNTIMES)
def test_an_executable_built_by_one_runs_in_the_other(built, builder, name):
    assert_same_results(built[builder], name)
    assert_same_forms(*(built[builder] / f"{name}.{form}" for form in ("built", *RUNTIMES)))


@pytest.mark.parametrize("name", build_programs.PROGRAMS)
def test_a_library_of_bytecode_alone_runs_in_tvm(built, name):
    assert_same_results(built["relaxide"], f"{name}_library")


@pytest.mark.parametrize("name", ["loop", "functions"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_python_form_builds_the_same_executable(built, runtime, name):
    assert_same_forms(built[runtime] / f"{name}.built", built[runtime] / f"{name}.rebuilt")


def test_the_built_programs_compute_what_they_say(built):
    results = {name: np.load(built["relaxide"] / f"{name}.relaxide.npz") for name in build_programs.PROGRAMS}
    assert results["loop"]["0."] == 45 and results["loop"]["1."] == 0
    assert results["functions"]["0.0."] == 6 and results["functions"]["0.1."] == 6
    assert str(results["constants"]["0.1."]) == f"text {2**55 - 1}"
