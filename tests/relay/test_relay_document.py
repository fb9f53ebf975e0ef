"""The page of Relay names tests that exist, for every sentence of the document."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _rows():
    lines = (ROOT / "docs/relay.md").read_text().splitlines()
    start = lines.index("| section | here | shown by |")
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split("|")]


def test_every_row_names_a_test_that_exists():
    sources = [path.read_text() for path in ROOT.glob("crates/*/tests/**/*.rs")]
    sources += [path.read_text() for path in ROOT.glob("crates/*/src/**/*.rs")]
    known = set(re.findall(r"fn (\w+)\(", "\n".join(sources)))
    wrong = {}
    for section, _, shown in _rows():
        names = [name for name in re.findall(r"`(\w+)`", shown) if name.count("_") > 1]
        missing = [name for name in names if name not in known]
        whole = "cargo bench" in shown or shown.endswith(": all")
        if missing or not (names or whole or "samples" in shown):
            wrong[section] = missing or shown
    assert not wrong


def test_every_pass_has_a_file():
    from relaxide.relay import transform

    shown = {path.read_text().split("\n", 1)[0].split()[2] for path in (ROOT / "tests/relay/passes").glob("*.relay")}
    # What types a program has, and scales by the side, are shown by tests of their own.
    elsewhere = {"InferType", "BackwardFoldScaleAxis", "ForwardFoldScaleAxis"}
    assert set(transform._PASSES) - shown == elsewhere
