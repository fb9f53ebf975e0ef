"""Compiles an ONNX file with one of the two compilers and exports it.

usage: export_with.py relaxide|tvm MODEL.onnx MODEL.so [INPUT=1,3,64,96]
"""

import importlib
import sys

import onnx


def main(compiler, path, library, shape=None):
    tvm = importlib.import_module(compiler)
    frontend = importlib.import_module(f"{compiler}.relax.frontend.onnx")
    shapes = None
    if shape:
        name, dims = shape.split("=")
        shapes = {name: [int(dim) for dim in dims.split(",")]}
    module = frontend.from_onnx(onnx.load(path), shape_dict=shapes)
    tvm.compile(module, target="llvm").export_library(library)


if __name__ == "__main__":
    main(*sys.argv[1:])
