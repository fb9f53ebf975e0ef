"""Runs a WebAssembly module for WASI in Wasmtime, as cargo calls what it has compiled: ``python wasi.py MODULE ARGUMENT...``.

The module sees the folder that it is called in, and a folder for temporary files. What it is compiled to is not optimized: most
of the time is that of compiling.
"""

import os
import sys
import tempfile

from wasmtime import Config, Engine, ExitTrap, Linker, Module, Store, WasiConfig


def main(path, *arguments):
    config = Config()
    config.cranelift_opt_level = "none"
    engine = Engine(config)
    linker = Linker(engine)
    linker.define_wasi()
    wasi = WasiConfig()
    wasi.argv = [path, *arguments]
    wasi.env = [*{**os.environ, "TMPDIR": "/tmp"}.items()]
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir(os.getcwd(), ".")
    wasi.preopen_dir(os.getcwd(), os.getcwd())
    wasi.preopen_dir(tempfile.gettempdir(), "/tmp")
    store = Store(engine)
    store.set_wasi(wasi)
    instance = linker.instantiate(store, Module.from_file(engine, path))
    try:
        instance.exports(store)["_start"](store)
    except ExitTrap as ended:
        return ended.code
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
