"""The exceptions of ONNX Runtime's interface, by their names.

Each message begins as ONNX Runtime's does, with the number and the name of its status, so that programs that look at the text
find them. What Python itself has a name for (a wrong type of an argument, an input that was left out) is Python's exception.
"""


class OnnxRuntimeError(Exception):
    """What all of them are; Relaxide's own."""

    _code, _status = 1, "FAIL"

    def __init__(self, message=""):
        super().__init__(f"[ONNXRuntimeError] : {self._code} : {self._status} : {message}")


def _kind(name, code, status, doc):
    members = {"__doc__": doc, "__module__": __name__, "_code": code, "_status": status}
    return type(name, (OnnxRuntimeError,), members)


Fail = _kind("Fail", 1, "FAIL", "The work could not be done.")
InvalidArgument = _kind("InvalidArgument", 2, "INVALID_ARGUMENT", "An argument does not fit the model.")
NoSuchFile = _kind("NoSuchFile", 3, "NO_SUCHFILE", "There is no such file.")
NoModel = _kind("NoModel", 4, "NO_MODEL", "There is no model.")
EngineError = _kind("EngineError", 5, "ENGINE_ERROR", "The engine failed.")
RuntimeException = _kind("RuntimeException", 6, "RUNTIME_EXCEPTION", "The model failed while it ran.")
InvalidProtobuf = _kind("InvalidProtobuf", 7, "INVALID_PROTOBUF", "The bytes are no ONNX model.")
ModelLoaded = _kind("ModelLoaded", 8, "MODEL_LOADED", "A model is loaded already.")
NotImplemented = _kind("NotImplemented", 9, "NOT_IMPLEMENTED", "Something is not supported.")  # noqa: A001
InvalidGraph = _kind("InvalidGraph", 10, "INVALID_GRAPH", "The model's graph is not valid.")
EPFail = _kind("EPFail", 11, "EP_FAIL", "An execution provider failed.")
ModelLoadCanceled = _kind("ModelLoadCanceled", 12, "MODEL_LOAD_CANCELED", "Loading was cancelled.")
ModelRequiresCompilation = _kind("ModelRequiresCompilation", 13, "MODEL_REQUIRES_COMPILATION", "The model must be compiled first.")
NotFound = _kind("NotFound", 14, "NOT_FOUND", "Something was not found.")
DeviceReset = _kind("DeviceReset", 15, "DEVICE_RESET", "A device was reset.")

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NotFound",
    "NotImplemented",
    "OnnxRuntimeError",
    "RuntimeException",
]
