"""Compiles the decoder to one file and lets it write, with a cache of keys and values.

usage: write.py [--tokens N] [--build DIRECTORY] [PROMPT]
"""

import argparse
import pathlib
import time

import decoder

import relaxide as tvm

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prompt", nargs="?", default="Once upon a time")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build" / "decoder")
    args = parser.parse_args()
    config = decoder.Config()
    args.build.mkdir(parents=True, exist_ok=True)
    path = args.build / "decoder.so"
    start = time.perf_counter()
    module = decoder.Decoder(config, decoder.weights(config)).build()
    tvm.compile(module, target="llvm").export_library(str(path))
    print(f"compiled to {path.name}: {path.stat().st_size / 1e6:.1f} MB in {time.perf_counter() - start:.1f} s")
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), tvm.cpu())
    start = time.perf_counter()
    written = decoder.generate(machine, config, args.prompt.encode(), args.tokens)
    each = (time.perf_counter() - start) / args.tokens
    print(f"{args.tokens} tokens, {each * 1e3:.2f} ms each:\n{written}")


if __name__ == "__main__":
    main()
