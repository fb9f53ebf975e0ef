"""What cases of operators are made of: a call with its inputs and what it gives, and random choices."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Case:
    call: str
    inputs: list
    expect: object
    #: How far floating-point results may be off, relative and absolute.
    tolerance: float = 2e-5
    #: Whether dimensions may be symbolic.
    symbolic: bool = True
    #: The extent of dimensions that the call names itself, which stay numbers.
    fixed: tuple = field(default_factory=tuple)


class Random:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *options):
        return options[self.int(0, len(options) - 1)]

    def chance(self, share):
        return self.rng.random() < share

    def shape(self, low=0, high=4, empty=0.06):
        return tuple(0 if self.chance(empty) else self.int(1, 5) for _ in range(self.int(low, high)))

    def data(self, shape, dtype="float32", low=-3, high=3):
        if dtype == "bool":
            return self.rng.random(shape) > 0.5
        if dtype.startswith("float"):
            return np.asarray(self.rng.uniform(low, high, shape), dtype)
        low = max(low, 0) if dtype.startswith("u") else low
        return np.asarray(self.rng.integers(low, high + 1, shape), dtype)

    def floats(self):
        return self.pick("float32", "float32", "float64", "float16")

    def numbers(self):
        return self.pick("float32", "float64", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")

    def broadcast(self, shape):
        out = tuple(1 if self.chance(0.3) else d for d in shape[self.int(0, len(shape)) :])
        return out


TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


def tolerance(*arrays):
    return max((TOLERANCE.get(str(a.dtype), 0) for a in arrays), default=0)


def wide(x):
    return x.astype("float64") if x.dtype.kind == "f" else x
