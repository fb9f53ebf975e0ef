"""Every inference operator of the standard set has a rule for each of its versions, or stands in the list of those that have not.

What is imported is read from the table in `docs/onnx.md`, which a test of the importer keeps true.
"""

import pathlib
import re

import onnx

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "onnx.md"

#: Operators that are not imported, with the reason.
MISSING = {
    "ImageDecoder": "decodes image files",
}

#: Operators of which the oldest versions are not imported, with the first that is.
LATE = {}


def imported():
    """The first version of each operator that is imported."""
    rows = re.findall(r"^\| (\w+) \| (\d+) \|", GUIDE.read_text(), re.M)
    return {name: int(since) for name, since in rows}


def schemas():
    """All versions of each operator."""
    versions = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, []).append(schema.since_version)
    return versions


def test_every_operator_is_imported_or_listed():
    rules = imported()
    missing = sorted(name for name in schemas() if name not in rules and name not in MISSING)
    assert missing == []


def test_what_is_listed_as_missing_is():
    assert sorted(name for name in MISSING if name in imported()) == []


def test_every_version_has_a_rule():
    rules = imported()
    late = {name: rules[name] for name, v in schemas().items() if name in rules and rules[name] > min(v)}
    assert late == LATE


def test_the_newest_opset_is_read():
    newest = re.search(r"up to opset (\d+)", GUIDE.read_text())
    assert int(newest[1]) >= onnx.defs.onnx_opset_version()
