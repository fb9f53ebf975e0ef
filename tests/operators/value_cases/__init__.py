"""Cases of operators with results that NumPy, or a loop in Python, computes: a file for each family of operators.

A case is a call, as TVMScript over `{0}`, `{1}` …, its inputs, and what it gives. Shapes, dtypes and attributes are random.
"""

from . import elementwise, language, networks, products, reductions, shapes, windows
from .case import Case, Random
from .elementwise import NARROW

FAMILIES = (elementwise, reductions, shapes, products, windows, networks, language)
CASES = {name: case for family in FAMILIES for name, case in family.CASES.items()}

__all__ = ["CASES", "FAMILIES", "NARROW", "Case", "Random"]
