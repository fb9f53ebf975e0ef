"""The crates as they would be published: each is packaged, holds what its sources include, and names versions of all that it uses."""

import os
import pathlib
import re
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
#: What only tests and chores use.
OWN = ("relaxide-testkit", "xtask")


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("crates")
    command = ["cargo", "package", "--quiet", "--workspace", "--no-verify", "--allow-dirty", "--offline", "--target-dir", folder]
    done = subprocess.run([*command, *(word for name in OWN for word in ("--exclude", name))], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {path.name.rpartition("-")[0]: path for path in (folder / "package").glob("*.crate")}


def test_all_crates_are_packaged(packed):
    names = {re.search(r'^name = "(.+)"', path.read_text(), re.M)[1] for path in ROOT.glob("crates/*/Cargo.toml")}
    assert set(packed) == names - set(OWN)


def test_what_sources_include_comes_along(packed):
    missing = []
    for path in packed.values():
        with tarfile.open(path) as archive:
            files = {pathlib.PurePosixPath(name).relative_to(path.stem).as_posix(): name for name in archive.getnames()}
            for file, name in files.items():
                if not (file.startswith("src/") or file == "build.rs") or not file.endswith(".rs"):
                    continue
                text = archive.extractfile(name).read().decode()
                for included in re.findall(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"', text.split("#[cfg(test)]")[0]):
                    place = os.path.normpath(pathlib.PurePosixPath(file).parent / included)
                    if place not in files:
                        missing.append(f"{path.stem}/{file}: {included}")
    assert not missing


@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="builds every crate a second time (RELAXIDE_DEEP)")
def test_crates_would_be_taken(tmp_path):
    command = ["cargo", "publish", "--dry-run", "--workspace", "--allow-dirty", "--target-dir", tmp_path]
    done = subprocess.run([*command, *(word for name in OWN for word in ("--exclude", name))], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
