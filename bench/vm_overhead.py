"""Times what a virtual machine adds to a program, for Relaxide and TVM on the same files, side by side.

``vm_programs.py`` makes the programs with TVM. Each contender lives in a process of its own and runs one program for some
milliseconds when it is told to; the contenders take turns, and medians over the turns are reported. A row's cost is that of
one repetition inside the program: an instruction, a kernel call with its memory, a level of recursion.

usage: vm_overhead.py [--rounds 9] [--programs DIRECTORY] [--json FILE]
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent

#: The rows: what is timed, in words, and the part of TVM's time that is the goal.
ROWS = {
    "copy": ("call of a builtin (copy)", 0.25),
    "shape_of": ("call of a builtin that makes an object (shape_of)", 0.25),
    "static": ("kernel call with its allocation and its end, known length", 0.25),
    "owned": ("the same, with a storage of its own for each result", 0.25),
    "symbolic": ("kernel call with its allocation and its end, symbolic length", 0.25),
    "recursion": ("one level of a branch and a recursion", 0.25),
    "callback": ("call of a Python function from a program", 0.5),
    "enter": ("entering `main` from Python", 0.5),
    "load": ("loading a library", 0.5),
    "machine": ("a machine for 10,000 instructions: linked, verified", 1.0),
    "import": ("importing the package", 0.15 / 2.8),
}
#: How long one turn lasts.
TURN = 0.02


class Runner:
    """One virtual machine's side of the rows. Both packages have the same names."""

    def __init__(self, contender, directory):
        start = time.perf_counter()
        if contender == "tvm":
            import tvm
        else:
            import relaxide as tvm
        self.import_seconds = time.perf_counter() - start
        self.tvm, self.directory = tvm, directory
        register = getattr(tvm, "register_global_func", None) or tvm.ffi.register_global_func
        register("bench.callback", lambda x: x)
        self.mains = {}
        for row in json.loads((directory / "programs.json").read_text()):
            module = tvm.runtime.load_module(str(directory / f"{row['name']}.so"))
            if row["name"] == "large":
                self.large = module
                continue
            vm = tvm.relax.VirtualMachine(module, tvm.cpu())
            args = [self._argument(arg) for arg in row["args"]]
            self.mains[row["name"]] = (vm["main"], args, row["repeats"])
        self.copies = 0

    def _argument(self, arg):
        import numpy as np

        dtype, shape, *value = arg
        return self.tvm.runtime.tensor(np.full(shape, value[0] if value else 1, dtype))

    def seconds(self, row):
        """The fastest of as many runs as fit in a turn."""
        if row == "import":
            return self.import_seconds
        once = {"load": self._load, "machine": self._machine}.get(row)
        if once is None:
            return self._repeated(*self.mains[row])
        return min(once() for _ in range(5))

    def _repeated(self, main, args, repeats):
        batch = max(1, 1000 // repeats)
        end, fastest = time.perf_counter() + TURN, float("inf")
        while time.perf_counter() < end:
            start = time.perf_counter()
            for _ in range(batch):
                main(*args)
            fastest = min(fastest, time.perf_counter() - start)
        return fastest / (batch * repeats)

    def _load(self):
        # The dynamic loader knows a file that it has seen, so each time there is a new one.
        self.copies += 1
        copy = self.directory / f"copy_{os.getpid()}_{self.copies}.so"
        shutil.copyfile(self.directory / "static.so", copy)
        start = time.perf_counter()
        module = self.tvm.runtime.load_module(str(copy))
        seconds = time.perf_counter() - start
        copy.unlink()
        del module
        return seconds

    def _machine(self):
        start = time.perf_counter()
        self.tvm.relax.VirtualMachine(self.large, self.tvm.cpu())
        return time.perf_counter() - start


def serve(contender, directory):
    """The contender's process: one row for each line that it reads."""
    replies, sys.stdout = sys.stdout, sys.stderr
    runner = Runner(contender, pathlib.Path(directory))
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        print(json.dumps({"seconds": runner.seconds(line.strip())}), file=replies, flush=True)


class Contender:
    """One contender's process, from the outside."""

    def __init__(self, name, directory):
        self.name, self.times = name, {row: [] for row in ROWS}
        command = [sys.executable, __file__, "--serve", name, str(directory)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended with status {self.process.wait()}")
        return json.loads(line)

    def run(self, row):
        self.process.stdin.write(row + "\n")
        self.process.stdin.flush()
        self.times[row].append(self._read()["seconds"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.2f} {unit}"
    return f"{seconds * 1e9:.1f} ns"


def compare(directory, rounds):
    """The medians in seconds, by row and contender."""
    contenders = [Contender(name, directory) for name in ("relaxide", "tvm")]
    for _ in range(rounds):
        for row in ROWS:
            for contender in contenders:
                contender.run(row)
    for contender in contenders:
        contender.close()
    return {row: {c.name: statistics.median(c.times[row]) for c in contenders} for row in ROWS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--programs", type=pathlib.Path, help="where the programs are, or are to be made")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(*arguments.serve)

    with tempfile.TemporaryDirectory() as temporary:
        directory = arguments.programs or pathlib.Path(temporary)
        if not (directory / "programs.json").exists():
            subprocess.run([sys.executable, HERE / "vm_programs.py", directory], check=True)
        results = compare(directory, arguments.rounds)

    print(f"{'':62} {'Relaxide':>10} {'TVM':>10} {'part':>6} {'goal':>6}")
    for row, (words, goal) in ROWS.items():
        mine, theirs = results[row]["relaxide"], results[row]["tvm"]
        print(f"{words:62} {text(mine):>10} {text(theirs):>10} {mine / theirs:6.2f} {goal:6.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
