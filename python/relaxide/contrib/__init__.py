"""What TVM's releases had beside the compiler."""

from . import download, graph_executor


def __getattr__(name):
    # What needs NumPy is loaded where a program asks for it.
    if name in ("cblas", "dlpack", "pickle_memoize", "random", "tvmjs"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["download", "graph_executor"]
