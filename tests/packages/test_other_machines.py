"""The runtime for other machines: wheels for AArch64 and for musl, whose library runs a model there as it does here.

A wheel for AArch64 runs under QEMU, one for musl with Debian's musl. Where the other system's loader is missing, its library asks for nothing that
musl does not have.
"""

import math
import os
import pathlib
import platform
import shutil
import subprocess
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
MUSL = pathlib.Path("/usr/lib/x86_64-linux-musl/libc.so")

pytestmark = [
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
    pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="builds the runtime for three other machines (RELAXIDE_DEEP)"),
]

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32")):
        with R.dataflow():
            y = R.nn.softmax(R.erf(R.matmul(x, w)), axis=-1)
            R.output(y)
        return y
"""


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=900, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def library(target, folder):
    """The runtime's library out of the wheel for a target, and the wheel's name."""
    wheel = pathlib.Path(call(ROOT / "scripts/wheel", folder, "--target", target).strip())
    with zipfile.ZipFile(wheel) as archive:
        archive.extract("relaxide_runtime/librelaxide_runtime.so", folder)
    return folder / "relaxide_runtime" / "librelaxide_runtime.so", wheel.name


def runs(folder, library, cc, target, *runner):
    """A model in a program in C over a library computes what NumPy does, and a file that is none is an error."""
    (folder / "model.relax").write_text(PROGRAM)
    call(COMMAND, "compile", "-q", folder / "model.relax", "-o", folder / "model.so", *target)
    call(cc, "-O1", "-I", ROOT / "crates/capi/include", "-o", folder / "run", ROOT / "examples/c/run.c", "-L", library.parent, "-lrelaxide_runtime")
    x, w = (np.random.default_rng(7).standard_normal(shape).astype("float32") for shape in [(200, 64), (64, 64)])
    np.save(folder / "x.npy", x)
    np.save(folder / "w.npy", w / 8)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(library.parent), "QEMU_SET_ENV": f"LD_LIBRARY_PATH={library.parent}"}
    call(*runner, folder / "run", folder / "model.so", "-t", 3, "-o", folder, folder / "x.npy", folder / "w.npy", env=environment)
    powers = np.exp(np.vectorize(math.erf)(x @ (w / 8)))
    expected = powers / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.load(folder / "output_0.npy"), expected, rtol=1e-4, atol=1e-6)
    words = [*runner, folder / "run", folder / "x.npy"]
    wrong = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=environment)
    assert wrong.returncode == 1 and "x.npy" in wrong.stderr, wrong


@pytest.mark.skipif(shutil.which("musl-gcc") is None, reason="musl-gcc is missing (Debian's musl-tools)")
def test_musl(tmp_path):
    made, name = library("x86_64-unknown-linux-musl", tmp_path)
    assert name.endswith("-py3-none-musllinux_1_2_x86_64.whl")
    runs(tmp_path, made, "musl-gcc", [])


@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="qemu-aarch64-static is missing")
@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="aarch64-linux-gnu-gcc is missing")
def test_aarch64(tmp_path):
    made, name = library("aarch64-unknown-linux-gnu", tmp_path)
    assert name.endswith("-py3-none-manylinux_2_17_aarch64.whl")
    runs(tmp_path, made, "aarch64-linux-gnu-gcc", ["--target", "llvm -mtriple=aarch64-linux-gnu"], "qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu")


@pytest.mark.skipif(not MUSL.exists(), reason="musl is missing (Debian's musl)")
@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="aarch64-linux-gnu-gcc is missing")
def test_musl_on_aarch64(tmp_path):
    made, name = library("aarch64-unknown-linux-musl", tmp_path)
    assert name.endswith("-py3-none-musllinux_1_2_aarch64.whl")
    wanted = [line.split() for line in call("nm", "-D", "--undefined-only", made).splitlines()]
    there = {line.split()[-1] for line in call("nm", "-D", "--defined-only", MUSL).splitlines()}
    assert {name for kind, name in wanted if kind == "U"} <= there


@pytest.mark.skipif(shutil.which("javac") is None, reason="javac is missing")
@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="aarch64-linux-gnu-gcc is missing")
def test_a_jar_has_the_libraries_of_several_machines(tmp_path):
    call("cargo", "build", "--quiet", "--release", "--package", "relaxide-capi", cwd=ROOT)
    here = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "librelaxide_runtime.so"
    call(ROOT / "scripts/java", "--also", "aarch64-unknown-linux-gnu", tmp_path / "relaxide.jar", here)
    with zipfile.ZipFile(tmp_path / "relaxide.jar") as archive:
        for machine, told in {"x86_64": "X86-64", "aarch64": "AArch64"}.items():
            for name in ["librelaxide_runtime.so", "librelaxide_java.so"]:
                path = archive.extract(f"native/linux-{machine}/{name}", tmp_path)
                assert told in call("readelf", "-h", path)


LLVM = """
#include <llvm-c/Core.h>
#include <llvm-c/ExecutionEngine.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <stdio.h>
int main(void) {
    LLVMInitializeMACHINETargetInfo(); LLVMInitializeMACHINETarget(); LLVMInitializeMACHINETargetMC(); LLVMInitializeMACHINEAsmPrinter();
    LLVMModuleRef module = LLVMModuleCreateWithName("module");
    LLVMTypeRef i32 = LLVMInt32Type(), both[] = {i32, i32};
    LLVMValueRef add = LLVMAddFunction(module, "add", LLVMFunctionType(i32, both, 2, 0));
    LLVMBuilderRef builder = LLVMCreateBuilder();
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlock(add, "entry"));
    LLVMBuildRet(builder, LLVMBuildAdd(builder, LLVMGetParam(add, 0), LLVMGetParam(add, 1), "sum"));
    char *error = NULL, *triple = LLVMGetDefaultTargetTriple();
    LLVMTargetRef target;
    LLVMMemoryBufferRef text;
    if (LLVMGetTargetFromTriple(triple, &target, &error)) return puts(error), 1;
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, triple, "", "", LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMAssemblyFile, &error, &text)) return puts(error), 1;
    LLVMLinkInInterpreter(); /* which calls through libffi */
    printf("%s\\n%s", triple, LLVMGetBufferStart(text));
    return 0;
}
"""


def said_with_llvm(target, machine, cc, folder, *runner):
    """What a program says that is linked with LLVM for a target as `scripts/release TARGET` links the compiler."""
    made = folder / "code"
    found = subprocess.run([ROOT / "scripts/llvm-for", target], capture_output=True, text=True, timeout=900)
    if any(reason in found.stderr for reason in ("has no LLVM", "there is no LLVM", "is not Debian's package", "static-libraries")):
        pytest.skip(found.stderr.strip())
    assert found.returncode == 0, found.stderr
    llvm = pathlib.Path(found.stdout.strip())
    config = lambda *words: call(llvm / "bin/llvm-config", *words).split()  # noqa: E731
    (folder / "code.c").write_text(LLVM.replace("MACHINE", machine))
    libraries = [*config("--link-static", "--libs"), "-Wl,--as-needed", "-lffi", *config("--link-static", "--system-libs"), "-lstdc++"]
    call(cc, "-w", "-o", made, folder / "code.c", *config("--cflags"), f"-L{llvm / 'lib'}", *libraries)
    # What no other machine has under this name is inside.
    needed = call("readelf", "-d", made)
    assert not any(f"[lib{name}." in needed for name in ("LLVM", "ffi", "zstd", "z", "z3", "xml2")), needed
    return call(*runner, made)


@pytest.mark.skipif(shutil.which("qemu-aarch64-static") is None, reason="qemu-aarch64-static is missing")
@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="aarch64-linux-gnu-gcc is missing")
def test_llvm_for_aarch64_is_linked_here_and_makes_code_there(tmp_path):
    said = said_with_llvm("aarch64-unknown-linux-gnu", "AArch64", "aarch64-linux-gnu-gcc", tmp_path, "qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu")
    assert said.startswith("aarch64") and "add\tw0, w0, w1" in said, said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the code is for x86-64")
def test_llvm_for_this_machine_brings_along_what_it_needs(tmp_path):
    said = said_with_llvm("x86_64-unknown-linux-gnu", "X86", "cc", tmp_path)
    assert said.startswith("x86_64") and "leal\t(%rdi,%rsi), %eax" in said, said


def test_a_compiler_that_cannot_be_made_here_says_what_it_wants():
    done = subprocess.run([ROOT / "scripts/release", "x86_64-unknown-linux-musl"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "LLVM_FOR_TARGET" in done.stderr and "scripts/wheel --target x86_64-unknown-linux-musl" in done.stderr
    done = subprocess.run([ROOT / "scripts/release", "riscv64gc-unknown-linux-gnu"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "there is no LLVM for riscv64gc" in done.stderr
