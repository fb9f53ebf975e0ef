"""``python -m relaxide.onnxruntime PROGRAM [ARGUMENT...]``: run a program with Relaxide in ONNX Runtime's place.

The program is a file, or a module behind ``-m``.
"""

import runpy
import sys

from relaxide.onnxruntime import install


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if arguments else 2
    install()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            print("error: -m needs the name of a module", file=sys.stderr)
            return 2
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
