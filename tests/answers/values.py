"""Arguments and results of programs as plain data, and back.

Data is what JSON has: a number, a bool, text, or a dictionary with one of ``tensor`` (with ``dtype``), ``ramp`` (with
``dtype``, ``step``, ``start``), ``shape``, ``tuple``. An error is ``{"error": true}``.
"""

import numpy as np


def make(value, package):
    """A value for that package's machine."""
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return package.runtime.tensor(np.array(value["tensor"], value["dtype"]))
    if "ramp" in value:
        count = int(np.prod(value["ramp"]))
        data = value["start"] + value["step"] * np.arange(count)
        return package.runtime.tensor(data.reshape(value["ramp"]).astype(value["dtype"]))
    if "shape" in value:
        return package.runtime.ShapeTuple(value["shape"])
    return tuple(make(field, package) for field in value["tuple"])


def describe(value):
    """A result as data, of either package."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "numpy"):
        array = value.numpy()
        return {"tensor": array.tolist(), "dtype": str(array.dtype), "dims": list(array.shape)}
    if "Shape" in type(value).__name__:
        return {"shape": [int(dim) for dim in value]}
    return {"tuple": [describe(field) for field in value]}


def differences(found, expected, where="result"):
    """What differs, as text; numbers may differ by rounding."""
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        if "tuple" in expected:
            if len(found["tuple"]) != len(expected["tuple"]):
                return f"{where}: {len(found['tuple'])} fields, expected {len(expected['tuple'])}"
            pairs = enumerate(zip(found["tuple"], expected["tuple"]))
            return next(filter(None, (differences(a, b, f"{where}[{i}]") for i, (a, b) in pairs)), None)
        if "tensor" in expected:
            if (found["dtype"], found["dims"]) != (expected["dtype"], expected["dims"]):
                return f"{where}: {found['dtype']}{found['dims']}, expected {expected['dtype']}{expected['dims']}"
            a, b = (np.array(side["tensor"], side["dtype"]) for side in (found, expected))
            close = np.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True) if a.dtype.kind == "f" else (a == b).all()
            return None if close else f"{where}: {a.tolist()}, expected {b.tolist()}"
    if isinstance(expected, float) and isinstance(found, float):
        return None if np.isclose(found, expected, rtol=1e-6) else f"{where}: {found}, expected {expected}"
    return None if found == expected and type(found) is type(expected) else f"{where}: {found!r}, expected {expected!r}"
