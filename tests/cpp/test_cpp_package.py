"""The C++ header, and the runtime as it is installed for programs in C and C++: pkg-config, CMake, a Debian package."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from relaxide import relax

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from cpp_programs import Echo, Plain, Scaled  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
RELEASE = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"

pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


def call(*command, **more):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, **more)
    assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}{result.stderr[-4000:]}"
    return result.stdout


@pytest.fixture(scope="module")
def library():
    """The folder with the runtime's libraries."""
    call("cargo", "build", "--quiet", "--release", "--package", "relaxide-capi", "--manifest-path", ROOT / "Cargo.toml")
    return RELEASE


@pytest.fixture(scope="module")
def prefix(library, tmp_path_factory):
    """Where the runtime is installed."""
    folder = tmp_path_factory.mktemp("usr")
    call(ROOT / "scripts" / "install-c", folder, "--library", library)
    return folder


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of the checks' models."""
    folder = tmp_path_factory.mktemp("programs")
    for name, module in {"plain": Plain, "scaled": Scaled, "echo": Echo}.items():
        relax.build(module, "llvm").export_library(str(folder / f"{name}.so"))
    return folder


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "classifier.so"
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((1, 3, 32, 32), "float32"))
    with builder.function("main", [x]):
        sums = builder.emit(relax.op.sum(x, axis=[2, 3]))
        builder.emit_func_output(builder.emit(relax.op.nn.softmax(sums)))
    relax.build(builder.get(), "llvm").export_library(str(path))
    return path


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_programs_use_the_header(library, programs, tmp_path, standard):
    program = tmp_path / "checks"
    flags = [f"-std={standard}", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", ROOT / "crates" / "capi" / "include"]
    link = [library / "librelaxide_runtime.so", f"-Wl,-rpath,{library}"]
    call("c++", *flags, "-o", program, pathlib.Path(__file__).with_name("checks.cpp"), *link)
    assert call(program, programs) == "passed\n"


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="there is no pkg-config")
def test_pkg_config_finds_the_library(prefix, classifier, tmp_path):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}
    flags = call("pkg-config", "--cflags", "--libs", "relaxide >= 0.1", env=env).split()
    call("c++", "-O2", "-o", tmp_path / "classify", ROOT / "examples" / "cpp" / "classify.cpp", *flags)
    out = call(tmp_path / "classify", classifier, env={**env, "LD_LIBRARY_PATH": str(prefix / "lib")})
    assert out == "class 0 of 3, with 0.333\n"
    assert call("pkg-config", "--static", "--libs", "relaxide", env=env).split()[-3:] == ["-lpthread", "-ldl", "-lm"]


@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake")
def test_cmake_finds_the_package(prefix, classifier, tmp_path):
    for kind in ("relaxide", "static"):
        source = tmp_path / kind
        shutil.copytree(ROOT / "examples" / "cpp", source)
        lists = source / "CMakeLists.txt"
        lists.write_text(lists.read_text().replace("relaxide::relaxide", f"relaxide::{kind}") + "set_target_properties(classify PROPERTIES ENABLE_EXPORTS ON)\n")
        call("cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        call("cmake", "--build", source / "build")
        assert call(source / "build" / "classify", classifier) == "class 0 of 3, with 0.333\n"
    lists.write_text(lists.read_text().replace("relaxide 0.1", "relaxide 99"))
    refused = subprocess.run(["cmake", "-S", source, "-B", tmp_path / "other", f"-DCMAKE_PREFIX_PATH={prefix}"], capture_output=True, text=True, timeout=300)
    assert refused.returncode != 0 and "99" in refused.stderr


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
def test_the_debian_package_is_whole_and_reproducible(library, classifier, tmp_path):
    first, second = (pathlib.Path(call(ROOT / "scripts" / "debian", tmp_path / name, "--library", library).strip()) for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    root = tmp_path / "root"
    call("dpkg-deb", "--extract", first, root)
    assert call("dpkg-deb", "--field", first, "Package").strip() == "librelaxide-dev"
    assert "libc6 (>= 2." in call("dpkg-deb", "--field", first, "Depends")
    (libraries,) = {path.parent for path in root.rglob("librelaxide_runtime.so")}
    env = {**os.environ, "PKG_CONFIG_LIBDIR": str(libraries / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    flags = call("pkg-config", "--cflags", "--libs", "relaxide", env=env).split()
    call("c++", "-O2", "-o", tmp_path / "classify", ROOT / "examples" / "cpp" / "classify.cpp", *flags)
    assert call(tmp_path / "classify", classifier, env={**os.environ, "LD_LIBRARY_PATH": str(libraries)}).startswith("class 0")
    bom = json.loads((root / "usr/share/doc/librelaxide-dev/sbom.cdx.json").read_text())
    references = {each["bom-ref"] for each in [*bom["components"], bom["metadata"]["component"]]}
    assert all(each["ref"] in references and set(each["dependsOn"]) <= references for each in bom["dependencies"])
    assert all(each.get("licenses") and ("hashes" in each or each["name"].startswith("relaxide-")) for each in bom["components"])


@pytest.mark.skipif(shutil.which("dpkg") is None or os.geteuid() != 0, reason="dpkg installs as root")
def test_the_debian_package_installs_and_goes_without_a_trace(library, tmp_path):
    package = call(ROOT / "scripts" / "debian", tmp_path, "--library", library).strip()
    root = tmp_path / "root"
    (root / "var" / "lib" / "dpkg" / "updates").mkdir(parents=True)
    (root / "var" / "lib" / "dpkg" / "info").mkdir()
    (root / "var" / "lib" / "dpkg" / "status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless", "--log=/dev/null"]
    call(*dpkg, "--install", package)
    assert list(root.rglob("relaxide.hpp")) and list(root.rglob("librelaxide_runtime.so"))
    call(*dpkg, "--purge", "librelaxide-dev")
    left = [path for path in root.rglob("*") if path.is_file() and "var/lib/dpkg" not in str(path)]
    assert left == [], left
