"""Sorts of rows that are shorter and longer than what is merged: ranks of every width, equal elements, zeros of both signs, and what is no number."""

import numpy as np
import pytest

import relaxide as tvm

LENGTHS = [1, 255, 256, 257, 1000, 5000]
DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]


def elements(rng, dtype, shape):
    """Numbers of the whole range, small ones, and many that are equal."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        x = rng.choice([rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4), np.round(rng.standard_normal(shape))]).astype(dtype)
        x[rng.random(shape) < 0.02] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0])
        return x
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True) if rng.random() < 0.5 else rng.integers(0, 9, shape).astype(dtype)


def in_order(x, descending):
    """Places in order along the last axis: equal elements keep theirs, and NaN counts as the largest."""
    ranks = np.unique(np.where(x == 0, np.zeros_like(x), x), return_inverse=True, equal_nan=True)[1].reshape(x.shape)
    return np.argsort(-ranks if descending else ranks, axis=-1, kind="stable")


@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_in_order(dtype, named):
    rng = np.random.default_rng(DTYPES.index(dtype))
    functions, cases = [], []
    for number, length in enumerate(["n"] if named else LENGTHS):
        size = f'"{length}"' if named else length
        for way, descending in enumerate([False, True]):
            name = f"main{number}_{way}"
            functions.append(f'''
    @R.function
    def {name}(x: R.Tensor((2, {size}), "{dtype}")):
        with R.dataflow():
            y = R.argsort(x, axis=-1, descending={descending}, dtype="int64")
            z = R.sort(x, axis=-1, descending={descending})
            both = (y, z)
            R.output(both)
        return both
''')
            cases.extend((name, n, descending) for n in (LENGTHS if named else [length]))
    module = tvm.script.from_source("@I.ir_module\nclass Module:" + "".join(functions))
    vm = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    for name, length, descending in cases:
        x = elements(rng, dtype, (2, length))
        places, values = (part.numpy() for part in vm[name](tvm.runtime.tensor(x)))
        expected = in_order(x, descending)
        np.testing.assert_array_equal(places, expected, err_msg=f"{length} {descending}")
        np.testing.assert_array_equal(values, np.take_along_axis(x, expected, -1))
