"""Object types that Python declares."""

import itertools
import json
import typing

import pytest

import relaxide
from relaxide import ffi
from relaxide.ffi import dataclasses
from relaxide.ffi.dataclasses import KW_ONLY, field, py_class

count = itertools.count()


def key(name):
    return f"test.dataclasses.{name}{next(count)}"


def point(**options):
    @py_class(key("Point"), **options)
    class Point(ffi.Object):
        """A place."""

        x: int
        y: int = 7

    return Point


def test_fields_are_arguments_and_attributes():
    Point = point()
    p = Point(1)
    assert (p.x, p.y) == (1, 7) and Point(y=3, x=2).y == 3
    p.x = 5
    assert p.x == 5 and "x=5" in repr(p)
    with pytest.raises(TypeError, match="x"):
        Point()
    with pytest.raises(TypeError, match="Point.x: expected int, got str"):
        Point("a")
    with pytest.raises(TypeError, match="expected int"):
        p.y = "b"
    with pytest.raises(AttributeError):
        p.z


def test_objects_cross_functions_as_themselves():
    Point = point()
    p = Point(1, 2)
    same = ffi.convert_func(lambda value: value)
    assert type(same(p)) is Point and same(p).same_as(p)


def test_defaults_factories_and_named_arguments():
    @py_class(key("Node"))
    class Node(ffi.Object):
        name: str
        _: KW_ONLY
        children: list[int] = field(default_factory=list)
        note: str | None = None
        hidden: int = field(default=0, init=False, repr=False)

    a, b = Node("a"), Node("b", note="n")
    a.children.append(3)
    assert a.children == [3] and b.children == [] and (a.note, b.note) == (None, "n") and a.hidden == 0
    with pytest.raises(TypeError):
        Node("a", [1])
    assert "hidden" not in repr(a)


def test_classes_refine_each_other():
    Point = point()

    @py_class(key("Point3"))
    class Point3(Point):
        z: float = 0.5

        def __post_init__(self):
            self.y = self.y + 1

    p = Point3(1, 2, 3)
    assert (p.x, p.y, p.z) == (1, 3, 3.0) and isinstance(p, Point)
    assert [one.name for one in dataclasses.fields(Point3)] == ["x", "y", "z"]


def test_frozen_fields_stay():
    p = point(frozen=True)(1)
    with pytest.raises(AttributeError, match="no setter"):
        p.x = 2


def test_equality_order_and_hashes():
    Plain, Equal = point(), point(eq=True, order=True, unsafe_hash=True)
    assert Plain(1) != Plain(1) and Equal(1) == Equal(1) and Equal(1) != Equal(2) and Equal(1) < Equal(2)
    assert hash(Equal(1)) == hash(Equal(1)) and len({Equal(1), Equal(1)}) == 1
    with pytest.raises(ValueError, match="requires eq"):
        point(order=True)


def test_structure_is_compared_and_hashed():
    @py_class(key("Var"), structural_eq="var")
    class Var(ffi.Object):
        name: str = field(structural_eq="ignore")

    @py_class(key("Func"))
    class Func(ffi.Object):
        params: list[Var] = field(structural_eq="def")
        body: object
        span: object = field(default=None, structural_eq="ignore")

    def identity(name, result=None):
        var = Var(name)
        return Func([var], result or [var, 1], span=name)

    assert ffi.structural_equal(identity("a"), identity("b"))
    assert ffi.structural_hash(identity("a")) == ffi.structural_hash(identity("b"))
    assert not ffi.structural_equal(identity("a"), identity("a", [Var("a"), 1]))


def test_objects_survive_json():
    Point = point()
    text = ffi.serialization.to_json_graph_str([Point(1), Point(2, 3)])
    again = ffi.serialization.from_json_graph_str(text)
    assert [(p.x, p.y) for p in again] == [(1, 7), (2, 3)] and type(again[0]) is Point
    assert '"x":1' in json.dumps(json.loads(text), separators=(",", ":"))


def test_values_change_form():
    Point = point()

    @py_class(key("Line"))
    class Line(ffi.Object):
        ends: list[Point]
        names: dict[str, int]

    line = Line([Point(1), Point(2)], {"a": 1})
    assert dataclasses.asdict(line) == {"ends": [{"x": 1, "y": 7}, {"x": 2, "y": 7}], "names": {"a": 1}}
    assert dataclasses.astuple(Point(1)) == (1, 7)
    moved = dataclasses.replace(line.ends[0], y=0)
    assert (moved.x, moved.y) == (1, 0) and line.ends[0].y == 7
    with pytest.raises(TypeError, match="no field"):
        dataclasses.replace(moved, z=1)
    assert dataclasses.is_dataclass(Point) and not dataclasses.is_dataclass(3)
    match moved:
        case Point(x, y):
            assert (x, y) == (1, 0)


def test_keys_are_taken_once_and_types_checked():
    name = key("Once")

    def declare():
        @py_class(name)
        class Once(ffi.Object):
            items: typing.Any

    declare()
    with pytest.raises(ValueError, match="already registered"):
        declare()
    with pytest.raises(TypeError, match="does not derive from Object"):

        @py_class(key("Wrong"))
        class Wrong:
            x: int


def test_types_of_the_compiler_get_classes():
    @dataclasses.c_class("ir.Span")
    class Span(relaxide.ir.Span):
        source: str
        line: int

    try:
        span = relaxide.ir.Span("a.py", 1, 2, 3, 4)
        again = ffi.convert_func(lambda value: value)(span)
        assert type(again) is Span and dataclasses.asdict(again)["end_line"] == 2
    finally:
        ffi.register_object("ir.Span", init=False)(relaxide.ir.Span)


def test_the_reference_agrees(tmp_path):
    reference = pytest.importorskip("tvm_ffi")
    from tvm_ffi import dataclasses as theirs

    @theirs.py_class("test.dataclasses.Shared")
    class Theirs(reference.Object):
        a: int
        b: float
        c: str

    @py_class("test.dataclasses.Shared")
    class Ours(ffi.Object):
        a: int
        b: float
        c: str

    one, other = Ours(1, 2.5, "x"), Theirs(1, 2.5, "x")
    assert ffi.structural_hash(one) == reference.structural_hash(other)
    write = ffi.serialization.to_json_graph_str
    assert json.loads(write(one)) == json.loads(reference.serialization.to_json_graph_str(other))
    assert repr(one) == repr(other)
