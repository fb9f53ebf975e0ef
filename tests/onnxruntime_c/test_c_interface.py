"""`libonnxruntime` beside the library whose interface it has: the same calls, the same answers, the same kinds of failure."""

import ctypes as c
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import onnx
import pytest
from c_api import (
    FAIL,
    INVALID_ARGUMENT,
    NOT_IMPLEMENTED,
    PLACES,
    ROWS,
    THEIRS,
    VERSION,
    Api,
    Failure,
    Session,
    built,
    content,
    described,
    tensor,
    texts,
)
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    before = os.environ.get("RELAXIDE_CACHE")
    folder = tmp_path_factory.mktemp("cache")
    os.environ["RELAXIDE_CACHE"] = str(folder)
    yield folder / "onnxruntime"
    if before is None:
        del os.environ["RELAXIDE_CACHE"]
    else:
        os.environ["RELAXIDE_CACHE"] = before


@pytest.fixture(scope="module")
def ours():
    return Api(built())


@pytest.fixture(scope="module")
def both(ours):
    return [Api(THEIRS), ours]


def model(nodes, inputs, outputs, **more):
    values = lambda infos: [h.make_tensor_value_info(name, kind, shape) for name, kind, shape in infos]  # noqa: E731
    graph = h.make_graph(nodes, "g", values(inputs), values(outputs), **more)
    opsets = [h.make_opsetid("", 17), h.make_opsetid("ai.onnx.ml", 3)]
    return h.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="tests")


def sums():
    nodes = [h.make_node("Add", ["x", "y"], ["z"]), h.make_node("ReduceSum", ["z"], ["s"], keepdims=0)]
    inputs = [("x", T.FLOAT, ["n", 3]), ("y", T.FLOAT, [None, 3])]
    made = model(nodes, inputs, [("z", T.FLOAT, ["n", 3]), ("s", T.FLOAT, [])])
    made.model_version, made.doc_string, made.domain = 7, "adds", "org.example"
    made.metadata_props.append(onnx.StringStringEntryProto(key="labels", value="a,b"))
    return made.SerializeToString()


def zipped():
    """Scores as maps, and texts that go through."""
    nodes = [
        h.make_node("ZipMap", ["x"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[7, 8, 9]),
        h.make_node("Identity", ["t"], ["u"]),
        h.make_node("SequenceConstruct", ["x", "x"], ["q"]),
    ]
    made = model(nodes, [("x", T.FLOAT, ["n", 3]), ("t", T.STRING, ["m"])], [("u", T.STRING, ["m"])])
    score = h.make_map_type_proto(T.INT64, h.make_tensor_type_proto(T.FLOAT, []))
    made.graph.output.append(h.make_value_info("maps", h.make_sequence_type_proto(score)))
    made.graph.output.append(h.make_value_info("q", h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, ["n", 3]))))
    return made.SerializeToString()


@pytest.fixture(scope="module")
def sessions(both):
    return [Session(api, sums()) for api in both]


#: Forks where the library was used for a session and nothing else of it.
FORKS = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from c_api import Api, Session, built
signal.alarm(30)
session = Session(Api(built()), open(sys.argv[2], "rb").read())
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
print("forked")
"""


def test_a_process_forks_before_much_of_the_library_was_used(tmp_path):
    file = tmp_path / "sums.onnx"
    file.write_bytes(sums())
    words = [sys.executable, "-c", FORKS, pathlib.Path(__file__).parent, file]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout == "forked\n", done


def test_versions_up_to_the_table_are_there_and_later_ones_are_not(both):
    for api in both:
        first = api.base.get_api(1)
        assert first and all(api.base.get_api(version) == first for version in (2, 11, 17, VERSION))
        assert not api.base.get_api(0) and not api.base.get_api(1000)
    assert both[1].base.get_version_string().startswith(f"1.{VERSION}.".encode())
    assert b"Relaxide" in both[1].call("GetBuildInfoString", result=c.c_char_p)


def test_what_is_not_here_says_its_name_and_what_to_do(ours):
    absent = [name for name, answer in ROWS if answer.startswith("no ")]
    assert len(absent) > 100
    for name in absent:
        with pytest.raises(Failure, match=f"^{NOT_IMPLEMENTED}: {name} is not supported: .") as raised:
            ours.do(name)
        assert len(raised.value.message) > 50
    for name, answer in ROWS:
        if answer == "nothing":
            assert not ours.call(name, None)


def test_a_session_says_of_its_model_what_the_model_says(sessions):
    found = []
    for session in sessions:
        api, said = session.api, []
        for which in ("Input", "Output"):
            names = session.names(which)
            infos = [api.get(f"SessionGet{which}TypeInfo", session.handle, i) for i in range(len(names))]
            said.append([(name, described(api, info)) for name, info in zip(names, infos)])
        meta = api.get("SessionGetModelMetadata", session.handle)
        fields = ("ProducerName", "GraphName", "Domain", "Description", "GraphDescription")
        said.append([api.text(f"ModelMetadataGet{field}", meta) for field in fields])
        said.append(api.get("ModelMetadataGetVersion", meta, kind=c.c_int64))
        allocator, value, count = api.get("GetAllocatorWithDefaultOptions"), c.c_char_p(), c.c_int64()
        for key in ("labels", "none"):
            api.do("ModelMetadataLookupCustomMetadataMap", meta, allocator, key, c.byref(value))
            said.append(value.value)
        keys = c.POINTER(c.c_char_p)()
        api.do("ModelMetadataGetCustomMetadataMapKeys", meta, allocator, c.byref(keys), c.byref(count))
        said.append([keys[i] for i in range(count.value)])
        said.append(api.get("SessionGetOverridableInitializerCount", session.handle, kind=c.c_size_t))
        found.append(said)
    assert found[0] == found[1]


def test_outputs_come_as_they_are_asked_for(sessions):
    for session in sessions:
        api = session.api
        feed = {"x": tensor(api, X), "y": tensor(api, X)}
        z, s = [content(api, value) for value in session.run(feed)]
        np.testing.assert_array_equal(z, X + X)
        assert s.shape == () and s == 30
        [alone] = session.run(feed, ["s"])
        assert content(api, alone) == 30
        # What came out stays what it is when the session runs again, and may be written to.
        [kept] = session.run(feed, ["z"])
        session.run({"x": tensor(api, X * 9), "y": feed["y"]})
        np.testing.assert_array_equal(content(api, kept), X + X)


@pytest.mark.parametrize("offset", [0, 4])
def test_values_share_the_caller_s_memory_wherever_it_begins(sessions, offset):
    for session in sessions:
        api = session.api
        room = np.zeros(256, "uint8")
        start = -room.ctypes.data % 64 + offset
        x, z = (room[start + at : start + at + 24].view("float32").reshape(2, 3) for at in (0, 64))
        feed, place = {"x": tensor(api, x), "y": tensor(api, X)}, tensor(api, z)
        for factor in (1, 2):
            x[:] = X * factor
            [out] = session.run(feed, ["z"], places=[place])
            assert out.value == place.value
            np.testing.assert_array_equal(z, X * factor + X)


def test_what_is_given_wrong_is_refused_with_the_same_code(sessions):
    x64, x3 = np.zeros((2, 3)), np.zeros((2, 3, 1), "float32")
    long, wide = np.zeros((3, 3), "float32"), np.zeros((2, 4), "float32")

    def trials(session):
        api = session.api
        good = {"x": tensor(api, X), "y": tensor(api, X)}
        yield "unknown input", lambda: session.run(good | {"w": good["x"]})
        yield "unknown output", lambda: session.run(good, ["q"])
        yield "no output", lambda: session.run(good, [])
        yield "element", lambda: session.run(good | {"x": tensor(api, x64)})
        yield "rank", lambda: session.run(good | {"x": tensor(api, x3)})
        yield "length", lambda: session.run(good | {"x": tensor(api, wide)})
        yield "no value", lambda: session.run(good | {"x": None})
        yield "input number", lambda: api.text("SessionGetInputName", session.handle, 9)
        yield "type number", lambda: api.get("SessionGetOutputTypeInfo", session.handle, 9)
        info, shape = api.get("CreateCpuMemoryInfo", 0, 0), (c.c_int64 * 2)(2, 3)
        data, bad = X.ctypes.data, (c.c_int64 * 2)(2, -3)
        yield "too short", lambda: api.get("CreateTensorWithDataAsOrtValue", info, c.c_void_p(data), 8, shape, 2, 1)
        yield "negative", lambda: api.get("CreateTensorWithDataAsOrtValue", info, c.c_void_p(data), 24, bad, 2, 1)
        yield "texts", lambda: api.get("CreateTensorWithDataAsOrtValue", info, c.c_void_p(data), 24, shape, 2, 8)
        yield "part", lambda: api.get("GetValueCount", good["x"], kind=c.c_size_t)
        yield "memory", lambda: api.get("CreateMemoryInfo", "Nowhere", 0, 0, 0)
        yield "provider", lambda: api.do("SessionOptionsAppendExecutionProvider", session.options, "Nobody", None, None, 0)
        yield "entry", lambda: api.do("AddSessionConfigEntry", session.options, "", "1")
        yield "no entry", lambda: api.do("GetSessionConfigEntry", session.options, "none", None, c.byref(c.c_size_t()))
        yield "level", lambda: api.do("SetSessionGraphOptimizationLevel", session.options, 50)

    codes = []
    for session in sessions:
        found = {}
        for name, trial in trials(session):
            try:
                trial()
                found[name] = 0
            except Failure as failure:
                found[name] = failure.code
        codes.append(found)
    assert codes[1] == codes[0]
    # There the first kernel fails that misses its input; here the call is refused.
    with pytest.raises(Failure, match=f"^{INVALID_ARGUMENT}: Missing Input: y"):
        sessions[1].run({"x": tensor(sessions[1].api, X)})
    # Lengths that differ are refused by the program itself.
    with pytest.raises(Failure, match="[23]"):
        sessions[1].run({"x": tensor(sessions[1].api, X), "y": tensor(sessions[1].api, long)})


def test_null_and_handles_of_another_kind_are_refused(ours, sessions):
    session = sessions[1]
    for handle in (None, ours.get("CreateRunOptions")):
        assert ours.code("SessionGetInputCount", handle, c.byref(c.c_size_t())) == INVALID_ARGUMENT
        assert ours.code("CreateSession", handle, "x", session.options, c.byref(c.c_void_p())) == INVALID_ARGUMENT
        assert ours.code("IsTensor", handle, c.byref(c.c_int())) == INVALID_ARGUMENT
        assert ours.code("AddSessionConfigEntry", handle, "a", "b") == INVALID_ARGUMENT
    assert ours.code("SessionGetInputCount", session.handle, None) == INVALID_ARGUMENT
    assert ours.code("CreateEnv", 3, None, c.byref(c.c_void_p())) == INVALID_ARGUMENT
    assert ours.code("Run", session.handle, None, None, None, 2, None, 1, None) == INVALID_ARGUMENT
    released = ours.get("CreateRunOptions")
    for _ in range(2):
        ours.call("ReleaseRunOptions", released, result=None)
    for name in PLACES:
        if name.startswith("Release") and name != "ReleaseAvailableProviders":
            ours.call(name, None, result=None)


#: Functions whose answer is no status.
PLAIN = ("GetErrorCode", "GetErrorMessage", "GetBuildInfoString", "GetRunConfigEntry", "GetKeyValue", "TensorTypeAndShape_HasShape")
VOID = ("ClearBound", "Release", "AddKeyValuePair", "RemoveKeyValuePair", "GetKeyValuePairs", "CreateKeyValuePairs", "MemoryInfoGet")


def test_null_in_every_place_is_refused(ours):
    for name, answer in ROWS:
        if "::" in answer and name != "CreateStatus":
            if name == "GetCompileApi":
                assert ours.call(name)
            elif name in PLAIN or name.startswith(("EpDevice_", "HardwareDevice_")):
                assert not ours.call(name, None, None) or name == "GetErrorMessage" or name == "GetBuildInfoString"
            elif name.startswith(VOID) and name not in ("ReleaseAvailableProviders", "MemoryInfoGetName", "MemoryInfoGetId"):
                ours.call(name, *[None] * 4, result=None)
            else:
                code = ours.code(name, *[None] * 10)
                allowed = {"AllocatorFree": 0, "ReleaseAvailableProviders": 0, "CreateTensorAsOrtValue": NOT_IMPLEMENTED, "CopyTensors": 0}
                unsupported = name == "SetOptimizedModelFilePath"
                assert code == (NOT_IMPLEMENTED if unsupported else allowed.get(name, INVALID_ARGUMENT)), (name, code)


def test_bytes_that_are_no_model_give_a_status(both, tmp_path):
    whole, random = sums(), np.random.default_rng(4)
    hostile = [b"", b"no model", whole[: len(whole) // 2], random.bytes(200), b"\x3a\xff\xff\xff\xff\x0f" + whole[:9]]
    hostile += [bytes(byte if i != at else 255 - byte for i, byte in enumerate(whole)) for at in range(2, 60, 7)]
    for api in both:
        env, options = api.get("CreateEnv", 4, "tests"), api.get("CreateSessionOptions")
        make = lambda data: api.code("CreateSessionFromArray", env, data, len(data), options, c.byref(c.c_void_p()))  # noqa: E731, B023
        codes = [make(data) for data in hostile]
        assert all(codes[:4]), codes
        assert api.code("CreateSession", env, str(tmp_path / "none.onnx"), options, c.byref(c.c_void_p())) == 3
        (tmp_path / "bad.onnx").write_bytes(hostile[1])
        assert api.code("CreateSession", env, str(tmp_path / "bad.onnx"), options, c.byref(c.c_void_p())) == 7


def test_texts_maps_and_sequences_go_in_and_come_out(both):
    found = []
    for api in both:
        session = Session(api, zipped())
        infos = [api.get("SessionGetOutputTypeInfo", session.handle, i) for i in range(3)]
        feed = {"x": tensor(api, X), "t": texts(api, [3], ["é", "", "abc"])}
        out = session.run(feed)
        found.append([[described(api, info) for info in infos], *[content(api, value) for value in out]])
        kinds = [api.get("GetOnnxTypeFromTypeInfo", api.get("GetTypeInfo", value), kind=c.c_int) for value in out]
        assert kinds == [1, 2, 2]
    np.testing.assert_equal(found[1], found[0])
    assert found[1][1:3] == [["é", "", "abc"], [{7: 0.0, 8: 1.0, 9: 2.0}, {7: 3.0, 8: 4.0, 9: 5.0}]]


def test_values_are_composed_and_taken_apart(both):
    keys = np.asarray([4, 5], "int64")
    for api in both:
        numbers, scores = tensor(api, keys), tensor(api, np.asarray([0.5, 1.5], "float32"))
        pair = (c.c_void_p * 2)(numbers.value, scores.value)
        assert content(api, api.get("CreateValue", pair, 2, 3)) == {4: 0.5, 5: 1.5}
        several = (c.c_void_p * 2)(scores.value, scores.value)
        np.testing.assert_equal(content(api, api.get("CreateValue", several, 2, 2)), [[0.5, 1.5]] * 2)
        assert api.code("CreateValue", pair, 2, 2, c.byref(c.c_void_p())), "the parts of a sequence are of one type"
        at = api.get("TensorAt", numbers, (c.c_int64 * 1)(1), 1)
        assert c.cast(at, c.POINTER(c.c_int64))[0] == 5
        assert api.code("TensorAt", numbers, (c.c_int64 * 1)(2), 1, c.byref(c.c_void_p())) == INVALID_ARGUMENT
        words = texts(api, [2], ["a", "bc"])
        assert api.get("GetStringTensorElementLength", words, 1, kind=c.c_size_t) == 2
        api.do("FillStringTensorElement", words, "xyz", 0)
        buffer = c.create_string_buffer(3)
        api.do("GetStringTensorElement", words, 3, 0, buffer)
        assert buffer.raw == b"xyz"
        assert api.code("GetStringTensorElement", words, 3, 2, buffer) == INVALID_ARGUMENT


def test_bound_inputs_and_outputs_run_many_times(sessions):
    for session in sessions:
        api = session.api
        x, z = X.copy(), np.zeros_like(X)
        binding, info = api.get("CreateIoBinding", session.handle), api.get("CreateCpuMemoryInfo", 0, 0)
        api.do("BindInput", binding, "x", tensor(api, x))
        api.do("BindInput", binding, "y", tensor(api, X))
        api.do("BindOutput", binding, "z", tensor(api, z))
        api.do("BindOutputToDevice", binding, "s", info)
        for factor in (1, 3):
            x[:] = X * factor
            api.do("RunWithBinding", session.handle, None, binding)
            np.testing.assert_array_equal(z, X * factor + X)
        allocator, count = api.get("GetAllocatorWithDefaultOptions"), c.c_size_t()
        values, names, lengths = c.POINTER(c.c_void_p)(), c.c_void_p(), c.POINTER(c.c_size_t)()
        api.do("GetBoundOutputValues", binding, allocator, c.byref(values), c.byref(count))
        assert count.value == 2 and content(api, c.c_void_p(values[1])) == 60
        api.do("GetBoundOutputNames", binding, allocator, c.byref(names), c.byref(lengths), c.byref(count))
        assert c.string_at(names, 2) == b"zs" and list(lengths[:2]) == [1, 1]
        assert api.code("BindInput", binding, "w", tensor(api, X)) == FAIL
        api.call("ClearBoundInputs", binding, result=None)
        assert api.code("RunWithBinding", session.handle, None, binding)


def test_a_run_is_ended_by_its_options(sessions):
    for session in sessions:
        api = session.api
        options, feed = api.get("CreateRunOptions"), {"x": tensor(api, X), "y": tensor(api, X)}
        api.do("RunOptionsSetTerminate", options)
        with pytest.raises(Failure) as raised:
            session.run(feed, options=options)
        assert raised.value.code == FAIL
        api.do("RunOptionsUnsetTerminate", options)
        assert len(session.run(feed, options=options)) == 2


def test_a_run_that_is_under_way_is_ended(ours):
    """The loop would take minutes."""
    value = h.make_tensor_value_info
    nodes = [h.make_node("Identity", ["c"], ["again"]), h.make_node("MatMul", ["v", "v"], ["w"])]
    square = ["n", "n"]
    inputs = [value("i", T.INT64, []), value("c", T.BOOL, []), value("v", T.FLOAT, square)]
    body = h.make_graph(nodes, "body", inputs, [value("again", T.BOOL, []), value("w", T.FLOAT, square)])
    loop = h.make_node("Loop", ["k", "", "x"], ["y"], body=body)
    made = model([loop], [("k", T.INT64, []), ("x", T.FLOAT, square)], [("y", T.FLOAT, square)])
    session, options = Session(ours, made.SerializeToString()), ours.get("CreateRunOptions")
    feed = {"k": tensor(ours, np.asarray(1 << 40)), "x": tensor(ours, np.eye(4, dtype="float32"))}
    later = threading.Timer(0.02, lambda: ours.do("RunOptionsSetTerminate", options))
    later.start()
    with pytest.raises(Failure, match=f"^{FAIL}: "):
        session.run(feed, options=options)
    later.join()


def test_a_run_in_a_thread_of_its_own_tells_when_it_ends(sessions):
    session = sessions[1]
    api, done, seen = session.api, threading.Event(), []

    @c.CFUNCTYPE(None, c.c_void_p, c.POINTER(c.c_void_p), c.c_size_t, c.c_void_p)
    def callback(user_data, outputs, count, status):
        seen.append((user_data, count, status))
        done.set()

    names, wanted, outs = (c.c_char_p * 2)(b"x", b"y"), (c.c_char_p * 1)(b"s"), (c.c_void_p * 1)()
    values = (c.c_void_p * 2)(tensor(api, X).value, tensor(api, X).value)
    api.do("RunAsync", session.handle, None, names, values, 2, wanted, 1, outs, callback, c.c_void_p(77))
    assert done.wait(30) and seen == [(77, 1, None)]
    assert content(api, c.c_void_p(outs[0])) == 30


def test_fixed_dimensions_and_entries_are_kept(both):
    for api in both:
        session = Session(api, sums(), n=2)
        info = api.get("SessionGetInputTypeInfo", session.handle, 0)
        assert described(api, info)[1] == [2, 3]
        api.do("AddSessionConfigEntry", session.options, "a.key", "value")
        assert api.get("HasSessionConfigEntry", session.options, "a.key", kind=c.c_int) == 1
        size, buffer = c.c_size_t(0), c.create_string_buffer(9)
        api.do("GetSessionConfigEntry", session.options, "a.key", None, c.byref(size))
        assert size.value == 6
        api.do("GetSessionConfigEntry", session.options, "a.key", buffer, c.byref(size))
        assert buffer.value == b"value"


def test_equal_names_may_stand_for_different_lengths(both):
    node = h.make_node("Concat", ["x", "y"], ["z"], axis=0)
    loose = model([node], [("x", T.FLOAT, ["n"]), ("y", T.FLOAT, ["n"])], [("z", T.FLOAT, ["m"])]).SerializeToString()
    for api in both:
        session = Session(api, loose)
        for n, m in ((2, 2), (1, 3)):
            x, y = np.ones(n, "float32"), np.zeros(m, "float32")
            [z] = session.run({"x": tensor(api, x), "y": tensor(api, y)})
            np.testing.assert_array_equal(content(api, z), np.concatenate([x, y]))


def test_axes_may_depend_on_lengths(both):
    nodes = [h.make_node("Squeeze", ["x"], ["s"]), h.make_node("Add", ["s", "s"], ["y"])]
    squeezed = model(nodes, [("x", T.FLOAT, ["n", 1])], [("y", T.FLOAT, None)]).SerializeToString()
    for api in both:
        session = Session(api, squeezed)
        for n in (1, 3, 1):
            [y] = session.run({"x": tensor(api, np.full((n, 1), 2, "float32"))})
            found = content(api, y)
            assert found.shape == (() if n == 1 else (n,)) and (found == 4).all()


def test_what_passes_through_a_model_is_the_caller_s_own(both):
    nodes = [h.make_node("Identity", ["x"], ["y"]), h.make_node("Reshape", ["x", "flat"], ["z"])]
    weights = [h.make_tensor("flat", T.INT64, [1], [-1]), h.make_tensor("w", T.FLOAT, [2], [1, 2])]
    nodes.append(h.make_node("Identity", ["w"], ["v"]))
    outputs = [("y", T.FLOAT, ["n", 3]), ("z", T.FLOAT, [None]), ("v", T.FLOAT, [2])]
    through = model(nodes, [("x", T.FLOAT, ["n", 3])], outputs, initializer=weights).SerializeToString()
    for api in both:
        session, room = Session(api, through), np.zeros(256, "uint8")
        start = -room.ctypes.data % 64
        x = room[start : start + 24].view("float32").reshape(2, 3)
        x[:] = X
        out = session.run({"x": tensor(api, x)})
        x[:] = -1
        np.testing.assert_array_equal(content(api, out[0]), X)
        np.testing.assert_array_equal(content(api, out[1]), X.ravel())
        # Writing to what came out does not change the model.
        c.memset(api.get("GetTensorMutableData", out[2]).value, 0, 8)
        again = session.run({"x": tensor(api, x)})
        np.testing.assert_array_equal(content(api, again[2]), [1, 2])


def test_memory_of_the_caller_s_allocator_is_given_back(both):
    class Allocator(c.Structure):
        pass

    alloc = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_size_t)
    free = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p)
    info = c.CFUNCTYPE(c.c_void_p, c.c_void_p)
    Allocator._fields_ = [("version", c.c_uint32), ("alloc", alloc), ("free", free), ("info", info), ("rest", c.c_void_p * 4)]
    for api in both:
        live, place = {}, api.get("CreateCpuMemoryInfo", 0, 0)

        def give(_, size, live=live):
            block = c.create_string_buffer(size)
            live[c.addressof(block)] = block
            return c.addressof(block)

        mine = Allocator(17, alloc(give), free(lambda _, at, live=live: live.pop(at) and None), info(lambda _, p=place: p.value))
        value = api.get("CreateTensorAsOrtValue", c.byref(mine), (c.c_int64 * 1)(4), 1, 1)
        assert len(live) == 1
        api.call("ReleaseValue", value, result=None)
        assert not live


def test_a_model_in_memory_finds_its_weights_in_the_folder_that_is_named(both, tmp_path):
    weight = numpy_helper.from_array(np.arange(3, dtype="float32"), "w")
    node = h.make_node("Add", ["x", "w"], ["y"])
    made = model([node], [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["n", 3])], initializer=[weight])
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    for api in both:
        env, options = api.get("CreateEnv", 3, "tests"), api.get("CreateSessionOptions")
        make = lambda: api.get("CreateSessionFromArray", env, data, len(data), options)  # noqa: E731, B023
        with pytest.raises(Failure):
            make()
        api.do("AddSessionConfigEntry", options, "session.model_external_initializers_file_folder_path", str(tmp_path))
        session = Session(api, tmp_path / "m.onnx")
        for session.handle in (session.handle, make()):
            [y] = session.run({"x": tensor(api, X)})
            np.testing.assert_array_equal(content(api, y), X + [0, 1, 2])


def test_models_in_the_other_format_are_refused_with_what_to_do(ours):
    env, data = ours.get("CreateEnv", 3, "tests"), b"\x18\0\0\0ORTM" + bytes(64)
    with pytest.raises(Failure, match=f"^{NOT_IMPLEMENTED}: .*use the ONNX file"):
        ours.get("CreateSessionFromArray", env, data, len(data), None)


def test_a_second_start_finds_what_the_first_compiled(ours, cache, tmp_path):
    kept = lambda: {file.name: file.stat().st_ino for file in cache.glob("*.so")}  # noqa: E731
    path = tmp_path / "twice.onnx"
    made = onnx.load_from_string(sums())
    made.graph.node[0].name = "another model"
    onnx.save(made, path)
    before = kept()
    Session(ours, path)
    first = kept()
    assert len(first) == len(before) + 1
    session = Session(ours, path)
    assert kept() == first
    feed = {"x": tensor(ours, X), "y": tensor(ours, X)}
    assert content(ours, session.run(feed)[1]) == 30
