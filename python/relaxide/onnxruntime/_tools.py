"""What ONNX Runtime's own package has beside its sessions: tools in Python, which are found where it is installed."""

import sys
from importlib.machinery import PathFinder

#: Packages of tools, and what they are for.
_NAMES = {
    "backend": "the interface of ONNX's own tests",
    "datasets": "examples of models",
    "quantization": "quantizing models",
    "tools": "converting and checking models",
    "transformers": "optimizing transformers",
}


class _Explains:
    """Asked where nobody else has found a module: says why a package of tools is not there."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        package, _, tool = name.rpartition(".")
        if tool not in _NAMES or package not in (__package__, "onnxruntime"):
            return None
        present = sys.modules.get("onnxruntime")
        if package == "onnxruntime" and (present is None or present.__name__ != __package__):
            return None
        if PathFinder.find_spec("onnxruntime") is None:
            why = f"`onnxruntime.{tool}` ({_NAMES[tool]}) is a part of ONNX Runtime's package, which is not installed: pip install onnxruntime"
        elif package == "onnxruntime":
            why = f"the installed ONNX Runtime has no `onnxruntime.{tool}`, or lacks what it imports"
        else:
            why = f"call relaxide.onnxruntime.install(), then import `onnxruntime.{tool}`, which imports ONNX Runtime by its own name"
        raise ModuleNotFoundError(why, name=name)


def explain():
    """Have imports of tools that are not there say what to do."""
    if _Explains not in sys.meta_path:
        sys.meta_path.append(_Explains)


__all__ = ["explain"]
