"""Makes the files of the current release with the command that is built: `python tests/artifacts/make.py`. Files of releases stay as they are."""

import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
COMMAND = ROOT / "build/relaxide"

#: Rows are multiplied with whole numbers, so that every way to compute them gives the same.
PROGRAM = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 32), "float32"), k: R.Tensor((), "int64")):
        w = R.reshape(R.astype(R.arange(0, 64, 1, "int64"), "float32"), R.shape([32, 2]))
        if R.greater(k, R.const(0, "int64")):
            y = R.nn.relu(R.matmul(x, w))
        else:
            y = R.matmul(x, R.negative(w))
        return (y, R.sum(y, axis=1))
"""

WAYS = {
    "model.so": ["--target", "llvm -mcpu=x86-64"],
    "compiled.so": ["--target", "llvm -mcpu=x86-64", "--exec-mode", "compiled"],
    "aarch64.so": ["--target", "llvm -mtriple=aarch64-linux-gnu"],
    "apart.so": ["--target", "llvm -mcpu=x86-64", "--weights", "safetensors"],
    "model.wasm": ["--target", "wasm"],
}


def main():
    text = (ROOT / "Cargo.toml").read_text()
    version = text.split("[workspace.package]")[1].split('version = "')[1].split('"')[0]
    folder = HERE / version
    folder.mkdir(exist_ok=True)
    source = folder / "model.relax"
    source.write_text(PROGRAM)
    for name, options in WAYS.items():
        subprocess.run([COMMAND, "compile", "-q", source, "-o", folder / name, *options], check=True)


if __name__ == "__main__":
    main()
