"""Writes files with the exporters that this Python has: `python write.py FOLDER [PART OF A NAME]…`.

Each is a small random network or estimator. What an exporter itself refuses is said and left out, and so is a tool that is missing.
"""

import importlib
import sys
import warnings

import case

#: The modules, by the packages that each needs.
TOOLS = {"sklearn_files": "skl2onnx", "boosting_files": "onnxmltools", "torch_files": "torch", "runtime_files": "onnxruntime", "spox_files": "spox"}


def write(folder, parts=()):
    warnings.simplefilter("ignore")
    written, refused = 0, []
    for module, needs in TOOLS.items():
        try:
            importlib.import_module(needs)
        except ImportError:
            print(f"{module}: {needs} is not installed")
            continue
        for name, make, feeds in importlib.import_module(module).files():
            if parts and not any(part in name for part in parts):
                continue
            try:
                case.save(folder, name, make(), feeds)
                written += 1
            except Exception as error:
                refused.append(f"{name}: {' '.join(str(error).split())[:120]}")
    print(f"{written} files; exporters refused {len(refused)}")
    for line in refused:
        print("   ", line)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2:])
