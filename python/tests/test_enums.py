"""Enumerations: members that a number and a text name, in every language."""

import itertools
import typing

import pytest

from relaxide import ffi
from relaxide.ffi.dataclasses import Enum, EnumAttrMap, EnumState, IntEnum, StrEnum, auto, entry

count = itertools.count()


def key(name):
    return f"test.enums.{name}{next(count)}"


def colors():
    class Color(Enum, type_key=key("Color")):
        """Two colours."""

        RED = auto()
        GREEN = auto()

    return Color


def test_members_are_found_by_number_and_by_text():
    Color = colors()
    assert list(Color) == [Color.RED, Color.GREEN] == list(Color.all_entries()) and len(Color) == 2
    assert Color(0) == Color("RED") == Color.RED == Color(Color.RED) != Color.GREEN
    assert (Color.GREEN._int_index, Color.GREEN._str_index) == (1, "GREEN")
    assert {Color.RED: "warm"}[Color.get(0)] == "warm" and "RED" in repr(Color.RED)
    with pytest.raises(ValueError, match="'BLUE' is not a valid Color"):
        Color("BLUE")
    with pytest.raises(KeyError):
        Color.get(7)
    with pytest.raises(TypeError, match="int or str"):
        Color.get(1.5)
    with pytest.raises(OverflowError):
        Color.get(1 << 63)


def test_members_have_fields():
    class Shape(Enum, type_key=key("Shape")):
        sides: int
        label: str = "none"
        TRIANGLE = entry(sides=3)
        SQUARE = entry(sides=4, label="square")

    assert (Shape.TRIANGLE.sides, Shape.TRIANGLE.label, Shape("SQUARE").label) == (3, "none", "square")
    with pytest.raises(AttributeError):
        Shape.SQUARE.sides = 5
    with pytest.raises(TypeError, match="invalid enum entry"):

        class Wrong(Enum, type_key=key("Wrong")):
            sides: int
            ROUND = entry(corners=0)


def test_members_equal_their_values():
    class Level(IntEnum, type_key=key("Level")):
        LOW = 1
        HIGH = 10
        TOP = 10

    class Mode(StrEnum, type_key=key("Mode")):
        FAST = "fast"

    assert Level.LOW == 1 and Level(10) == Level.HIGH == Level.TOP and len(Level) == 2
    assert (str(Level.LOW), repr(Level.HIGH), Level.HIGH.name, hash(Level.LOW)) == ("1", "Level.HIGH", "HIGH", hash(1))
    assert Mode.FAST == "fast" and Mode("fast").value == "fast" and str(Mode.FAST) == "fast" and Mode.FAST != "slow"


@pytest.mark.parametrize(
    "base, declared, message",
    [
        (IntEnum, {"X": "one"}, "value must be int"),
        (StrEnum, {"X": 1}, "value must be str"),
        (IntEnum, {"X": auto()}, "requires a int value"),
        (IntEnum, {"value": 1}, "reserves `value`"),
        (Enum, {"X": entry(_int_index=3)}, "indices are inferred"),
    ],
)
def test_what_is_no_member_is_refused(base, declared, message):
    with pytest.raises(TypeError, match=message):
        type(base)("Wrong", (base,), {"__module__": __name__, "__qualname__": "Wrong", **declared}, type_key=key("Wrong"))


def test_names_alone_are_members():
    class Axis(Enum, type_key=key("Axis")):
        X: typing.ClassVar["Axis"]
        Y: typing.ClassVar["Axis"]

    assert [member._str_index for member in Axis] == ["X", "Y"] and Axis.Y == Axis(1)


def test_a_second_class_of_a_type_has_its_members():
    type_key = key("Shared")

    class First(IntEnum, type_key=type_key):
        ONE = 1

    class Second(IntEnum, type_key=type_key):
        ONE: typing.ClassVar["Second"]

    assert Second.ONE == 1 and Second(1).name == "ONE"
    with pytest.raises(RuntimeError, match="no enum at string index 'TWO'"):

        class Third(IntEnum, type_key=type_key):
            TWO: typing.ClassVar["Third"]


def test_values_are_kept_for_members():
    Color = colors()
    cost = Color.def_attr("cost", default=0)
    cost[Color.RED] = 5
    assert isinstance(cost, EnumAttrMap) and cost.name == "cost"
    assert (cost[Color.RED], cost[Color.GREEN], Color.RED in cost, Color.GREEN in cost, cost.get(Color.GREEN, 7)) == (
        5,
        0,
        True,
        False,
        7,
    )
    assert list(Color.attr_dict) == ["cost"] and Color.def_attr("cost")[Color.RED] == 5
    with pytest.raises(KeyError):
        Color.def_attr("cost")[Color.GREEN]
    with pytest.raises(TypeError, match="expected Color"):
        cost[3] = 1


def test_members_are_compared_and_written_by_the_runtime():
    Color = colors()
    assert ffi.structural_equal(Color.RED, Color.get("RED")) and not ffi.structural_equal(Color.RED, Color.GREEN)
    text = ffi.serialization.to_json_graph_str(Color.GREEN)
    assert ffi.serialization.from_json_graph_str(text) == Color.GREEN and "GREEN" in text
    assert isinstance(EnumState(), ffi.Object)
