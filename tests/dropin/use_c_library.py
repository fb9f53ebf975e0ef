"""Uses the library of `kernels.c` through one of the two runtimes and prints what happens."""

import sys

import numpy as np

runtime, path = sys.argv[1:]
if runtime == "relaxide":
    import relaxide.ffi as ffi
else:
    import tvm_ffi as ffi

library = ffi.load_module(path)


def show(name, call):
    """Prints what a call returns or raises."""
    try:
        print(name, call())
    except Exception as error:  # noqa: BLE001
        print(name, f"{type(error).__name__}: {str(error.args[0]).splitlines()[0]}")


def add_one(from_length, to_length):
    x, y = np.arange(1, from_length + 1, dtype="float32"), np.zeros(to_length, dtype="float32")
    library["add_one"](ffi.from_dlpack(x), ffi.from_dlpack(y))
    return y.tolist()


def raises(value):
    raise ValueError("from Python")


def counter(calls):
    count = library["counter"]()
    return " ".join(str(count()) for _ in range(calls))


@ffi.register_global_func("test.dropin.square")
def square(value):
    return value * value


show("add_one", lambda: add_one(3, 3))
show("add_one", lambda: add_one(3, 2))
show("add_one", lambda: library["add_one"](1, 2))
show("greet", lambda: library["greet"]("Ada"))
show("greet", lambda: library["greet"]("Augusta Ada King"))
show("greet", lambda: library["greet"](1.5))
show("apply", lambda: library["apply"](ffi.convert(lambda value: value + 1), 41))
show("apply", lambda: library["apply"](ffi.convert(raises), 1))
show("call_global", lambda: library["call_global"]("test.dropin.square", 3))
show("counter", lambda: counter(3))
show("counter", lambda: counter(1))
