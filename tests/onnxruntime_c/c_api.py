"""ONNX Runtime's C API by `ctypes`, of any library that has it: functions are found by their place in our own table."""

import ctypes as c
import pathlib
import re

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "crates" / "onnxruntime" / "src" / "table.rs"
#: What is built here, and the package's own.
OURS = ROOT / "target" / "release" / "libonnxruntime.so"
THEIRS = next(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))

ROWS = re.findall(r"^    (\w+) => \[(.*)\]$", TABLE.read_text(), re.M)
PLACES = {name: place for place, (name, _) in enumerate(ROWS)}
VERSION = int(re.search(r"VERSION: u32 = (\d+)", TABLE.read_text())[1])

OK, FAIL, INVALID_ARGUMENT, NO_SUCHFILE, RUNTIME_EXCEPTION, INVALID_PROTOBUF = 0, 1, 2, 3, 6, 7
NOT_IMPLEMENTED, INVALID_GRAPH = 9, 10

ELEMENTS = {"float32": 1, "int32": 6, "int64": 7, "bool": 9, "float64": 11}
NAMES = {number: name for name, number in ELEMENTS.items()}


def built():
    """Our library, which `make build` makes."""
    assert OURS.exists(), f"{OURS} is missing: make build"
    return OURS


class Failure(Exception):
    """A status."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class _Base(c.Structure):
    _fields_ = [("get_api", c.CFUNCTYPE(c.c_void_p, c.c_uint32)), ("get_version_string", c.CFUNCTYPE(c.c_char_p))]


class Api:
    """The functions of a library by their names."""

    def __init__(self, path):
        self.library = c.CDLL(str(path))
        self.library.OrtGetApiBase.restype = c.POINTER(_Base)
        self.base = self.library.OrtGetApiBase().contents
        self.table = c.cast(self.base.get_api(17), c.POINTER(c.c_void_p))
        assert self.table, "version 17 is there in both"

    def call(self, name, *args, result=c.c_void_p):
        """Call a function whatever its answer is."""
        args = [arg.encode() if isinstance(arg, str) else arg for arg in args]
        types = [c.c_int64 if isinstance(arg, int) else c.c_void_p for arg in args]
        return c.CFUNCTYPE(result, *types)(self.table[PLACES[name]])(*args)

    def do(self, name, *args):
        """Call a function that answers with a status; one of a failure is raised."""
        status = self.call(name, *args)
        if status:
            code = self.call("GetErrorCode", c.c_void_p(status), result=c.c_int)
            message = self.call("GetErrorMessage", c.c_void_p(status), result=c.c_char_p).decode(errors="replace")
            self.call("ReleaseStatus", c.c_void_p(status), result=None)
            raise Failure(code, message)

    def get(self, name, *args, kind=c.c_void_p):
        """The result that a function writes to its last argument."""
        out = kind()
        self.do(name, *args, c.byref(out))
        return c.c_void_p(out.value) if kind is c.c_void_p else out.value

    def code(self, name, *args):
        """The code of the status that a function answers with."""
        try:
            self.do(name, *args)
        except Failure as failure:
            return failure.code
        return OK

    def text(self, name, *args):
        """A text that a function allocates."""
        allocator = self.get("GetAllocatorWithDefaultOptions")
        got = self.get(name, *args[:1], *args[1:], allocator)
        text = c.string_at(got.value).decode() if got.value else None
        self.do("AllocatorFree", allocator, got)
        return text


class Session:
    """A session and what it is made with."""

    def __init__(self, api, model, **options):
        self.api = api
        self.env = api.get("CreateEnv", 3, "tests")
        self.options = api.get("CreateSessionOptions")
        api.do("SetIntraOpNumThreads", self.options, 1)
        for name, length in options.items():
            api.do("AddFreeDimensionOverrideByName", self.options, name, length)
        if isinstance(model, bytes):
            self.handle = api.get("CreateSessionFromArray", self.env, model, len(model), self.options)
        else:
            self.handle = api.get("CreateSession", self.env, str(model), self.options)

    def names(self, which):
        """The names of inputs or outputs."""
        count = self.api.get(f"SessionGet{which}Count", self.handle, kind=c.c_size_t)
        return [self.api.text(f"SessionGet{which}Name", self.handle, i) for i in range(count)]

    def run(self, feed, wanted=None, options=None, places=None):
        """Run, from handles to handles."""
        wanted = self.names("Output") if wanted is None else wanted
        names = (c.c_char_p * len(feed))(*[name.encode() for name in feed])
        values = (c.c_void_p * len(feed))(*[value and value.value for value in feed.values()])
        out_names = (c.c_char_p * len(wanted))(*[name.encode() for name in wanted])
        outs = (c.c_void_p * len(wanted))(*[place and place.value for place in places or [None] * len(wanted)])
        self.api.do("Run", self.handle, options, names, values, len(feed), out_names, len(wanted), outs)
        return [c.c_void_p(out) for out in outs]


def tensor(api, array):
    """A value over an array's memory."""
    info = api.get("CreateCpuMemoryInfo", 0, 0)
    shape = (c.c_int64 * array.ndim)(*array.shape)
    data, element = c.c_void_p(array.ctypes.data), ELEMENTS[array.dtype.name]
    value = api.get("CreateTensorWithDataAsOrtValue", info, data, array.nbytes, shape, array.ndim, element)
    api.call("ReleaseMemoryInfo", info, result=None)
    value.array = array  # It lives as long as the value.
    return value


def texts(api, shape, values):
    """A tensor of texts."""
    allocator = api.get("GetAllocatorWithDefaultOptions")
    dims = (c.c_int64 * len(shape))(*shape)
    value = api.get("CreateTensorAsOrtValue", allocator, dims, len(shape), 8)
    api.do("FillStringTensor", value, (c.c_char_p * len(values))(*[text.encode() for text in values]), len(values))
    return value


def described(api, info):
    """What a type says, all the way down."""
    kind = api.get("GetOnnxTypeFromTypeInfo", info, kind=c.c_int)
    if kind == 1:
        return shape_of(api, api.get("CastTypeInfoToTensorInfo", info))
    if kind == 2:
        inner = api.get("GetSequenceElementType", api.get("CastTypeInfoToSequenceTypeInfo", info))
        return "seq", described(api, inner)
    if kind == 3:
        of_map = api.get("CastTypeInfoToMapTypeInfo", info)
        return "map", api.get("GetMapKeyType", of_map, kind=c.c_int), described(api, api.get("GetMapValueType", of_map))
    if kind == 6:
        return "optional", described(api, api.get("GetOptionalContainedTypeInfo", api.get("CastTypeInfoToOptionalTypeInfo", info)))
    return kind


def shape_of(api, info):
    """Element type, lengths and names of dimensions."""
    rank = api.get("GetDimensionsCount", info, kind=c.c_size_t)
    dims, names = (c.c_int64 * rank)(), (c.c_char_p * rank)()
    api.do("GetDimensions", info, dims, rank)
    api.do("GetSymbolicDimensions", info, names, rank)
    return api.get("GetTensorElementType", info, kind=c.c_int), list(dims), [name.decode() for name in names]


def content(api, value):
    """What is in a value, in Python."""
    kind = api.get("GetValueType", value, kind=c.c_int)
    if kind in (2, 3):
        allocator = api.get("GetAllocatorWithDefaultOptions")
        count = api.get("GetValueCount", value, kind=c.c_size_t)
        parts = [content(api, api.get("GetValue", value, i, allocator)) for i in range(count)]
        return parts if kind == 2 else dict(zip(*[part.tolist() if isinstance(part, np.ndarray) else part for part in parts]))
    element, shape, _ = shape_of(api, api.get("GetTensorTypeAndShape", value))
    if element == 8:
        count = int(np.prod(shape))
        length = api.get("GetStringTensorDataLength", value, kind=c.c_size_t)
        buffer, offsets = c.create_string_buffer(length + 1), (c.c_size_t * max(count, 1))()
        api.do("GetStringTensorContent", value, buffer, length, offsets, count)
        ends = [*offsets[1:count], length]
        return [buffer.raw[start:end].decode() for start, end in zip(offsets[:count], ends)]
    dtype = np.dtype(NAMES[element])
    data = api.get("GetTensorMutableData", value)
    count = int(np.prod(shape))
    return np.frombuffer(c.string_at(data.value, count * dtype.itemsize), dtype).reshape(shape).copy() if count else np.zeros(shape, dtype)
