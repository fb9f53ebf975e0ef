"""What all tests share."""

import functools
import gc
import importlib.util
import inspect
import linecache
import os
import pathlib
import shutil
import sys
import tempfile


def stack(context=1):
    """As ``inspect.stack``, with one line of each source.

    TVM's reader of programs asks for the frames around it each time; under pytest there are sixty, and Python looks through all
    modules that are loaded for the source of each, which takes longer than to read the program.
    """
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        line = linecache.getline(code.co_filename, frame.f_lineno, frame.f_globals)
        frames.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, [line] if line else None, 0 if line else None))
        frame = frame.f_back
    return frames


inspect.stack = stack


def on_one_thread(session):
    """Has ONNX Runtime compute with the thread that asks, unless a test says another number.

    Its own threads wait for more work in a loop, which takes as long as what they were asked for, and the cores are other tests' then.
    What it gives depends on the number of threads in places, so one is also the same everywhere.
    """
    import onnxruntime

    start = session.__init__

    @functools.wraps(start)
    def init(self, path_or_bytes, sess_options=None, *args, **named):
        options = onnxruntime.SessionOptions() if sess_options is None else sess_options
        if getattr(options, "intra_op_num_threads", None) == 0:
            options.intra_op_num_threads = 1
        start(self, path_or_bytes, options, *args, **named)

    session.__init__ = init


if importlib.util.find_spec("onnxruntime"):
    on_one_thread(importlib.import_module("onnxruntime").InferenceSession)


HERE = pathlib.Path(__file__).parent

#: Files and folders that take more than fifteen seconds, whatever number of tests they have. They run first, so that no worker is
#: left with one of them when the others have ended.
LONGEST = [
    "tests/onnx/test_ways.py",
    "tests/answers",
    "tests/onnx/backend_suite",
    "tests/interop/test_programs.py",
    "tests/language/test_one_language.py",
    "tests/onnx/test_operators.py",
    "tests/examples/test_tvm_programs.py",
    "tests/dropin",
    "tests/onnx/test_onnxruntime_programs.py",
    "tests/onnx/test_onnxruntime_door.py",
    "tests/models",
    "tests/interop",
    "tests/wasm",
    "tests/rpc",
    "tests/examples",
    "tests/cpp",
    "tests/onnx",
]


def pytest_configure(config):
    """Kernels whose text, target and passes are equal are compiled once in a run: half of its time is LLVM's.

    Most are made by several tests, or in several ways by one. What is kept is found by all that its object depends on, so each test
    loads what it would have compiled; tests of the cache itself name a folder of their own. The deep tests compile everything.
    """
    if hasattr(config, "workerinput") or os.environ.get("RELAXIDE_DEEP") or "RELAXIDE_CACHE" in os.environ:
        return
    folder = tempfile.mkdtemp(prefix="relaxide-tests-")
    os.environ["RELAXIDE_CACHE"] = folder

    def clear():
        del os.environ["RELAXIDE_CACHE"]
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(clear)


def pytest_collection_finish(session):
    """What importing the tests has made stays, so the collector of cycles need not look through it again and again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    def place(item):
        path = item.path.relative_to(HERE).as_posix()
        return next((at for at, prefix in enumerate(LONGEST) if path.startswith(prefix)), len(LONGEST))

    items.sort(key=place)
