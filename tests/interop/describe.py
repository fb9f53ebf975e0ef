"""What both runtimes say of an executable, and values as files; shared by the processes that run either of them."""

import json
import pathlib

import numpy as np


def executable_of(module):
    """The module of bytecode in a loaded library."""
    if module.kind == "relax.VMExecutable":
        return module
    return next(found for found in map(executable_of, module.imports) if found is not None)


def describe(module, path):
    """Writes an executable's forms: ``path.json`` with the texts, ``path.bin`` with its bytes."""
    executable = executable_of(module)
    forms = {name: executable[name]() for name in ("as_text", "as_python", "stats")}
    pathlib.Path(f"{path}.json").write_text(json.dumps(forms, indent=1))
    executable.write_to_file(f"{path}.bin", "relax.VMExecutable")


def forms(path):
    """What :func:`describe` wrote."""
    return {**json.loads(pathlib.Path(f"{path}.json").read_text()), "bytes": pathlib.Path(f"{path}.bin").read_bytes()}


def make(spec, rng):
    """Random arguments of a description: element type and shape, or a list of descriptions."""
    if isinstance(spec, list):
        return [make(item, rng) for item in spec]
    dtype, shape = spec
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return np.asarray(rng.integers(3, 100, shape)).astype(dtype)


def into(tvm, value):
    """Arrays as a runtime's tensors."""
    if isinstance(value, (list, tuple)):
        return tuple(into(tvm, item) for item in value)
    return tvm.runtime.tensor(value) if isinstance(value, np.ndarray) else value


def text(value):
    """A value as both runtimes' callbacks see it."""
    return f"{value.dtype}{value.numpy().tolist()}" if hasattr(value, "numpy") else str(value)


def flat(value):
    """A result as a list of arrays with their places in it."""
    if hasattr(value, "numpy"):
        return {"": value.numpy()}
    if isinstance(value, (bool, int, float, str)):
        return {"": np.asarray(value)}
    return {f"{at}.{rest}": array for at, item in enumerate(value) for rest, array in flat(item).items()}
