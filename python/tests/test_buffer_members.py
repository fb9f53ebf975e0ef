"""Members of buffers: pointers, offsets, views."""

import pytest
from relaxide import tirx

A = tirx.decl_buffer((4, 8), "float32", "A")


def _numbers(values):
    return [int(value) for value in values]


def test_pointers_say_where_and_how_far():
    assert str(A.access_ptr("r", offset=8)) == 'T.tvm_access_ptr(T.type_annotation("float32"), A, 8, 24, 1)'
    both = tirx.BufferAccessKind.READ | tirx.BufferAccessKind.WRITE
    assert str(A.access_ptr("rw")) == str(A.access_ptr(both))
    assert str(A.ptr_to([1, 2])) == "T.address_of(A[1, 2])"
    with pytest.raises(ValueError, match="'r', 'w' or 'rw'"):
        A.access_ptr("x")


def test_offsets_follow_strides():
    strided = tirx.decl_buffer((4, 8), "float32", "B", strides=[16, 1], elem_offset=3)
    assert _numbers(A.offset_of([1, 2])) == [10]
    assert _numbers(strided.offset_of([1, 2])) == [21]
    assert int(strided.elem_offset_of([1, 2])) == 18
    assert (int(A.byte_offset_of([1, 2])), int(strided.byte_offset)) == (40, 12)


def test_views_are_of_the_same_memory():
    for view, shape in (
        (A.view(-1, 16), [2, 16]),
        (A.view("int8"), [4, 32]),
        (A.permute(1, 0), [8, 4]),
        (A.sub[2, 0:8:2], [4]),
        (A.get_flattened_buffer(), [32]),
    ):
        assert _numbers(view.shape) == shape and view.data.same_as(A.data)
    assert _numbers(A.permute(1, 0).strides) == [1, 8]
    assert int(A.sub[2].elem_offset) == 16
    region = A.chunk((None, 4))[0:2, 1].region
    assert [(int(r.min), int(r.extent)) for r in region] == [(0, 2), (2, 2)]
    with pytest.raises(ValueError, match="holds 32 elements"):
        A.view(5, 5)
    assert A.local().data.same_as(A.data) and _numbers(A.local().shape) == [32]
    with pytest.raises(NotImplementedError, match="GPU"):
        A.rearrange("a b -> b a")


def test_variables_that_are_no_buffers_have_no_members_of_buffers():
    n = tirx.Var("n", "int32")
    assert not hasattr(n, "shape") and not hasattr(n, "vload") and hasattr(A, "vload")
    with pytest.raises(TypeError, match="a buffer is expected"):
        tirx.buffer_data(n)
