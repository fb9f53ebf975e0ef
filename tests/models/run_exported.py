"""Runs an exported model on arrays from a file; everything that it needs is the runtime and the one library.

usage: run_exported.py MODEL.so INPUTS.npz OUTPUTS.npz
"""

import sys

import numpy as np

import relaxide as tvm


def main(library, inputs, outputs):
    vm = tvm.relax.VirtualMachine(tvm.runtime.load_module(library), tvm.cpu())
    main = vm["main"]
    with np.load(inputs) as arrays:
        results = {name: main(tvm.runtime.tensor(arrays[name])).numpy() for name in arrays.files}
    np.savez(outputs, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
