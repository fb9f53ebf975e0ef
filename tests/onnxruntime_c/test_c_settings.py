"""What is set, asked and described by the C API beside sessions and their runs: the same in either library."""

import ctypes as c

import numpy as np
import pytest
from c_api import INVALID_ARGUMENT, THEIRS, VERSION, Api, built, content, shape_of, tensor, texts

X = np.arange(6, dtype="float32").reshape(2, 3)


@pytest.fixture(scope="module")
def both():
    return [Api(THEIRS), Api(built())]


def same(both, look):
    """What `look` finds in both; it must be the same, and not nothing."""
    theirs, ours = [look(api) for api in both]
    assert ours == theirs and ours
    return ours


def test_options_of_sessions(both):
    def look(api):
        options = api.get("CreateSessionOptions")
        said = [api.code("SetSessionGraphOptimizationLevel", options, level) for level in (0, 1, 2, 3, 99)]
        said += [api.get("GetSessionExecutionMode", options, kind=c.c_int), api.code("SetSessionExecutionMode", options, 1)]
        said += [api.get("GetSessionExecutionMode", options, kind=c.c_int), api.code("SetSessionExecutionMode", options, 5)]
        for name in ("DisableMemPattern", "EnableMemPattern"):
            said += [api.code(name, options), api.get("GetMemPatternEnabled", options, kind=c.c_int)]
        for name in ("EnableCpuMemArena", "DisableCpuMemArena", "DisableProfiling", "DisablePerSessionThreads"):
            said.append(api.code(name, options))
        for name in ("SetSessionLogVerbosityLevel", "SetSessionLogSeverityLevel", "SetInterOpNumThreads", "SetDeterministicCompute"):
            said.append(api.code(name, options, 1))
        said += [api.code("SetSessionLogId", options, "id"), api.code("SetIntraOpNumThreads", options, 2)]
        api.do("AddSessionConfigEntry", options, "a", "1")
        copy = api.get("CloneSessionOptions", options)
        api.call("ReleaseSessionOptions", options, result=None)
        said.append(entries(api, api.get("GetSessionOptionsConfigEntries", copy)))
        said.append(api.library.OrtSessionOptionsAppendExecutionProvider_CPU(copy, 1))
        return said

    assert same(both, look)[-2:] == [{b"a": b"1"}, 0]


def entries(api, pairs):
    keys, values, count = c.POINTER(c.c_char_p)(), c.POINTER(c.c_char_p)(), c.c_size_t()
    api.call("GetKeyValuePairs", pairs, c.byref(keys), c.byref(values), c.byref(count), result=None)
    found = {keys[i]: values[i] for i in range(count.value)}
    api.call("ReleaseKeyValuePairs", pairs, result=None)
    return found


def test_pairs_of_texts(both):
    def look(api):
        pairs = c.c_void_p()
        api.call("CreateKeyValuePairs", c.byref(pairs), result=None)
        for key, value in (("a", "1"), ("b", "2"), ("a", "3"), ("", "4")):
            api.call("AddKeyValuePair", pairs, key, value, result=None)
        api.call("RemoveKeyValuePair", pairs, "b", result=None)
        said = [api.call("GetKeyValue", pairs, key, result=c.c_char_p) for key in ("a", "b")]
        return said, entries(api, pairs)

    assert same(both, look) == ([b"3", None], {b"a": b"3"})


def test_options_of_runs(both):
    def look(api):
        options = api.get("CreateRunOptions")
        for name, value in (("RunLogVerbosityLevel", 3), ("RunLogSeverityLevel", 2)):
            api.do(f"RunOptionsSet{name}", options, value)
        api.do("RunOptionsSetRunTag", options, "tag")
        api.do("AddRunConfigEntry", options, "key", "value")
        said = [api.get(f"RunOptionsGet{name}", options, kind=c.c_int) for name in ("RunLogVerbosityLevel", "RunLogSeverityLevel")]
        said.append(api.get("RunOptionsGetRunTag", options, kind=c.c_char_p))
        said += [api.call("GetRunConfigEntry", options, key, result=c.c_char_p) for key in ("key", "none")]
        return said

    assert same(both, look) == [3, 2, b"tag", b"value", None]


def test_environments(both):
    def look(api):
        # One with threads of its own is the process's for good in ONNX Runtime, so it comes last.
        threading = api.get("CreateThreadingOptions")
        said = [api.code(f"SetGlobal{name}", threading, 1) for name in ("IntraOpNumThreads", "InterOpNumThreads", "SpinControl")]
        env = api.get("CreateEnv", 3, "tests")
        said += [api.code(name, env) for name in ("EnableTelemetryEvents", "DisableTelemetryEvents")]
        said += [api.code("SetLanguageProjection", env, 0), api.code("UpdateEnvWithCustomLogLevel", env, 3)]
        api.call("ReleaseEnv", env, result=None)
        names, count = c.POINTER(c.c_char_p)(), c.c_int()
        api.do("GetAvailableProviders", c.byref(names), c.byref(count))
        said.append([names[i] for i in range(count.value)][-1])
        api.do("ReleaseAvailableProviders", names, count.value)
        return said

    assert same(both, look)[-1] == b"CPUExecutionProvider"


def test_the_caller_s_function_is_told_of_warnings(both, tmp_path, monkeypatch):
    ours, seen = both[1], []
    (tmp_path / "onnxruntime").mkdir(mode=0o777)
    (tmp_path / "onnxruntime").chmod(0o777)
    monkeypatch.setenv("RELAXIDE_CACHE", str(tmp_path))

    @c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p, c.c_char_p, c.c_char_p)
    def log(param, severity, category, name, place, message):
        seen.append((param, severity, name, message))

    from test_c_interface import sums

    env, model = ours.get("CreateEnvWithCustomLogger", log, c.c_void_p(5), 2, "mine"), sums()
    ours.get("CreateSessionFromArray", env, model, len(model), None)
    [(param, severity, name, message)] = seen
    assert (param, severity, name) == (5, 2, b"mine") and b"others may write to it" in message


def test_places_of_memory_and_allocators(both):
    def look(api):
        device, arena = api.get("CreateCpuMemoryInfo", 0, 0), api.get("CreateMemoryInfo", "Cpu", 1, 0, -1)
        said = [api.get("CompareMemoryInfo", device, other, kind=c.c_int) != 0 for other in (device, arena)]
        for info in (device, arena):
            said.append(api.get("MemoryInfoGetName", info, kind=c.c_char_p))
            said += [api.get(f"MemoryInfoGet{field}", info, kind=c.c_int) for field in ("Id", "MemType", "Type")]
            kind = c.c_int(9)
            api.call("MemoryInfoGetDeviceType", info, c.byref(kind), result=None)
            said.append(kind.value)
        allocator = api.get("GetAllocatorWithDefaultOptions")
        block = api.get("AllocatorAlloc", allocator, 1000)
        c.memset(block.value, 1, 1000)
        said.append(api.code("AllocatorFree", allocator, block))
        said.append(api.get("MemoryInfoGetName", api.get("AllocatorGetInfo", allocator), kind=c.c_char_p))
        return said

    assert same(both, look)[:2] == [False, True]
    ours = both[1]
    # Memory of other devices can be described, but values are not there.
    cuda, shape = ours.get("CreateMemoryInfo", "Cuda", 0, 0, 0), (c.c_int64 * 2)(2, 3)
    made = ours.code("CreateTensorWithDataAsOrtValue", cuda, c.c_void_p(X.ctypes.data), 24, shape, 2, 1, c.byref(c.c_void_p()))
    assert made == INVALID_ARGUMENT


def test_shapes_that_are_made_by_hand(both):
    def look(api):
        info = api.get("CreateTensorTypeAndShapeInfo")
        api.do("SetTensorElementType", info, 7)
        api.do("SetDimensions", info, (c.c_int64 * 2)(-1, 4), 2)
        api.do("SetSymbolicDimensions", info, (c.c_char_p * 2)(b"n", b""), 2)
        said = shape_of(api, info)
        api.do("SetDimensions", info, (c.c_int64 * 3)(2, 0, 5), 3)
        return said, api.get("GetTensorShapeElementCount", info, kind=c.c_size_t)

    assert same(both, look) == ((7, [-1, 4], ["n", ""]), 0)


def test_what_is_said_of_values(both):
    def look(api):
        value, words = tensor(api, X), texts(api, [2], ["a", "bc"])
        said = [api.get(name, value, kind=c.c_int) for name in ("IsTensor", "IsSparseTensor", "HasValue", "GetValueType")]
        said.append(api.get("GetTensorSizeInBytes", value, kind=c.c_size_t))
        said.append(api.get("GetTensorData", value).value == X.ctypes.data)
        said.append(api.get("MemoryInfoGetName", api.get("GetTensorMemoryInfo", value), kind=c.c_char_p))
        element, dims, rank = c.c_int(), c.POINTER(c.c_int64)(), c.c_size_t()
        api.do("GetTensorElementTypeAndShapeDataReference", value, c.byref(element), c.byref(dims), c.byref(rank))
        said += [element.value, dims[: rank.value]]
        buffer = api.get("GetResizedStringTensorElementBuffer", words, 0, 3)
        c.memmove(buffer.value, b"xyz", 3)
        return [*said, content(api, words)]

    assert same(both, look)[-1] == ["xyz", "bc"]


def test_the_version_is_that_of_the_table(both):
    assert both[1].base.get_version_string() == f"1.{VERSION}.0".encode()
