"""Times the Relax part of compilation, from program to what bytecode is made of, for Relaxide and TVM side by side.

Both read the same TVMScript and run the passes of TVM's default build; kernels are not compiled. With ``--to-file`` the whole
way is timed, to a shared library on disk with each side's own default pipeline, and the library's size and the process' peak
of memory are shown. Each contender lives in a process of its own, the contenders take turns, and medians over the turns are
reported.

usage: compile_time.py [--to-file] [--rounds 5] [PROGRAM]...
"""

import argparse
import importlib
import importlib.util
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

_HEAD = """from {package}.script import ir as I
from {package}.script import relax as R
from {package}.script import tirx as T


@I.ir_module
class Module:
"""


class _Function:
    """One function's text: parameters are added as they are needed."""

    def __init__(self, name, shape, dtype="float32"):
        self.name, self.lines, self.count = name, [], 0
        self.params = [f'x: R.Tensor({shape}, "{dtype}")']

    def weight(self, *shape):
        name = f"w{len(self.params)}"
        self.params.append(f'{name}: R.Tensor({shape!r}, "float32")')
        return name

    def emit(self, value):
        self.count += 1
        self.lines.append(f"v{self.count} = {value}")
        return f"v{self.count}"

    def text(self, result):
        head = f"    @R.function\n    def {self.name}({', '.join(self.params)}):\n        with R.dataflow():\n"
        return head + "".join(f"            {line}\n" for line in self.lines) + (
            f"            R.output({result})\n        return {result}\n"
        )


def resnet50():
    """ResNet-50 for images of 224 by 224."""
    f = _Function("main", "(1, 3, 224, 224)")

    def conv(x, to, of, size, stride, relu=True):
        padding = size // 2
        y = f.emit(
            f"R.nn.conv2d({x}, {f.weight(to, of, size, size)}, strides=({stride}, {stride}), padding=({padding}, {padding}))"
        )
        stats = ", ".join(f.weight(to) for _ in range(4))
        y = f.emit(f"R.nn.batch_norm({y}, {stats}, axis=1, training=False)")
        y = f.emit(f"{y}[0]")
        return f.emit(f"R.nn.relu({y})") if relu else y

    y = conv("x", 64, 3, 7, 2)
    y = f.emit(f"R.nn.max_pool2d({y}, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))")
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            z = conv(y, width, channels, 1, 1)
            z = conv(z, width, width, 3, stride)
            z = conv(z, 4 * width, width, 1, 1, relu=False)
            short = y if block else conv(y, 4 * width, channels, 1, stride, relu=False)
            y = f.emit(f"R.nn.relu(R.add({z}, {short}))")
            channels = 4 * width
    y = f.emit(f"R.mean({y}, axis=[2, 3])")
    y = f.emit(f"R.add(R.matmul({y}, {f.weight(2048, 1000)}), {f.weight(1000)})")
    return f.text(y)


def bert_base():
    """The encoder of BERT-base, for a batch and a length that are symbolic."""
    f = _Function("main", '("b", "n", 768)')

    def dense(x, of, to):
        return f.emit(f"R.add(R.matmul({x}, {f.weight(of, to)}), {f.weight(to)})")

    def norm(x):
        return f.emit(f"R.nn.layer_norm({x}, {f.weight(768)}, {f.weight(768)}, axes=[-1])")

    def heads(x):
        return f.emit(f"R.permute_dims(R.reshape({x}, R.shape([b, n, 12, 64])), [0, 2, 1, 3])")

    y = "x"
    for _ in range(12):
        query, key, value = (heads(dense(y, 768, 768)) for _ in range(3))
        scores = f.emit(f"R.multiply(R.matmul({query}, R.permute_dims({key}, [0, 1, 3, 2])), R.const(0.125))")
        mixed = f.emit(f"R.matmul(R.nn.softmax({scores}, axis=-1), {value})")
        mixed = f.emit(f"R.reshape(R.permute_dims({mixed}, [0, 2, 1, 3]), R.shape([b, n, 768]))")
        y = norm(f.emit(f"R.add({dense(mixed, 768, 768)}, {y})"))
        inner = f.emit(f"R.nn.gelu({dense(y, 768, 3072)})")
        y = norm(f.emit(f"R.add({dense(inner, 3072, 768)}, {y})"))
    text = f.text(y)
    return text.replace("        with R.dataflow():", "        b, n = T.int64(), T.int64()\n        with R.dataflow():", 1)


def lstm():
    """A layer of LSTM over 24 steps, unrolled, 128 numbers in and 256 out."""
    f = _Function("main", "(24, 1, 128)")
    inputs, state, bias = f.weight(128, 1024), f.weight(256, 1024), f.weight(1024)
    hidden, cell = f.weight(1, 256), f.weight(1, 256)
    for step in range(24):
        x = f.emit(f'R.take(x, R.const({step}, "int64"), axis=0)')
        gates = f.emit(f"R.add(R.add(R.matmul({x}, {inputs}), R.matmul({hidden}, {state})), {bias})")
        parts = f.emit(f"R.split({gates}, 4, axis=1)")
        enter, keep, leave = (f.emit(f"R.sigmoid({parts}[{i}])") for i in range(3))
        new = f.emit(f"R.tanh({parts}[3])")
        cell = f.emit(f"R.add(R.multiply({keep}, {cell}), R.multiply({enter}, {new}))")
        hidden = f.emit(f"R.multiply({leave}, R.tanh({cell}))")
    return f.text(hidden)


def loop():
    """A loop as recursion, with branches in its body."""
    return '''    @R.function
    def main(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        more = R.greater(i, R.const(0, "int64"))
        if more:
            large = R.greater(R.sum(x), R.const(100.0))
            if large:
                y = R.multiply(x, R.const(0.5))
            else:
                y = R.add(R.nn.relu(x), R.const(1.0))
            r = Module.main(R.subtract(i, R.const(1, "int64")), y)
        else:
            r = R.negative(x)
        return r
'''


PROGRAMS = {"resnet50": resnet50, "bert_base": bert_base, "lstm": lstm, "loop": loop}


def load(name, package, directory):
    path = pathlib.Path(directory) / f"{name}_{package}.py"
    path.write_text(_HEAD.format(package=package) + PROGRAMS[name]())
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Module


def serve(package, to_file):
    """A contender: for each line a program's name, the seconds that it takes, the bytes written and the peak of memory."""
    contender = importlib.import_module(package)
    relax = importlib.import_module(f"{package}.relax")
    modules = {}
    with tempfile.TemporaryDirectory() as directory, contender.target.Target("llvm"):
        pipeline, library = relax.get_pipeline("default_build"), pathlib.Path(directory) / "model.so"

        def whole(module):
            contender.compile(module, target="llvm").export_library(str(library))

        work = whole if to_file else pipeline
        for line in sys.stdin:
            name = line.strip()
            if name not in modules:
                modules[name] = load(name, package, directory)
            start = time.perf_counter()
            work(modules[name])
            seconds = time.perf_counter() - start
            size = library.stat().st_size if to_file else 0
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            print(json.dumps([seconds, size, peak]), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", choices=[*PROGRAMS, []])
    parser.add_argument("--to-file", action="store_true", help="time the whole way to a shared library")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(arguments.serve, arguments.to_file)
    goal = 0.33 if arguments.to_file else 0.20
    print(f"{'':12} {'Relaxide':>12} {'TVM':>12} {'part':>6}   goal {goal:.2f}")
    for name in arguments.programs or PROGRAMS:
        # A process for each program: its peak of memory is the program's.
        contenders = {}
        for package in ("relaxide", "tvm"):
            command = [sys.executable, __file__, "--serve", package, *(["--to-file"] if arguments.to_file else [])]
            contenders[package] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        measured = {package: [] for package in contenders}
        for _ in range(arguments.rounds):
            for package, process in contenders.items():
                process.stdin.write(name + "\n")
                process.stdin.flush()
                measured[package].append(json.loads(process.stdout.readline()))
        for process in contenders.values():
            process.stdin.close()
            process.wait()
        mine, theirs = ([statistics.median(column) for column in zip(*measured[p], strict=True)] for p in contenders)
        print(f"{name:12} {mine[0] * 1e3:9.1f} ms {theirs[0] * 1e3:9.1f} ms {mine[0] / theirs[0]:6.2f}", flush=True)
        if arguments.to_file:
            print(f"{'':12} {mine[1] / 1e3:9.1f} kB {theirs[1] / 1e3:9.1f} kB {mine[1] / theirs[1]:6.2f}   the library")
            print(f"{'':12} {mine[2] / 1e6:9.1f} MB {theirs[2] / 1e6:9.1f} MB {mine[2] / theirs[2]:6.2f}   peak of memory")
    return 0


if __name__ == "__main__":
    sys.exit(main())
