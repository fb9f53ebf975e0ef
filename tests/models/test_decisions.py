"""What schedule rules decide for ResNet-18: printed, given back from a file, changed, and refused where it makes no sense."""

import json
import pathlib
import subprocess
import sys

import onnx
import pytest

HERE = pathlib.Path(__file__).parent
COMMAND = HERE.parents[1] / "build" / "relaxide"
sys.path.insert(0, str(HERE))

import resnet18  # noqa: E402

pytestmark = pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)")


def compiled(folder, name, *options):
    command = [COMMAND, "compile", folder / "model.onnx", "-o", folder / name, *options]
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def explained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decisions")
    onnx.save(resnet18.build(), folder / "model.onnx")
    answer = compiled(folder, "first.so", "--explain", "--json")
    assert answer.returncode == 0, answer.stderr
    (folder / "decisions.json").write_text(answer.stdout)
    return folder, json.loads(answer.stdout)


def parameters(answer):
    """All objects of an answer that are parameters of rules."""
    waiting, found = [answer], []
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            found += [value] if {"value", "domain"} <= value.keys() else []
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found


def test_decisions_that_are_given_back_make_the_same_library(explained):
    folder, answer = explained
    assert len(parameters(answer)) > 100
    again = compiled(folder, "again.so", "--schedule", folder / "decisions.json", "-q")
    assert again.returncode == 0, again.stderr
    assert (folder / "again.so").read_bytes() == (folder / "first.so").read_bytes()


def test_a_wrong_value_is_refused_with_what_it_may_be(explained):
    folder, answer = explained
    changed = json.loads(json.dumps(answer))
    rows = next(p for p in parameters(changed) if p["name"] == "rows")
    rows["value"] = 7777
    (folder / "wrong.json").write_text(json.dumps(changed))
    refused = compiled(folder, "wrong.so", "--schedule", folder / "wrong.json")
    assert refused.returncode == 1 and "7777" in refused.stderr and "rows" in refused.stderr
    assert not (folder / "wrong.so").exists()
