"""The list of TVM's public names that are missing is true, and so is its count in the guide."""

import pytest

from surface_of_tvm import COUNT, GUIDE, MISSING, compare, lines


@pytest.fixture(scope="module")
def found():
    pytest.importorskip("tvm")
    return compare()


def test_what_is_missing_is_listed(found):
    listed = [line for line in MISSING.read_text().splitlines() if not line.startswith("#")]
    wanted = lines(found[0])
    assert sorted(set(wanted) - set(listed)) == [], "names are missing that the list lacks: `surface_of_tvm.py --bless`"
    assert sorted(set(listed) - set(wanted)) == [], "names are here that the list has: `surface_of_tvm.py --bless`"


def test_the_guide_has_the_count(found):
    assert COUNT.search(GUIDE.read_text())[0] == f"{found[1]} of {found[2]} public names"
