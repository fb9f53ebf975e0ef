"""Libraries for Android, by the compiler of its NDK, which ``TVM_NDK_CC`` names."""

import os
import shutil
import subprocess


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
    return done.stdout


def _compiler():
    compiler = os.environ.get("TVM_NDK_CC")
    if not compiler:
        raise RuntimeError("TVM_NDK_CC is not set: give the compiler of the NDK, such as aarch64-linux-android28-clang++")
    return compiler


def create_shared(output, objects, options=None):
    """Link object files into a shared library for Android."""
    objects = [objects] if isinstance(objects, str) else list(objects)
    _run([_compiler(), "-o", output, *objects, *(["-shared", "-fPIC", "-lm"] if options is None else options)])


def create_staticlib(output, inputs):
    """Put object files, and those of archives, into an archive for Android."""
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    archiver = os.path.join(os.path.dirname(_compiler()), "llvm-ar")
    script = [f"create {output}", *(f"{'addlib' if path.endswith('.a') else 'addmod'} {path}" for path in inputs), "save", "end"]
    done = subprocess.run([archiver, "-M"], input="\n".join(script), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{archiver} failed:\n{done.stderr or done.stdout}")


def get_global_symbol_section_map(path, *, nm=None):
    """The global symbols of a library, each with the letter by which ``nm`` tells its section."""
    tool = nm or shutil.which("llvm-nm") or shutil.which("nm")
    if tool is None:
        raise RuntimeError("there is no nm on PATH: give one with nm=")
    found = {}
    for line in _run([tool, "--extern-only", "--format=posix", path]).splitlines():
        name, section, *_ = line.split()
        found[name] = section
    return found


create_shared.output_format = "so"
create_shared.object_format = "so"
create_staticlib.output_format = "a"

__all__ = ["create_shared", "create_staticlib", "get_global_symbol_section_map"]
