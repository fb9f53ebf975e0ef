"""Python, kernels and graphs in one module, which call each other on PyTorch's tensors; a graph as PyTorch before and after a pass."""

import torch
import torch.nn.functional as F
import tvm
from tvm import relax
from tvm.relax.base_py_module import BasePyModule
from tvm.relax.relax_to_pyfunc_converter import RelaxToPyFuncConverter
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

torch.manual_seed(1)


def show(value):
    print([round(number, 3) for number in value.flatten().tolist()])


@tvm.register_global_func("demo.bias_add", override=True)
def bias_add(x, bias, out):
    out[:] = x.numpy() + bias.numpy()


@I.ir_module
class Pipeline(BasePyModule):
    @T.prim_func(s_tir=True)
    def product(a: T.handle, b: T.handle, c: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (4, 3), "float32")
        C = T.match_buffer(c, (n, 3), "float32")
        for i, j, k in T.grid(n, 3, 4):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @I.pyfunc
    def forward(self, x, weight, bias):
        args = [self._convert_pytorch_to_tvm(x), self._convert_pytorch_to_tvm(weight)]
        made = self.call_tir(self.product, args, out_ty=R.Tensor((x.shape[0], 3), "float32"))
        hidden = self._convert_tvm_to_pytorch(made)
        print(tuple(hidden.shape))
        return F.relu(self.call_dps_packed("demo.bias_add", [hidden, bias], out_ty=R.Tensor((x.shape[0], 3), "float32")))


x, weight, bias = torch.randn(2, 4), torch.randn(4, 3), torch.randn(3)
pipeline = Pipeline(device=tvm.cpu(0))
print({kind: sorted(names) for kind, names in pipeline.list_functions().items()})
result = pipeline.forward(x, weight, bias)
assert torch.allclose(result, F.relu(x @ weight + bias), atol=1e-4)
show(result)


@I.ir_module
class Dense:
    @T.prim_func(s_tir=True)
    def bias_add(x: T.Buffer((2, 3), "float32"), b: T.Buffer((3,), "float32"), out: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.sblock("out"):
                vi, vj = T.axis.remap("SS", [i, j])
                out[vi, vj] = x[vi, vj] + b[vj]

    @R.function
    def main(
        x: R.Tensor((2, 4), "float32"), w: R.Tensor((4, 3), "float32"), b: R.Tensor((3,), "float32")
    ) -> R.Tensor((2, 3), "float32"):
        cls = Dense
        hidden = R.matmul(x, w)
        biased = R.call_tir(cls.bias_add, (hidden, b), out_ty=R.Tensor((2, 3), "float32"))
        return R.nn.relu(biased)


for module in (Dense, relax.transform.CanonicalizeBindings()(Dense)):
    converted = RelaxToPyFuncConverter(module).convert(["main"])
    show(converted.pyfuncs["main"](x, weight, bias))


@I.ir_module
class CallsBack(BasePyModule):
    @I.pyfunc
    def silu(self, x):
        return torch.sigmoid(x) * x

    @I.pyfunc
    def layer_norm(self, x):
        return F.layer_norm(x, x.shape[-1:])

    @R.function
    def main(x: R.Tensor((2, 4), "float32")) -> R.Tensor((2, 4), "float32"):
        normal = R.call_py_func("layer_norm", (x,), out_ty=R.Tensor((2, 4), "float32"))
        return R.call_py_func("silu", (normal,), out_ty=R.Tensor((2, 4), "float32"))


hybrid = CallsBack(device=tvm.cpu(0))
show(hybrid.call_py_func("silu", [hybrid.call_py_func("layer_norm", [x])]).numpy())


@I.ir_module
class AnyLength(BasePyModule):
    @T.prim_func(s_tir=True)
    def scaled(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in T.serial(n):
            B[i] = A[i] * T.float32(2)

    @R.function
    def added(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.add(x, y)


dynamic = AnyLength(device=tvm.cpu(0), target="llvm")
for length in (3, 5):
    show(dynamic.added(torch.ones(length), torch.arange(float(length))))
n = T.int64()
show(dynamic.call_tir("scaled", [torch.ones(4)], relax.TensorType((n,), "float32")).numpy())
