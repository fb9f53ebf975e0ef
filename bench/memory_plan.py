"""The peak of the memory that static planning gives intermediate values, for Relaxide and TVM side by side.

Both run the passes of TVM's default build up to the plan, Relaxide also its own default pipeline, which fuses. The peak is
counted over the bindings of `main`: a storage lives from its allocation to its end, a tensor without a planned storage from
its allocation to its last use. Symbolic lengths have the values below; where a program declares upper bounds, planning uses
those instead.

usage: memory_plan.py [PROGRAM]...
"""

import argparse
import importlib
import json
import re
import subprocess
import sys
import tempfile

import compile_time

LENGTHS = {"b": 2, "n": 128}


def bounded_bert():
    """BERT-base with upper bounds of its symbolic dimensions, which planning uses."""
    head = "        b, n = T.int64(), T.int64()\n"
    bounds = '        R.func_attr({"tir_var_upper_bound": {"b": 4, "n": 512}})\n'
    return compile_time.bert_base().replace(head, bounds + head, 1)


compile_time.PROGRAMS["bert_bounded"] = bounded_bert


def planned(package, pipeline, module):
    """The module behind the pass that plans memory."""
    found = []
    instrument = importlib.import_module(f"{package}.ir.instrument")

    @instrument.pass_instrument
    class Catch:
        def run_after_pass(self, mod, info):
            if info.name == "StaticPlanBlockMemory":
                found.append(mod)

    transform = importlib.import_module(f"{package}.ir.transform")
    with transform.PassContext(instruments=[Catch()]):
        importlib.import_module(f"{package}.relax").get_pipeline(pipeline)(module)
    return found[-1]


SIZES = {"float32": 4, "float16": 2, "int64": 8, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}


def peak(text):
    """The peak of the bytes alive in the text of `main`."""
    body = text[text.index("def main(") :]
    live, most = {}, 0
    for line in body.splitlines()[1:]:
        if line.startswith("    @"):
            break
        if made := re.match(r'\s*(\w+).*? = R\.(memory\.alloc_storage|builtin\.alloc_tensor)\((R\.shape\(\[.*?\]\)).*?R\.dtype\("(\w+)"\)', line):
            name, kind, shape, dtype = made.groups()
            count = 1
            for dim in eval(shape.removeprefix("R.shape(").removesuffix(")"), {}, dict(LENGTHS)):  # noqa: S307
                count *= dim
            live[name] = count if kind == "memory.alloc_storage" else count * SIZES[dtype]
            most = max(most, sum(live.values()))
        elif ended := re.search(r"R\.memory\.kill_(?:storage|tensor)\((\w+)\)", line):
            # A tensor in a planned storage is not counted by itself.
            live.pop(ended.group(1), None)
    return most


def serve(package, pipeline):
    """A contender: for each line a program's name, the peak of its plan."""
    contender = importlib.import_module(package)
    with tempfile.TemporaryDirectory() as directory, contender.target.Target("llvm"):
        for line in sys.stdin:
            module = compile_time.load(line.strip(), package, directory)
            print(json.dumps(peak(planned(package, pipeline, module).script(show_meta=False))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", choices=[*compile_time.PROGRAMS, []])
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        return serve(*arguments.serve)
    contenders = [("tvm", "default_build"), ("relaxide", "default_build"), ("relaxide", "default")]
    peaks = {}
    for contender in contenders:
        names = list(arguments.programs or compile_time.PROGRAMS)
        command = [sys.executable, __file__, "--serve", *contender]
        run = subprocess.run(command, input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True)
        peaks[contender] = dict(zip(names, map(json.loads, run.stdout.splitlines())))
    print(f"{'':14} {'TVM':>12} {'Relaxide':>12} {'part':>6} {'with fusion':>12} {'part':>6}   goal 1.00")
    for name in names:
        theirs, mine, fused = (peaks[contender][name] for contender in contenders)
        print(f"{name:14} {theirs / 1e6:9.3f} MB {mine / 1e6:9.3f} MB {mine / theirs:6.2f} {fused / 1e6:9.3f} MB {fused / theirs:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
