"""Times calls by the C++ header beside the same calls by the C interface, in one process and in turns.

usage: calls.py [FOLDER with librelaxide_runtime.so]; by default target/release (`cargo build --release -p relaxide-capi`)
"""

import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cpp"))

from cpp_programs import Plain  # noqa: E402

from relaxide import relax  # noqa: E402


def main():
    library = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "release").resolve()
    with tempfile.TemporaryDirectory() as folder:
        model, program = f"{folder}/plain.so", f"{folder}/calls"
        relax.build(Plain, "llvm").export_library(model)
        flags = ["-O2", "-I", str(ROOT / "crates" / "capi" / "include")]
        subprocess.run(["c++", *flags, "-o", program, str(HERE / "calls.cpp"), str(library / "librelaxide_runtime.so"), f"-Wl,-rpath,{library}"], check=True)
        subprocess.run([program, model], check=True)


if __name__ == "__main__":
    main()
