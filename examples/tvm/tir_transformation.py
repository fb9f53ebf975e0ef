"""A kernel that is scheduled step by step, and stays what it computes."""

import numpy as np
import tvm
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Product:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        Y = T.alloc_buffer((64, 64), dtype="float32")
        for i, j, k in T.grid(64, 64, 64):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(64, 64):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))


draw = np.random.default_rng(1)
a, b = draw.random((64, 64), "float32"), draw.random((64, 64), "float32")


def evaluate(mod):
    lib = tvm.tirx.build(mod, target="llvm")
    c = tvm.runtime.tensor(np.zeros((64, 64), dtype="float32"))
    args = [tvm.runtime.tensor(a), tvm.runtime.tensor(b), c]
    lib(*args)
    np.testing.assert_allclose(c.numpy(), np.maximum(a @ b, 0), rtol=1e-4)
    assert lib.time_evaluator("main", tvm.cpu(), number=1)(*args).mean > 0
    print(np.round(c.numpy().sum()))


evaluate(Product)
sch = tvm.s_tir.Schedule(Product)
block = sch.get_sblock("Y")
i, j, k = sch.get_loops(block)
outer, inner = sch.split(j, factors=[None, 8])
sch.reorder(outer, k, inner)
evaluate(sch.mod)
sch.reverse_compute_at(sch.get_sblock("C"), outer)
sch.decompose_reduction(block, k)
evaluate(sch.mod)
print([inst.kind.name for inst in sch.trace.insts])
