"""Text of LLVM's intermediate language, made of C by Clang."""

import os
import shutil
import subprocess
import tempfile


def find_clang(required=True):
    """The paths of the Clang compilers of this machine, newest first; an empty list where there is none and none is ``required``."""
    names = [f"clang-{version}" for version in range(25, 13, -1)] + ["clang"]
    found = [path for path in map(shutil.which, names) if path]
    if required and not found:
        raise RuntimeError("there is no clang on PATH: install it, or give one with cc=")
    return found


def create_llvm(inputs, output=None, options=None, cc=None):
    """LLVM's text of sources.

    Parameters
    ----------
    inputs : str or list of str
        Files, or source texts of C++.
    output : str, optional
        Where to keep the text too.
    options : list of str, optional
        More options for Clang.
    cc : str, optional
        Which Clang; the newest of the machine where none is given.

    Returns
    -------
    str
    """
    inputs = [inputs] if isinstance(inputs, str) else list(inputs)
    compiler = cc or find_clang()[0]
    with tempfile.TemporaryDirectory(prefix="relaxide-") as folder:
        paths = []
        for at, source in enumerate(inputs):
            if os.path.isfile(source):
                paths.append(source)
                continue
            paths.append(os.path.join(folder, f"input{at}.cc"))
            with open(paths[-1], "w", encoding="utf-8") as file:
                file.write(source)
        made = output or os.path.join(folder, "output.ll")
        command = [compiler, "-S", "-emit-llvm", *(options or []), "-o", made, *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}")
        with open(made, encoding="utf-8") as file:
            return file.read()


__all__ = ["create_llvm", "find_clang"]
