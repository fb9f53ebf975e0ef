"""What the C API is given beside a model, profiles and devices: the same calls and answers from either library."""

import ctypes as c
import json
import os

import numpy as np
import onnx
import pytest
from c_api import INVALID_ARGUMENT, NOT_IMPLEMENTED, THEIRS, Api, Failure, Session, built, content, tensor
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

X = np.arange(6, dtype="float32").reshape(2, 3)
W = np.arange(12, dtype="float32").reshape(3, 4)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    before = os.environ.get("RELAXIDE_CACHE")
    os.environ["RELAXIDE_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield [Api(THEIRS), Api(built())]
    os.environ.pop("RELAXIDE_CACHE") if before is None else os.environ.__setitem__("RELAXIDE_CACHE", before)


def product():
    nodes = [h.make_node("MatMul", ["x", "w"], ["y"])]
    info = h.make_tensor_value_info("x", T.FLOAT, [None, 3])
    info.type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    graph = h.make_graph(nodes, "g", [info], [h.make_tensor_value_info("y", T.FLOAT, None)], [numpy_helper.from_array(W, "w")])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)


class With(Session):
    """A session of a model with options that a function sets."""

    def __init__(self, api, model, prepare):
        self.api, self.env, self.options = api, api.get("CreateEnv", 3, "tests"), api.get("CreateSessionOptions")
        prepare(self.options)
        if isinstance(model, bytes):
            self.handle = api.get("CreateSessionFromArray", self.env, model, len(model), self.options)
        else:
            self.handle = api.get("CreateSession", self.env, str(model), self.options)


def names(*texts):
    return (c.c_char_p * len(texts))(*[text.encode() for text in texts])


def handles(*values):
    return (c.c_void_p * len(values))(*[value.value for value in values])


def test_a_weight_that_is_given_takes_the_place_of_the_model_s(both):
    for api in both:
        own = tensor(api, W * 3)
        session = With(api, product().SerializeToString(), lambda options, api=api, own=own: api.do("AddInitializer", options, "w", own))
        np.testing.assert_array_equal(content(api, session.run({"x": tensor(api, X)})[0]), X @ (W * 3))


def test_weights_and_files_that_lie_elsewhere_are_given_from_memory(both, tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(product(), path, save_as_external_data=True, location="weights.bin", size_threshold=70)
    held = (tmp_path / "weights.bin").read_bytes()
    (tmp_path / "weights.bin").unlink()
    buffer = c.create_string_buffer(held, len(held))
    for api in both:
        own = tensor(api, W * 2)
        session = With(api, path, lambda options, api=api, own=own: api.do("AddExternalInitializers", options, names("w"), handles(own), 1))
        np.testing.assert_array_equal(content(api, session.run({"x": tensor(api, X)})[0]), X @ (W * 2))

        def files(options, api=api):
            places, lengths = (c.c_void_p * 1)(c.addressof(buffer)), (c.c_size_t * 1)(len(held))
            api.do("AddExternalInitializersFromFilesInMemory", options, names("weights.bin"), places, lengths, 1)

        session = With(api, path.read_bytes(), files)
        np.testing.assert_array_equal(content(api, session.run({"x": tensor(api, X)})[0]), X @ W)
        with pytest.raises(Failure, match="nobody"):
            With(api, path, lambda options, api=api, own=own: api.do("AddExternalInitializers", options, names("nobody"), handles(own), 1))


def test_dimensions_are_fixed_by_what_they_stand_for(both):
    for api in both:
        fixed = lambda options, api=api: api.do("AddFreeDimensionOverride", options, "data_batch", 2)  # noqa: E731
        session = With(api, product().SerializeToString(), fixed)
        np.testing.assert_array_equal(content(api, session.run({"x": tensor(api, X)})[0]), X @ W)
        with pytest.raises(Failure, match=f"^{INVALID_ARGUMENT}: Got invalid dimensions"):
            session.run({"x": tensor(api, np.ones((3, 3), "f4"))})


def test_a_profile_has_an_event_for_each_run_and_its_kernels(both, tmp_path):
    for i, api in enumerate(both):
        prefix = str(tmp_path / f"profile{i}")
        session = With(api, product().SerializeToString(), lambda options, api=api, p=prefix: api.do("EnableProfiling", options, p))
        assert api.get("SessionGetProfilingStartTimeNs", session.handle, kind=c.c_uint64) > 0
        for _ in range(3):
            session.run({"x": tensor(api, X)})
        path = api.text("SessionEndProfiling", session.handle)
        assert path.startswith(prefix)
        events = json.load(open(path))
        assert sum(event["name"] == "model_run" for event in events) == 3
        kernels = [event for event in events if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
        assert len(kernels) >= 3 and all(kernel["args"]["provider"] == "CPUExecutionProvider" for kernel in kernels)
        session.run({"x": tensor(api, X)})


def test_a_single_run_has_a_profile(both, tmp_path):
    for i, api in enumerate(both):
        session = With(api, product().SerializeToString(), lambda options: None)
        options = api.get("CreateRunOptions")
        prefix = str(tmp_path / f"run{i}")
        api.do("RunOptionsEnableProfiling", options, prefix)
        session.run({"x": tensor(api, X)}, options=options)
        api.do("RunOptionsDisableProfiling", options)
        session.run({"x": tensor(api, X)}, options=options)
        [path] = tmp_path.glob(f"run{i}*.json")
        events = json.load(open(path))
        kernels = [event for event in events if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
        assert kernels and all(kernel["dur"] >= 0 for kernel in kernels)


def test_the_processor_is_the_device_that_can_be_chosen(both):
    for api in both:
        env = api.get("CreateEnv", 3, "tests")
        devices, count = c.POINTER(c.c_void_p)(), c.c_size_t()
        api.do("GetEpDevices", env, c.byref(devices), c.byref(count))
        found = [c.c_void_p(devices[i]) for i in range(count.value)]
        named = {api.call("EpDevice_EpName", device, result=c.c_char_p): device for device in found}
        device = named[b"CPUExecutionProvider"]
        hardware = c.c_void_p(api.call("EpDevice_Device", device))
        assert api.call("HardwareDevice_Type", hardware, result=c.c_int) == 0
        for name in ("EpDevice_EpVendor", "HardwareDevice_Vendor"):
            assert isinstance(api.call(name, device if name.startswith("Ep") else hardware, result=c.c_char_p), bytes)
        for name, of in (("EpDevice_EpMetadata", device), ("EpDevice_EpOptions", device), ("HardwareDevice_Metadata", hardware)):
            assert api.call(name, of)
        choose = lambda options, api=api, env=env, device=device: api.do(  # noqa: E731
            "SessionOptionsAppendExecutionProvider_V2", options, env, handles(device), 1, None, None, 0
        )
        session = With(api, product().SerializeToString(), choose)
        np.testing.assert_array_equal(content(api, session.run({"x": tensor(api, X)})[0]), X @ W)


def test_functions_that_write_compiled_models_say_that_they_are_not_here(both):
    ours = both[1]
    table = c.cast(ours.call("GetCompileApi"), c.POINTER(c.c_void_p))
    c.CFUNCTYPE(None, c.c_void_p)(table[0])(None)
    for place in range(1, 16):
        status = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_void_p)(table[place])(None, None)
        assert ours.call("GetErrorCode", c.c_void_p(status), result=c.c_int) == NOT_IMPLEMENTED
        ours.call("ReleaseStatus", c.c_void_p(status), result=None)


def test_weights_among_the_inputs_may_be_given(both):
    value = lambda name, shape: h.make_tensor_value_info(name, T.FLOAT, shape)  # noqa: E731
    graph = h.make_graph(
        [h.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", [None, 3]), value("w", [3, 4])], [value("y", None)], [numpy_helper.from_array(W, "w")]
    )
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8).SerializeToString()
    for api in both:
        session = With(api, made, lambda options: None)
        for weight in (W * 2, None, W + 1):
            feed = {"x": tensor(api, X)} | ({} if weight is None else {"w": tensor(api, weight)})
            np.testing.assert_array_equal(content(api, session.run(feed)[0]), X @ (W if weight is None else weight))
        with pytest.raises(Failure, match=f"^{INVALID_ARGUMENT}"):
            session.run({"x": tensor(api, X), "w": tensor(api, W[:2])})
