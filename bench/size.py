"""How large Relaxide is beside others: what is downloaded, what lies on the disk, and how much of that is native code.

usage: size.py [--runtime]

The package of Relaxide is the one in this checkout, packed as a wheel would be (a zip file). The build here links to the system's LLVM, so
that its libraries count as well; the wheel that ``make release`` makes has LLVM inside, and is told where it is there (in dist/), as is the
runtime's alone (``scripts/wheel``). Peers
are the wheels that pip finds for this machine, without what they need besides. With ``--runtime``, the runtime for programs that hold a
compiled model is built as well (``scripts/size``), which is the size that a device sees.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]

#: Packages of peers, and what they are.
PEERS = {
    "apache-tvm": "compiler and runtime",
    "apache-tvm-ffi": "of TVM: its object system, which its runtime needs",
    "onnxruntime": "compiler and runtime",
    "openvino": "compiler and runtime",
    "executorch": "compiler and runtime (wants torch besides)",
}


def is_native(path):
    return path.suffix in {".so", ".a", ".dylib", ".dll"} or ".so." in path.name


def sizes_of(folder):
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sum(path.stat().st_size for path in files), sum(path.stat().st_size for path in files if is_native(path))


#: What every system has.
EVERYWHERE = ("linux-vdso", "libc.so", "libm.so", "libgcc_s", "libstdc++", "libdl", "libpthread", "librt", "ld-linux")


def linked(library):
    """The system's libraries that a library needs, but for those that every system has."""
    told = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    found = [line.split("=>")[1].split("(")[0].strip() for line in told.splitlines() if "=>" in line]
    return [pathlib.Path(path).resolve() for path in found if not pathlib.Path(path).name.startswith(EVERYWHERE)]


def own(scratch, others):
    """The package in this checkout, with other libraries: packed, unpacked and native bytes."""
    package = ROOT / "python" / "relaxide"
    wheel = scratch / "relaxide.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                archive.write(path, path.relative_to(package.parent))
        for path in others:
            archive.write(path, path.name)
    more = sum(path.stat().st_size for path in others)
    installed, native = sizes_of(package)
    return wheel.stat().st_size, installed + more, native + more


def unpacked(wheel, folder):
    """A wheel: packed, unpacked and native bytes."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return wheel.stat().st_size, *sizes_of(folder)


def peer(name, scratch):
    """A wheel that pip finds: packed, unpacked and native bytes; nothing where it finds none."""
    folder = scratch / name
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", folder, name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    (wheel,) = folder.glob("*.whl")
    return wheel.name.split("-")[1], unpacked(wheel, folder / "unpacked")


def row(name, numbers, ours, what):
    packed, unpacked, native = (f"{n / 1e6:.1f}" for n in numbers)
    ratio = f"{numbers[0] / ours[0]:.2f}"
    print(f"{name:<36} {packed:>10} {unpacked:>10} {native:>10} {ratio:>8}  {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runtime", action="store_true", help="build the runtime for deployment and print its size too")
    options = parser.parse_args()
    print(f"{'MB':<36} {'download':>10} {'installed':>10} {'native':>10} {'of ours':>8}")
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        (extension,) = (ROOT / "python" / "relaxide").glob("_core*.so")
        system = linked(extension)
        ours = own(scratch, system)
        row("relaxide", ours, ours, f"compiler and runtime, with {', '.join(path.name for path in system)}")
        row("relaxide, without those", own(scratch, []), ours, "as it is built here")
        for number, wheel in enumerate(sorted((ROOT / "dist").glob("relaxide*.whl"))):
            name = "relaxide-runtime, without compiler" if wheel.name.startswith("relaxide_runtime") else "relaxide, as released"
            row(name, unpacked(wheel, scratch / f"released{number}"), ours, wheel.name)
        for name, what in PEERS.items():
            found = peer(name, scratch)
            if found is None:
                print(f"{name:<36} pip finds no wheel for this machine")
            else:
                row(f"{name} {found[0]}", found[1], ours, what)
    command = ROOT / "build" / "relaxide"
    if command.exists():
        print(f"{'the command':<36} {'':>10} {command.stat().st_size / 1e6:>10.1f}")
    if options.runtime:
        subprocess.run([ROOT / "scripts" / "size"], check=True)


if __name__ == "__main__":
    main()
