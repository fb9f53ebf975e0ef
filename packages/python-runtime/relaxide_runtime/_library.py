"""The C interface of the runtime (`relaxide.h`), by ctypes: every function returns 0 or leaves an error to its thread."""

import ctypes
import pathlib

C = ctypes
Handle = C.c_void_p


class DType(C.Structure):
    """An element type: a code, bits and lanes."""

    _fields_ = [("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16)]


class TensorInfo(C.Structure):
    """What a tensor consists of."""

    _fields_ = [
        ("data", C.c_void_p),
        ("shape", C.POINTER(C.c_int64)),
        ("strides", C.POINTER(C.c_int64)),
        ("ndim", C.c_size_t),
        ("dtype", DType),
        ("device_type", C.c_int32),
        ("device_id", C.c_int32),
        ("size", C.c_size_t),
        ("byte_size", C.c_size_t),
    ]


class FunctionInfo(C.Structure):
    """A function of a model."""

    _fields_ = [("name", C.c_char_p), ("num_params", C.c_size_t)]


class ParamInfo(C.Structure):
    """A parameter of a function."""

    _fields_ = [
        ("name", C.c_char_p),
        ("annotation", C.c_char_p),
        ("dtype", DType),
        ("ndim", C.c_int32),
        ("dims", C.POINTER(C.c_int64)),
    ]


class RuntimeFailure(RuntimeError):
    """An error that has no kind of Python's own."""


#: Errors by the names that they have in every language.
KINDS = {
    kind.__name__: kind
    for kind in (ValueError, TypeError, IndexError, KeyError, AttributeError, MemoryError, NotImplementedError, OSError, FileNotFoundError,
                 PermissionError, OverflowError, AssertionError, RuntimeError, RecursionError)
}

_P = C.POINTER
_SIGNATURES = {
    "set_num_threads": [C.c_int],
    "dtype_parse": [C.c_char_p, _P(DType)],
    "dtype_name": [DType, C.c_char_p, C.c_size_t],
    "tensor_new": [_P(C.c_int64), C.c_size_t, DType, _P(Handle)],
    "tensor_describe": [Handle, _P(TensorInfo)],
    "value_int": [C.c_int64, _P(Handle)],
    "value_float": [C.c_double, _P(Handle)],
    "value_str": [C.c_char_p, _P(Handle)],
    "value_tensor": [Handle, _P(Handle)],
    "value_tuple": [_P(Handle), C.c_size_t, _P(Handle)],
    "value_kind": [Handle, _P(C.c_int)],
    "value_as_int": [Handle, _P(C.c_int64)],
    "value_as_float": [Handle, _P(C.c_double)],
    "value_as_str": [Handle, _P(C.c_char_p)],
    "value_as_shape": [Handle, _P(_P(C.c_int64)), _P(C.c_size_t)],
    "value_as_tensor": [Handle, _P(Handle)],
    "value_tuple_size": [Handle, _P(C.c_size_t)],
    "value_field": [Handle, C.c_size_t, _P(Handle)],
    "model_load": [C.c_char_p, _P(Handle)],
    "model_load_with_weights": [C.c_char_p, C.c_char_p, _P(Handle)],
    "model_num_functions": [Handle, _P(C.c_size_t)],
    "model_function": [Handle, C.c_size_t, _P(FunctionInfo)],
    "model_param": [Handle, C.c_char_p, C.c_size_t, _P(ParamInfo)],
    "model_num_output_names": [Handle, C.c_char_p, _P(C.c_size_t)],
    "model_output_name": [Handle, C.c_char_p, C.c_size_t, _P(C.c_char_p)],
    "model_call": [Handle, C.c_char_p, _P(Handle), C.c_size_t, _P(Handle)],
}


def _opened():
    library = C.CDLL(str(pathlib.Path(__file__).parent / "librelaxide_runtime.so"))
    for name, arguments in _SIGNATURES.items():
        function = getattr(library, f"relaxide_{name}")
        function.argtypes, function.restype = arguments, C.c_int
    for name in ("tensor", "value", "model"):
        function = getattr(library, f"relaxide_{name}_free")
        function.argtypes, function.restype = [Handle], None
    for name in ("version", "error_kind", "error_message"):
        function = getattr(library, f"relaxide_{name}")
        function.argtypes, function.restype = [], C.c_char_p
    library.relaxide_release_cached_memory.restype = None
    return library


LIBRARY = _opened()


def call(name, *arguments):
    """Calls a function; its error is raised."""
    if getattr(LIBRARY, f"relaxide_{name}")(*arguments) != 0:
        kind, message = LIBRARY.relaxide_error_kind().decode(), LIBRARY.relaxide_error_message().decode(errors="replace")
        raise KINDS.get(kind, RuntimeFailure)(message)


def result(name, kind, *arguments):
    """What a function writes to its last argument."""
    place = kind()
    call(name, *arguments, C.byref(place))
    return place if issubclass(kind, C.Structure) or kind is Handle else place.value


class Owned:
    """A handle that is given back when nobody has it any more."""

    def __init__(self, kind, handle):
        self._free, self.handle = getattr(LIBRARY, f"relaxide_{kind}_free"), handle

    def __del__(self):
        if self.handle:
            self._free(self.handle)
            self.handle = None
