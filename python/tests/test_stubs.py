"""The stub file says what the registry says."""

from relaxide.relax.op import _stub


def test_the_stub_of_the_operators_is_up_to_date():
    hint = "run `python -m relaxide.relax.op._stub`"
    assert _stub.path().read_text() == _stub.text(), hint
