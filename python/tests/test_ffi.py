"""`relaxide.ffi`: the names of the package ``tvm_ffi`` that a user of TVM reaches."""

import gc
import pickle

import numpy as np
import pytest

from relaxide import ffi


def test_containers_convert_and_compare_by_content():
    array = ffi.convert([1, "a", 2.5, None, [1, 2]])
    assert type(array) is ffi.Array and type(array[4]) is ffi.Array
    assert array == [1, "a", 2.5, None, (1, 2)] and array != [1] and array[-1][0] == 1
    assert array[1:3] == ["a", 2.5] and [1, 2] in array and "b" not in array and len(array + [3]) == 6
    assert repr(array) == '(1, "a", 2.5, None, (1, 2))'
    with pytest.raises(IndexError, match="size: 5"):
        array[5]
    mapping = ffi.convert({"a": 1, "b": [2]})
    assert type(mapping) is ffi.Map and mapping["b"] == [2] and dict(mapping) == {"a": 1, "b": (2,)}
    assert list(mapping.keys()) == ["a", "b"] and mapping.get("c", 3) == 3 and "a" in mapping
    with pytest.raises(KeyError, match="key is not in Map"):
        mapping["c"]


def test_changing_containers_share_what_they_hold():
    items = ffi.List([3, 1])
    ffi.register_global_func("test.ffi.push", lambda target, item: target.append(item), override=True)
    ffi.get_global_func("test.ffi.push")(items, "x")
    assert items == [3, 1, "x"]
    items[0], items[1:] = 4, [5, 6, 7]
    del items[1]
    assert list(items) == [4, 6, 7] and items.pop() == 7 and len(items) == 2
    items.extend([8, 9])
    items.reverse()
    assert items == [9, 8, 6, 4]
    entries = ffi.Dict({"a": 1})
    entries["b"] = entries
    entries.update(c=2)
    assert sorted(entries) == ["a", "b", "c"] and entries["b"].same_as(entries)
    del entries["b"]
    assert entries == {"a": 1, "c": 2} and entries.pop("a") == 1


def test_shapes_dtypes_and_devices_are_values():
    shape = ffi.Shape((2, np.int64(3)))
    assert shape == (2, 3) and isinstance(ffi.convert(shape), ffi.Shape)
    with pytest.raises(ValueError, match="integers"):
        ffi.Shape((1, "2"))
    dtype = ffi.dtype("float32")
    assert dtype == "float32" and dtype.bits == 32 and dtype.itemsize == 4 and dtype.with_lanes(4) == "float32x4"
    assert ffi.dtype.from_dlpack_data_type((2, 16, 1)) == "float16" and ffi.bfloat16.bits == 16
    assert ffi.dtype(np.dtype("int8")) == "int8" and pickle.loads(pickle.dumps(dtype)) == dtype
    device = ffi.device("cuda:1")
    assert (device.type, device.index) == ("cuda", 1) and device == ffi.Device(ffi.DLDeviceType.kDLCUDA, 1)
    assert device != ffi.device("cuda") and str(device) == "cuda:1" and pickle.loads(pickle.dumps(device)) == device
    echo = ffi.convert_func(lambda value: value)
    for value in (shape, dtype, device, b"\0bytes", "text", 2.5, True, None):
        assert echo(value) == value and type(echo(value)) is type(value)


def test_objects_have_reflected_fields():
    step = ffi.access_path.AccessPath.root().attr("field").to_steps()[0]
    assert type(step) is ffi.access_path.AccessStep
    assert (step.kind, step.key) == (ffi.access_path.AccessKind.ATTR, "field") and "kind" in dir(step)
    with pytest.raises(AttributeError, match="nothing"):
        step.nothing
    with pytest.raises(AttributeError, match="setter"):
        step.kind = 2
    with pytest.raises(TypeError, match="AccessStep"):
        ffi.access_path.AccessStep(1)
    interrupt = ffi.VisitInterrupt([1, 2])
    assert interrupt.value == [1, 2] and repr(interrupt) == "ffi.VisitInterrupt(value=(1, 2))"


def test_classes_are_registered_once_their_type_is_known():
    with pytest.raises(ValueError, match="test.ffi.Unknown"):
        ffi.register_object("test.ffi.Unknown")(type("Unknown", (ffi.Object,), {}))
    assert "ffi.Array" in ffi.registry.get_registered_type_keys()


def test_paths_lead_to_the_first_difference():
    ours, theirs = ffi.get_first_structural_mismatch([1, {"a": [2]}], [1, {"a": [3]}])
    path = ffi.access_path.AccessPath.root().array_item(1).map_item("a").array_item(0)
    assert ours == theirs == path and hash(ours) == hash(path) and path != path.attr("x")
    assert ffi.access_path.AccessPath.root().array_item(1).is_prefix_of(path)
    assert ffi.get_first_structural_mismatch([1], (1,)) is None


def test_structure_is_compared_and_hashed():
    ones, twos = ffi.from_dlpack(np.ones(3)), ffi.from_dlpack(np.full(3, 2.0))
    assert ffi.structural_equal([1, "a", ones], [1, "a", ffi.from_dlpack(np.ones(3))])
    assert not ffi.structural_equal([ones], [twos]) and ffi.structural_equal([ones], [twos], skip_tensor_content=True)
    assert ffi.structural_hash([1, 2]) == ffi.structural_hash((1, 2)) != ffi.structural_hash([2, 1])
    keys = {ffi.StructuralKey([1, 2]): "first", ffi.StructuralKey([1, 3]): "second"}
    assert keys[ffi.StructuralKey([1, 3])] == "second"


def test_values_are_walked_and_rewritten():
    value, seen = ffi.convert([1, ["a", 2], {"k": 3}]), []
    assert ffi.structural_walk(value, (int, seen.append)) is None and seen == [1, 2, 3]
    found = ffi.structural_walk(value, [(str, lambda text: ffi.VisitInterrupt(text) if text == "a" else None)])
    assert found.value == "a"
    assert ffi.structural_map(value, (int, lambda number: number * 10)) == [10, ["a", 20], {"k": 30}]
    assert value == [1, ["a", 2], {"k": 3}]
    with pytest.raises(TypeError, match="type, callback"):
        ffi.structural_walk(value, [1])


def test_graphs_go_through_json():
    shared = ffi.convert(["shared", 1.5])
    value = ffi.convert({"a": shared, "b": [shared, None, ffi.Shape((2, 3)), ffi.dtype("int8"), ffi.device("cpu")]})
    back = ffi.serialization.from_json_graph_str(ffi.serialization.to_json_graph_str(value))
    assert ffi.structural_equal(back, value) and back["a"].same_as(back["b"][0])
    text = ffi.serialization.to_json_graph_str([1], metadata={"made_by": "test"})
    assert text.startswith('{"root_index":1') and '"made_by":"test"' in text
    with pytest.raises(Exception, match="(?i)json|index|root"):
        ffi.serialization.from_json_graph_str('{"root_index": 7, "nodes": []}')


def test_functions_are_registered_under_names():
    @ffi.register_global_func("test.ffi.add", override=True)
    def add(a, b):
        return a + b

    assert add(1, 2) == ffi.get_global_func("test.ffi.add")(1, 2) == 3
    assert "test.ffi.add" in ffi.registry.list_global_func_names()
    with pytest.raises(Exception, match="test.ffi.add"):
        ffi.register_global_func("test.ffi.add", lambda: None)
    assert ffi.get_global_func_metadata("test.ffi.add") == {}
    ffi.remove_global_func("test.ffi.add")
    assert ffi.get_global_func("test.ffi.add", allow_missing=True) is None
    with pytest.raises(ValueError, match="Cannot find global function test.ffi.add"):
        ffi.get_global_func("test.ffi.add")


def test_error_kinds_become_exceptions():
    @ffi.register_error("TestKind")
    class TestKindError(RuntimeError):
        pass

    error = ffi.convert_func(lambda: None)
    assert callable(error)
    raised = ffi.convert_func(lambda: (_ for _ in ()).throw(TestKindError("told")))
    with pytest.raises(TestKindError, match="told"):
        raised()


def test_python_objects_pass_through_untouched():
    class Own:
        pass

    own, kept = Own(), []
    assert ffi.convert_func(lambda value: (kept.append(value), value)[1])(own) is own and kept == [own]
    box = ffi.convert([own])
    assert box[0] is own
    own_id = id(own)
    del own, kept
    gc.collect()
    assert id(box[0]) == own_id


def test_streams_are_current_for_a_block():
    device = ffi.device("cpu")
    with ffi.use_raw_stream(device, 4096):
        assert ffi.get_raw_stream(device) == 4096
    assert ffi.get_raw_stream(device) == 0
