"""`relaxide.onnxruntime` beside the package whose interface it is: the same programs, the same answers, the same exceptions."""

import inspect
import json
import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

import relaxide.onnxruntime as door
from relaxide.onnxruntime import _compiled
from relaxide.runtime import num_threads, set_num_threads

BOTH = pytest.mark.parametrize("ort", [onnxruntime, door], ids=["onnxruntime", "relaxide"])


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("RELAXIDE_CACHE")
    os.environ["RELAXIDE_CACHE"] = str(folder)
    yield folder / "onnxruntime"
    if before is None:
        del os.environ["RELAXIDE_CACHE"]
    else:
        os.environ["RELAXIDE_CACHE"] = before


def model(nodes, inputs, outputs, **more):
    values = lambda infos: [h.make_tensor_value_info(name, kind, shape) for name, kind, shape in infos]  # noqa: E731
    graph = h.make_graph(nodes, "g", values(inputs), values(outputs), **more)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8, producer_name="tests")


def sums():
    nodes = [h.make_node("Add", ["x", "y"], ["z"]), h.make_node("ReduceSum", ["z"], ["s"], keepdims=0)]
    inputs = [("x", T.FLOAT, ["n", 3]), ("y", T.FLOAT, [None, 3])]
    made = model(nodes, inputs, [("z", T.FLOAT, ["n", 3]), ("s", T.FLOAT, [])])
    made.model_version, made.doc_string, made.domain = 7, "adds", "org.example"
    made.metadata_props.append(onnx.StringStringEntryProto(key="labels", value="a,b"))
    return made.SerializeToString()


X = np.arange(6, dtype="float32").reshape(2, 3)


def test_a_session_says_of_its_model_what_the_model_says():
    theirs, ours = onnxruntime.InferenceSession(sums()), door.InferenceSession(sums())
    for name in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        described = [[(a.name, a.type, a.shape) for a in getattr(session, name)()] for session in (theirs, ours)]
        assert described[0] == described[1]
    for field in ("producer_name", "graph_name", "domain", "description", "graph_description", "version", "custom_metadata_map"):
        assert getattr(ours.get_modelmeta(), field) == getattr(theirs.get_modelmeta(), field), field
    assert ours.get_providers() == theirs.get_providers()
    assert ours.get_provider_options() == theirs.get_provider_options()


@BOTH
def test_outputs_come_as_they_are_asked_for(ort):
    session = ort.InferenceSession(sums(), providers=["CPUExecutionProvider"])
    feed = {"x": X, "y": X}
    z, s = session.run(None, feed)
    np.testing.assert_array_equal(z, X + X)
    assert s.shape == () and s == 30 and z.dtype == "float32" and z.flags.writeable
    [alone] = session.run(["s"], feed)
    assert alone == 30
    assert [np.ndim(v) for v in session.run(["s", "z"], feed)] == [0, 2]
    assert len(session.run([], feed)) == 2
    [again] = session.run(["z"], {"x": X.tolist(), "y": X[::-1]})
    np.testing.assert_array_equal(again, X + X[::-1])
    # What came out stays what it is when the session runs again.
    session.run(None, {"x": X * 9, "y": X * 9})
    np.testing.assert_array_equal(z, X + X)


MISUSES = {
    "an input is missing": lambda s, o: s.run(None, {"x": X}),
    "an input is unknown": lambda s, o: s.run(None, {"x": X, "y": X, "q": X}),
    "an output is unknown": lambda s, o: s.run(["q"], {"x": X, "y": X}),
    "elements of another type": lambda s, o: s.run(None, {"x": X, "y": X.astype("float64")}),
    "another rank": lambda s, o: s.run(None, {"x": X, "y": X[0]}),
    "another length": lambda s, o: s.run(None, {"x": X, "y": X[:, :2]}),
    "no such file": lambda s, o: o.InferenceSession("nowhere.onnx"),
    "no model": lambda s, o: o.InferenceSession(b"no model"),
    "no bytes": lambda s, o: o.InferenceSession(b""),
    "a number for a model": lambda s, o: o.InferenceSession(3),
    "an unknown operator": lambda s, o: o.InferenceSession(
        model([h.make_node("Nothing", ["x"], ["y"])], [("x", 1, [2])], [("y", 1, [2])]).SerializeToString()
    ),
    "a binding of an unknown name": lambda s, o: s.io_binding().bind_ortvalue_input("q", o.OrtValue.ortvalue_from_numpy(X)),
}


@pytest.mark.parametrize("name", MISUSES)
def test_misuse_raises_what_it_raises_there(name):
    kinds = []
    for ort in (onnxruntime, door):
        session = ort.InferenceSession(sums())
        with pytest.raises(Exception) as caught:  # noqa: B017, PT011
            MISUSES[name](session, ort)
        kinds.append((type(caught.value).__name__, str(caught.value).split(":")[:3]))
    theirs, ours = kinds
    # What nobody here has heard of is not implemented.
    if name != "an unknown operator":
        assert ours[0] == theirs[0]
    if theirs[1][0].startswith("[ONNXRuntimeError]") and ours[0] == theirs[0]:
        assert ours[1] == theirs[1]


def test_exceptions_are_found_where_programs_look_for_them():
    from onnxruntime.capi import onnxruntime_pybind11_state as theirs

    from relaxide.onnxruntime.capi import onnxruntime_pybind11_state as ours

    names = [n for n in dir(theirs) if isinstance(getattr(theirs, n), type) and issubclass(getattr(theirs, n), Exception)]
    assert names
    for name in names:
        assert issubclass(getattr(ours, name), Exception), name


@BOTH
def test_values_and_bindings(ort):
    session = ort.InferenceSession(sums())
    value = ort.OrtValue.ortvalue_from_numpy(X.copy())
    assert (value.shape(), value.data_type(), value.device_name()) == ([2, 3], "tensor(float)", "cpu")
    assert (value.element_type(), value.is_tensor(), value.has_value()) == (1, True, True)
    assert value.tensor_size_in_bytes() == 24
    z, s = session.run_with_ort_values(None, {"x": value, "y": value})
    np.testing.assert_array_equal(z.numpy(), X + X)

    out = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    memory = np.zeros((), "float32")
    binding = session.io_binding()
    binding.bind_cpu_input("x", X)
    binding.bind_input("y", "cpu", 0, np.float32, [2, 3], X.ctypes.data)
    binding.bind_ortvalue_output("z", out)
    binding.bind_output("s", "cpu", 0, np.float32, [], memory.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(out.numpy(), X + X)
    assert memory == 30
    binding.clear_binding_outputs()
    binding.bind_output("s")
    session.run_with_iobinding(binding)
    [s] = binding.copy_outputs_to_cpu()
    assert s == 30
    value.update_inplace(X * 2)
    np.testing.assert_array_equal(value.numpy(), X * 2)


@BOTH
def test_a_run_in_the_background_calls_back(ort):
    options = ort.SessionOptions()
    # ONNX Runtime has nothing to run in the background with where it has one thread.
    options.intra_op_num_threads = 2
    session = ort.InferenceSession(sums(), options)
    done, got = threading.Event(), []

    def callback(results, data, error):
        got.extend([results, data, error])
        done.set()

    session.run_async(["s"], {"x": X, "y": X}, callback, "mine")
    assert done.wait(60)
    assert got[0][0] == 30 and got[1] == "mine" and not got[2]


@BOTH
def test_texts_sequences_and_maps(ort):
    zipped = h.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[10, 20, 30])
    kind = h.make_sequence_type_proto(h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(T.FLOAT, [])))
    graph = h.make_graph(
        [zipped, h.make_node("SequenceConstruct", ["x", "x"], ["q"]), h.make_node("Identity", ["t"], ["u"])],
        "g",
        [h.make_tensor_value_info("x", 1, [None, 3]), h.make_tensor_value_info("t", T.STRING, [None])],
        [
            h.make_value_info("y", kind),
            h.make_value_info("q", h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, None))),
            h.make_tensor_value_info("u", T.STRING, [None]),
        ],
    )
    opsets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)]
    session = ort.InferenceSession(h.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    assert [a.type for a in session.get_outputs()] == ["seq(map(int64,tensor(float)))", "seq(tensor(float))", "tensor(string)"]
    y, q, u = session.run(None, {"x": X, "t": np.array(["ä", "b"], object)})
    assert y == [{10: 0.0, 20: 1.0, 30: 2.0}, {10: 3.0, 20: 4.0, 30: 5.0}]
    assert len(q) == 2
    np.testing.assert_array_equal(q[1], X)
    assert u.tolist() == ["ä", "b"] and u.dtype == object


@BOTH
def test_options_keep_what_they_are_told(ort):
    before = num_threads()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    options.add_free_dimension_override_by_name("n", 2)
    session = ort.InferenceSession(sums(), options)
    np.testing.assert_array_equal(session.run(["z"], {"x": X, "y": X})[0], X + X)
    if ort is door:
        assert num_threads() == 1
        set_num_threads(before)


def test_what_cannot_be_done_says_so():
    options = door.SessionOptions()
    with pytest.raises(door.NotImplemented, match="ModelPackage.open is not here: `relaxide compile"):
        door.ModelPackage.open("package")
    with pytest.raises(door.NotImplemented, match="relaxide compile"):
        options.optimized_model_filepath = "x.onnx"
    with pytest.raises(door.NotImplemented, match="functions"):
        options.register_custom_ops_library(__file__)
    with pytest.raises(RuntimeError, match="processor"):
        door.OrtValue.ortvalue_from_numpy(X, "cuda", 0)
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        door.InferenceSession(sums(), providers=["CUDAExecutionProvider", "CPUExecutionProvider"])


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_") and not inspect.ismodule(getattr(thing, name))}


# What is about ONNX Runtime's other devices, their kernels and their graphs.
OF_DEVICES = {"get_provider_graph_assignment_info", "release_captured_graph", "run_with_ortvaluevector", "get_outputs_as_ortvaluevector"}
OF_DEVICES |= {"set_ep_context_data_read_func", "clear_ep_context_data_read_func", "set_load_cancellation_flag"}


def test_no_name_is_missing():
    assert public(onnxruntime) <= public(door)
    for name in ("InferenceSession", "OrtValue", "IOBinding", "SessionOptions", "RunOptions", "OrtDevice"):
        make = {"SessionOptions": lambda kind: kind(), "RunOptions": lambda kind: kind()}.get(name, lambda kind: kind)
        theirs, ours = (public(make(getattr(ort, name))) for ort in (onnxruntime, door))
        assert theirs - ours <= OF_DEVICES, name


@BOTH
def test_a_profile_has_runs_and_kernels(ort, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(sums(), options)
    assert session.get_profiling_start_time_ns() > 0
    for _ in range(2):
        np.testing.assert_array_equal(session.run(["z"], {"x": X, "y": X})[0], X + X)
    path = session.end_profiling()
    assert path.startswith(str(tmp_path / "profile_")) and path.endswith(".json")
    with open(path) as file:
        events = json.load(file)
    names = [event["name"] for event in events if event["cat"] == "Session"]
    assert names.count("model_run") == 2 and names.count("session_initialization") == 1
    kernels = [event for event in events if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
    assert len(kernels) >= 2 and all(kernel["ph"] == "X" and kernel["dur"] >= 0 for kernel in kernels)
    assert ort.InferenceSession(sums()).end_profiling() == ""


def squeezed():
    """A model that exporters made with a batch of one, so that an axis goes away or stays."""
    nodes = [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Squeeze", ["a"], ["b"]), h.make_node("Add", ["b", "one"], ["y"])]
    weights = [numpy_helper.from_array(np.ones((4, 1), "float32"), "w"), numpy_helper.from_array(np.float32(1), "one")]
    graph = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", 1, ["batch", 4])], [h.make_tensor_value_info("y", 1, None)], weights)
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 11)], ir_version=8).SerializeToString()


@BOTH
def test_axes_that_depend_on_lengths_are_those_of_the_call(ort, monkeypatch):
    session = ort.InferenceSession(squeezed())
    for batch in (1, 3, 1):
        [y] = session.run(None, {"x": np.full((batch, 4), 2, "float32")})
        assert y.shape == (() if batch == 1 else (batch,)) and (y == 9).all()
        if ort is door and batch == 3:
            monkeypatch.setattr(_compiled, "_compile", no_compilation)


def test_dimensions_of_one_name_may_differ_where_the_file_is_wrong():
    nodes = [h.make_node("ReduceSum", ["a"], ["s"], keepdims=0), h.make_node("ReduceSum", ["b"], ["t"], keepdims=0)]
    made = model(nodes, [("a", 1, ["n"]), ("b", 1, ["n"])], [("s", 1, []), ("t", 1, [])]).SerializeToString()
    session = door.InferenceSession(made)
    assert session.run(None, {"a": X[0], "b": X[0]}) == [3, 3]
    assert session.run(None, {"a": X[0], "b": X.reshape(-1)}) == [3, 15]


def test_an_output_that_is_an_input_is_a_copy():
    made = model([h.make_node("Identity", ["x"], ["y"])], [("x", 1, ["n"])], [("y", 1, ["n"])]).SerializeToString()
    x = np.zeros(64, "float32")
    [y] = door.InferenceSession(made).run(None, {"x": x})
    x[:] = 1
    assert not y.any()


def no_compilation(*_):
    raise AssertionError("the model is compiled again")


def test_a_model_is_compiled_once(tmp_path, monkeypatch, cache):
    path = tmp_path / "model.onnx"
    path.write_bytes(sums())
    os.utime(path, (1, 1))
    door.InferenceSession(path)
    with monkeypatch.context() as patch:
        patch.setattr(_compiled, "_compile", no_compilation)
        session = door.InferenceSession(str(path))
        assert session.run(["s"], {"x": X, "y": X}) == [30]
        # The same bytes elsewhere are the same model, whether from a file or from memory.
        assert door.InferenceSession(sums()).run(["s"], {"x": X, "y": X}) == [30]
    changed = onnx.load(path)
    changed.graph.node[0].op_type = "Sub"
    onnx.save(changed, path)
    assert door.InferenceSession(path).run(["s"], {"x": X, "y": X}) == [0]


def test_files_beside_a_model_belong_to_it(tmp_path):
    weight = numpy_helper.from_array(np.ones(300, "float32"), "w")
    nodes = [h.make_node("Add", ["x", "w"], ["y"])]
    made = model(nodes, [("x", 1, [300])], [("y", 1, [300])], initializer=[weight])
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    x = np.zeros(300, "float32")
    assert door.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})[0][0] == 1
    (tmp_path / "w.bin").write_bytes(np.full(300, 5, "float32").tobytes())
    assert door.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x})[0][0] == 5


def test_a_damaged_entry_is_made_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAXIDE_CACHE", str(tmp_path))
    door.InferenceSession(sums())
    [library] = (tmp_path / "onnxruntime").glob("*.so")
    library.write_bytes(b"not a library")
    assert door.InferenceSession(sums()).run(["s"], {"x": X, "y": X}) == [30]
    assert library.stat().st_size > 1000


def test_a_folder_that_others_write_to_is_no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAXIDE_CACHE", str(tmp_path))
    folder = tmp_path / "onnxruntime"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others may write"):
        session = door.InferenceSession(sums())
    assert session.run(["s"], {"x": X, "y": X}) == [30]
    assert not list(folder.iterdir())


def test_what_was_not_used_for_longest_goes_first(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAXIDE_CACHE", str(tmp_path))
    door.InferenceSession(sums())
    [first] = (tmp_path / "onnxruntime").glob("*.so")
    os.utime(first, (1, 1))
    monkeypatch.setenv("RELAXIDE_CACHE_LIMIT", str(first.stat().st_size + 100))
    options = door.SessionOptions()
    options.add_free_dimension_override_by_name("n", 2)
    door.InferenceSession(sums(), options)
    assert not first.exists()


def test_the_name_is_taken_over_before_it_is_imported_or_not_at_all():
    program = "import relaxide.onnxruntime as r; r.install(); import onnxruntime as o; from onnxruntime.capi import _pybind_state as p; "
    program += "assert o is r and o.InferenceSession is r.InferenceSession and p.Fail is r.Fail"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
    with pytest.raises(ImportError, match="before"):
        door.install()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert onnxruntime.get_available_providers()


@BOTH
def test_vectors_of_values_are_taken_and_given(ort):
    session, state = ort.InferenceSession(sums()), ort.capi.onnxruntime_pybind11_state
    binding = session.io_binding()
    for name in ("x", "y"):
        binding.bind_cpu_input(name, X)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    [given] = binding.get_outputs_as_ortvaluevector()
    np.testing.assert_array_equal(given.numpy(), X + X)
    feeds, fetches = state.OrtValueVector(), state.OrtValueVector()
    feeds.reserve(2)
    for _ in range(2):
        feeds.push_back(ort.OrtValue.ortvalue_from_numpy(X)._ortvalue)
    device = ort.OrtDevice.make("cpu", 0)
    devices = [device if ort is door else device._get_c_device()]
    session.run_with_ortvaluevector(ort.RunOptions(), ["x", "y"], feeds, ["z"], fetches, devices)
    assert (len(fetches), fetches.element_type_at(0), list(fetches[0].shape())) == (1, 1, list(X.shape))
    np.testing.assert_array_equal(fetches[0].numpy(), X + X)


@BOTH
def test_parts_for_other_providers_answer(ort):
    options, session = ort.SessionOptions(), ort.InferenceSession(sums())
    options.set_ep_context_data_read_func(lambda name, buffer: None, 16)
    options.clear_ep_context_data_read_func()
    with pytest.raises(TypeError):
        options.set_ep_context_data_read_func(3, 16)
    session.release_captured_graph()
    with pytest.raises(TypeError):
        session.release_captured_graph("x")
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.Fail, match="record_ep_graph_assignment_info"):
        session.get_provider_graph_assignment_info()
    with pytest.raises(RuntimeError):
        ort.get_ep_devices()[0].create_sync_stream()
