"""Runs what lies in a directory with one of the two runtimes; each test process loads one of them only.

usage: run_programs.py relaxide|tvm DIRECTORY NAME...

For each name: ``NAME.so`` (or the bare executable ``NAME.exec``) is loaded, described and called with the arguments that
``NAME.args`` holds, and the results are written to ``NAME.RUNTIME.npz``.
"""

import importlib
import pathlib
import pickle
import sys

import describe
import numpy as np


def main(runtime, directory, names):
    tvm = importlib.import_module(runtime)
    register = getattr(tvm, "register_global_func", None) or tvm.ffi.register_global_func
    register("test.interop.halve", lambda x: tvm.runtime.tensor(x.numpy() * np.float32(0.5)))
    register("test.interop.sum", lambda *numbers: sum(numbers))
    register("test.interop.negative", lambda number: -number)
    register("test.interop.less", lambda a, b: int(a < b))
    register("test.interop.show", lambda *values: " ".join(map(describe.text, values)))
    get = getattr(tvm, "get_global_func", None) or tvm.ffi.get_global_func
    for name in names:
        path = directory / name
        if path.with_suffix(".so").exists():
            module = tvm.runtime.load_module(f"{path}.so")
        else:
            module = get("ffi.Module.load_from_file.relax.VMExecutable")(f"{path}.exec")
        describe.describe(module, f"{path}.{runtime}")
        vm = importlib.import_module(f"{runtime}.relax").VirtualMachine(module, tvm.cpu())
        with open(f"{path}.args", "rb") as file:
            calls = pickle.load(file)
        results = {}
        for at, args in enumerate(calls):
            found = describe.flat(vm["main"](*(describe.into(tvm, arg) for arg in args)))
            results.update({f"{at}.{place}": array for place, array in found.items()})
        np.savez(f"{path}.{runtime}.npz", **results)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:])
