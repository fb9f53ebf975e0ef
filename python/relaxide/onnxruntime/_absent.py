"""What has a name in ONNX Runtime's interface and is not here: programs may ask for the names, and are told so where they use them."""

import enum

from ._errors import NotImplemented

_LIBRARY = "`relaxide compile MODEL -o model.so` writes what is compiled"
_KERNELS = "kernels and devices of ONNX Runtime's libraries cannot be used: sessions run on the processor"
_WEIGHTS = "its weights are packed by ONNX Runtime's own kernels: quantize with ONNX Runtime and run the model here"

#: Classes, with what to do instead.
_CLASSES = {
    "ModelCompiler": _LIBRARY,
    "ModelPackage": _LIBRARY,
    "ModelPackageComponentContext": _LIBRARY,
    "ModelPackageContext": _LIBRARY,
    "ModelPackageOptions": _LIBRARY,
    "OrtEpAssignedNode": _KERNELS,
    "OrtEpAssignedSubgraph": _KERNELS,
    "OrtEpContextData": _KERNELS,
    "OrtEpContextDataBuffer": _KERNELS,
    "OrtExternalInitializerInfo": "weights are compiled in: save them in the model, or in files beside it",
    "OrtSyncStream": _KERNELS,
}

#: Functions, with what to do instead.
_FUNCTIONS = {
    "register_execution_provider_library": _KERNELS,
    "unregister_execution_provider_library": _KERNELS,
}

#: Functions of the extension module, which ONNX Runtime's own tools import.
_TOOLS = {
    "quantize_matmul_2bits": _WEIGHTS,
    "quantize_matmul_4bits": _WEIGHTS,
    "quantize_matmul_8bits": _WEIGHTS,
    "quantize_matmul_bnb4": _WEIGHTS,
    "quantize_qdq_matmul_2bits": _WEIGHTS,
    "quantize_qdq_matmul_4bits": _WEIGHTS,
}


class OrtCompileApiFlags(enum.IntFlag):
    """How a model would be compiled to a file of ONNX Runtime's own."""

    NONE = 0
    ERROR_IF_NO_NODES_COMPILED = 1
    ERROR_IF_OUTPUT_FILE_EXISTS = 2


class ModelPackageWriteMode(enum.IntEnum):
    """How a package of models would be written."""

    PRESERVE = 0
    DENSE = 1


def _refusal(name, instead):
    def refuse(*args, **kwargs):
        raise NotImplemented(f"{name} is not here: {instead}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: {instead}."
    return refuse


class _Refused(type):
    """A class of which there are no objects; its functions are refused as well."""

    def __call__(cls, *args, **kwargs):
        return _refusal(cls.__name__, cls.instead)()

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _refusal(f"{cls.__name__}.{name}", cls.instead)


globals().update({name: _Refused(name, (), {"instead": why, "__doc__": f"Refused: {why}."}) for name, why in _CLASSES.items()})
globals().update({name: _refusal(name, why) for name, why in (_FUNCTIONS | _TOOLS).items()})

#: The names that the package itself has.
NAMES = ["ModelPackageWriteMode", "OrtCompileApiFlags", *_CLASSES, *_FUNCTIONS]

__all__ = [*NAMES, *_TOOLS]
