"""Random arrays of any element type."""

import numpy as np


def _small_floats():
    try:
        import ml_dtypes
    except ImportError:
        return {}
    names = (
        "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
        "float8_e8m0fnu float6_e2m3fn float6_e3m2fn float4_e2m1fn"
    )
    return {name: getattr(ml_dtypes, name) for name in names.split() if hasattr(ml_dtypes, name)}


#: The types of the package `ml_dtypes` by name; empty where it is not installed.
ml_dtypes_dict = _small_floats()


def np_dtype_from_str(dtype):
    """NumPy's type of a name, those of ``ml_dtypes`` included."""
    return np.dtype(ml_dtypes_dict.get(dtype, dtype))


def generate_random_array(dtype, shape):
    """An array whose elements are random bits, without NaN and infinity.

    Parameters
    ----------
    dtype : str
        Element type.
    shape : tuple of int
        Dimensions.
    """
    kind = np_dtype_from_str(dtype)
    if dtype == "bool":
        return np.random.randint(0, 2, shape).astype(bool)
    count = int(np.prod(shape, dtype=np.int64))
    while True:
        bits = np.random.randint(0, 256, size=count * kind.itemsize, dtype=np.uint8)
        array = bits.view(kind).reshape(shape)
        if np.issubdtype(kind, np.integer):
            return array
        bad = ~np.isfinite(array.astype("float64"))
        if not bad.any():
            return array
        array = array.copy()
        array[bad] = kind.type(1)
        return array
