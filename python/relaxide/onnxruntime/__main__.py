"""``python -m relaxide.onnxruntime PROGRAM [ARGUMENT...]``: run a program with Relaxide in ONNX Runtime's place.

The program is a file, or a module behind ``-m``.
"""

import os
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
        # Programs import what lies beside them, as under `python PROGRAM`.
        if not sys.flags.safe_path:
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
