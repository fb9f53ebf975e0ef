"""Calls of ONNX Runtime's Python interface, generated: each parameter of a call has a pool of arguments, right ones and wrong ones,
and a call is made with all that its pools give, or with a sample of them.

A call is a function of a :class:`World`, which has the package (ONNX Runtime's or the door) and a fresh session, and of the
arguments. Pools hold functions of the world, so that every package gets values of its own. What comes out is described by
:func:`outcome`: the same text for both packages, or the interfaces differ.
"""

import copy
import enum
import itertools
import json
import os
import random
import sys
import warnings

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

X = np.arange(6, dtype="float32").reshape(2, 3)


def _model(nodes, inputs, outputs, weights=(), opset=17):
    values = lambda infos: [h.make_tensor_value_info(name, kind, shape) for name, kind, shape in infos]  # noqa: E731
    graph = h.make_graph(nodes, "g", values(inputs), values(outputs), initializer=list(weights))
    return h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8, producer_name="tests").SerializeToString()


def _models():
    node = h.make_node
    sums = [node("Add", ["x", "y"], ["z"]), node("ReduceSum", ["z"], ["s"], keepdims=0)]
    yield "sums", _model(sums, [("x", T.FLOAT, ["n", 3]), ("y", T.FLOAT, [None, 3])], [("z", T.FLOAT, ["n", 3]), ("s", T.FLOAT, [])])
    kinds = {"f": T.FLOAT16, "d": T.DOUBLE, "i": T.INT64, "b": T.BOOL, "t": T.STRING}
    passed = [node("Identity", [name], [f"{name}_out"]) for name in kinds]
    ends = [(name, kind, ["n"]) for name, kind in kinds.items()]
    yield "kinds", _model(passed, ends, [(f"{name}_out", kind, shape) for name, kind, shape in ends])
    listed = node("SequenceConstruct", ["x", "x"], ["q"])
    graph = h.make_graph(
        [listed, node("Identity", ["x"], ["y"])],
        "g",
        [h.make_tensor_value_info("x", T.FLOAT, ["n"])],
        [h.make_value_info("q", h.make_sequence_type_proto(h.make_tensor_type_proto(T.FLOAT, None))), h.make_tensor_value_info("y", T.FLOAT, ["n"])],
    )
    yield "listed", h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString()
    weight = nh.from_array(np.ones(3, "float32"), "w")
    added = [node("Add", ["x", "w"], ["y"])]
    yield "weighted", _model(added, [("x", T.FLOAT, [2, 3]), ("w", T.FLOAT, [3])], [("y", T.FLOAT, [2, 3])], [weight])
    yield "constant", _model([node("Constant", [], ["y"], value=nh.from_array(X, "x"))], [], [("y", T.FLOAT, [2, 3])])


MODELS = dict(_models())


class World:
    """A package and what calls are made on."""

    def __init__(self, ort, folder):
        self.ort, self.folder = ort, folder
        self.sessions, self.kept = {}, []

    def session(self, name="sums"):
        """A session, the same one each time."""
        if name not in self.sessions:
            self.sessions[name] = self.ort.InferenceSession(MODELS[name], providers=["CPUExecutionProvider"])
        return self.sessions[name]

    def value(self, array, *more):
        # A copy: values share the memory of their arrays, which calls write to.
        return self.ort.OrtValue.ortvalue_from_numpy(array.copy(), *more)

    def state(self):
        """The package's extension module."""
        from importlib import import_module

        return import_module(f"{self.ort.__name__}.capi.onnxruntime_pybind11_state")


def const(value):
    """An argument that is the same for both packages; arrays are new ones each time, since values share their memory."""
    return lambda world: copy.deepcopy(value) if isinstance(value, (np.ndarray, dict, list)) else value


def describe(value):
    """A value as text, the same whichever package it is of."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {list(value.shape)} {value.tolist() if value.size < 50 else ''}"
    if isinstance(value, np.generic):
        return f"number {value.dtype} {value.item()}"
    if isinstance(value, (list, tuple)):
        # Vectors of pybind11 are lists with another name.
        return f"[{', '.join(map(describe, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{describe(key)}: {describe(item)}' for key, item in sorted(value.items(), key=str))}}}"
    kind = type(value).__name__
    if kind == "OrtValue":
        return f"OrtValue {value.data_type()} {describe(value.numpy()) if value.is_tensor() else ''}"
    if kind == "NodeArg":
        return f"NodeArg {value.name} {value.type} {value.shape}"
    if isinstance(value, enum.Enum) or (hasattr(value, "value") and hasattr(value, "name")):
        return f"{kind}.{value.name}={int(value.value)}"
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return f"{kind} {value!r}"
    return kind


def outcome(call, world, arguments):
    """What a call gives, as text: its value, or the class of what it raises with the status that its message begins with."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return describe(call(world, *[make(world) for make in arguments]))
    except Exception as error:
        status = str(error).split(" : ")[1:3] if str(error).startswith("[ONNXRuntimeError]") else []
        return f"raises {type(error).__name__} {' '.join(status)}".rstrip()


class Call:
    """A call with a pool for each parameter."""

    def __init__(self, name, call, /, **pools):
        self.name, self.call, self.pools = name, call, pools

    def cases(self, most=60):
        """Names and arguments of what is tried: everything, or a sample that is the same each time."""
        picks = [list(pool.items()) for pool in self.pools.values()]
        every = list(itertools.product(*picks))
        if len(every) > most:
            every = random.Random(self.name).sample(every, most)
        for pick in every:
            words = ", ".join(f"{where}: {what}" for where, (what, _) in zip(self.pools, pick))
            yield f"{self.name}({words})", [make for _, make in pick]


def pool(*values, **named):
    """Arguments that both packages share, named by how they are written."""
    return {repr(value): const(value) for value in values} | named


# What Python has of values that are no numbers, or are some.
ODD = pool(None, True, 1, -1, 1.5, "2", "", b"x", (), [3])
FLAGS = ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "enable_profiling", "use_deterministic_compute", "use_per_session_threads")
NUMBERS = ("inter_op_num_threads", "intra_op_num_threads", "log_severity_level", "log_verbosity_level")
TEXTS = ("logid", "profile_file_prefix")
ENUMS = {"execution_mode": "ExecutionMode", "execution_order": "ExecutionOrder", "graph_optimization_level": "GraphOptimizationLevel"}
RUN_FLAGS = ("only_execute_path_to_fetches", "terminate")


def _set(make, name):
    def call(world, value):
        options = make(world)
        setattr(options, name, value)
        return getattr(options, name)

    return call


def _options():
    session, run = lambda w: w.ort.SessionOptions(), lambda w: w.ort.RunOptions()  # noqa: E731
    for name in (*FLAGS, *NUMBERS, *TEXTS, *ENUMS, "optimized_model_filepath", "no_such_option"):
        yield Call(f"SessionOptions.{name}", lambda w, name=name: getattr(session(w), name))
        # A text in the place of a path is written where there is one: an empty one is none.
        yield Call(f"SessionOptions.{name} =", _set(session, name), value=ODD if name != "optimized_model_filepath" else pool(None, 1, ""))
    for name, kind in ENUMS.items():
        members = {member: lambda w, kind=kind, member=member: getattr(getattr(w.ort, kind), member) for member in _members(kind)}
        yield Call(f"SessionOptions.{name} = member", _set(session, name), value=members)
        yield Call(f"{kind}(number)", lambda w, value, kind=kind: getattr(w.ort, kind)(value), value=ODD | pool(0, 2, 99))
    for name in (*RUN_FLAGS, "log_severity_level", "log_verbosity_level", "logid", "no_such_option"):
        yield Call(f"RunOptions.{name}", lambda w, name=name: getattr(run(w), name))
        yield Call(f"RunOptions.{name} =", _set(run, name), value=ODD)
    # `None` ends the process there.
    keys, values = pool("a", "", 1, **{"a long text": const("k" * 2000)}), pool("1", "", 1, **{"a long text": const("v" * 3000)})

    def entry(make, add, get):
        def call(world, key, value):
            options = make(world)
            return [getattr(options, add)(key, value), getattr(options, get)(key)]

        return call

    yield Call("add_session_config_entry", entry(session, "add_session_config_entry", "get_session_config_entry"), key=keys, value=values)
    yield Call("add_run_config_entry", entry(run, "add_run_config_entry", "get_run_config_entry"), key=keys, value=values)
    yield Call("get_session_config_entry", lambda w, key: session(w).get_session_config_entry(key), key=pool("none", "", 1))
    yield Call("get_run_config_entry", lambda w, key: run(w).get_run_config_entry(key), key=pool("none", "", 1))
    for name in ("add_free_dimension_override_by_name", "add_free_dimension_override_by_denotation"):
        call = lambda w, dim, length, name=name: getattr(session(w), name)(dim, length)  # noqa: E731
        yield Call(name, call, dim=pool("n", "", None, 1), length=ODD)
    yield Call("add_initializer", lambda w, name, value: session(w).add_initializer(name, value), name=pool("w", "", None), value=VALUES)
    yield Call("has_providers", lambda w: session(w).has_providers())

    def provided(world, name, options):
        made = session(world)
        return [made.add_provider(name, options), made.has_providers()]

    yield Call("add_provider", provided, name=pool("CPUExecutionProvider", "Nobody", "", None), options=pool({}, {"a": "1"}, {"a": 1}, None))
    yield Call("register_custom_ops_library", lambda w, path: session(w).register_custom_ops_library(path), path=pool("nowhere.so", "", None, 1))
    yield Call("set_load_cancellation_flag", lambda w, flag: session(w).set_load_cancellation_flag(flag), flag=pool(True, False, None, "x"))
    yield Call("add_external_initializers", lambda w, a, b: session(w).add_external_initializers(a, b), a=pool([], ["w"], "w", None), b=pool([], [1], None))


def _members(kind):
    import onnxruntime

    return list(getattr(onnxruntime, kind).__members__)


VALUES = {
    "a value": lambda w: w.value(X),
    "an array": const(X),
    "None": const(None),
    "1": const(1),
}
ARRAYS = {
    "float32": const(X),
    "float64": const(X.astype("float64")),
    "float16": const(X.astype("float16")),
    "int8": const(X.astype("int8")),
    "uint16": const(X.astype("uint16")),
    "bool": const(X > 2),
    "complex64": const(X.astype("complex64")),
    "datetime": const(np.zeros(2, "datetime64[s]")),
    "texts": const(np.array(["a", "bc"])),
    "bytes": const(np.array([b"a", b"bc"])),
    "objects that are texts": const(np.array(["a", "bc"], object)),
    "objects that are none": const(np.array([1, None], object)),
    "no axes": const(np.float32(3).reshape(())),
    "nothing": const(np.zeros((0, 3), "float32")),
    "columns": const(np.asfortranarray(X)),
    "every other": const(np.arange(12, dtype="float32")[::2].reshape(2, 3)),
    "backwards": const(X[::-1]),
    "big-endian": const(X.astype(">f4")),
    "read-only": lambda w: _read_only(),
    "a list": const(X.tolist()),
    "a number": const(1.5),
    "a numpy number": const(np.float32(1.5)),
    "a text": const("text"),
    "None": const(None),
}


def _read_only():
    array = X.copy()
    array.setflags(write=False)
    return array


DEVICES = pool("cpu", "CPU", "Cpu", "cuda", "nobody", "", None, 1)
IDS = pool(0, 1, -1, None, "0")
ELEMENT_TYPES = pool(np.float32, "float32", np.dtype("int64"), 1, 7, 8, 16, 0, 99, None, "nobody", float, int, bool, str, object, np.complex64)
SHAPES = pool([2, 3], (2, 3), [], [0], [-1], [2, None], None, 3, "23", [2.5], np.array([2, 3]))


def _values():
    of = lambda w: w.ort.OrtValue  # noqa: E731
    yield Call("ortvalue_from_numpy", lambda w, array: of(w).ortvalue_from_numpy(array), array=ARRAYS)
    yield Call("ortvalue_from_numpy on", lambda w, kind, id: describe(of(w).ortvalue_from_numpy(X, kind, id)), kind=DEVICES, id=IDS)
    shaped = lambda w, shape, kind: [(v := of(w).ortvalue_from_shape_and_type(shape, kind)).shape(), v.data_type(), v.element_type()]  # noqa: E731
    yield Call("ortvalue_from_shape_and_type", shaped, shape=SHAPES, kind=ELEMENT_TYPES)
    typed = lambda w, array, kind: (v := of(w).ortvalue_from_numpy_with_onnx_type(array, kind)) and [v.shape(), v.data_type()]  # noqa: E731
    yield Call("ortvalue_from_numpy_with_onnx_type", typed, array={key: ARRAYS[key] for key in ("float32", "uint16", "int8", "None")}, kind=ELEMENT_TYPES)
    asked = "shape data_type element_type has_value is_tensor is_sparse_tensor is_tensor_sequence tensor_size_in_bytes device_name numpy as_sparse_tensor __dlpack_device__"
    several = {
        "a matrix": lambda w: w.value(X),
        "float16": lambda w: w.value(X.astype("float16")),
        "bool": lambda w: w.value(X > 1),
        "no axes": lambda w: w.value(np.float64(2).reshape(())),
        "empty": lambda w: w.value(np.zeros((0, 2), "int64")),
        "a sequence": lambda w: w.session("listed").run_with_ort_values(["q"], {"x": w.value(X[0])})[0],
        "a bfloat16": lambda w: of(w).ortvalue_from_shape_and_type([2], 16),
    }
    for name in asked.split():
        yield Call(f"OrtValue.{name}", lambda w, value, name=name: getattr(value, name)(), value=several)
    yield Call("np.asarray(OrtValue)", lambda w, value, dtype: np.asarray(value, dtype), value=several, dtype=pool(None, "float64"))
    yield Call("OrtValue.update_inplace", lambda w, value, array: [value.update_inplace(array), value], value=several, array=ARRAYS | VALUES)
    yield Call("OrtValue.from_dlpack", lambda w, array: of(w).from_dlpack(array), array=ARRAYS | {"a value": VALUES["a value"]})
    yield Call("np.from_dlpack(OrtValue)", lambda w, value: np.from_dlpack(value), value=several)
    yield Call("OrtValue.data_ptr", lambda w, value: value.data_ptr() > 0, value=several)
    made = lambda w, kind, id: (d := w.ort.OrtDevice.make(kind, id)) and [d.device_id(), d.device_type(), d.device_mem_type(), d.device_vendor_id()]  # noqa: E731
    yield Call("OrtDevice.make", made, kind=DEVICES, id=IDS)
    info = lambda w, *four: [getattr(w.ort.OrtMemoryInfo(*four), name) for name in ("name", "device_id", "mem_type", "allocator_type")]  # noqa: E731
    member = lambda kind, name: lambda w: getattr(getattr(w.ort, kind), name)  # noqa: E731
    kinds = {name: member("OrtAllocatorType", name) for name in ("ORT_DEVICE_ALLOCATOR", "ORT_ARENA_ALLOCATOR")} | pool(1, None)
    yield Call("OrtMemoryInfo", info, name=pool("Cpu", "Cuda", "nobody", ""), kind=kinds, id=pool(0, 1, None), mem=pool(0, None) | {"DEFAULT": member("OrtMemType", "DEFAULT")})


FEEDS = {
    "right": lambda w: {"x": X, "y": X},
    "lists": lambda w: {"x": X.tolist(), "y": X.tolist()},
    "values": lambda w: {"x": w.value(X), "y": w.value(X)},
    "a value and an array": lambda w: {"x": w.value(X), "y": X},
    "one missing": lambda w: {"x": X},
    "one too many": lambda w: {"x": X, "y": X, "q": X},
    "none": lambda w: {},
    "None": const(None),
    "a list": lambda w: [X, X],
    "None within": lambda w: {"x": None, "y": X},
    "doubles": lambda w: {"x": X, "y": X.astype("float64")},
    "doubles as a value": lambda w: {"x": X, "y": w.value(X.astype("float64"))},
    "integers": lambda w: {"x": X, "y": X.astype("int64")},
    "texts": lambda w: {"x": X, "y": np.full((2, 3), "1")},
    "objects": lambda w: {"x": X, "y": X.astype(object)},
    "fewer axes": lambda w: {"x": X, "y": X[0]},
    "another length": lambda w: {"x": X[:, :2], "y": X[:, :2]},
    "lengths that differ": lambda w: {"x": X, "y": np.zeros((4, 3), "float32")},
    "one row": lambda w: {"x": X, "y": X[:1]},
    "no rows": lambda w: {"x": X[:0], "y": X[:0]},
    "columns": lambda w: {"x": np.asfortranarray(X), "y": X},
    "a number": lambda w: {"x": 1.0, "y": X},
    "a key that is no text": lambda w: {"x": X, "y": X, 3: X},
    "big-endian": lambda w: {"x": X.astype(">f4"), "y": X},
    "a device's tensor": lambda w: {"x": _torch(X), "y": X},
}
NAMES = pool(None, [], ["z"], ["s", "z"], ["z", "z"], ["q"], "z", ["x"], [None], ("z",), [""], 3)
RUN_OPTIONS = {
    "None": const(None),
    "options": lambda w: w.ort.RunOptions(),
    "terminated": lambda w: _terminated(w),
    "1": const(1),
    "{}": const({}),
    "session options": lambda w: w.ort.SessionOptions(),
}


def _torch(array):
    import torch

    return torch.from_numpy(array.copy())


def _terminated(world):
    options = world.ort.RunOptions()
    options.terminate = True
    return options


KINDS = {"f": "float16", "d": "float64", "i": "int64", "b": "bool"}


def _of_kinds(world, **changed):
    feed = {name: np.array([0, 1], dtype) for name, dtype in KINDS.items()} | {"t": np.array(["a", "ä"], object)}
    return feed | changed


KIND_FEEDS = {f"{name} given {what}": lambda w, name=name, make=make: _of_kinds(w, **{name: make(w)}) for name in (*KINDS, "t") for what, make in ARRAYS.items()}
LISTS = {
    "list of int": const([0, 1]),
    "list of float": const([0.0, 1.0]),
    "list of bool": const([False, True]),
    "list of text": const(["a", "b"]),
    "tuple": const((0, 1)),
    "range": const(range(2)),
    "array of int32": const(np.array([0, 1], "int32")),
}
KIND_FEEDS |= {f"{name} given {what}": lambda w, name=name, make=make: _of_kinds(w, **{name: make(w)}) for name in (*KINDS, "t") for what, make in LISTS.items()}


def _sessions():
    yield Call("run", lambda w, names, feed, options: w.session().run(names, feed, options), names=NAMES, feed=FEEDS, options=pool(None))
    yield Call("run with options", lambda w, options: w.session().run(None, {"x": X, "y": X}, options), options=RUN_OPTIONS)
    yield Call("run of kinds", lambda w, feed: w.session("kinds").run(None, feed), feed=KIND_FEEDS)
    yield Call("run of a weight", lambda w, feed: w.session("weighted").run(None, feed), feed={"without": const({"x": X}), "with": const({"x": X, "w": X[1]}), "of two axes": const({"x": X, "w": X})})
    dims = pool(1, 2, 3, -1, 0)
    yield Call("fixed dimensions", _fixed, dim=pool("n", "m"), length=dims)
    yield Call("run of nothing", lambda w, feed: w.session("constant").run(None, feed), feed=pool({}, {"x": 1}, None))
    ort_values = lambda w, names, feed: w.session().run_with_ort_values(names, feed)  # noqa: E731
    yield Call("run_with_ort_values", ort_values, names=NAMES, feed=FEEDS)
    yield Call("run_with_ort_values with options", lambda w, o: w.session().run_with_ort_values(None, FEEDS["values"](w), o), o=RUN_OPTIONS)
    for name in "get_inputs get_outputs get_overridable_initializers get_providers get_provider_options end_profiling get_profiling_start_time_ns".split():
        yield Call(name, lambda w, model, name=name: getattr(w.session(model), name)(), model=pool(*MODELS))
    for name in "get_input_memory_infos get_output_memory_infos".split():
        told = lambda w, model, name=name: [(m.name, m.device_id, int(m.mem_type), m.allocator_type) for m in getattr(w.session(model), name)()]  # noqa: E731
        yield Call(name, told, model=pool(*MODELS))
    yield Call("get_input_epdevices", lambda w, model: [d.ep_name for d in w.session(model).get_input_epdevices()], model=pool(*MODELS))
    fields = "producer_name graph_name domain description graph_description version custom_metadata_map nothing".split()
    yield Call("get_modelmeta", lambda w, model, field: getattr(w.session(model).get_modelmeta(), field), model=pool(*MODELS), field=pool(*fields))
    yield Call("get_session_options", lambda w: type(w.session().get_session_options()).__name__)
    yield Call("NodeArg", lambda w, model: [str(a) for a in w.session(model).get_inputs()], model=pool(*MODELS))
    for name in ("disable_fallback", "enable_fallback", "get_tuning_results"):
        yield Call(name, lambda w, name=name: getattr(w.session(), name)())
    yield Call("set_tuning_results", lambda w, results: w.session().set_tuning_results(results), results=pool([], [{}], None))
    yield Call("set_ep_dynamic_options", lambda w, options: w.session().set_ep_dynamic_options(options), options=pool({}, {"ep.dynamic.workload_type": "Default"}, {"nobody": "1"}, None))

    def provided(world, providers, options):
        session = world.ort.InferenceSession(MODELS["constant"], providers=["CPUExecutionProvider"])
        return [session.set_providers(providers, options), session.get_providers(), session.get_provider_options(), session.run(None, {})]

    cpu, many = "CPUExecutionProvider", ["CPUExecutionProvider", "CPUExecutionProvider"]
    providers = pool(None, [], [cpu], (cpu,), many, cpu, [(cpu, {})], [(cpu, {"a": "1"})], [(cpu, {"use_arena": 1})], ["Nobody"], ["Nobody", cpu], [("Nobody", {}), cpu], [1], [(cpu,)], 3, {cpu}, ["CUDAExecutionProvider", cpu])
    yield Call("set_providers", provided, providers=providers, options=pool(None, [], [{}], [{}, {}], [None], {}, [{"arena_extend_strategy": "x"}]))

    def made(world, model, options, more):
        session = world.ort.InferenceSession(model, options, **{"providers": ["CPUExecutionProvider"]} | more)
        return [session.get_inputs(), session.get_providers()]

    models = {name: const(model) for name, model in MODELS.items()} | pool(None, 1, b"", b"junk", "nowhere.onnx", "", bytearray(MODELS["constant"]))
    models |= {"memoryview": const(memoryview(MODELS["constant"])), "a folder": lambda w: str(w.folder), "a path": _written, "a path object": lambda w: __import__("pathlib").Path(_written(w)), "bytes of a path": lambda w: _written(w).encode()}
    models |= {"a stream": lambda w: __import__("io").BytesIO(MODELS["constant"]), "the format of its own": lambda w: b"\0\0\0\0ORTM" + bytes(60), "a file of that": _ort_file}
    options = {"None": const(None), "options": lambda w: w.ort.SessionOptions(), "{}": const({}), "1": const(1), "run options": lambda w: w.ort.RunOptions()}
    more = pool({}, {"providers": None}, {"nobody": 1}, {"disabled_optimizers": ["ConstantFolding"]}, {"enable_fallback": 0}, {"read_config_from_model": 1})
    yield Call("InferenceSession", made, model=models, options={"None": const(None)}, more=pool({}))
    yield Call("InferenceSession with options", made, model={"constant": const(MODELS["constant"])}, options=options, more=more)


def _fixed(world, dim, length):
    """What a session says and does of a model with a dimension that is fixed."""
    options = world.ort.SessionOptions()
    options.add_free_dimension_override_by_name(dim, length)
    session = world.ort.InferenceSession(MODELS["sums"], options, providers=["CPUExecutionProvider"])
    return [session.get_inputs(), session.get_outputs(), session.run(None, {"x": X, "y": X})]


def _written(world):
    path = os.path.join(world.folder, "constant.onnx")
    with open(path, "wb") as file:
        file.write(MODELS["constant"])
    return path


def _ort_file(world):
    path = os.path.join(world.folder, "model.ort")
    with open(path, "wb") as file:
        file.write(b"\0\0\0\0ORTM" + bytes(60))
    return path


def _process():
    names = "get_available_providers get_all_providers get_device has_collective_ops disable_telemetry_events enable_telemetry_events".split()
    for name in names[2:]:
        yield Call(name, lambda w, name=name: getattr(w.ort, name)())
    for name, arguments in (("set_default_logger_severity", ODD), ("set_default_logger_verbosity", pool(0, None, "x")), ("set_seed", ODD)):
        yield Call(name, lambda w, value, name=name: getattr(w.ort, name)(value), value=arguments | pool(0, 4, 5, 99))
    yield Call("get_ep_devices", lambda w: [(d.ep_name, d.device.type) for d in w.ort.get_ep_devices()])
    yield Call("create_and_register_allocator", lambda w, info: w.ort.create_and_register_allocator(info, None), info=pool(None, 1))
    arena = lambda w, *four: [getattr(w.ort.OrtArenaCfg(*four), "max_mem")]  # noqa: E731
    yield Call("OrtArenaCfg", arena, a=pool(0, -1, None, "x"), b=pool(-1, 0), c=pool(-1, 5), d=pool(-1))
    yield Call("OrtArenaCfg of a dictionary", lambda w, settings: w.ort.OrtArenaCfg(settings).max_mem, settings=pool({}, {"max_mem": 5}, {"nobody": 1}, {"max_mem": "x"}))
    yield Call("copy_tensors", lambda w, a, b: [w.ort.copy_tensors(a(w), b(w)), ], a=COPIED, b=COPIED)


COPIED = {
    "nothing": const(lambda w: []),
    "one": const(lambda w: [w.value(X)]),
    "two": const(lambda w: [w.value(X), w.value(X)]),
    "of another shape": const(lambda w: [w.value(X[0].copy())]),
    "an array": const(lambda w: [X]),
}


def _sparse():
    device = lambda w: w.ort.OrtDevice.make("cpu", 0)  # noqa: E731
    values = pool(np.float32([1, 2]), np.int64([1, 2]), [1.0, 2.0], np.array(["a", "b"]), None)
    numbered = pool(np.int64([1, 4]), np.int64([[0, 1], [1, 1]]), np.int64([1]), np.int32([1, 4]), [1, 4], None)
    shape = pool(np.int64([2, 3]), [2, 3], np.int64([6]), None)

    def told(sparse):
        return [sparse.data_type(), sparse.dense_shape(), sparse.device_name(), sparse.format(), sparse.values()]

    def coo(world, shape, values, places):
        sparse = world.ort.SparseTensor.sparse_coo_from_numpy(shape, values, places, device(world))
        return [*told(sparse), sparse.as_coo_view().indices()]

    yield Call("sparse_coo_from_numpy", coo, shape=shape, values=values, places=numbered)

    def csr(world, shape, values, inner, outer):
        sparse = world.ort.SparseTensor.sparse_csr_from_numpy(shape, values, inner, outer, device(world))
        return [*told(sparse), sparse.as_csrc_view().inner(), sparse.as_csrc_view().outer()]

    inner, outer = pool(np.int64([1, 1]), np.int64([1]), [1, 1]), pool(np.int64([0, 1, 2]), np.int64([0, 1]), [0, 1, 2])
    yield Call("sparse_csr_from_numpy", csr, shape=shape, values=values, inner=inner, outer=outer)

    def around(world, view):
        sparse = world.ort.SparseTensor.sparse_coo_from_numpy(np.int64([2, 3]), np.float32([1, 2]), np.int64([1, 4]), device(world))
        value = world.ort.OrtValue.ort_value_from_sparse_tensor(sparse)
        return [value.is_sparse_tensor(), value.is_tensor(), value.data_type(), value.has_value(), value.as_sparse_tensor().values(), getattr(sparse, view)()]

    yield Call("a value that is sparse", around, view=pool("as_coo_view", "as_csrc_view", "as_blocksparse_view"))
    given = lambda w: w.ort.SparseTensor.sparse_coo_from_numpy(np.int64([2, 3]), np.float32([1, 2]), np.int64([1, 4]), device(w))  # noqa: E731
    yield Call("run of a sparse tensor", lambda w, ask: w.session().run(None, {"x": ask(w), "y": X}), ask={"sparse": const(given)})
    yield Call("SparseTensor.to_cuda", lambda w: given(w).to_cuda(device(w)))


def _bound():
    def bound(world, how, name, what, **more):
        session = world.session()
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)
        binding.bind_cpu_input("y", X)
        binding.bind_output("z")
        world.kept.append(binding)
        return [getattr(binding, how)(name, what), session.run_with_iobinding(binding), binding.copy_outputs_to_cpu()]

    yield Call("bind_cpu_input", lambda w, n, v: bound(w, "bind_cpu_input", n, v), name=pool("x", "q", "z", None), value=ARRAYS | VALUES)
    yield Call("bind_ortvalue_input", lambda w, n, v: bound(w, "bind_ortvalue_input", n, v), name=pool("x", "q", None), value=VALUES)
    outputs = VALUES | {"another shape": lambda w: w.value(np.zeros((3, 2), "float32")), "doubles": lambda w: w.value(np.zeros((2, 3)))}
    yield Call("bind_ortvalue_output", lambda w, n, v: bound(w, "bind_ortvalue_output", n, v), name=pool("z", "s", "q", None), value=outputs)

    def memory(world, name, kind, id, element, shape, ends):
        session, place = world.session(), np.zeros((2, 3), "float32")
        binding = session.io_binding()
        world.kept.append((binding, place))
        binding.bind_cpu_input("y", X)
        if ends == "input":
            binding.bind_input(name, kind, id, element, shape, place.ctypes.data)
            binding.bind_output("z")
        else:
            binding.bind_cpu_input("x", X)
            binding.bind_output(name, kind, id, element, shape, place.ctypes.data)
        return [session.run_with_iobinding(binding), binding.copy_outputs_to_cpu(), place]

    devices, elements = pool("cpu", "CPU", "cuda", None), pool(np.float32, np.dtype("float32"), "float32", 1, np.float16, None, object)
    shapes = pool([2, 3], (2, 3), [2, 2], [6], None, [-1, 3])
    yield Call("bind_input", lambda w, *a: memory(w, *a, "input"), name=pool("x", "q"), kind=devices, id=pool(0, 1), element=elements, shape=shapes)
    yield Call("bind_output", lambda w, *a: memory(w, *a, "output"), name=pool("z", "q"), kind=devices, id=pool(0, 1), element=elements, shape=shapes)


def calls():
    """All of them."""
    from door_walks import walks

    for group in (_options, _values, _sessions, _process, _sparse, _bound, walks):
        yield from group()


def main(package, folder, done):
    """Makes all calls behind the first `done`, and writes what each gives to a file as soon as it is known."""
    from importlib import import_module

    ort = import_module(package)
    ort.set_default_logger_severity(4)
    world = World(ort, folder)
    cases = ((call, *case) for call in calls() for case in call.cases())
    with open(os.path.join(folder, "outcomes"), "a") as file:
        for call, name, arguments in itertools.islice(cases, done, None):
            # The name first: the call may end the process.
            file.write(json.dumps([name])[:-1])
            file.flush()
            file.write(f", {json.dumps(outcome(call.call, world, arguments))}]\n")
            file.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
