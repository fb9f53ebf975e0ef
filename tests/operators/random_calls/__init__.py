"""Random calls of operators, as TVMScript: what the tests of types and of hooks go through; a file for each family of operators.

A generator gets a :class:`Draw` and returns the text of a call; tensors that it asks for become parameters of the function
around the call. Most calls are right, some are wrong on purpose: ranks, axes, dtypes and sizes that do not fit.
"""

from . import elementwise, images, language, networks, products, reductions, shapes, windows
from .draw import Draw

FAMILIES = (elementwise, reductions, shapes, products, windows, images, networks, language)
CALLS = {name: call for family in FAMILIES for name, call in family.CALLS.items()}


def module(name, seed):
    """A module whose function binds `y` to a random call of an operator."""
    draw = Draw(f"{name}/{seed}")
    call = CALLS[name](draw)
    symbols = "".join(f"        {s} = T.int64()\n" for s in sorted(draw.symbols))
    return (
        "# from tvm.script import ir as I\n# from tvm.script import tirx as T\n# from tvm.script import relax as R\n\n"
        f"@I.ir_module\nclass Module:\n    @R.function\n    def main({draw.signature()}):\n{symbols}        y = {call}\n        return y\n"
    )
