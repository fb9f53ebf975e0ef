"""What the Relay VM costs: its steps on data and calls, and networks beside the same networks by way of Relax.

``python bench/relay_vm.py [--networks]``. Steps are timed on a list of 1,000 elements, which the caches hold, and on one of
100,000, which they do not: the least of many runs. Behind each row stand the instructions that an element takes, and from
the rows follow what an instruction, a constructor and a level of recursion cost, beside their bars. Networks are timed in
turns, the least of twelve runs each, of two hundred where they are short. Times are of the processor, not of the clock:
others may use the machine.
"""

import os
import re
import sys
import time

os.environ.setdefault("TVM_NUM_THREADS", "1")

import numpy as np

import relaxide as tvm
from relaxide import relax, relay
from relaxide.relay import testing

SIZES = (1_000, 100_000)
# What a step may cost, in ns.
BARS = {"an instruction": 20, "a constructor, with its object's end": 60, "a level of recursion": 200}
PROGRAM = """#[version = "0.0.5"]
def @walk(%xs: List[int32], %last: int32) -> int32 { match (%xs) { Nil => %last, Cons(%x, %rest) => @walk(%rest, %x) } }
def @turn(%xs: List[int32], %done: List[int32]) -> List[int32] {
  match (%xs) { Nil => %done, Cons(%x, %rest) => @turn(%rest, Cons(%x, %done)) }
}
def @deep(%xs: List[int32]) -> List[int32] { match (%xs) { Nil => Nil, Cons(%x, %rest) => Cons(%x, @deep(%rest)) } }
def @main(%xs: List[int32]) -> int32 { @walk(%xs, 0) }
def @turned(%xs: List[int32]) -> List[int32] { @turn(%xs, Nil) }
"""


def least(run, times):
    """The least time of the processor that a call takes, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def per_element(code, name, cons):
    """How many instructions a function of the disassembly executes for each element of a list."""
    text = code.split(f": {name}(", 1)[1].split("VM Function[", 1)[0]
    lines = [line.split("#", 2)[-1].split() for line in text.splitlines() if re.match(r" *\d+: ", line)]
    at, count, numbers = 0, 0, {}
    while True:
        (kind, *args), count = lines[at], count + 1
        if kind == "ret":
            return count
        if kind == "get_tag":
            numbers[args[0]] = cons
        elif kind == "load_consti":
            numbers[args[0]] = int(args[1])
        if kind == "invoke" and name in ("walk", "turn"):
            return count
        if kind == "if":
            at += int(args[2]) if numbers[args[0]] == numbers[args[1]] else int(args[3])
        else:
            at += int(args[0]) if kind == "goto" else 1


def steps():
    """Times of one element of a list."""
    exe = relay.vm.compile(relay.parse(PROGRAM.replace("def @main", "def @walked")), "llvm")
    machine = relay.vm.VirtualMachine(exe, tvm.cpu())
    tags = {ctor.name: ctor.tag for ctor in relay.Prelude().get_type("List")[1:]}
    nil, element = relay.vm.ADT(tags["Nil"], []), tvm.runtime.tensor(np.int32(1))
    names = {
        "walk": "tag, two fields, branch, call in the last place",
        "turn": "the same with a constructor of two fields",
        "deep": "the same with a level of recursion",
    }
    counts = {name: per_element(exe.bytecode, name, tags["Cons"]) for name in names}
    for size in SIZES:
        listed = nil
        for _ in range(size):
            listed = relay.vm.ADT(tags["Cons"], [element, listed])
        given = {"walk": (listed, element), "turn": (listed, nil), "deep": (listed,)}
        runs = max(25, 200_000 // size)
        took = {name: least(lambda name=name: machine.invoke(name, *given[name]), runs) / size * 1e9 for name in names}
        print(f"a list of {size}, ns an element")
        for name, what in names.items():
            print(f"  {name:6} {took[name]:7.1f}   {counts[name]:2} instructions: {what}")
        derived = (took["walk"] / counts["walk"], took["turn"] - took["walk"], took["deep"] - took["turn"])
        for (what, bar), found in zip(BARS.items(), derived):
            print(f"  {what:38} {max(found, 0):6.1f}   bar {bar}")


def networks():
    """The Relay VM beside Relax's machine, on the same weights."""
    made = {
        "resnet-18": lambda: testing.resnet.get_workload(num_layers=18),
        "resnet-50": lambda: testing.resnet.get_workload(num_layers=50),
        "mobilenet": lambda: testing.mobilenet.get_workload(),
        "inception": lambda: testing.inception_v3.get_workload(),
        "squeezenet": lambda: testing.squeezenet.get_workload(version="1.1"),
        "densenet": lambda: testing.densenet.get_workload(),
        "vgg": lambda: testing.vgg.get_workload(),
        "dcgan": lambda: testing.dcgan.get_workload(),
        "lstm": lambda: testing.lstm.get_workload(10, 64),
        "bert": lambda: testing.bert.get_workload(1, 64, 2, 128, 4, 1000),
    }
    for name, make in made.items():
        mod, weights = make()
        random, inputs = np.random.default_rng(0), []
        for var in mod["main"].params:
            if var.name_hint not in weights:
                shape, dtype = var.type_annotation.concrete_shape, str(var.type_annotation.dtype)
                given = random.integers(0, 100, shape) if dtype == "int64" else random.standard_normal(shape)
                inputs.append(tvm.runtime.tensor(given.astype(dtype)))
        machine = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=weights), tvm.cpu())
        program = tvm.compile(relay.to_relax(relay.vm.bind_params(mod, weights)), "llvm")
        other = relax.VirtualMachine(program, tvm.cpu())["main"]
        runs = {"relay": lambda: machine.invoke("main", *inputs), "relax": lambda: other(*inputs)}
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(200 if name in ("lstm", "bert") else 12):
            for kind, run in runs.items():
                best[kind] = min(best[kind], least(run, 1))
        ratio = best["relay"] / best["relax"]
        print(f"{name:10} relay {best['relay'] * 1e3:8.3f} ms   relax {best['relax'] * 1e3:8.3f} ms   {ratio:.2f}x")


if __name__ == "__main__":
    steps()
    if "--networks" in sys.argv:
        networks()
