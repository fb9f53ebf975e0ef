"""Writes down what TVM answers: ``record.py [NAME]...`` writes ``expected.json`` anew, or those programs' part of it.

``record.py --check`` holds what is written down against TVM, as bytecode and as native code.
"""

import json
import os
import pathlib
import sys
import tempfile

import tvm
from tvm import relax

import corpus
import functions
import values
from source import load

HERE = pathlib.Path(__file__).resolve().parent
EXPECTED = HERE / "expected.json"


def compiled(module, exec_mode, planned):
    """The executable. TVM's memory plan crashes some programs with branches and symbolic sizes; they go without."""
    target = tvm.target.Target("llvm")
    if planned:
        return relax.build(module, target, exec_mode=exec_mode)

    @tvm.transform.module_pass(opt_level=0)
    def pipeline(mod, _):
        for make in (
            relax.backend.DispatchSampling,
            relax.backend.DispatchSortScan,
            relax.transform.LegalizeOps,
            relax.transform.RewriteDataflowReshape,
            relax.transform.ToNonDataflow,
            relax.transform.RemovePurityChecking,
            relax.transform.CallTIRRewrite,
            relax.transform.LowerAllocTensor,
            relax.transform.KillAfterLastUse,
            relax.transform.LowerRuntimeBuiltin,
            relax.transform.ComputePrimValue,
            relax.transform.VMShapeLower,
            relax.transform.AttachGlobalSymbol,
        ):
            mod = make()(mod)
        return mod

    return relax.build(module, target, relax_pipeline=pipeline, exec_mode=exec_mode)


def answers(program, directory, exec_mode, planned):
    """What the calls of a program give."""
    module = relax.transform.LambdaLift()(load(program, "tvm", directory))
    executable = compiled(module, exec_mode, planned)
    results = []
    for function, args in program.calls:
        vm = relax.VirtualMachine(executable, tvm.cpu())
        try:
            results.append(values.describe(vm[function](*[values.make(arg, tvm) for arg in args])))
        except Exception:
            results.append({"error": True})
    return results


def apart(work):
    """What ``work`` returns, run in a process of its own; ``None`` if that crashes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reader)
            with os.fdopen(writer, "w") as out:
                json.dump(work(), out)
            status = 0
        except Exception as error:
            print(error, file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as text:
        text = text.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if status == 0 else None


def recorded(program, directory, exec_mode="bytecode"):
    """TVM's answers; ``None`` if it has none."""
    for planned in (True, False):
        found = apart(lambda: answers(program, directory, exec_mode, planned))  # noqa: B023
        if found is not None:
            return found
    print(f"{program.name}: TVM has no answer", file=sys.stderr)
    return None


def check(programs, directory):
    """Asks TVM again, in both modes; how many answers are not what is written down."""
    expected, wrong = json.loads(EXPECTED.read_text()), 0
    for program in programs:
        for exec_mode in ("bytecode", "compiled"):
            found = recorded(program, directory, exec_mode)
            for answer, wanted in zip(found or [None] * len(program.calls), expected[program.name]):
                problem = values.differences(answer, wanted)
                if problem:
                    print(f"{program.name}, {exec_mode}: {problem}", file=sys.stderr)
                    wrong += 1
    return wrong


def main():
    functions.register(tvm)
    names = [name for name in sys.argv[1:] if name != "--check"]
    programs = [program for program in corpus.programs() if not names or program.name in names]
    with tempfile.TemporaryDirectory() as directory:
        if "--check" in sys.argv:
            sys.exit(1 if check(programs, directory) else 0)
        expected = json.loads(EXPECTED.read_text()) if names else {}
        answered = {program.name: recorded(program, directory) for program in programs}
        expected |= {name: found for name, found in answered.items() if found is not None}
    text = ",\n".join(f"{json.dumps(name)}:{json.dumps(found, separators=(',', ':'))}" for name, found in sorted(expected.items()))
    EXPECTED.write_text("{\n" + text + "\n}\n")
    print(f"{len(expected)} programs")


if __name__ == "__main__":
    main()
