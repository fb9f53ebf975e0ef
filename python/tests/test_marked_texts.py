"""Underlines and remarks in the texts of programs."""

import pytest
import relaxide as tvm
from relaxide.ffi.access_path import AccessPath
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T

ROOT = AccessPath.root()


@T.prim_func
def fill(A: T.Buffer((8,), "float32"), n: T.int32):
    A[0] = 1.0
    for i in range(n):
        A[i] = 2.0
    A[n] = 3.0


def lines(text, first):
    """The lines of a text from one that begins so."""
    found = text.split("\n")
    return found[next(i for i, line in enumerate(found) if line.strip().startswith(first)) :]


def test_statements_are_underlined_by_object_and_by_path():
    by_object = fill.script(obj_to_underline=[fill.body.seq[2]])
    assert lines(by_object, "A[n]") == ["    A[n] = T.float32(3.0)", "    ^^^^^^^^^^^^^^^^^^^^^"]
    by_path = fill.script(path_to_underline=[ROOT.attr("body").attr("seq").array_item(2)])
    assert by_path == "Access path: <root>.body.seq[2]\n\n" + by_object
    quiet = {"render_invisible_path_info": False}
    assert fill.script(path_to_underline=[ROOT.attr("body").attr("seq").array_item(2)], extra_config=quiet) == by_object


def test_loops_are_underlined_with_their_bodies_but_not_their_indentation():
    text = fill.script(obj_to_underline=[fill.body.seq[1]])
    assert lines(text, "for i")[:4] == [
        "    for i in range(n):",
        "    ^^^^^^^^^^^^^^^^^^",
        "        A[i] = T.float32(2.0)",
        "        ^^^^^^^^^^^^^^^^^^^^^",
    ]


def test_variables_are_underlined_where_they_are_used():
    text = fill.script(obj_to_underline=[fill.params[1]])
    assert lines(text, "for i")[1].strip() == "^" and lines(text, "for i")[1].index("^") == lines(text, "for i")[0].index("n)")
    assert text.count("^") == 2


def test_what_has_no_text_of_its_own_is_shown_by_what_is_around_it():
    text = fill.script(path_to_underline=[ROOT.attr("body").attr("seq").array_item(0).attr("value").attr("dtype")])
    assert text.startswith("Access path: <root>.body.seq[0].value.dtype\nNote: The underlined object is the nearest visible parent")
    assert lines(text, "A[0]")[1] == "           " + "^" * len("T.float32(1.0)")


def test_remarks_stand_beside_lines_and_above_blocks():
    text = fill.script(obj_to_annotate={fill.body.seq[0]: "first", fill.body.seq[1]: "then"})
    assert lines(text, "A[0]")[:3] == ["    A[0] = T.float32(1.0)  # first", "    # then", "    for i in range(n):"]
    text = fill.script(path_to_annotate={ROOT.attr("body").attr("seq").array_item(2): "last"}, obj_to_underline=[fill.body.seq[2]])
    assert lines(text, "A[n]") == ["    A[n] = T.float32(3.0)  # last", "    ^^^^^^^^^^^^^^^^^^^^^"]


def test_lines_around_are_kept():
    text = fill.script(obj_to_underline=[fill.body.seq[2]], num_context_lines=1)
    assert text.startswith("(... ") and text.endswith("^") and "A[i]" in text and "A[0]" not in text


@I.ir_module
class Two:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.exp(x)
        z = R.add(y, y)
        return z

    @T.prim_func
    def kernel():
        T.evaluate(1)


def test_functions_of_a_module_and_their_bindings_are_underlined():
    kernel = ROOT.attr("functions").map_item(Two.get_global_var("kernel"))
    text = Two.script(path_to_underline=[kernel])
    assert "    def kernel():\n    ^^^^^^^^^^^^^\n        T.evaluate(1)\n        ^^^^^^^^^^^^^" in text and "^" not in text.split("@T.prim_func")[0]
    binding = Two["main"].body.blocks[0].bindings[1]
    text = Two.script(obj_to_underline=[binding])
    assert lines(text, "z:")[1].strip() == "^" * len(lines(text, "z:")[0].strip()) and text.count("\n        ^") == 1


def test_a_difference_is_shown_in_the_program():
    @T.prim_func
    def other(A: T.Buffer((8,), "float32"), n: T.int32):
        A[0] = 1.0
        for i in range(n):
            A[i] = 2.0
        A[n] = 4.0

    other = other.with_attr("global_symbol", "fill")
    with pytest.raises(ValueError, match="caused by lhs at <root>.body.seq") as told:
        tvm.ir.assert_structural_equal(fill, other)
    assert "A[n] = T.float32(3.0)\n           ^^^^^^^^^^^^^^" in str(told.value)
    assert "A[n] = T.float32(4.0)\n           ^^^^^^^^^^^^^^" in str(told.value)


def test_a_type_is_underlined_whole():
    path = [ROOT.attr("dtype")]
    note = "Note: The underlined object is the nearest visible parent of this path."
    assert tvm.ir.PrimType("int32").script(path_to_underline=path) == f"Access path: <root>.dtype\n{note}\n\nT.int32\n^^^^^^^"
