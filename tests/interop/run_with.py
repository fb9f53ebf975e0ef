"""Runs exported models with one of the two runtimes; each test process loads one of them only.

usage: run_with.py relaxide|tvm (MODEL.so INPUTS.npz OUTPUTS.npz)...
"""

import importlib
import sys

import numpy as np


def main(runtime, *models):
    tvm = importlib.import_module(runtime)
    relax = importlib.import_module(f"{runtime}.relax")
    for library, inputs, outputs in zip(models[::3], models[1::3], models[2::3], strict=True):
        vm = relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
        with np.load(inputs) as arrays:
            results = {name: vm["main"](tvm.runtime.tensor(arrays[name])).numpy() for name in arrays.files}
        np.savez(outputs, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
