"""Times the convolutions of ResNet-50, MobileNetV2 or a file, each with bias and activation, beside ONNX Runtime.

Of ONNX Runtime only the convolution's own kernel counts, as its profiler sees it, without the changes of layout around it;
of Relaxide the whole call. Both know all shapes. A network's sum counts every convolution as often as the network has it. Of a file (`x.onnx`,
with known shapes) those with square images and kernels without dilation are timed.

usage: convolutions.py [--networks resnet50,mobilenetv2,FILE] [--threads 1,2] [--rounds 9] [--all]
"""

import argparse
import collections
import dataclasses
import glob
import json
import os
import pathlib
import sys
import tempfile
import time

from turns import Contender, serve


@dataclasses.dataclass(frozen=True)
class Conv:
    """Channels in and out, the kernel's side, stride, the image's side, groups, whether a ReLU follows."""

    inputs: int
    outputs: int
    kernel: int
    stride: int
    size: int
    groups: int = 1
    relu: bool = True

    def __str__(self):
        kind = "dw" if self.groups > 1 else "conv"
        return f"{kind}{self.kernel}x{self.kernel}s{self.stride} {self.inputs}->{self.outputs} @{self.size}"

    @property
    def work(self):
        out = -(-self.size // self.stride)
        return out * out * self.outputs * self.inputs // self.groups * self.kernel**2


def resnet50():
    """Convolutions of the version whose 3x3 convolutions have the strides, in order."""
    yield Conv(3, 64, 7, 2, 224)
    inputs, size = 64, 56
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            yield Conv(inputs, width, 1, 1, size)
            yield Conv(width, width, 3, step, size)
            if block == 0:
                yield Conv(inputs, 4 * width, 1, step, size, relu=False)
            size //= step
            yield Conv(width, 4 * width, 1, 1, size, relu=False)
            inputs = 4 * width


def mobilenetv2():
    """Convolutions in order."""
    yield Conv(3, 32, 3, 2, 224)
    inputs, size = 32, 112
    for expand, outputs, blocks, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for block in range(blocks):
            step, hidden = stride if block == 0 else 1, inputs * expand
            if expand > 1:
                yield Conv(inputs, hidden, 1, 1, size)
            yield Conv(hidden, hidden, 3, step, size, groups=hidden)
            size //= step
            yield Conv(hidden, outputs, 1, 1, size, relu=False)
            inputs = outputs
    yield Conv(inputs, 1280, 1, 1, size)


def of_file(path):
    """Convolutions of an ONNX file, in order."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load(path)).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in [*graph.value_info, *graph.input]}
    shapes |= {weight.name: list(weight.dims) for weight in graph.initializer}
    for node in graph.node:
        if node.op_type != "Conv":
            continue
        attributes = {a.name: a for a in node.attribute}
        image, weight = shapes[node.input[0]], shapes[node.input[1]]
        groups = attributes["group"].i if "group" in attributes else 1
        [stride, dilation] = [max(attributes[a].ints) if a in attributes else 1 for a in ("strides", "dilations")]
        if len(image) == 4 and image[2] == image[3] and weight[2] == weight[3] and dilation == 1:
            yield Conv(image[1], weight[0], weight[2], stride, image[2], groups)


NETWORKS = {"resnet50": resnet50, "mobilenetv2": mobilenetv2}


def convolutions(network):
    """The convolutions of a network by its name or its file."""
    return of_file(network) if network.endswith(".onnx") else NETWORKS[network]()


def model(conv):
    """The convolution as an ONNX model, with an input for it."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    weight = rng.standard_normal((conv.outputs, conv.inputs // conv.groups, conv.kernel, conv.kernel), dtype=np.float32)
    bias = rng.standard_normal(conv.outputs, dtype=np.float32)
    pad = [conv.kernel // 2] * 4
    nodes = [
        helper.make_node(
            "Conv", ["x", "w", "b"], ["c"], pads=pad, strides=[conv.stride] * 2, group=conv.groups
        )
    ]
    if conv.relu:
        nodes.append(helper.make_node("Relu", ["c"], ["y"]))
    shape = [1, conv.inputs, conv.size, conv.size]
    graph = helper.make_graph(
        nodes,
        "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y" if conv.relu else "c", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight / conv.inputs, "w"), numpy_helper.from_array(bias, "b")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return made, rng.standard_normal(shape, dtype=np.float32)


def repeated(call, seconds=0.02):
    """The time of the fastest of the calls that fit into a moment."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def relaxide_runner(convs, threads):
    os.environ["RELAXIDE_NUM_THREADS"] = str(threads)
    import relaxide as tvm

    calls = {}
    for conv in convs:
        made, x = model(conv)
        module = tvm.relax.frontend.onnx.from_onnx(made)
        vm = tvm.relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
        calls[str(conv)] = lambda main=vm["main"], x=tvm.runtime.tensor(x): main(x)
    return lambda name: repeated(calls[name])


def onnxruntime_runner(convs, threads):
    """Runs a convolution and asks the profiler for its kernel's fastest time."""
    import onnxruntime

    made = {str(conv): model(conv) for conv in convs}

    def run(name):
        network, x = made[name]
        with tempfile.TemporaryDirectory() as directory:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(directory, "profile")
            session = onnxruntime.InferenceSession(
                network.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            repeated(lambda: session.run(None, {"x": x}))
            session.end_profiling()
            [path] = glob.glob(os.path.join(directory, "*.json"))
            events = json.loads(pathlib.Path(path).read_text())
        kernels = [e["dur"] for e in events if e.get("cat") == "Node" and "Conv" in e["args"].get("op_name", "")]
        return min(kernels) * 1e-6

    return run


RUNNERS = {"relaxide": relaxide_runner, "onnxruntime": onnxruntime_runner}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--all", action="store_true", help="print every convolution")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        contender, network, threads = arguments.serve
        convs = list(dict.fromkeys(convolutions(network)))
        return serve(lambda: RUNNERS[contender](convs, int(threads)), int(threads))

    print("sums of medians in ms; time is Relaxide's over ONNX Runtime's: below 1, Relaxide is faster\n")
    for threads in map(int, arguments.threads.split(",")):
        for network in arguments.networks.split(","):
            counts = collections.Counter(convolutions(network))
            entries = [Contender(name, [__file__, "--serve", name, network, str(threads)]) for name in RUNNERS]
            for entry in entries:
                if entry.refused:
                    return f"{entry.name}: {entry.refused}"
            for _ in range(arguments.rounds):
                for conv in counts:
                    for entry in entries:
                        entry.run(str(conv))
            for entry in entries:
                entry.close()
            mine, theirs = ({conv: entry.median(str(conv)) for conv in counts} for entry in entries)
            if arguments.all:
                for conv, count in counts.items():
                    rates = "".join(f" {ms:8.3f} ms {conv.work / ms / 1e6:6.1f} G/s" for ms in (mine[conv], theirs[conv]))
                    print(f"  {count} x {str(conv):28}{rates} {mine[conv] / theirs[conv]:6.2f}")
            sums = [sum(times[conv] * count for conv, count in counts.items()) for times in (mine, theirs)]
            print(
                f"{pathlib.Path(network).stem:12} {threads} threads: Relaxide {sums[0]:.2f}, ONNX Runtime {sums[1]:.2f}, "
                f"time {sums[0] / sums[1]:.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
