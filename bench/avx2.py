"""Holds contenders to AVX2 on a processor that has AVX-512.

Relaxide compiles for ``x86-64-v3``. OpenVINO's library of kernels has a variable for it. ONNX Runtime has no setting: a copy of its package is
made, in whose library each question to the processor which registers the system saves (``xgetbv``) gives the answer of a system that knows
AVX's and no more, so that it takes its kernels for AVX2.
"""

import functools
import importlib.util
import os
import pathlib
import re
import shutil
import sys
import tempfile

#: The variable that tells contenders' processes, and where the copy is.
VARIABLE = "RELAXIDE_BENCH_AVX2"
#: ``xgetbv`` of register zero: behind ``xor ecx, ecx``, or a few instructions behind ``cpuid`` with ``ecx`` set once more.
ASKS = re.compile(rb"(\x31\xc9|\x0f\xa2.{2,12}?)\x0f\x01\xd0", re.S)
#: ``push 7; pop rax``: x87, SSE and AVX state. As long as ``xgetbv``.
ANSWER = b"\x6a\x07\x58"


def is_held():
    return VARIABLE in os.environ


def options():
    """Options of Relaxide's target."""
    return {"mcpu": "x86-64-v3"} if is_held() else {}


@functools.cache
def hold():
    """Has the contenders that are started from here on take AVX2 at most."""
    found = importlib.util.find_spec("onnxruntime")
    if found is None or found.origin is None:
        raise RuntimeError("onnxruntime is not installed")
    package = pathlib.Path(found.origin).parent
    folder = pathlib.Path(tempfile.mkdtemp(prefix="onnxruntime-avx2-"))
    shutil.copytree(package, folder / "onnxruntime", ignore=shutil.ignore_patterns("transformers", "quantization", "tools", "libonnxruntime.so*"))
    found = 0
    for library in (folder / "onnxruntime/capi").glob("onnxruntime_pybind11_state*"):
        code, count = ASKS.subn(lambda match: match[1] + ANSWER, library.read_bytes())
        library.write_bytes(code)
        found += count
    if not found:
        raise RuntimeError(f"{package}: its library asks for the saved registers in a way that is not known here")
    os.environ[VARIABLE] = str(folder)
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    return folder


def prefer_copy():
    """Has an import of `onnxruntime` find the copy, in a contender's process."""
    if is_held():
        sys.path.insert(0, os.environ[VARIABLE])
