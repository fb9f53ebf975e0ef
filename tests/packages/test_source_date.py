"""The time that files in packages have: the commit's, where nothing else is said; sources without git have one, too."""

import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def scripts(tmp_path):
    """The script in a folder of its own."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts/source-date", tmp_path / "scripts")
    return tmp_path / "scripts"


def asked(scripts, **more):
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    # No repository around the folder is found.
    environment |= {"GIT_CEILING_DIRECTORIES": str(scripts.parent.parent), **more}
    return subprocess.run([scripts / "source-date"], capture_output=True, text=True, env=environment, cwd="/")


def test_sources_without_git_have_a_time(scripts):
    done = asked(scripts)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1577836800\n", "")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is missing")
def test_the_commit_has_the_time(scripts):
    folder = scripts.parent
    git = ["git", "-C", folder, "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "-q"], check=True)
    dated = {**os.environ, "GIT_COMMITTER_DATE": "@1700000001 +0100"}
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], check=True, env=dated)
    assert asked(scripts).stdout == "1700000001\n"


def test_what_is_asked_for_goes_first(scripts):
    assert asked(scripts, SOURCE_DATE_EPOCH="12").stdout == "12\n"
    done = asked(scripts, SOURCE_DATE_EPOCH="yesterday")
    assert done.returncode == 1 and "seconds since 1970, not 'yesterday'" in done.stderr


def test_scripts_that_pack_ask_for_it():
    own = [path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and "log -1 --format" in path.read_text(errors="replace")]
    assert own == ["source-date"]
