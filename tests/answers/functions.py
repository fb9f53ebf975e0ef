"""The functions from outside that programs call, for either package."""

import numpy as np


def register(package):
    """Enters them among the global functions of a package."""
    enter = getattr(package, "register_global_func", None) or package.ffi.register_global_func

    def tensor(array, dtype="float32"):
        return package.runtime.tensor(np.asarray(array, dtype))

    calls = [0]

    def count():
        calls[0] += 1
        return calls[0]

    named = {"add": np.add, "multiply": np.multiply}
    functions = {
        "scale": lambda x, factor: tensor(x.numpy() * float(factor)),
        "named": lambda x, name: tensor(named[str(name)](x.numpy(), x.numpy())),
        "as_type": lambda x, dtype: tensor(x.numpy(), str(dtype)),
        "fill": lambda dims: tensor(np.full([int(d) for d in dims], 1.25)),
        "first": lambda pair: pair[0],
        "scale_into": lambda x, out: out.copyfrom(x.numpy() * np.float32(4.0)) and None,
        "count": count,
    }
    for name, function in functions.items():
        enter(f"test.answers.{name}", function, override=True)
