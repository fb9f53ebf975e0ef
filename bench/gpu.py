"""Times kernels and a network on a device beside PyTorch on the same one.

Each row is one operator that both compile or call with the same numbers; results are compared first. The rate is in TFLOP/s for products and
in GB/s for the others, whose bar is a copy of as many bytes on the same device. PyTorch takes part where it has the device (cuBLAS, cuDNN
and its own attention stand behind it); a device that is not there is said, with the reason.

usage: gpu.py [--device cuda|opencl] [--only REGEX] [--seconds 0.3] [--small]
"""

import argparse
import pathlib
import re
import statistics
import sys
import time
import warnings

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import relaxide as tvm
from relaxide.relax.frontend.onnx import from_onnx

ROOT = pathlib.Path(__file__).resolve().parents[1]
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
#: What a class of rows should reach: of PyTorch's rate, or of a copy's.
BARS = {"product": 0.8, "one row": 0.8, "element-wise": 0.9, "row": 0.85, "network": 1.0}


class Case:
    """One operator: its inputs, its node, and what it moves or computes."""

    def __init__(self, kind, name, op, shapes, dtype="float32", flops=0, result=None, **attributes):
        self.kind, self.name, self.op, self.shapes, self.dtype, self.flops = kind, f"{name} {dtype}", op, shapes, dtype, flops
        self.attributes, self.result = attributes, result or shapes[0]

    def arrays(self):
        rng = np.random.default_rng(0)
        return [rng.standard_normal(shape, "float32").astype(self.dtype) for shape in self.shapes]

    def model(self):
        names = [f"x{i}" for i in range(len(self.shapes))]
        info = helper.make_tensor_value_info
        inputs = [info(name, TYPES[self.dtype], shape) for name, shape in zip(names, self.shapes)]
        node = helper.make_node(self.op, names, ["y"], **self.attributes)
        graph = helper.make_graph([node], "g", inputs, [info("y", TYPES[self.dtype], None)])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def bytes(self):
        return np.dtype(self.dtype).itemsize * sum(int(np.prod(s)) for s in [*self.shapes, self.result])

    def with_torch(self, torch):
        """The same call in PyTorch."""
        f = torch.nn.functional
        return {
            "MatMul": torch.matmul,
            "Add": torch.add,
            "Gelu": f.gelu,
            "Neg": torch.neg,
            "Softmax": lambda x: torch.softmax(x, -1),
            "LayerNormalization": lambda x, scale: f.layer_norm(x, scale.shape, scale),
            "ReduceSum": lambda x: x.sum(-1, keepdim=True),
            "Transpose": lambda x: x.transpose(-1, -2).contiguous(),
        }[self.op]


def product(m, k, n, dtype, batch=(), kind="product"):
    name = "x".join(map(str, [*batch, m, k, n]))
    return Case(kind, name, "MatMul", [(*batch, m, k), (*batch, k, n)], dtype, 2 * m * k * n * int(np.prod(batch)), (*batch, m, n))


def cases(small):
    """Products of BERT's and LLaMA's shapes, and what the memory bounds."""
    side, rows, long = (256, 64, 1 << 16) if small else (4096, 4096, 1 << 26)
    for dtype in TYPES:
        yield product(side, side, side, dtype)
        for m, k, n in [(128, 768, 768), (128, 768, 3072), (384, 1024, 4096)] if not small else [(128, 768, 768)]:
            yield product(m, k, n, dtype)
        yield product(128, 64, 128, dtype, batch=(12,))
        for k, n in [(4096, 4096), (4096, 11008)] if not small else [(768, 768)]:
            yield product(1, k, n, dtype, kind="one row")
        yield Case("element-wise", "negation", "Neg", [(long,)], dtype)
        yield Case("element-wise", "sum of two", "Add", [(long,), (long,)], dtype)
        yield Case("element-wise", "gelu", "Gelu", [(long,)], dtype)
        yield Case("element-wise", "transpose", "Transpose", [(rows, rows)], dtype)
        yield Case("row", "softmax", "Softmax", [(rows, 1000)], dtype, axis=-1)
        yield Case("row", "layer norm", "LayerNormalization", [(rows, 1024), (1024,)], dtype, axis=-1)
        yield Case("row", "sum", "ReduceSum", [(rows, 1024)], dtype, result=(rows, 1), keepdims=1, noop_with_empty_axes=0)


def median(call, wait, seconds):
    """The median time of a call, each waited for by the last of a group."""
    call()
    wait()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        for _ in range(4):
            call()
        wait()
        times.append((time.perf_counter() - start) / 4)
    return statistics.median(times)


def reduce_axes(model):
    """`ReduceSum` takes its axes as an input."""
    for node in model.graph.node:
        if node.op_type == "ReduceSum":
            model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "axes"))
            node.input.append("axes")
    return model


def row(case, args, torch):
    device = getattr(tvm, args.device)(0)
    arrays = case.arrays()
    main = tvm.relax.VirtualMachine(tvm.compile(from_onnx(reduce_axes(case.model())), target=args.device), device)["main"]
    inputs = [tvm.runtime.tensor(a, device) for a in arrays]
    ours = median(lambda: main(*inputs), device.sync, args.seconds)
    theirs = None
    if torch:
        call, given = case.with_torch(torch), [torch.from_numpy(a).cuda() for a in arrays]
        wanted, found = call(*given).float().cpu().numpy(), main(*inputs).numpy().astype("float32")
        near = 2e-2 if case.dtype == "float16" else 2e-3
        if not np.allclose(found, wanted, rtol=near, atol=near * np.abs(wanted).max()):
            return f"{case.name:32}  DIFFERS by {np.abs(found - wanted).max():.3g}"
        theirs = median(lambda: call(*given), torch.cuda.synchronize, args.seconds)
    amount, unit = (case.flops / 1e12, "TFLOP/s") if case.kind == "product" else (case.bytes() / 1e9, "GB/s")
    beside = f"{theirs / ours:6.2f} of PyTorch's rate (bar {BARS[case.kind]})" if theirs else ""
    return f"{case.name:32} {ours * 1e6:10.1f} us {amount / ours:9.2f} {unit:8} {beside}"


def network(args, torch):
    """ResNet-18 of the tests, whole."""
    sys.path.insert(0, str(ROOT / "tests/models"))
    import resnet18

    device = getattr(tvm, args.device)(0)
    model = resnet18.build()
    x = np.random.default_rng(0).standard_normal((1, 3, 224, 224), "float32")
    main = tvm.relax.VirtualMachine(tvm.compile(from_onnx(model), target=args.device), device)["main"]
    given = tvm.runtime.tensor(x, device)
    return f"{'ResNet-18, one picture':32} {median(lambda: main(given), device.sync, args.seconds) * 1e6:10.1f} us"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "opencl"])
    parser.add_argument("--only", default="", help="rows whose name has this expression")
    parser.add_argument("--seconds", type=float, default=0.3, help="how long each row is timed")
    parser.add_argument("--small", action="store_true", help="sizes for a device that is a processor")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if not getattr(tvm, args.device)(0).exist:
        sys.exit(f"there is no device {args.device}:0 here; `relaxide devices` says why")
    torch = None
    if args.device == "cuda":
        try:
            import torch
        except ImportError:
            print("PyTorch is not installed: no row has its time", file=sys.stderr)
        else:
            torch = torch if torch.cuda.is_available() else None
    for case in cases(args.small):
        if re.search(args.only, case.name):
            print(row(case, args, torch), flush=True)
    if re.search(args.only, "ResNet-18"):
        print(network(args, torch), flush=True)


if __name__ == "__main__":
    main()
