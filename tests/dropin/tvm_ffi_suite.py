"""The public test suite of the `tvm_ffi` package, run on the package as it is and on a copy with another library."""

import importlib.metadata
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).parents[2]
CACHE = ROOT / "build" / "tvm-ffi"

#: Test files that cannot say anything here: they need a CUDA device.
UNRELATED = ["test_cubin_launcher.py"]

#: Test cases that compile C++, each for many seconds; the rest take a quarter of a minute together.
COMPILING = [
    "test_big_int.py::test_integer_",
    "test_build.py::",
    "test_build_inline.py::",
    "test_dataclass_gen_abi_cpp.py::",
    "test_function.py::test_callback_rawstr_and_bytearrayptr_args",
    "test_load_inline.py::",
    "test_stl.py::",
    "test_stream.py::test_raw_stream",
]


class Unavailable(Exception):
    """The suite cannot be had here."""


def installed_version():
    try:
        return importlib.metadata.version("apache-tvm-ffi")
    except importlib.metadata.PackageNotFoundError:
        raise Unavailable("apache-tvm-ffi is not installed") from None


def sources():
    """The unpacked source distribution of the installed version, which has the tests. Downloaded once."""
    version = installed_version()
    folder = CACHE / f"apache_tvm_ffi-{version}"
    if not folder.is_dir():
        requirement = f"apache-tvm-ffi=={version}"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--no-binary", "apache-tvm-ffi", requirement, "--dest", CACHE]
        result = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if result.returncode != 0:
            raise Unavailable(f"pip cannot download the sources of {requirement}: {result.stderr[-500:]}")
        with tarfile.open(CACHE / f"{folder.name}.tar.gz") as archive:
            # Pythons before 3.11.4 have no filters: a release that pip has checked is unpacked as it is.
            archive.extraction_filter = getattr(tarfile, "data_filter", lambda member, path: member)
            archive.extractall(CACHE)
    return folder


def build_library():
    """Relaxide's C library, built as it is released."""
    command = ["cargo", "build", "--release", "--package", "relaxide-capi", "--message-format", "json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stderr[-3000:]
    for line in result.stdout.splitlines():
        files = json.loads(line).get("filenames", [])
        found = [file for file in files if file.endswith("librelaxide_runtime.so")]
        if found:
            return pathlib.Path(found[0])
    raise AssertionError("cargo made no librelaxide_runtime.so")


def copy_package(folder, library=None):
    """A copy of the installed package in `folder`, with `library` in the place of its own if one is given."""
    package = pathlib.Path(importlib.util.find_spec("tvm_ffi").origin).parent
    shutil.copytree(package, folder / "tvm_ffi", ignore=shutil.ignore_patterns("__pycache__"))
    for metadata in package.parent.glob("apache_tvm_ffi-*.dist-info"):
        shutil.copytree(metadata, folder / metadata.name)
    if library is not None:
        shutil.copyfile(library, folder / "tvm_ffi" / "lib" / "libtvm_ffi.so")
    return folder


def start(site, report, cache, compiling=False):
    """Starts the suite in a process that imports from `site`; `report` is written when it ends."""
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider"]
    command += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
    command += [f"--ignore={file}" for file in UNRELATED]
    if not compiling:
        command += [f"--deselect={case}" if not case.endswith("::") else f"--ignore={case[:-2]}" for case in COMPILING]
    path = os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PYTHONPATH": str(site), "TVM_FFI_CACHE_DIR": str(cache), "PATH": path}
    with open(f"{report}.log", "w") as log:
        return subprocess.Popen(
            command, cwd=sources() / "tests" / "python", env=environment, stdout=log, stderr=subprocess.STDOUT
        )


def outcomes(report):
    """What became of each case: `passed`, `failed` or `skipped`."""
    assert pathlib.Path(report).exists(), pathlib.Path(f"{report}.log").read_text()[-3000:]
    results = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        parts = {part.tag for part in case}
        outcome = "failed" if parts & {"failure", "error"} else "skipped" if "skipped" in parts else "passed"
        results[f"{case.get('classname')}::{case.get('name')}"] = outcome
    return results


if __name__ == "__main__":
    # `scripts/setup` fetches the suite while the processors compile; a test would wait for it.
    sources()
