"""Functions that programs call when they run: printing, assertions, unique and non-zero elements."""

import numpy as np
import pytest

from relaxide import relax, runtime
from relaxide.relax.op import base
from relaxide.relax.op import set as sets


def test_values_are_printed_as_they_are_formatted(capsys):
    base.relax_print("", runtime.tensor(np.array([1, 2])), (3, 4))
    base.relax_print("{} and {}", 3, 4)
    assert capsys.readouterr().out == "[1 2] (3, 4)\n3 and 4\n"


def test_assertions_say_the_values():
    base.relax_assert_op(True, "")
    for args, text in [(("",), "Assertion Failed"), (("", 1, 2), "1, 2"), (("x is {}", 5), "x is 5")]:
        with pytest.raises(AssertionError, match=text):
            base.relax_assert_op(runtime.tensor(np.array(False)), *args)
    for condition in (runtime.tensor(np.array([True])), runtime.tensor(np.array(1)), "yes"):
        with pytest.raises(ValueError, match="boolean scalar"):
            base.relax_assert_op(condition, "")
    with pytest.raises(ValueError, match="is text, not int"):
        base.relax_assert_op(True, 3)


def test_shapes_become_tensors():
    assert base.relax_shape_to_tensor(runtime.ShapeTuple([2, 3])).numpy().tolist() == [2, 3]


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("in_order", [0, 1])
def test_unique_elements_are_joined_again(axis, in_order):
    x = np.array([[3, 1, 3], [0, 1, 0], [3, 1, 3]])
    values, first, inverse, counts = (one.numpy() for one in sets.numpy_unique(runtime.tensor(x), in_order, 1, 1, 1, axis))
    whole = x.ravel() if axis is None else x
    np.testing.assert_array_equal(np.take(values, inverse, axis or 0), whole)
    np.testing.assert_array_equal(np.take(whole, first, axis or 0), values)
    assert counts.tolist() == np.bincount(inverse).tolist()
    assert first.tolist() == sorted(first.tolist()) or in_order
    assert sets.numpy_unique(runtime.tensor(x), in_order, 0, 0, 0, axis).numpy().tolist() == values.tolist()


def test_elements_that_are_not_zero_are_found():
    assert relax.op.numpy_nonzero(runtime.tensor(np.array([[1, 0], [0, 2]]))).numpy().tolist() == [[0, 1], [0, 1]]


def test_metadata_is_parted_from_its_program():
    assert relax.utils.metadata_partitioner('{"a": {}} x = 1;\n') == [" x = 1;", '{"a": {}}']
    with pytest.raises(ValueError, match="not found"):
        relax.utils.metadata_partitioner("x {")
