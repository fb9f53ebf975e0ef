"""What TVM's releases had beside the compiler."""

from . import graph_executor

__all__ = ["graph_executor"]
