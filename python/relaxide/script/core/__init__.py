"""Parts to read programs with, in Python: trees of its syntax, places in sources, dispatch on words, and evaluation of expressions.

The text of TVMScript is read by the compiler. These parts are for readers of one's own, as for a dialect (``script.register_dialect``).
"""

from . import diagnostics, dispatch, doc, doc_core, entry, error, evaluator, parser, utils

__all__ = ["diagnostics", "dispatch", "doc", "doc_core", "entry", "error", "evaluator", "parser", "utils"]
