"""Relax as text: ``parser`` holds the names of ``R`` in programs that are read, ``builder`` those that write programs."""

import sys

from ...script import relax as parser

# The parser's names are one module's, under the names of the files that TVM has them in.
for _part in ("parser", "parser.entry", "parser.parser"):
    sys.modules.setdefault(f"{__name__}.{_part}", parser)


def __getattr__(name):
    import importlib

    if name == "builder":
        return importlib.import_module(f"{__name__}.builder")
    return getattr(parser, name)
