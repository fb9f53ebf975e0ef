"""Adapters (LoRA): files are those of ONNX Runtime, runs take them as its runs do, and damaged files are errors."""

import numpy as np
import onnxruntime as theirs
import pytest
import relaxide.onnxruntime as door
from onnx import helper as h
from onnx import numpy_helper as nh

BOTH = pytest.mark.parametrize("ort", [theirs, door], ids=["onnxruntime", "door"])
TYPES = ["float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
draw = np.random.default_rng(34)

#: Options of ONNX Runtime do not keep their adapters.
KEPT = []


def low_rank():
    """A product, and beside it one of two factors, which a run may be given."""
    value = lambda name, shape: h.make_tensor_value_info(name, 1, shape)
    nodes = [
        h.make_node("MatMul", ["x", "w"], ["a"]),
        h.make_node("MatMul", ["x", "down"], ["d"]),
        h.make_node("MatMul", ["d", "up"], ["u"]),
        h.make_node("Add", ["a", "u"], ["y"]),
    ]
    weights = [np.eye(6, dtype="float32"), np.zeros((6, 2), "float32"), np.zeros((2, 6), "float32")]
    initializers = [nh.from_array(array, name) for name, array in zip(["w", "down", "up"], weights)]
    inputs = [value("x", ["n", 6]), value("down", [6, 2]), value("up", [2, 6])]
    graph = h.make_graph(nodes, "low rank", inputs, [value("y", ["n", 6])], initializers)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString()


def written(ort, path, parameters, versions=(3, 7)):
    made = ort.AdapterFormat()
    made.set_adapter_version(versions[0])
    made.set_model_version(versions[1])
    made.set_parameters({name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in parameters.items()})
    made.export_adapter(str(path))
    return path


def loaded(ort, path):
    adapter = ort.LoraAdapter()
    adapter.Load(str(path))
    KEPT.append(adapter)
    options = ort.RunOptions()
    options.add_active_adapter(adapter)
    return options


@pytest.mark.parametrize(("writer", "reader"), [(theirs, door), (door, theirs), (door, door)], ids=["read", "written", "both"])
def test_files_are_those_of_onnx_runtime(writer, reader, tmp_path):
    for count in range(20):
        arrays = {
            f"{'weight of a layer'[:n]}{n}": np.asarray(draw.standard_normal(draw.integers(0, 5, draw.integers(1, 4))) * 9, TYPES[draw.integers(11)])
            for n in range(count % 7)
        }
        found = reader.AdapterFormat.read_adapter(str(written(writer, tmp_path / "adapter", arrays, (count, -count))))
        assert (found.get_format_version(), found.get_adapter_version(), found.get_model_version()) == (1, count, -count)
        parameters = found.get_parameters()
        assert parameters.keys() == arrays.keys()
        for name, array in arrays.items():
            value = parameters[name].numpy()
            assert value.dtype == array.dtype
            np.testing.assert_array_equal(value, array)


def test_runs_take_adapters_as_those_of_onnx_runtime(tmp_path):
    model, x = low_rank(), draw.standard_normal((3, 6)).astype("float32")
    factors = [{"down": draw.standard_normal((6, 2)).astype("float32"), "up": draw.standard_normal((2, 6)).astype("float32")} for _ in range(2)]
    paths = [written(theirs, tmp_path / f"{i}", each) for i, each in enumerate(factors)]
    partial = written(door, tmp_path / "partial", {"up": factors[0]["up"]})
    results = []
    for ort in (theirs, door):
        session = ort.InferenceSession(model)
        one, other, both = loaded(ort, paths[0]), loaded(ort, paths[1]), loaded(ort, paths[0])
        loaded(ort, partial)
        both.add_active_adapter(KEPT[-1])
        value = ort.OrtValue.ortvalue_from_numpy(x)
        results.append(
            [
                *(session.run(None, {"x": x}, options)[0] for options in (None, one, other, both, loaded(ort, partial), None)),
                session.run(None, {"x": x, "down": factors[1]["down"]}, one)[0],
                session.run(None, {"x": x, "down": factors[1]["down"]}, loaded(ort, partial))[0],
                session.run_with_ort_values(None, {"x": value}, one)[0].numpy(),
            ]
        )
    for expected, got in zip(*results):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(results[1][0], x)
    np.testing.assert_allclose(results[1][1], x + x @ factors[0]["down"] @ factors[0]["up"], rtol=1e-5, atol=1e-5)


@BOTH
def test_bound_inputs_take_no_adapter(ort, tmp_path):
    x = draw.standard_normal((1, 6)).astype("float32")
    session, options = ort.InferenceSession(low_rank()), loaded(ort, written(ort, tmp_path / "a", {"up": np.ones((2, 6), "float32")}))
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    if ort is door:
        with pytest.warns(UserWarning, match="adapters of run_options have no effect"):
            session.run_with_iobinding(binding, options)
    else:
        session.run_with_iobinding(binding, options)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], x)


@BOTH
def test_adapters_that_do_not_fit_are_refused(ort, tmp_path):
    x, session = np.ones((1, 6), "float32"), ort.InferenceSession(low_rank())
    for parameters in [{"no such": x}, {"up": np.ones((3, 6), "float32")}, {"up": np.ones((2, 6))}]:
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument):
            session.run(None, {"x": x}, loaded(ort, written(ort, tmp_path / "a", parameters)))
    with pytest.raises(ValueError, match="missing"):
        session.run(None, {}, loaded(ort, written(ort, tmp_path / "a", {"x": x})))
    with pytest.raises(TypeError):
        ort.RunOptions().add_active_adapter(3)
    with pytest.raises(AttributeError):
        ort.AdapterFormat().set_parameters({"up": x})
    with pytest.raises(TypeError):
        ort.AdapterFormat().set_adapter_version("1")
    with pytest.raises(RuntimeError):
        ort.LoraAdapter().Load(str(tmp_path / "no such file"))


def test_damaged_files_are_errors(tmp_path):
    arrays = {f"w{n}": draw.standard_normal((n, 3)).astype("float32") for n in range(4)}
    good, path, refused = written(door, tmp_path / "good", arrays).read_bytes(), tmp_path / "damaged", 0
    edits = [good[:size] for size in range(0, len(good) - 8)]
    for _ in range(3000):
        edited = bytearray(good)
        for _ in range(draw.integers(1, 4)):
            edited[draw.integers(0, len(edited))] = draw.choice([0, 1, 4, 127, 128, 255, draw.integers(256)])
        edits.append(bytes(edited))
    for content in edits:
        path.write_bytes(content)
        try:
            parameters = door.AdapterFormat.read_adapter(path).get_parameters()
        except RuntimeError as error:
            assert str(error).startswith(str(path)), error
            refused += 1
        else:
            assert sum(value.tensor_size_in_bytes() for value in parameters.values()) <= len(content)
    assert refused > len(good) - 8
