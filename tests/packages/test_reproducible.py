"""The runtime's library is equal to the byte when it is built again from nothing; `test_runtime_wheel` has the same of what is packed."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="builds the runtime twice (RELAXIDE_DEEP)")


def built(target):
    """The bytes of a library that is built in an empty folder."""
    shutil.rmtree(target, ignore_errors=True)
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    done = subprocess.run([ROOT / "scripts/runtime"], capture_output=True, text=True, env=environment, timeout=3600)
    assert done.returncode == 0, done.stderr
    return (pathlib.Path(done.stdout.strip()) / "librelaxide_runtime.so").read_bytes()


def test_two_builds_are_equal_to_the_byte(tmp_path):
    first, second = built(tmp_path / "target"), built(tmp_path / "target")
    assert first == second
    # Nothing of the machine that builds is in it.
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    for place in (str(ROOT), str(tmp_path), os.environ.get("CARGO_HOME", str(pathlib.Path.home() / ".cargo")), sysroot):
        assert place.encode() not in first, place


def test_the_library_asks_for_nothing_that_old_systems_lack():
    """It is linked against what glibc 2.17 had, whatever the machine has that builds it."""
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    folder = subprocess.run([ROOT / "scripts/runtime"], capture_output=True, text=True, env=environment, check=True).stdout.strip()
    shown = subprocess.run(["readelf", "-V", f"{folder}/librelaxide_runtime.so"], capture_output=True, text=True, check=True).stdout
    versions = {tuple(map(int, word.split("GLIBC_")[1].split("."))) for word in shown.replace("(", " ").replace(")", " ").split() if "GLIBC_" in word}
    assert versions and max(versions) <= (2, 17), versions
