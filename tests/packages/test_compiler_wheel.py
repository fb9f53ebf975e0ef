"""The wheel `relaxide` as `scripts/release` packs it: of an extension that is there, which is not built again.

`scripts/empty-roots compiler` installs the real one; here a small library has the extension's place, so that nothing of LLVM is linked.
"""

import base64
import csv
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = [pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is missing") for tool in ("readelf", "cc", "cargo")]

#: It asks the interpreter for a function, and the C library for one.
EXTENSION = "int Py_IsInitialized(void); int puts(const char *); int PyInit__core(void) { return Py_IsInitialized() + puts(\"\"); }\n"


def packed(folder, out):
    return subprocess.run([ROOT / "scripts/wheel", out, "--compiler", folder], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("extension")
    (folder / "core.c").write_text(EXTENSION)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "lib_core.so", folder / "core.c"], check=True)
    (folder / "licenses").mkdir()
    (folder / "licenses" / "llvm").write_text("as they say")
    made = []
    for name in "ab":
        done = packed(folder, folder / name)
        assert done.returncode == 0, done.stderr
        made.append(pathlib.Path(done.stdout.strip()))
    assert made[0].name == made[1].name and made[0].read_bytes() == made[1].read_bytes()
    return made[0]


def test_it_has_the_package_and_the_extension(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {path.relative_to(ROOT / "python").as_posix() for path in (ROOT / "python/relaxide").rglob("*.py")}
    assert package | {"relaxide/_core.abi3.so", "relaxide/py.typed"} <= names
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "llvm"}


def test_its_files_name_no_path_of_this_machine(wheel):
    """Neither does the runtime of WebAssembly modules, which Rust has compiled."""
    sysroot = subprocess.run(["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    places = [str(place).encode() for place in (ROOT, os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"), sysroot)]
    with zipfile.ZipFile(wheel) as archive:
        texts = {name: archive.read(name) for name in archive.namelist()}
    assert not [(name, place) for name, text in texts.items() for place in places if place in text]


def test_its_record_is_that_of_its_files(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [record] = [name for name in archive.namelist() if name.endswith("/RECORD")]
        rows = list(csv.reader(io.StringIO(archive.read(record).decode())))
        assert sorted(row[0] for row in rows) == sorted(archive.namelist())
        for name, digest, size in rows:
            if name != record:
                data = archive.read(name)
                assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                assert int(size) == len(data)


def test_pip_installs_it_and_torch_finds_it(wheel, tmp_path):
    words = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", tmp_path, wheel]
    subprocess.run([sys.executable, *words], check=True)
    asked = """
import importlib.metadata as m
[d] = m.distributions(name="relaxide", path=[PLACE])
print([(e.group, e.name, e.value) for e in d.entry_points], d.requires, d.metadata["Summary"] != "")
"""
    shown = subprocess.run([sys.executable, "-c", asked.replace("PLACE", repr(str(tmp_path)))], capture_output=True, text=True, check=True).stdout
    assert shown == "[('torch_dynamo_backends', 'relaxide', 'relaxide.relax.frontend.torch.dynamo:backend')] ['numpy'] True\n"


def test_an_extension_that_needs_a_library_of_llvm_is_refused(tmp_path):
    (tmp_path / "llvm.c").write_text("int LLVMShutdown(void) { return 0; }\n")
    (tmp_path / "core.c").write_text("int LLVMShutdown(void); int PyInit__core(void) { return LLVMShutdown(); }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libLLVM.so.22", "-o", tmp_path / "libLLVM.so", tmp_path / "llvm.c"], check=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "lib_core.so", tmp_path / "core.c", tmp_path / "libLLVM.so"], check=True)
    done = packed(tmp_path, tmp_path / "out")
    assert done.returncode == 1 and "needs libLLVM.so.22" in done.stderr


def test_a_folder_without_an_extension_is_refused(tmp_path):
    done = packed(tmp_path, tmp_path / "out")
    assert done.returncode == 1 and "there is no" in done.stderr and "lib_core.so" in done.stderr
