"""Where sessions run: on the processor. The names of ONNX Runtime's other providers are known, and asking for one is a warning."""

import warnings
from collections.abc import Sequence

#: Where sessions run.
PROVIDERS = ["CPUExecutionProvider"]

#: What some build of ONNX Runtime has.
_OTHERS = (
    "Tensorrt CUDA MIGraphX OpenVINO Dnnl VitisAI QNN Nnapi VSINPU Js CoreML Dml Rknpu WebNN WebGpu Xnnpack CANN Azure"
).split()
KNOWN = [*(f"{name}ExecutionProvider" for name in _OTHERS), *PROVIDERS]


def get_available_providers():
    """Where sessions can run."""
    return list(PROVIDERS)


def get_all_providers():
    """Where sessions could run in some build of ONNX Runtime."""
    return list(KNOWN)


def asked_for(providers, options):
    """The names of the providers that are asked for, each once, by a list of names, or of names with options."""
    if providers is None:
        return []
    providers = list(providers) if isinstance(providers, Sequence) else _refused(providers)
    if options is None:
        return list(dict.fromkeys(map(_named, providers)))
    if not isinstance(options, Sequence) or len(options) != len(providers):
        raise ValueError(f"provider_options is a list of as many dictionaries as providers, {len(providers)}")
    if not all(isinstance(name, str) for name in providers) or not all(isinstance(one, dict) for one in options):
        raise ValueError("with provider_options, providers are names, and each of provider_options is a dictionary")
    return list(dict.fromkeys(providers))


def warn_of_absent(names):
    """Warn of providers that are not here."""
    absent = [name for name in names if name not in PROVIDERS]
    if absent:
        warnings.warn(f"{', '.join(absent)} is not here; the session runs on the processor", UserWarning, stacklevel=4)


def _refused(providers):
    if not hasattr(providers, "__iter__"):
        raise TypeError(f"providers is a list of names, not {type(providers).__name__}")
    raise ValueError("providers is a list, as its order says which is preferred")


def _named(item):
    if isinstance(item, str):
        return item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], dict):
        return item[0]
    raise ValueError(f"a provider is a name, or a tuple of a name and a dictionary of options, not {item!r}")


__all__ = ["KNOWN", "PROVIDERS", "asked_for", "get_all_providers", "get_available_providers", "warn_of_absent"]
