"""Runs an exported model on one device, with several feeds; everything that it needs is the runtime and the one library.

usage: run_feeds.py MODEL.so DEVICE FEEDS.npz RESULTS.npz

FEEDS has the arrays of each feed, in order, under `FEED/PLACE`, RESULTS those of the outputs.
"""

import sys

import numpy as np

import relaxide as tvm


def main(library, device, feeds, results):
    device = tvm.device(device)
    run = tvm.relax.VirtualMachine(tvm.runtime.load_module(library), device)["main"]
    given, found = {}, {}
    with np.load(feeds) as arrays:
        for name in arrays.files:
            given.setdefault(name.split("/")[0], []).append(tvm.runtime.tensor(arrays[name], device))
    for feed, values in given.items():
        outputs = run(*values)
        outputs = [outputs] if hasattr(outputs, "numpy") else list(outputs)
        found |= {f"{feed}/{place}": output.numpy() for place, output in enumerate(outputs)}
    np.savez(results, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
