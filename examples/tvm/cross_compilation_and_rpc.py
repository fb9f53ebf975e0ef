"""A kernel that is compiled here, sent to another machine and measured there; the other machine is a thread of this process."""

import numpy as np
import tvm
from tvm import rpc, te
from tvm.support import utils

n = tvm.runtime.convert(1024)
A = te.placeholder((n,), name="A")
B = te.compute((n,), lambda i: A[i] + 1.0, name="B")
mod = tvm.IRModule.from_expr(te.create_prim_func([A, B]).with_attr("global_symbol", "add_one"))
compiled = tvm.compile(mod, target="llvm")
folder = utils.tempdir()
path = folder.relpath("lib.so")
compiled.export_library(path)

remote = rpc.LocalSession()
remote.upload(path)
func = remote.load_module("lib.so")
device = remote.cpu()
a = tvm.runtime.tensor(np.random.uniform(size=1024).astype("float32"), device)
b = tvm.runtime.tensor(np.zeros(1024, dtype="float32"), device)
func(a, b)
np.testing.assert_equal(b.numpy(), a.numpy() + 1)
print(func.time_evaluator("add_one", device, number=10)(a, b).mean > 0)
