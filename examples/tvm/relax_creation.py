"""Four ways to write a graph: as text, as text with kernels, as a module, node by node."""

import numpy as np
import tvm
from tvm import relax, topi
from tvm.relax.frontend import nn
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Written:
    @R.function
    def forward(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            product = R.matmul(x, R.permute_dims(w))
            result = R.nn.relu(product)
            R.output(result)
        return result


@I.ir_module
class WithKernel:
    @T.prim_func(s_tir=True)
    def clipped(x: T.handle, y: T.handle):
        n = T.int64()
        m = T.int64()
        X = T.match_buffer(x, (n, m), "float32")
        Y = T.match_buffer(y, (n, m), "float32")
        for i, j in T.grid(n, m):
            with T.sblock("clipped"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @R.function
    def forward(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = WithKernel
        with R.dataflow():
            product = R.matmul(x, R.permute_dims(w))
            result = R.call_tir(cls.clipped, product, R.Tensor((n, 4), "float32"))
            R.output(result)
        return result


@T.prim_func(s_tir=True)
def scaled(x: T.handle, y: T.handle):
    n = T.int64()
    m = T.int64()
    X = T.match_buffer(x, (n, m), "float32")
    Y = T.match_buffer(y, (n, m), "float32")
    for i, j in T.grid(n, m):
        with T.sblock("scaled"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] * T.float32(2)


class Mixed(nn.Module):
    """Calls a function of the process, one of the inventory, and a kernel."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4, bias=False)

    def forward(self, x):
        n = x.shape[0]
        y = nn.extern("env.product", [x, self.layer.weight], out=nn.Tensor.placeholder((n, 4), "float32"))
        y = nn.tensor_expr_op(topi.nn.relu, "relu", [y])
        return nn.tensor_ir_op(scaled, "scaled", [y], out=nn.Tensor.placeholder((n, 4), "float32"))


@tvm.register_global_func("env.product")
def product(x, w, out):
    out.copyfrom(x.numpy() @ w.numpy().T)


mixed, _ = Mixed().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 8), "float32")}})

builder = relax.BlockBuilder()
n = T.int64()
x = relax.Var("x", R.Tensor((n, 8), "float32"))
w = relax.Var("w", R.Tensor((4, 8), "float32"))
with builder.function("forward", [x, w]):
    with builder.dataflow():
        out_ty = relax.TensorType((n, 4), "float32")
        y = builder.emit(relax.call_dps_packed("env.product", [x, w], out_ty=out_ty))
        y = builder.emit_te(topi.nn.relu, y)
        kernel = builder.add_func(scaled, "scaled")
        y = builder.emit_output(relax.call_tir(kernel, [y], out_ty=out_ty))
    builder.emit_func_output(y)

draw = np.random.default_rng(1)
given = [tvm.runtime.tensor(draw.standard_normal(shape).astype("float32")) for shape in ((3, 8), (4, 8))]
for module in (Written, WithKernel, mixed, builder.get()):
    module.script()
    vm = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    print(np.round(vm["forward"](*given).numpy(), 3))
