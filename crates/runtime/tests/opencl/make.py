"""Writes `add.so` anew: a library that apache-tvm 0.27 compiled for OpenCL, with its host code for x86-64 Linux.

usage: python make.py
"""

import pathlib
import subprocess

import tvm
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Module:
    @T.prim_func
    def add(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), s: T.float32):
        for i in T.thread_binding(4, thread="blockIdx.x"):
            for j in T.thread_binding(16, thread="threadIdx.x"):
                B[i * 16 + j] = A[i * 16 + j] * T.float32(2) + s


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "add.so"
    tvm.compile(Module, target=tvm.target.Target("opencl", host="llvm")).export_library(str(path))
    subprocess.run(["strip", str(path)], check=True)
