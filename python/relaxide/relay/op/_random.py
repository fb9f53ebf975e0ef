"""Random numbers whose generator is a value: each draw gives the numbers and the generator behind them."""

import sys

import numpy as np

from ..expr import RelayExpr, const
from ..ty import dims_of
from ._generate import call


def threefry_key(seed):
    """A generator from a seed."""
    words = np.frombuffer(seed.to_bytes(32, sys.byteorder), dtype="uint64")
    return const(np.concatenate((words, np.array([0, 0, 0, 0, 1 << 63, 0], dtype="uint64"))))


def threefry_generate(key, shape):
    """The generator behind so many words, and the words."""
    return call("random.threefry_generate", [key], {"out_shape": dims_of(shape)})


def _drawn(name, key, shape, dtype, first, second):
    numbers = [value if isinstance(value, RelayExpr) else const(value, dtype) for value in (first, second)]
    return call(name, [key, *numbers], {"out_shape": dims_of(shape), "out_dtype": dtype})


def uniform(key, shape, dtype="float32", low=0.0, high=1.0):
    """The generator behind, and numbers from ``low`` on below ``high``, each as likely as the others."""
    return _drawn("random.uniform", key, shape, dtype, low, high)


def normal(key, shape, dtype="float32", mean=0.0, scale=1.0):
    """The generator behind, and numbers of a normal distribution."""
    return _drawn("random.normal", key, shape, dtype, mean, scale)


def multinomial(key, probs, num_samples=1):
    """The generator behind, and for each row of probabilities so many indices, drawn by them."""
    return call("random.multinomial", [key, probs], {"num_samples": num_samples})


SPECIAL = {
    "random.threefry_key": threefry_key,
    "random.threefry_generate": threefry_generate,
    "random.uniform": uniform,
    "random.normal": normal,
    "random.multinomial": multinomial,
}
