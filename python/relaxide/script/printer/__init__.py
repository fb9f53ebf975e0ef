"""Python text from a tree of its parts: ``doc`` has the parts, ``doc_printer`` writes them."""

from . import doc, doc_printer
from .doc_printer import to_python_script

__all__ = ["doc", "doc_printer", "to_python_script"]
