"""The wheel `relaxide-runtime`: equal to the byte when it is made again, and its README's first program runs where it alone is installed."""

import importlib.machinery
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
COMMAND = ROOT / "build" / "relaxide"
PACKAGE = ROOT / "packages" / "python-runtime"

pytestmark = [
    pytest.mark.skipif(not COMMAND.exists(), reason="build/relaxide is not built (`make build`)"),
    pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is missing"),
]

PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            gv = R.multiply(x, R.const(2, "float32"))
            R.output(gv)
        return gv

    @R.function
    def other(x: R.Tensor(("n",), "float16"), k: R.Tensor((), "int64")):
        with R.dataflow():
            gv = (R.add(x, x), (R.add(k, R.const(1, "int64")), R.shape_of(x)))
            R.output(gv)
        return gv
"""


def call(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    call("cargo", "build", "--quiet", "--release", "--package", "relaxide-capi", cwd=ROOT)
    folder = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    made = [pathlib.Path(call(ROOT / "scripts/wheel", tmp_path_factory.mktemp("wheel"), "--library", folder).strip()) for _ in range(2)]
    assert made[0].name == made[1].name and made[0].read_bytes() == made[1].read_bytes()
    return made[0]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the package and NumPy beside it, and a model."""
    folder = tmp_path_factory.mktemp("installed")
    call(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel)
    (folder / "model.relax").write_text(PROGRAM)
    call(COMMAND, "compile", "-q", folder / "model.relax", "-o", folder / "model.so")
    return folder


def in_python(folder, text):
    """A program in an interpreter that has NumPy and the package, and no other folder of ours."""
    numpy = pathlib.Path(np.__file__).parents[1]
    alone = folder / "numpy-only"
    alone.mkdir(exist_ok=True)
    for part in [*numpy.glob("numpy"), *numpy.glob("numpy.libs")]:
        if not (alone / part.name).exists():
            (alone / part.name).symlink_to(part)
    head = f"import sys; sys.path[:0] = [{str(folder)!r}, {str(alone)!r}]\n"
    return call(sys._base_executable, "-I", "-S", "-c", head + text, cwd=folder)


def test_the_library_calls_nothing_that_came_after_glibc_2_17(wheel, tmp_path):
    """What `scripts/old-glibc` has no place for: found here, before the small runtime is built for other machines."""
    loader = importlib.machinery.SourceFileLoader("old_glibc", str(ROOT / "scripts/old-glibc"))
    old = importlib.util.module_from_spec(importlib.util.spec_from_loader("old_glibc", loader))
    loader.exec_module(old)
    with zipfile.ZipFile(wheel) as archive:
        library = archive.extract("relaxide_runtime/librelaxide_runtime.so", tmp_path)
    names = [*old.FILES.values(), old.loader_of("cc")]
    first = {symbol: version for name in names for symbol, version in old.symbols(call("cc", f"-print-file-name={name}").strip()).items()}
    called = re.findall(r"^ +U (\w+)@GLIBC_", call("nm", "-D", "--undefined-only", library), re.M)
    made = {"fstat64", "stat64"}  # of older functions
    assert called and not [symbol for symbol in called if first[symbol] > old.OLDEST and symbol not in made]


def test_the_wheel_says_what_it_runs_on(wheel):
    assert re.fullmatch(r"relaxide_runtime-[\d.]+-py3-none-manylinux_\d+_\d+_(x86_64|aarch64)\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert names[-1].endswith("dist-info/RECORD")
        record = archive.read(names[-1]).decode().splitlines()
        assert sorted(line.split(",")[0] for line in record) == sorted(names)
        assert any(name.endswith("sboms/relaxide.cdx.json") for name in names)


def test_a_library_that_is_for_something_else_is_refused(tmp_path):
    source, library = tmp_path / "empty.c", tmp_path / "librelaxide_runtime.so"
    source.write_text("int nothing(void) { return 0; }\n")
    call("cc", "-shared", "-nostdlib", "-o", library, source)
    done = subprocess.run([ROOT / "scripts/wheel", tmp_path / "out", "--library", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and "needs a C library other than glibc" in done.stderr, done.stderr
    none = subprocess.run([ROOT / "scripts/wheel", tmp_path / "out", "--library", tmp_path / "none"], capture_output=True, text=True)
    assert none.returncode == 1 and "there is no" in none.stderr


def test_the_readme_runs(installed):
    program = re.search(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.S)[1]
    assert "[[2.0, 2.0, 2.0, 2.0], [2.0, 2.0, 2.0, 2.0]]" in in_python(installed, program)


def test_values_cross_and_errors_have_their_kinds(installed):
    in_python(installed, """
import numpy as np, relaxide_runtime as runtime
model = runtime.load("model.so")
assert [(p.name, p.dtype, p.shape) for p in model.functions["other"]] == [("x", "float16", (None,)), ("k", "int64", ())]
doubled, (more, shape) = model.call("other", np.array([1, 2, 3], "float16"), np.array(6))
assert doubled.dtype == "float16" and doubled.tolist() == [2, 4, 6] and more == 7 and more.shape == () and shape == (3,)
# Of any strides, and of no elements.
x = np.arange(24, dtype="float32").reshape(4, 6)[::2, 1:5]
assert (model(x) == 2 * x).all() and model(np.zeros((0, 4), "float32")).shape == (0, 4)
result = model(x)
del model
assert (result == 2 * x).all()
model = runtime.load("model.so")
for wrong, kind, message in [
    (lambda: model.run(), ValueError, "the input 'x' is missing: main has x"),
    (lambda: model.run(y=1), ValueError, "unknown input 'y'"),
    (lambda: model.call("none"), ValueError, "it has main, other"),
    (lambda: model(np.ones((2, 5), "float32")), Exception, "dimension 1 is 5, not 4"),
    (lambda: model(np.ones((2, 4))), Exception, "float64"),
    (lambda: model(), Exception, "argument"),
    (lambda: runtime.load("none.so"), FileNotFoundError, "none.so"),
    (lambda: model(np.array(["text"])), Exception, "str"),
    (lambda: model(object()), Exception, "object"),
]:
    try:
        wrong()
    except kind as error:
        assert message in str(error), error
    else:
        raise AssertionError(message)
assert (model(x) == 2 * x).all()
""")
